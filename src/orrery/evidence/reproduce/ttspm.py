"""TTSPM: the shared law of tries and rounds, its saturation, and the same by drawing."""

from collections.abc import Iterator

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper
from orrery.evidence.reproduce.prediction import Prediction
from orrery.reasoning.coverage import absorbed, coverage, drawn_coverage, gain_frac, saturation_tries


def predict(paper: Paper) -> Iterator[Prediction]:
    """What the next try adds where it stops paying; the two laws; the two laws drawn."""
    setup = paper.setups["law"]
    p, tries = setup.number("success_frac"), int(setup.number("num_tries"))
    ceiling, least = setup.number("ceiling_frac"), setup.number("least_gain_frac")
    enough = saturation_tries(p, least, ceiling)
    last = gain_frac(p, max(enough - 1, 0), ceiling)
    words = f"{enough} tries of {p:g} each are enough; the last of them added {last:.2g}"
    yield Prediction(claim="beyond-saturation", predicted=gain_frac(p, enough, ceiling), because=words)
    apart = max(abs(float(coverage(p, n)) - absorbed(p, n)) for n in range(1, tries + 1))
    yield Prediction(claim="one-form", predicted=apart, because=f"largest of 1 to {tries} tries and rounds")
    few = max(1, enough // 2)
    drawn = drawn_coverage(p, few, int(setup.number("num_samples")), stream(0, "tries"))
    for claim, found in zip(("closed-form-parallel", "closed-form-sequential"), drawn, strict=True):
        right = float(coverage(p, few))
        words = f"{few} of them: {right:.4f} by the law, {found:.4f} drawn"
        yield Prediction(claim=claim, predicted=abs(found - right), because=words)

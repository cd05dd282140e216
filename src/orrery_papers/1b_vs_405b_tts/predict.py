"""1B against 405B: operations of many answers of a small model and of one answer of a large one."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.reasoning.graph import Problem
from orrery.reasoning.matched import answer_flops
from orrery.reasoning.shape import graph_of

VERIFIER = "qwen2.5-7b"
"""The size of the usual process verifiers: [unstated] verifier."""

DIFFERS = (
    "tries, lengths and what is counted, none of which was found: reading every answer takes a 7B verifier more than a "
    "smaller model takes to write it, and a model of experts computes with few of its parameters"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Each pair whose weights are published."""
    for claim in paper.claims:
        if not claim.missing:
            large, small, verified = flops(claim.setup)
            words = f"{verified:.3g} flops with a 7B verifier, {small:.3g} of them answers, against {large:.3g}"
            yield Prediction(claim=claim.id, predicted=large / verified, because=words, differs=DIFFERS)


def flops(setup: Setup) -> tuple[float, float, float]:
    """One large answer, the small model's answers, and those with a verifier that reads each."""
    prompt, tries = setup.number("input_tokens"), setup.number("num_tries")
    (small_tokens,) = setup.numbers("trace_tokens")
    once = graph_of(
        "majority-vote", Problem(prompt_tokens=prompt, answer_tokens=setup.number("output_tokens")), num_samples=1
    )
    often = graph_of("best-of-n", Problem(prompt_tokens=prompt, answer_tokens=small_tokens), num_samples=int(tries))
    small = {"solver": get_model(setup.word("small_model"))}
    return (
        answer_flops(once, {"solver": get_model(setup.word("model"))}),
        answer_flops(often, small),
        answer_flops(often, {**small, "verifier": get_model(VERIFIER)}),
    )

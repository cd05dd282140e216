"""MASHA: bits until a saddle point is found, with compressed differences and with whole messages."""

from collections.abc import Iterator, Mapping

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

WEIGHT_RATIO = 0.02
"""Pull of both players to zero, against a steepness of one."""

DIFFERS = {
    "random": "the problem, which was not at hand",
    "largest": "the problem: in a drawn one no few numbers matter most, so what is left out must be sent later, and "
    "positions cost bits too",
}
BOTH = (
    "compressed both ways, steps must shorten at least as much as messages do, as theory says for any number of "
    "workers; that what the server sends is compressed may save time, but it saves no bits here"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Each method at its best step length: bits that workers send, then bits both ways."""
    found: dict[str, Mapping[str, tuple[float, float]]] = {}
    for claim in paper.claims:
        method, is_both = claim.id.removesuffix("-both-ways"), claim.id.endswith("-both-ways")
        down = "compressed" if is_both else "whole"
        if down not in found:
            found[down] = gains(claim.setup, down)
        gain, theory = found[down][method]
        counted = "bits up and down for a worker" if is_both else "bits that a worker sends"
        says = f"; steps that surely converge would give {theory:.2f}" if method == "random" else ""
        yield Prediction(
            claim=claim.id,
            predicted=gain,
            differs=BOTH if is_both else DIFFERS[method],
            because=f"{counted}, at the best of six step lengths{says}",
        )


def gains(setup: Setup, down: str) -> Mapping[str, tuple[float, float]]:
    """``orrery experiment compressed-saddle`` on the set-up's sizes: bits saved at the target and by theory."""
    sizes = {
        "workers": f"{setup.number('num_workers'):.0f}",
        "features": f"{setup.number('num_features'):.0f}",
        "keep": f"{setup.number('kept_frac'):g}",
        "spread_ratio": f"{setup.number('client_spread_ratio'):g}",
        "weight_ratio": f"{WEIGHT_RATIO:g}",
        "down": down,
    }
    found = run_experiment(
        "compressed-saddle",
        steps=int(setup.number("num_steps")),
        sizes=[f"{name}={value}" for name, value in sizes.items()],
    )
    return {str(row["method"]): (float(row["gain_at_target"]), float(row["guaranteed_gain"])) for row in found.rows}

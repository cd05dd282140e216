"""MASHA: bits until a saddle point is found, with compressed differences and with whole messages."""

from collections.abc import Iterator, Mapping

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

WEIGHT_RATIO = 0.02
"""Pull of both players to zero, against a steepness of one."""

DIFFERS = (
    "compressed both ways, steps must shorten about as much as messages do, so bits are only as few as those of whole "
    "messages; the paper's problem and its way to count bits were not at hand"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Each method at its best step length."""
    for claim in paper.claims:
        both, up = (gains(claim.setup, down)[claim.id] for down in ("compressed", "whole"))
        yield Prediction(
            claim=claim.id,
            predicted=both,
            differs=DIFFERS,
            because="bits up and down for a worker; where the server's messages travel whole and only what is sent up "
            f"counts {up:.2f}, which grows with the number of workers",
        )


def gains(setup: Setup, down: str) -> Mapping[str, float]:
    """``orrery experiment compressed-saddle`` with the set-up's sizes: bits saved at the target, by method."""
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
    return {str(row["method"]): float(row["gain_at_target"]) for row in found.rows}

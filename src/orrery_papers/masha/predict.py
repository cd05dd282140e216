"""MASHA: bits until a saddle point is found, with compressed differences and with whole messages."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.fleet.decentral.registry import get_compressor
from orrery.fleet.decentral.saddle import compressed, extragradient, game

STEPS = (1.0, 0.7, 0.5, 0.35)
"""Lengths of a step that are tried, against one over the steepness."""

WEIGHT_RATIO = 0.02
"""What draws both players to zero, against a steepness of one."""

TARGET_FRAC = 1e-3

NAMES = {"random": ("send-random", False), "largest": ("send-largest", True)}
"""Compressor of each method, and whether it remembers what it left out."""

DIFFERS = (
    "compressed both ways, steps must shorten about as much as messages do, so bits are only as few as those of whole "
    "messages; the paper's problem and its way to count bits were not at hand"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Each method at its best step length."""
    for claim in paper.claims:
        setup = claim.setup
        of = game(
            int(setup.number("num_workers")), int(setup.number("num_features")), WEIGHT_RATIO,
            setup.number("client_spread_ratio"),
        )  # fmt: skip
        most, kept_frac = int(setup.number("num_steps")), setup.number("kept_frac")
        plain = min(extragradient(of, step, most, TARGET_FRAC).bits_to(TARGET_FRAC) for step in STEPS)
        name, remembers = NAMES[claim.id]
        technique = get_compressor(name)
        knobs = technique.knobs(kept_frac=kept_frac)
        best = min(
            compressed(
                of, technique, knobs, remembers=remembers, move_frac=kept_frac, step_ratio=step, num_steps=most,
                until_frac=TARGET_FRAC,
            ).bits_to(TARGET_FRAC)
            for step in STEPS
        )  # fmt: skip
        yield Prediction(
            claim=claim.id, predicted=plain / best, differs=DIFFERS,
            because=f"{best / 1e6:.2f} Mbit up and down for a worker, not {plain / 1e6:.2f}",
        )  # fmt: skip

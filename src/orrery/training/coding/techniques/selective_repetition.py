"""Selective repetition: a smaller gradient code, and lost answers are computed again some rounds later."""

from orrery.base.technique import Technique
from orrery.training.coding.scheme import CodingKnobs, Scheme
from orrery.training.coding.selective import SelectiveRepetition


def rule(num_workers: int, knobs: CodingKnobs) -> Scheme:
    """SR-SGC for (B, W, lambda)-bursty stragglers."""
    return SelectiveRepetition.of(num_workers, knobs)


TECHNIQUE = Technique(
    name="selective-repetition",
    word="selective",
    extension_point="training.straggler",
    rule=rule,
    knobs=CodingKnobs,
    gains="Bursts of stragglers are ridden out with less redundant work than a plain gradient code.",
    costs="Gradients come B rounds late, so several models must train in turn; the load is still near the code's.",
    claims=("krishnan-2023",),
)

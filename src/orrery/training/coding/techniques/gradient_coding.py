"""Gradient coding: every worker sends one coded sum a round, and any s of them may be missing."""

from orrery.base.technique import Technique
from orrery.training.coding.gradient_code import gradient_code
from orrery.training.coding.plain import Plain
from orrery.training.coding.scheme import CodingKnobs, Scheme


def rule(num_workers: int, knobs: CodingKnobs) -> Scheme:
    """An (n, s) code for every round by itself; bursts play no part."""
    return Plain(code=gradient_code(num_workers, knobs.num_stragglers))


TECHNIQUE = Technique(
    name="gradient-coding",
    word="gradient",
    extension_point="training.straggler",
    rule=rule,
    knobs=CodingKnobs,
    gains="A round ends without its s slowest workers, whichever they are, and the gradient is exact.",
    costs="Every worker computes s + 1 times its share of the data, in every round.",
    claims=("tandon-2017",),
)

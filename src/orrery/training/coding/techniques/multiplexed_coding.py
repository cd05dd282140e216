"""Multiplexed coding: most data is computed once and again only if lost; a little is coded; rounds of jobs overlap."""

from orrery.base.technique import Technique
from orrery.training.coding.multiplexed import Multiplexed
from orrery.training.coding.scheme import CodingKnobs, Scheme


def rule(num_workers: int, knobs: CodingKnobs) -> Scheme:
    """M-SGC for (B, W, lambda)-bursty stragglers."""
    return Multiplexed.of(num_workers, knobs)


TECHNIQUE = Technique(
    name="multiplexed-coding",
    word="multiplexed",
    extension_point="training.straggler",
    rule=rule,
    knobs=CodingKnobs,
    gains="A worker's load is about (W - 1 + B) / (W - 1) of its plain share, however many stragglers are allowed.",
    costs="Gradients come W - 2 + B rounds late, so as many models must train in turn, and longer bursts hold it up.",
    claims=("krishnan-2023",),
)

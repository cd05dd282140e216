"""A chain of filters between a source of messages and a store: what each stage receives, computes and lets through.

Of what reaches a stage it keeps a share of the relevant messages and another of the rest. A link brings every message
that reaches it, and every one is computed on, so what an early stage throws away no later one pays for. Olin-Ammentorp,
Wu and Chien, arXiv 2407.00123.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One stage; a message is what reaches it."""

    relevant_kept_frac: float
    other_kept_frac: float
    message_bytes: float
    message_flops: float
    energy_j_per_bytes: float
    energy_j_per_flops: float
    idle_w: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Messages a second, before a stage or after the last one, and what the stage draws."""

    relevant_hz: float
    other_hz: float
    link_w: float = 0.0
    compute_w: float = 0.0

    @property
    def total_hz(self) -> float:
        """All messages."""
        return self.relevant_hz + self.other_hz

    @property
    def total_w(self) -> float:
        """Link and computing."""
        return self.link_w + self.compute_w


def through(stages: Iterable[Filter], rate_hz: float, relevant_frac: float) -> tuple[Flow, ...]:
    """The flow into each stage, with its draw; that out of the last one comes last."""
    relevant, other = rate_hz * relevant_frac, rate_hz * (1.0 - relevant_frac)
    found: list[Flow] = []
    for stage in stages:
        rate = relevant + other
        link_w = rate * stage.message_bytes * stage.energy_j_per_bytes
        compute_w = rate * stage.message_flops * stage.energy_j_per_flops + stage.idle_w
        found.append(Flow(relevant_hz=relevant, other_hz=other, link_w=link_w, compute_w=compute_w))
        relevant, other = relevant * stage.relevant_kept_frac, other * stage.other_kept_frac
    return (*found, Flow(relevant_hz=relevant, other_hz=other))


def f1_frac(first: Flow, last: Flow) -> float:
    """Twice what is relevant and kept, over all that is kept and all that is relevant."""
    whole = last.total_hz + first.relevant_hz
    return 2.0 * last.relevant_hz / whole if whole else 0.0

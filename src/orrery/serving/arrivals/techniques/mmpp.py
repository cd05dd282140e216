"""Markov-modulated Poisson: calm and busy spells, each a Poisson stream of its own rate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.serving.arrivals.clock import Floats, unit_arrivals
from orrery.serving.arrivals.limits import TINY, check

MAX_SPELLS = 20_000_000
"""More spells than this are not drawn: spells so short beside the gaps that the traffic is Poisson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MmppStates:
    """Kinds of spell, visited in turn and for ever: their rates relative to each other, and how long they last."""

    rates_ratio: Sequence[float] = (1.0, 10.0)
    dwells_s: Sequence[float] = (60.0, 6.0)  # means; each stay is exponential

    def __post_init__(self) -> None:
        if len(self.rates_ratio) != len(self.dwells_s) or len(self.rates_ratio) < 2:
            raise ScenarioError(
                f"arrivals: rates_ratio, dwells_s: got {len(self.rates_ratio)} and {len(self.dwells_s)} numbers; "
                "write two or more of each, one a kind of spell, such as (1, 10) and (60, 6)."
            )
        for rate in self.rates_ratio:
            check("rates_ratio", rate, least=0.0, most=1e9, write="numbers from 0, such as (1, 10)")
        for dwell in self.dwells_s:
            check("dwells_s", dwell, least=TINY, most=1e12, write="seconds above 0, such as (60, 6)")
        if not sum(self.rates_ratio) > 0:
            raise ScenarioError("arrivals: rates_ratio: all are 0; write at least one above 0, such as (0, 1).")


def rule(count: int, rate_per_s: float, stream: np.random.Generator, knobs: MmppStates) -> Floats:
    """Unit arrivals read on the clock of the rate's path; the long-run mean of the rates is the rate asked for.

    Spell i has rate r_i = rate ratio_i sum(d) / sum(ratio d) for an exponential time of mean d_i; the first spell is
    drawn by the share of time of each kind, so the path starts in its steady state.
    """
    dwell, ratio = np.array(knobs.dwells_s, dtype=float), np.array(knobs.rates_ratio, dtype=float)
    path, units = stream.spawn(2)
    target_arrivals = unit_arrivals(count, units)
    order = np.roll(np.arange(dwell.size), -int(path.choice(dwell.size, p=dwell / dwell.sum())))
    dwell, rates = dwell[order], (ratio * (rate_per_s * dwell.sum() / (ratio * dwell).sum()))[order]
    rounds = target_arrivals[-1] / (rate_per_s * dwell.sum())
    if rounds * dwell.size > MAX_SPELLS:
        raise ScenarioError(
            f"arrivals: dwells_s: got {tuple(knobs.dwells_s)}: {rounds * dwell.size:.2g} spells in this run; "
            'write longer ones, or law = "poisson", which spells so short amount to.'
        )
    stays = np.zeros((0, dwell.size))
    while (stays * rates).sum() < target_arrivals[-1]:
        stays = np.concatenate((stays, path.standard_exponential((int(rounds * 0.2) + 16, dwell.size)) * dwell))
    until, reached = np.cumsum(stays), np.cumsum(stays * rates)
    return np.interp(target_arrivals, np.concatenate(([0.0], reached)), np.concatenate(([0.0], until)))


TECHNIQUE = Technique(
    name="mmpp",
    extension_point="serving.arrivals",
    rule=rule,
    knobs=MmppStates,
    gains="Bursts that last: a busy spell fills a queue as real surges do.",
    costs="Two numbers a kind of spell, which take a long trace to measure.",
    claims=("fischer-1993",),
)

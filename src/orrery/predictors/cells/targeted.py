"""Search for one device: expected latency from a table of blocks, at no less work than a network that is to be beaten.

    loss = log(expected latency) + weight x max(0, log(wanted work / expected work))

A block's entry is what it takes when it alone is repeated, and the sum over choices of probability times entry is the
expectation [cai-2019-proxylessnas]. Work in multiply-adds stands in for quality: what is trained is not modelled.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.predictors.cells.latency import Machine
from orrery.predictors.cells.search import search
from orrery.predictors.cells.space import Cells
from orrery.predictors.learn.extra import learning_package

WORK_WEIGHT = 10.0
"""A lack of work outweighs what it saves in time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Targeted:
    """The fastest network of a search that has the wanted work."""

    cell: Cells  # one line
    latency_s: float
    flops: float


def found_for(machine: Machine, wanted_flops: float, num_runs: int, steps: int, seed: int) -> Targeted:
    """Several runs from drawn beginnings; the one with enough work that is fastest, or else the one with most."""
    space, plan = machine.plan.space, machine.plan
    constant_s, column_s = plan.by_column(machine.alone_s())
    constant, column = plan.by_column(plan.flops)
    anp = learning_package("autograd.numpy")

    def loss(lines: Any) -> Any:
        lack = anp.log(wanted_flops) - anp.log(constant + lines @ column)
        return anp.log(constant_s + lines @ column_s) + WORK_WEIGHT * anp.maximum(lack, 0.0)

    cells = search(space, loss, num_runs, steps, np.random.default_rng([seed, 61]), _quietly)
    latency_s, flops = machine.latency_s(cells), plan.total(plan.flops, cells)
    has_work = flops >= wanted_flops
    best = int(np.where(has_work, latency_s, np.inf).argmin() if has_work.any() else flops.argmax())
    return Targeted(cell=cells[best : best + 1], latency_s=float(latency_s[best]), flops=float(flops[best]))


def _quietly() -> None:
    """Steps that nobody watches."""

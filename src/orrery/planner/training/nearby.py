"""Layouts near one that does not work: the smallest change that makes sense, and the smallest that fits."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import log2

import numpy as np

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import Recompute, Sharding, TrainingLayout
from orrery.planner.training.space import FixedSettings, divisors, families
from orrery.training.allowed import broken
from orrery.training.columns import columns_of
from orrery.training.memory import room_bytes
from orrery.training.step import step_of

MAX_FAMILIES = 48
"""Ways to cut the model that are looked at, the nearest first."""

DEGREES = ("tp", "cp", "pp", "dp", "ep", "etp")
CHOICES = ("vp", "schedule", "micro_batch", "sharding", "recompute", "first_stage_layers", "last_stage_layers")


def nearest_sensible(job: TrainingJob, layout: TrainingLayout) -> TrainingLayout | None:
    """The layout on the same devices that differs least and breaks no rule."""
    tried = list(_candidates(job, layout, keeps_choices=True))
    ok = [x for x, good in zip(tried, _sensible(job, tried), strict=True) if good]
    return min(ok, key=lambda x: _distance(x, layout), default=None)


def cheapest_fit(job: TrainingJob, layout: TrainingLayout) -> str:
    """Describe the change that fits a layout into memory: the fewest settings, of these the fastest; empty = none."""
    tried = list(_candidates(job, layout, keeps_choices=False))
    tried = [x for x, good in zip(tried, _sensible(job, tried), strict=True) if good]
    if not tried:
        return ""
    steps = step_of(job, columns_of(tried))
    fits = np.flatnonzero(steps.memory_bytes <= room_bytes(job))
    if not fits.size:
        return ""
    best = min(fits.tolist(), key=lambda i: (len(changes(layout, tried[i])), float(steps.time_s[i])))
    return ", ".join(changes(layout, tried[best]))


def changes(a: TrainingLayout, b: TrainingLayout) -> list[str]:
    """Changes from a to b: ``["tp = 4", "recompute = full"]``; consequences (dp) are left out."""
    names = ("tp", "cp", "pp", "vp", "ep", "micro_batch", "sharding", "recompute", "schedule")
    return [f"{n} = {getattr(b, n)}" for n in names if getattr(a, n) != getattr(b, n)]


def _sensible(job: TrainingJob, layouts: list[TrainingLayout]) -> list[bool]:
    if not layouts:
        return []
    bad = np.zeros(len(layouts), dtype=np.bool_)
    for mask in broken(job, columns_of(layouts)).values():
        bad |= mask
    return [not b for b in bad.tolist()]


def _candidates(job: TrainingJob, layout: TrainingLayout, *, keeps_choices: bool) -> Iterator[TrainingLayout]:
    """Layouts on the same devices, near ones first; choices that cost no devices vary only where asked."""
    near = sorted(families(job, FixedSettings()), key=lambda f: _distance_of(f, layout))[:MAX_FAMILIES]
    for f in near:
        sizes = {n: getattr(f, n) for n in DEGREES}
        micro = divisors(job.global_batch // f.dp, 64)
        nearest_micro = min(micro, key=lambda n: abs(log2(n / layout.micro_batch)))
        same = replace(layout, **sizes, sharding_group=0, secondary_group=0, micro_batch=nearest_micro)
        description = (
            {(layout.first_stage_layers, layout.last_stage_layers)} if f.pp == layout.pp else set[tuple[int, int]]()
        )
        pipes = product({(layout.vp, layout.schedule), (1, "1f1b")}, description | {(0, 0)})
        for (vp, schedule), (first, last) in pipes:
            one = replace(
                same, vp=vp if f.pp > 1 else 1, schedule=schedule, first_stage_layers=first, last_stage_layers=last
            )
            if keeps_choices:
                yield one
                continue
            yield from _easier(one, micro)


def _easier(one: TrainingLayout, micro: list[int]) -> Iterator[TrainingLayout]:
    """The same cut with less in memory: smaller micro-batches, more sharing, more recomputation."""
    recomputes: tuple[Recompute, ...] = ("none", "selective", "full")
    shardings: tuple[Sharding, ...] = ("none", "zero1", "zero3")
    batches = sorted({one.micro_batch, *(n for n in micro if n <= one.micro_batch)})[-4:]
    for recompute, sharding, batch in product(recomputes, shardings, batches):
        if recomputes.index(recompute) >= recomputes.index(one.recompute):
            yield replace(one, recompute=recompute, sharding=sharding, micro_batch=batch)


def _distance(a: TrainingLayout, b: TrainingLayout) -> float:
    other = sum(getattr(a, n) != getattr(b, n) for n in CHOICES)
    return _distance_of(a, b) + 0.5 * other


def _distance_of(a: object, b: TrainingLayout) -> float:
    """Doublings between the degrees of two layouts; data parallelism follows from the rest and counts little."""
    weights = {n: 0.1 if n == "dp" else 1.0 for n in DEGREES}
    return sum(w * abs(log2(getattr(a, n) / getattr(b, n))) for n, w in weights.items())

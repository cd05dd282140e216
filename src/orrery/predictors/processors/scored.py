"""Machines with scores, to learn from: processors in many set-ups, with noise, and features that nobody noted.

Few processors are sold, so those to learn from may be varied: cores, clocks, cache and power around the real ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.predictors.processors.machine import Machine, Processor
from orrery.predictors.processors.suites import MATRIX_ACTIVITY_RATIO, SUITES, VECTOR_ACTIVITY_RATIO

GROUPS: dict[str, tuple[str, ...]] = {
    "cores": ("cores", "threads a core", "base clock", "clock with all cores"),
    "vectors": ("vector clock", "matrix clock"),
    "caches": ("last-level cache", "cache a core"),
    "memory": ("channels filled", "transfers", "memory on the package", "capacity"),
    "machine": ("sockets", "power limit", "power asked for", "turbo"),
}
"""Features of a machine by subsystem."""

FEATURES = tuple(name for names in GROUPS.values() for name in names)
GROUP_OF = tuple(i for i, names in enumerate(GROUPS.values()) for _ in names)

NOISE = 0.015
"""Standard deviation of the logarithm of a score over that of the mechanism; assumed."""

MISSING_FRAC = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A row a machine: logarithms of features and scores, and which features are missing."""

    features: NDArray[Any]
    is_missing: NDArray[np.bool_]
    scores: NDArray[Any]

    def inputs(self, like: "Table") -> NDArray[np.float32]:
        """Features in standard deviations over the rows of ``like``, noughts where missing, then the flags."""
        known = np.where(like.is_missing, np.nan, like.features)
        scaled = (self.features - np.nanmean(known, axis=0)) / np.maximum(np.nanstd(known, axis=0), 1e-6)
        return np.hstack([np.where(self.is_missing, 0.0, scaled), self.is_missing]).astype(np.float32)


def scored_machines(kinds: Sequence[Processor], *, num_each: int, seed: int, spread: float = 0.0) -> Table:
    """As many set-ups of every processor; ``spread`` is the deviation of the logarithms around its figures."""
    rng = np.random.default_rng([seed, 20])
    machines = [set_up(varied(kind, spread, rng), rng) for kind in kinds for _ in range(num_each)]
    features = np.log(np.array([_features(machine, rng) for machine in machines]))
    scores = np.log(np.stack([suite(machines) for suite in SUITES.values()], axis=1))
    return Table(
        features=features,
        is_missing=rng.random(features.shape) < MISSING_FRAC,
        scores=scores + NOISE * rng.standard_normal(scores.shape),
    )


def varied(processor: Processor, spread: float, rng: np.random.Generator) -> Processor:
    """A processor that might be sold beside this one."""
    cores, clock, cache, watts = np.exp(spread * rng.standard_normal(4))
    return replace(
        processor,
        num_cores=max(4, round(processor.num_cores * cores)),
        base_clock_hz=processor.base_clock_hz * clock,
        all_core_clock_hz=processor.all_core_clock_hz * clock,
        last_level_cache_bytes=processor.last_level_cache_bytes * cache,
        power_limit_w=processor.power_limit_w * watts,
    )


def set_up(processor: Processor, rng: np.random.Generator) -> Machine:
    """A machine that somebody might build of it."""
    sockets = [n for n in (1, 2, 4) if n <= processor.num_most_sockets]
    return Machine(
        processor=processor,
        num_sockets=int(rng.choice(sockets)),
        num_threads_per_core=int(rng.choice([1, 2, 2])),
        num_channels=int(rng.choice([4, 8, 8])),
        memory_hz=float(rng.choice([4.0e9, 4.4e9, 4.8e9])),
        power_frac=float(rng.choice([0.7, 0.85, 1.0])),
        has_turbo=bool(rng.random() < 0.8),
    )


def _features(machine: Machine, rng: np.random.Generator) -> list[float]:
    """In the order of ``FEATURES``; the capacity moves no score."""
    p = machine.processor
    return [
        p.num_cores,
        machine.num_threads_per_core,
        p.base_clock_hz,
        machine.clock_hz(),
        machine.clock_hz(VECTOR_ACTIVITY_RATIO),
        machine.clock_hz(MATRIX_ACTIVITY_RATIO),
        p.last_level_cache_bytes,
        p.last_level_cache_bytes / p.num_cores,
        machine.num_channels,
        min(machine.memory_hz, p.memory_hz),
        2.0 if p.has_package_memory else 1.0,
        float(rng.choice([256e9, 512e9, 1024e9])),
        machine.num_sockets,
        p.power_limit_w,
        machine.power_frac,
        2.0 if machine.has_turbo else 1.0,
    ]

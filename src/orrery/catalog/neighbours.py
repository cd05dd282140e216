"""Constants of kernels on a device of a generation that nobody measured: those of measured devices, by likeness.

Two numbers of a data sheet tell which kernels a device's are like: how long its last-level cache lasts at the memory's
bandwidth, and how much of that bandwidth each compute unit gets. They part cards with much cache and slow memory from
those with little and fast, whose kernels wait for other things. A generation weighs exp(-d^2 / (2 w^2)), d being the
distance of the logarithms and w ``width``; its devices weigh the same. Constants are averaged in logarithms, choices of
how a kernel is built are the heaviest side's. Width and intervals come from generations left out in turn
(``tools/device_left_out.py``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import exp, log, prod
from pathlib import Path

from orrery.base.cost import Spread
from orrery.base.sources import read_toml
from orrery.base.units import percent
from orrery.catalog.calibrations import Key, measured
from orrery.catalog.device_file import read_device
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device

FILE = Path(__file__).parent / "facts" / "neighbours.toml"
DEVICES = Path(__file__).parent / "facts" / "devices"
MIN_CACHE_BYTES = 1e6
MIN_WEIGHT = 1e-9
"""Weight of a generation that nothing is like: alone, it still answers."""


def _place(device: Device) -> tuple[float, float]:
    """Where a device stands: logarithms of its cache's seconds, and of a compute unit's share of the bandwidth."""
    bandwidth = device.memory_bandwidth_bytes_per_s
    cache_bytes = max(device.last_level_cache_bytes, MIN_CACHE_BYTES)
    return log(cache_bytes / bandwidth), log(bandwidth / max(device.num_compute_units, 1))


def likeness(one: Device, other: Device, width: float) -> float:
    """Weight of one device's constants on the other, from 0 to 1."""
    distance = sum((a - b) ** 2 for a, b in zip(_place(one), _place(other), strict=True))
    return exp(-distance / (2.0 * width * width))


def average(sets: Sequence[Mapping[str, float]], weights: Sequence[float]) -> dict[str, float]:
    """Constants that several sets have in common: logarithms averaged; whole numbers are choices, and voted on."""
    total = sum(weights)
    found: dict[str, float] = {}
    for name in sets[0]:
        if not all(name in constants for constants in sets):
            continue
        values = [constants[name] for constants in sets]
        if all(float(v).is_integer() for v in values):
            votes = {v: sum(w for x, w in zip(values, weights, strict=True) if x == v) for v in values}
            found[name] = max(votes, key=lambda v: votes[v])
        elif min(values) > 0.0:
            found[name] = prod(v ** (w / total) for v, w in zip(values, weights, strict=True))
        else:
            found[name] = sum(v * w for v, w in zip(values, weights, strict=True)) / total
    return found


@cache
def _measured_device(name: str) -> Device:
    return read_device(DEVICES / f"{name}.toml")


@cache
def known_generations() -> frozenset[str]:
    """Generations of all catalogued devices."""
    return frozenset(_measured_device(path.stem).generation for path in DEVICES.glob("*.toml"))


@cache
def spreads() -> tuple[float, Mapping[str, Spread]]:
    """(width of likeness, interval of each op), as the last run of the tool found them."""
    raw = read_toml(FILE)
    found = {
        op: Spread(
            low_80_ratio=table["low_80"],
            high_80_ratio=table["high_80"],
            low_95_ratio=table["low_95"],
            high_95_ratio=table["high_95"],
        )
        for op, table in raw["spread"].items()
    }
    return float(raw["likeness"]["width"]), found


def by_likeness(
    device: Device, entries: Mapping[str, Mapping[Key, Calibration]], width: float, ops: Iterable[str]
) -> dict[Key, Calibration]:
    """Constants for ``device`` out of those of other devices, for kernels that two generations or more were timed in.

    ``entries``: constants that were measured, by device.
    """
    scope = frozenset(ops)
    groups: dict[Key, dict[str, list[tuple[str, Calibration]]]] = {}
    for name, own in entries.items():
        for key, one in own.items():
            if key[0] in scope and not one.law:
                groups.setdefault(key, {}).setdefault(_measured_device(name).generation, []).append((name, one))
    return {key: _joined(device, clans, width) for key, clans in groups.items() if len(clans) > 1}


def _joined(device: Device, clans: Mapping[str, Sequence[tuple[str, Calibration]]], width: float) -> Calibration:
    """One kernel's constants out of those of every generation."""
    weights = [
        max(sum(likeness(device, _measured_device(name), width) for name, _ in clan) / len(clan), MIN_WEIGHT)
        for clan in clans.values()
    ]
    sets = [average([one.constants for _, one in clan], [1.0] * len(clan)) for clan in clans.values()]
    first = next(iter(clans.values()))[0][1]
    shares = ", ".join(f"{name} {percent(weight / sum(weights))}" for name, weight in zip(clans, weights, strict=True))
    because = f"constants of measured generations by likeness: {shares}"
    fact = replace(first.fact, value="any", at=because) if first.fact else None
    return Calibration(
        op=first.op,
        format=first.format,
        engine=first.engine,
        origin="any",
        constants=average(sets, weights),
        spread=first.spread,
        range=first.range,
        fact=fact,
    )


def from_neighbours(device: Device) -> dict[Key, Calibration]:
    """Constants for a device of a new generation, with the intervals of generations left out."""
    width, intervals = spreads()
    found = by_likeness(device, measured(), width, intervals)
    return {
        key: replace(one, spread=replace(intervals[key[0]], because=one.fact.at if one.fact else ""))
        for key, one in found.items()
    }

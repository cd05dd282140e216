"""The measured matrix products: rows of the tables as arrays, by device, format and engine, with their side."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.hardware.device import Device
from orrery.kernels.gemm.machine import machine_vector
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]
Key = tuple[str, str, str]  # device, format, engine

CACHE_BANDWIDTH_RATIO = 6.0
"""A last-level cache may serve at most this many times the memory bandwidth (L40S: 5.2 TB/s measured against 0.86)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows of one device, format and engine."""

    device: Device
    format: str
    engine: str
    m: Floats
    n: Floats
    k: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def on(self, side: str) -> "Rows":
        """Only the rows on one side of the split."""
        return self.take(self.side == side)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Rows":
        """Only these rows."""
        return Rows(
            device=self.device, format=self.format, engine=self.engine, m=self.m[rows], n=self.n[rows],
            k=self.k[rows], time_s=self.time_s[rows], side=self.side[rows],
        )  # fmt: skip

    def machine(self) -> Floats:
        """The kernel's view of the device in this format."""
        return machine_vector(self.device, get_format(self.format))

    @property
    def quantises(self) -> bool:
        """Do these times include quantising a 16-bit input?"""
        number = get_format(self.format)
        return not number.weight_only and number.bytes_per_element < 2


def read_rows(data: Path) -> tuple[dict[Key, Rows], int]:
    """All groups of the two tables, and how many rows beat a physical bound and were left out."""
    main = read_table(data / "kernels" / "gemm.csv.gz")
    power = read_table(data / "kernels" / "kernel_power.csv.gz")
    power = power.take(power.words("op") == "gemm")
    groups = {key: rows for table in (main, power) for key, rows in _groups(table)}
    kept = {key: rows.take(~beats_bound(rows)) for key, rows in groups.items()}
    return kept, sum(len(rows.m) for rows in groups.values()) - sum(len(rows.m) for rows in kept.values())


def _groups(table: Table) -> Iterator[tuple[Key, Rows]]:
    names = list(zip(table.words("device"), table.words("format"), table.words("engine"), strict=True))
    side = sides(table, "gemm")
    m, n, k, time_s = (table.numbers(c) for c in ("m", "n", "k", "time_s"))
    keys = np.array(["|".join(name) for name in names])
    for key in sorted(set(keys)):
        device, format, engine = key.split("|")
        at = keys == key
        yield (device, format, engine), Rows(
            device=get_device(device), format=format, engine=engine,
            m=m[at], n=n[at], k=k[at], time_s=time_s[at], side=side[at],
        )  # fmt: skip


def beats_bound(rows: Rows) -> NDArray[np.bool_]:
    """Faster than the datasheet peak, or than the cache could deliver the operands."""
    machine = rows.machine()
    flops, bandwidth, cache, (a, b, c) = machine[1], machine[3], machine[4], machine[5:8]
    moved = rows.m * rows.k * a + rows.k * rows.n * b + rows.m * rows.n * c
    outside = np.maximum(moved - cache, 0.0) / bandwidth
    return rows.time_s < np.maximum(
        np.maximum(2 * rows.m * rows.n * rows.k / flops, moved / (CACHE_BANDWIDTH_RATIO * bandwidth)), outside
    )


__all__ = ["CALIBRATE", "FIT", "TEST", "Key", "Rows", "beats_bound", "read_rows"]

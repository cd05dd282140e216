"""The measured matrix products: rows of the tables as arrays, by device, format and engine, with their side."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from wide_tables import products

from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.hardware.device import Device
from orrery.kernels.gemm.machine import machine_vector
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]
Key = tuple[str, str, str]  # device, format, engine

BARE = ("aiter", "pytorch")
"""Whose measured products are the kernel alone: the input is there in the format of the product."""

MIN_ROWS = 10
"""Fewer rows on a side of the split tell nothing of a group: it is answered by its kin."""

SMALL_S, LONGEST_LAUNCH_S, FEW = 3e-6, 45e-6, 20
"""No device takes so long for products whose bound is so low; a group that does, with so many rows, was timed on its
host."""

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
    batch: Floats = field(default_factory=lambda: np.ones(0))  # left out: one product a row

    def __post_init__(self) -> None:
        if self.batch.size != self.m.size:
            object.__setattr__(self, "batch", np.ones(self.m.size))

    def on(self, side: str) -> "Rows":
        """Only the rows on one side of the split."""
        return self.take(self.side == side)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Rows":
        """Only these rows."""
        return Rows(
            device=self.device,
            format=self.format,
            engine=self.engine,
            m=self.m[rows],
            n=self.n[rows],
            k=self.k[rows],
            time_s=self.time_s[rows],
            side=self.side[rows],
            batch=self.batch[rows],
        )

    def machine(self) -> Floats:
        """The kernel's view of the device in this format."""
        return machine_vector(self.device, get_format(self.format))

    @property
    def quantises(self) -> bool:
        """Do these times include quantising a 16-bit input?"""
        number = get_format(self.format)
        return not number.weight_only and number.bytes_per_element < 2 and self.engine not in BARE

    @property
    def is_timed_on_host(self) -> bool:
        """Were the kernels launched one by one, so that the host's time for a launch hides that of small products?"""
        small = self.time_s[bound_s(self) < SMALL_S]
        return small.size >= FEW and float(np.quantile(small, 0.05)) > LONGEST_LAUNCH_S


def read_rows(data: Path) -> tuple[dict[Key, Rows], int]:
    """All groups of the tables, and how many rows beat a physical bound and were left out."""
    groups: dict[Key, Rows] = {}
    for table in _tables(data):
        for key, rows in _groups(table):
            groups[key] = joined(groups[key], rows) if key in groups else rows
    retained = {key: rows.take(~beats_bound(rows)) for key, rows in groups.items() if is_enough(rows)}
    return retained, sum(len(rows.m) for rows in groups.values()) - sum(len(rows.m) for rows in retained.values())


def _tables(data: Path) -> Iterator[Table]:
    yield read_table(data / "kernels" / "gemm.csv.gz")
    power = read_table(data / "kernels" / "kernel_power.csv.gz")
    yield power.take(power.words("op") == "gemm")
    yield from products(data)
    single = read_table(data / "kernels" / "fp32_gemm.csv")
    yield Table(single.name, {**single.columns, "engine": ["pytorch"] * len(single)})


def is_enough(rows: Rows) -> bool:
    """Rows of enough shapes to fit constants, find an interval and test both."""
    return all((rows.side == side).sum() >= MIN_ROWS for side in (FIT, CALIBRATE, TEST))


def joined(one: Rows, other: Rows) -> Rows:
    """The rows of one group from two tables."""
    both = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in COLUMNS}
    return Rows(device=one.device, format=one.format, engine=one.engine, **both)


COLUMNS = ("m", "n", "k", "time_s", "side", "batch")


def _groups(table: Table) -> Iterator[tuple[Key, Rows]]:
    names = list(zip(table.words("device"), table.words("format"), table.words("engine"), strict=True))
    side = sides(table, "gemm")
    m, n, k, time_s, batch = (table.numbers(c) for c in ("m", "n", "k", "time_s", "batch"))
    batch = np.nan_to_num(batch, nan=1.0)
    keys = np.array(["|".join(name) for name in names])
    for key in sorted(set(keys)):
        device, format, engine = key.split("|")
        at = keys == key
        yield (
            (device, format, engine),
            Rows(
                device=get_device(device),
                format=format,
                engine=engine,
                m=m[at],
                n=n[at],
                k=k[at],
                time_s=time_s[at],
                side=side[at],
                batch=batch[at],
            ),
        )


def beats_bound(rows: Rows) -> NDArray[np.bool_]:
    """Faster than the datasheet peak, or than the cache could deliver the operands."""
    return rows.time_s < bound_s(rows)


def bound_s(rows: Rows) -> Floats:
    """The least time of every row: datasheet arithmetic, the cache's bandwidth, and what no cache can hold."""
    machine = rows.machine()
    flops, bandwidth, cache, (a, b, c) = machine[1], machine[3], machine[4], machine[5:8]
    moved = rows.batch * (rows.m * rows.k * a + rows.k * rows.n * b + rows.m * rows.n * c)
    outside = np.maximum(moved - cache, 0.0) / bandwidth
    work = 2 * rows.batch * rows.m * rows.n * rows.k / flops
    return np.maximum(np.maximum(work, moved / (CACHE_BANDWIDTH_RATIO * bandwidth)), outside)


__all__ = ["CALIBRATE", "FIT", "TEST", "Key", "Rows", "beats_bound", "read_rows"]

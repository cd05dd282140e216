"""The rows of the MoE table as the MoE rule takes them, by device, format and engine."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.catalog.devices import get_device
from orrery.evidence.split import sides
from orrery.evidence.tables import Table
from orrery.kernels.moe import _kernel as kernel
from orrery.kernels.moe.rule import columns, machine_vector
from orrery.kernels.ops import MoE
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The rows of one device, format and engine."""

    device: str
    generation: str
    format: str
    engine: str
    op: tuple[MoE, MoE]  # plain blocks, gated blocks
    order: NDArray[np.int64]  # where the rows of the two stand
    machine: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def predict(self, constants: Floats) -> Floats:
        """Seconds of every row."""
        both = np.concatenate([columns(op, constants, self.machine)[kernel.TIME].ravel() for op in self.op])
        return both[self.order]

    def learnable(self, constants: Floats) -> tuple[Floats, Floats]:
        """Physical seconds, and what a learned correction may know, of every row."""
        both = [columns(op, constants, self.machine, has_features=True) for op in self.op]
        joined = np.concatenate(both, axis=1)[:, self.order]
        return joined[kernel.TIME], np.ascontiguousarray(joined[kernel.COLUMNS :].T)

    def slices(self) -> NDArray[np.int64]:
        """A number for every slice of experts, equal where the weights on the device are."""
        return np.unique(sizes_of(self)[1:7].T, axis=0, return_inverse=True)[1].ravel()

    def roofs(self) -> tuple[Floats, Floats]:
        """Compute and memory roof of every row."""
        ones = np.ones(len(kernel.CONSTANTS))
        both = np.concatenate([columns(op, ones, self.machine) for op in self.op], axis=1)[:, self.order]
        return both[kernel.COMPUTE], both[kernel.MEMORY]

    def take(self, keep: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        gated = self._gated()[keep]
        ops = tuple(_op(sizes_of(self)[:, keep][:, gated == want], self.format, want) for want in (False, True))
        order = np.empty(gated.size, dtype=np.int64)
        order[np.flatnonzero(~gated)] = np.arange((~gated).sum())
        order[np.flatnonzero(gated)] = (~gated).sum() + np.arange(gated.sum())
        return Rows(
            device=self.device, generation=self.generation, format=self.format, engine=self.engine,
            op=(ops[0], ops[1]), order=order, machine=self.machine, time_s=self.time_s[keep], side=self.side[keep],
        )  # fmt: skip

    def _gated(self) -> NDArray[np.bool_]:
        return self.order >= np.size(self.op[0].tokens)


SIZES = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep", "skew")


MIN_ROWS = 50


def sizes_of(rows: Rows) -> Floats:
    """The sizes of every row, a line each in the order of SIZES."""
    return np.concatenate([np.array([getattr(op, s) for s in SIZES]) for op in rows.op], axis=1)[:, rows.order]


def _op(sizes: Floats, format: str, is_gated: bool) -> MoE:
    return MoE(**dict(zip(SIZES, sizes, strict=True)), format=format, is_gated=is_gated)


def engine_of(engine: str, kernel_name: str) -> str:
    """The low-latency kernels are chosen by the user, not by the shape: an engine of their own."""
    return f"{engine}-min-latency" if kernel_name.endswith("min_latency") else engine


def skew_of(routing: str) -> float:
    """``power_law_1.2`` -> 1.2; balanced or blank -> 0."""
    return float(routing.removeprefix("power_law_")) if routing.startswith("power_law_") else 0.0


def groups(table: Table) -> Iterator[Rows]:
    """The rows of the table by device, format and engine; groups too small to fit are left out."""
    table = table.take(table.words("op") == "moe")
    side = sides(table, "moe")
    engine = np.array([engine_of(*pair) for pair in zip(table.words("engine"), table.words("kernel"), strict=True)])
    skew = np.array([skew_of(word) for word in table.words("routing")])
    sizes = np.array([table.numbers(s) if s != "skew" else skew for s in SIZES])
    gated = table.words("gated_ffn") == "true"
    keys = np.array([table.words("device"), table.words("format"), engine])
    for device, format, name in np.unique(keys, axis=1).T:
        mine = (keys == np.array([[device], [format], [name]])).all(axis=0)
        if mine.sum() < MIN_ROWS:
            continue
        known = get_device(device)
        whole = Rows(
            device=device, generation=known.generation, format=format, engine=name,
            op=(_op(sizes[:, mine & ~gated], format, False), _op(sizes[:, mine & gated], format, True)),
            order=np.argsort(np.argsort(gated[mine], kind="stable"), kind="stable"),
            machine=machine_vector(known, get_format(format)), time_s=table.numbers("time_s")[mine], side=side[mine],
        )  # fmt: skip
        yield whole


def screen(rows: Rows) -> tuple[Rows, int]:
    """Drop what beats the datasheet's rate, or its bandwidth where the experts hit cannot sit in the cache."""
    compute_s, memory_s = rows.roofs()
    cached_s = rows.machine[3] / rows.machine[2]
    beats = (rows.time_s < compute_s) | (rows.time_s < memory_s - cached_s)
    return rows.take(~beats), int(beats.sum())


def on(rows: Rows, side: str) -> Rows:
    """The rows of one side."""
    return rows.take(rows.side == side)

"""Many layouts as columns: one entry a layout, and which choice and which groups it shares with others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.cut import Choice
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.modules import mask_of, modules_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

SHARDINGS = ("none", "zero1", "zero2", "zero3")
RECOMPUTES = ("none", "selective", "full")

COUNTS = (
    "tp",
    "cp",
    "pp",
    "dp",
    "vp",
    "first_stage_layers",
    "last_stage_layers",
    "ep",
    "etp",
    "micro_batch",
    "secondary_group",
    "recompute_layers",
)
"""Whole numbers of a layout that stand in a column as they are."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """Layouts side by side. ``schedule`` counts into ``schedules``, ``sharding`` and ``recompute`` into the above."""

    tp: Ints
    cp: Ints
    pp: Ints
    dp: Ints
    vp: Ints
    first_stage_layers: Ints  # 0 = as they come out
    last_stage_layers: Ints
    ep: Ints
    etp: Ints
    micro_batch: Ints
    sharding: Ints
    sharding_group: Ints  # ranks; never 0 here
    secondary_group: Ints  # ranks; 0 = none
    recompute: Ints
    recompute_layers: Ints
    recompute_modules: Ints  # one bit a module; 0 = none by name
    schedule: Ints
    is_ring: Flags
    is_sequence_parallel: Flags
    schedules: tuple[str, ...]

    def __len__(self) -> int:
        return self.tp.size

    @property
    def data_ranks(self) -> Ints:
        """Ranks that hold the same dense parameters."""
        return self.dp * self.cp

    @property
    def gathers_layers(self) -> Flags:
        """Whether sharded parameters are gathered layer by layer, for every micro-batch, and dropped after use."""
        return (self.sharding == SHARDINGS.index("zero3")) & (self.pp == 1)

    @property
    def keeps_gathered(self) -> Flags:
        """Whether sharded parameters are gathered once a step and kept, and gradients reduced once.

        So do pipelines: each micro-batch would else wait for every layer's parameters again. [llama-3-2024]
        """
        return (self.sharding == SHARDINGS.index("zero3")) & (self.pp > 1)

    @property
    def expert_copies(self) -> Ints:
        """Ranks that hold the same experts."""
        return _expert_copies(self)

    def only(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> "Columns":
        """Some of the layouts."""
        chosen = {n: getattr(self, n)[rows] for n in Columns.__slots__ if n != "schedules"}
        return Columns(**chosen, schedules=self.schedules)

    def layout(self, row: int) -> TrainingLayout:
        """One of them as a user writes it."""
        group = int(self.sharding_group[row])
        return TrainingLayout(
            **{n: int(getattr(self, n)[row]) for n in COUNTS},
            sharding=SHARDINGS[int(self.sharding[row])],  # pyright: ignore[reportArgumentType]
            sharding_group=0 if group == int(self.data_ranks[row]) else group,
            recompute=RECOMPUTES[int(self.recompute[row])],  # pyright: ignore[reportArgumentType]
            recompute_modules=modules_of(int(self.recompute_modules[row])),
            schedule=self.schedules[int(self.schedule[row])],
            context_kind="ring" if self.is_ring[row] else "all-to-all",
            is_sequence_parallel=bool(self.is_sequence_parallel[row]),
        )


@lru_cache(maxsize=8)  # state, collectives and updates of the same layouts ask for them
def _expert_copies(x: Columns) -> Ints:
    return np.maximum(1, x.tp * x.cp * x.dp // (x.ep * x.etp))


def columns_of(layouts: Sequence[TrainingLayout]) -> Columns:
    """Layouts as users write them, side by side."""
    schedules = tuple(dict.fromkeys(x.schedule for x in layouts))
    return Columns(
        **{n: np.array([getattr(x, n) for x in layouts], dtype=np.int64) for n in COUNTS},
        sharding=np.array([SHARDINGS.index(x.sharding) for x in layouts], dtype=np.int64),
        sharding_group=np.array([x.sharding_group or x.num_data_ranks for x in layouts], dtype=np.int64),
        recompute=np.array([RECOMPUTES.index(x.recompute) for x in layouts], dtype=np.int64),
        recompute_modules=np.array([mask_of(x.recompute_modules) for x in layouts], dtype=np.int64),
        schedule=np.array([schedules.index(x.schedule) for x in layouts], dtype=np.int64),
        is_ring=np.array([x.context_kind == "ring" for x in layouts]),
        is_sequence_parallel=np.array([x.is_sequence_parallel and x.tp > 1 for x in layouts]),
        schedules=schedules,
    )


def choices(columns: Columns) -> tuple[Choice, Ints]:
    """The distinct choices that decide what a layer costs, and which one each layout made."""
    keys = np.array(
        [
            columns.tp,
            columns.cp,
            columns.ep,
            columns.etp,
            columns.micro_batch,
            columns.is_ring.astype(np.int64),
            columns.is_sequence_parallel.astype(np.int64),
        ]
    )
    first, which = distinct(keys)
    return Choice(
        tp=columns.tp[first],
        cp=columns.cp[first],
        ep=columns.ep[first],
        etp=columns.etp[first],
        micro_batch=columns.micro_batch[first],
        is_ring=columns.is_ring[first],
        is_sequence_parallel=columns.is_sequence_parallel[first],
    ), which


def choice_rows(choice: Choice) -> list[tuple[int, ...]]:
    """Each choice as one row of whole numbers, in the order of ``Choice``'s fields."""
    return list(zip(*(getattr(choice, f.name).astype(np.int64).tolist() for f in fields(Choice)), strict=True))


def choice_from(rows: Iterable[tuple[int, ...]]) -> Choice:
    """The choices of ``choice_rows`` side by side again."""
    columns = np.array(list(rows), dtype=np.int64).T
    return Choice(
        **{
            f.name: c.astype(np.bool_) if f.name.startswith("is_") else c
            for f, c in zip(fields(Choice), columns, strict=True)
        }
    )


def distinct(keys: Ints) -> tuple[Ints, Ints]:
    """The first place of every distinct column of ``keys`` (rows, n), and which of them each column is.

    Columns are packed into one number each, which sorts many times faster than rows of numbers.
    """
    if keys.shape[1] == 1:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    packed = np.zeros(keys.shape[1], dtype=np.int64)
    for row in keys:
        packed = packed * (int(row.max(initial=0)) + 1) + row
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    return first.astype(np.int64), which.astype(np.int64)

"""Memory of every pipeline rank of a layout: ends stand on the first and last, early ranks hold more in flight."""

from dataclasses import dataclass

import numpy as np

from orrery.execution.train.cut import choice_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import units
from orrery.training.columns import columns_of
from orrery.training.memory import held_bytes
from orrery.training.step import in_flight_of, stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One pipeline rank."""

    rank: int
    in_flight: float  # micro-batches, all the rank's layers counted as one
    parts: dict[str, float]  # bytes by category

    @property
    def peak_bytes(self) -> float:
        """The allocator's peak."""
        return sum(self.parts.values())


def ranks_of(job: TrainingJob, layout: TrainingLayout) -> tuple[Rank, ...]:
    """Every rank, first to last."""
    x = columns_of([layout] * layout.pp)
    found, which = units(job, choice_of([layout])), np.zeros(layout.pp, dtype=np.int64)
    m = np.full(layout.pp, job.global_batch / (layout.dp * layout.micro_batch))
    layers = np.full(layout.pp, float(-(-found.num_layers // (layout.pp * layout.vp)) * layout.vp))
    first, middle, last = stages(found, x, which, layers)
    rank = np.arange(layout.pp)
    most, least, copies = in_flight_of(x, m)
    in_flight = most + (least - most) * rank / max(layout.pp - 1, 1)
    out: list[Rank] = []
    for r in range(layout.pp):
        is_last = r == layout.pp - 1
        stage = last if is_last else first if r == 0 else middle
        held = held_bytes(
            job, x, found, which, stage=stage, layers=layers, in_flight=in_flight, copies=copies,
            has_head=np.full(layout.pp, is_last),
        )  # fmt: skip
        parts = {name: float(np.broadcast_to(value, layout.pp)[r]) for name, value in held.parts.items()}
        out.append(Rank(rank=r, in_flight=float(in_flight[r]), parts=parts))
    return tuple(out)

"""Memory of every pipeline rank of a layout: ends stand on the first and last, early ranks hold more in flight."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.cut import choice_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import Units, units
from orrery.training.columns import columns_of
from orrery.training.memory import held_bytes
from orrery.training.stage_kinds import StageKinds, kinds_from
from orrery.training.stage_layers import by_rank
from orrery.training.step import Steps, in_flight_of, is_mirrored, placed, stages, step_of
from orrery.training.sync import Stage

Floats = NDArray[np.float64]


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


def costed(job: TrainingJob, layout: TrainingLayout) -> tuple[Steps, tuple[Rank, ...]]:
    """The step and every rank's memory of one layout, with one question to the kernels for both."""
    found = units(job, choice_of([layout]))
    return step_of(job, columns_of([layout]), (found, np.zeros(1, dtype=np.int64))), ranks_of(job, layout, found)


def ranks_of(job: TrainingJob, layout: TrainingLayout, ready: Units | None = None) -> tuple[Rank, ...]:
    """Every rank, first to last; ``ready`` hands in units of the layout that the caller has asked for already."""
    x = columns_of([layout] * layout.pp)
    found, which = ready or units(job, choice_of([layout])), np.zeros(layout.pp, dtype=np.int64)
    m = np.full(layout.pp, job.global_batch / (layout.dp * layout.micro_batch))
    layers = np.array(by_rank(found.num_layers, layout), dtype=np.float64)
    each = kinds_from(found, (np.cumsum(layers) - layers) / layout.vp, layers, layout.vp)
    half = 0.5 * is_mirrored(x)  # such ranks hold a stage of either end
    each = tuple(n + half * (n[::-1] - n) for n in each)
    kinds = StageKinds(first=each, middle=each, last=each)
    rank = np.arange(layout.pp)
    is_last = rank == layout.pp - 1
    most, least, copies = in_flight_of(x, m)
    in_flight = most + (least - most) * rank / max(layout.pp - 1, 1)
    stage = _by_rank(*placed(x, stages(found, x, which, kinds)))
    held = held_bytes(
        job,
        x,
        found,
        which,
        stage=stage,
        layers=layers,
        in_flight=in_flight,
        copies=copies,
        has_head=is_last,
        kinds=each,
    )
    parts = {name: np.broadcast_to(value, layout.pp) for name, value in held.parts.items()}
    return tuple(
        Rank(rank=r, in_flight=float(in_flight[r]), parts={name: float(value[r]) for name, value in parts.items()})
        for r in range(layout.pp)
    )


def _by_rank(first: Stage, middle: Stage, last: Stage) -> Stage:
    """Values by rank: a row a rank in all three, the only rank being the last."""

    def chosen(name: str) -> Floats:
        value = np.array(getattr(middle, name))
        value[0], value[-1] = getattr(first, name)[0], getattr(last, name)[-1]
        return value

    return Stage(**{f.name: chosen(f.name) for f in fields(Stage)})

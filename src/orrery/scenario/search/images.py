"""Spaces of convolutional networks: cells of NAS-Bench-201 and of DARTS, and inverted bottlenecks."""

from collections.abc import Callable, Mapping

import numpy as np

from orrery.hardware.device import Device
from orrery.kernels.energy import energy_j
from orrery.planner.architecture.problem import Choice, Metric
from orrery.planner.architecture.toys import twin_of
from orrery.predictors.cells import darts, mbconv, nas_bench_201
from orrery.predictors.cells.kernels import ELEMENT_BYTES
from orrery.predictors.cells.latency import FORMAT, Machine, Plan, machine
from orrery.predictors.cells.pool import launch_s
from orrery.predictors.cells.space import Cells, Space
from orrery.scenario.search.costs import Costs, Floats, shares, squared_shares

LIKENED = "score: a stand-in, less the squared share of multiply-adds that each choice leaves out; nobody was trained"
EAGER = (
    "latency: FP32 kernels launched one after the other, norms and rectifiers by themselves; networks answer whole, "
    "and the program adds up blocks that are timed alone"
)

Latency = Callable[[Cells], Floats]


def costs(
    space: Space, device: Device, batch: int, latency: Latency | None = None, reference: Space | None = None
) -> Costs:
    """The space's networks for so many images at once; ``latency`` in place of the kernel rules' own.

    ``reference``: a space of one network that others are compared with; else the one with the most multiply-adds.
    """
    made = machine(device, space, batch, launch_s(device))
    known = made.plan
    metrics = _metrics(made, device, latency)
    work = metrics["work"].table
    assert work is not None
    capacity = shares(work)
    stand_in = Metric(table=squared_shares(capacity))
    parent = np.nan_to_num(capacity, nan=-1.0).argmax(axis=1)[None]
    beside = parent if reference is None else np.zeros((1, 1), np.int64)
    compared = metrics if reference is None else _metrics(machine(device, reference, batch, launch_s(device)), device)
    return Costs(
        choices=choices_of(space),
        metrics=metrics,
        stand_in=stand_in,
        likened=LIKENED,
        reference_name=reference.name if reference else "most multiply-adds",
        reference={name: float(metric.of(beside)[0]) for name, metric in compared.items()},
        parent=None if reference else parent,
        toy=twin_of(capacity),
        held_bytes=_table(known, _held(known)).table,
        notes=(EAGER,),
    )


def choices_of(space: Space) -> tuple[Choice, ...]:
    """The choices by the names of their alternatives."""
    names = ALTERNATIVES[space.name]
    return tuple(
        Choice(name=f"{names.place} {i + 1}", alternatives=names.of(count))
        for i, count in enumerate(space.num_alternatives)
    )


class _Names:
    """Names of a space's choices and alternatives."""

    def __init__(self, place: str, of: Callable[[int], tuple[str, ...]]) -> None:
        self.place, self.of = place, of


def _bottlenecks(count: int) -> tuple[str, ...]:
    named = tuple(f"{window}x{window} x{widening}" for window, widening in mbconv.CANDIDATES)
    return (*named, "none")[:count]


def _darts(count: int) -> tuple[str, ...]:
    names = [operation.name for operation in darts.OPERATIONS]
    return tuple(f"input {i // len(names)} {names[i % len(names)]}" for i in range(count))


ALTERNATIVES: Mapping[str, _Names] = {
    "nas-bench-201": _Names("edge", lambda count: nas_bench_201.OPERATIONS[:count]),
    "darts": _Names("input", _darts),
    "mbconv": _Names("block", _bottlenecks),
}


def _metrics(made: Machine, device: Device, latency: Latency | None = None) -> dict[str, Metric]:
    known = made.plan
    alone = _table(known, made.alone_s())
    times = np.maximum(made.kernel_s, 0.0)
    flops = np.array([kernel.flops for kernel in known.kernels])
    moved = np.array([kernel.moved_bytes or _product_bytes(kernel.m, kernel.n, kernel.k) for kernel in known.kernels])
    joules = np.asarray(energy_j(device, FORMAT, times, flops, moved), dtype=np.float64)
    parameters = np.array([kernel.num_parameters for kernel in known.kernels], dtype=np.float64)
    counted = _table(known, _by_block(known, parameters))
    assert counted.table is not None
    whole = (
        Metric(exact=latency) if latency else Metric(table=alone.table, constant=alone.constant, exact=made.latency_s)
    )
    return {
        "latency": whole,
        "energy": _table(known, _by_block(known, joules)),
        "memory": Metric(table=counted.table * ELEMENT_BYTES, constant=counted.constant * ELEMENT_BYTES),
        "parameters": counted,
        "work": _table(known, known.flops / (2.0 * known.batch)),
    }


def _product_bytes(m: int, n: int, k: int) -> float:
    return (m * k + k * n + m * n) * ELEMENT_BYTES


def _by_block(known: Plan, each: Floats) -> Floats:
    """Sums over the kernels of every block."""
    starts = np.concatenate([[0], np.cumsum(known.sizes)])
    total = np.concatenate([[0.0], np.cumsum(each)])
    return np.asarray(total[starts[1:]] - total[starts[:-1]], dtype=np.float64)


def _held(known: Plan) -> Floats:
    """Bytes that the kernels of every block write, which a backward pass reads again."""
    written = [
        kernel.m * kernel.n * ELEMENT_BYTES if kernel.m else kernel.moved_bytes / 2.0 for kernel in known.kernels
    ]
    return _by_block(known, np.array(written))


def _table(known: Plan, each: Floats) -> Metric:
    """A sum over blocks as a constant and an entry for each choice's alternative."""
    constant, weights = known.by_column(each)
    counts, space = known.space.num_alternatives, known.space
    table = np.full((len(counts), max(counts)), np.nan)
    for choice, (first, count) in enumerate(zip(space.first_column, counts, strict=True)):
        table[choice, :count] = weights[first : first + count]
    return Metric(table=table, constant=constant)

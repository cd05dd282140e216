"""Scores of benchmark suites on a machine, by roofline, contention and Amdahl's law.

    integer, floating  a copy on every thread, each with its own working set: instructions a second of all of them,
                       the geometric mean over kernels that compute, reuse or stream (``contention``)
    stream             triad: what the memory sustains of two reads and a write, or the lines that cores keep in flight
    matrix             peak of the vector units at the clock that their power leaves; a hundredth is one core's work
    sparse             six bytes a flop, mostly reads, a quarter of the lines in flight: gathers stall
    web                a heap shared over all sockets: few misses in flight, and work that all threads wait for

Kernels are assumed: they stand for kinds of programs, no program of a suite.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.predictors.processors.machine import Machine, fact
from orrery.predictors.tenants.contention import LINE_BYTES, Array, Tenants, copies, share, stacked

Machines = Sequence[Machine]
Suite = Callable[[Machines], Array]

VECTOR_ACTIVITY_RATIO = 1.6
MATRIX_ACTIVITY_RATIO = 1.9
"""Power of a core with its vector units busy, over that of integer work at one clock; assumed."""

FLOPS_PER_CYCLE = 32.0
"""FP64 operations per cycle of one core: two units, eight lanes, a multiply-add each."""

LINES_IN_FLIGHT = 48.0
"""Cache lines in flight per core, as recalled of the second-level cache's queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kind of program, a thread of it."""

    cycles_ratio: float  # per instruction
    accesses_frac: float  # of the instructions reach the last-level cache
    working_set_bytes: float
    streaming_frac: float
    overlap_ratio: float  # misses in flight
    written_frac: float = 0.2
    activity_ratio: float = 1.0

    def thread(self) -> Tenants:
        """One thread of it as a tenant."""
        values = (
            1.0,
            self.cycles_ratio,
            self.accesses_frac,
            self.working_set_bytes,
            self.streaming_frac,
            self.overlap_ratio,
            self.written_frac,
        )
        return Tenants(**{n: np.array([v]) for n, v in zip(Tenants.__slots__, values, strict=True)})


COMPUTE = Kernel(
    cycles_ratio=0.4,
    accesses_frac=3e-4,
    working_set_bytes=0.3e6,
    streaming_frac=0.05,
    overlap_ratio=4.0,
    activity_ratio=1.2,
)
STREAMING = Kernel(
    cycles_ratio=0.5,
    accesses_frac=0.03,
    working_set_bytes=2e6,
    streaming_frac=0.85,
    overlap_ratio=16.0,
    written_frac=0.3,
    activity_ratio=VECTOR_ACTIVITY_RATIO,
)
INTEGER = (
    Kernel(cycles_ratio=0.7, accesses_frac=2e-3, working_set_bytes=1.0e6, streaming_frac=0.05, overlap_ratio=2.0),
    Kernel(cycles_ratio=0.5, accesses_frac=8e-3, working_set_bytes=2.5e6, streaming_frac=0.10, overlap_ratio=3.0),
    Kernel(cycles_ratio=0.9, accesses_frac=2e-2, working_set_bytes=6.0e6, streaming_frac=0.30, overlap_ratio=4.0),
)
FLOATING = (
    COMPUTE,
    Kernel(cycles_ratio=0.6, accesses_frac=1e-2, working_set_bytes=1.5e6, streaming_frac=0.30, overlap_ratio=6.0),
    STREAMING,
)
WEB = Kernel(cycles_ratio=0.9, accesses_frac=8e-3, working_set_bytes=2.0e6, streaming_frac=0.10, overlap_ratio=1.5)
WEB_SERIAL_FRAC = 2e-3
MATRIX_SERIAL_FRAC = 1e-4


def instructions_per_s(machines: Machines, kernel: Kernel, *, is_spread: bool = False) -> Array:
    """A copy of ``kernel`` on every thread of each machine: all their instructions."""
    written = kernel.written_frac / (1.0 + kernel.written_frac)
    hosts = [
        m.socket(written_frac=written, activity_ratio=kernel.activity_ratio, is_spread=is_spread) for m in machines
    ]
    threads = np.array([[m.num_threads / m.num_sockets] for m in machines])
    found = share(stacked(hosts), copies(kernel.thread(), threads))
    return np.array([m.num_threads for m in machines]) / found.instruction_s[:, 0]


def stream_bytes_per_s(machines: Machines, *, written_frac: float = 1 / 3, lines: float = LINES_IN_FLIGHT) -> Array:
    """Sustained by all sockets: their memories, or their cores' lines in flight."""
    queried = lines * LINE_BYTES / fact("memory_s")
    return np.array(
        [m.num_sockets * min(queried * m.processor.num_cores, m.socket_bytes_per_s(written_frac)) for m in machines]
    )


def _mean(kernels: tuple[Kernel, ...]) -> Suite:
    def score(machines: Machines) -> Array:
        return np.exp(np.mean([np.log(instructions_per_s(machines, kernel)) for kernel in kernels], axis=0))

    return score


def _matrix(machines: Machines) -> Array:
    cores = np.array([m.num_sockets * m.processor.num_cores for m in machines])
    core = np.array([FLOPS_PER_CYCLE * m.clock_hz(MATRIX_ACTIVITY_RATIO) for m in machines])
    return core * cores / (1.0 + MATRIX_SERIAL_FRAC * (cores - 1))


def _sparse(machines: Machines) -> Array:
    return stream_bytes_per_s(machines, written_frac=0.1, lines=LINES_IN_FLIGHT / 4) / 6.0


def _web(machines: Machines) -> Array:
    threads = np.array([m.num_threads for m in machines])
    return instructions_per_s(machines, WEB, is_spread=True) / (1.0 + WEB_SERIAL_FRAC * (threads - 1))


SUITES: dict[str, Suite] = {
    "integer": _mean(INTEGER),
    "floating": _mean(FLOATING),
    "stream": stream_bytes_per_s,
    "matrix": _matrix,
    "sparse": _sparse,
    "web": _web,
}
"""Scores by suite, of each machine: instructions, bytes or flops a second."""

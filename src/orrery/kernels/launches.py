"""A queue of kernels that a host fills and a device empties, launch by launch.

Kernel i is launched when the host has dispatched those before it; it starts a launch latency later, or when the device
has finished the kernel before:

    launch_i = i dispatch,  start_i = max(launch_i + latency, end_(i-1)),  end_i = start_i + kernel_i

The sum of start_i - launch_i is the total launch and queuing time. While the host is slower it is the latency times the
number of kernels; once the device is slower, kernels queue and it grows. Vellaisamy et al., arXiv 2504.11750.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A processor that launches kernels: how much longer an operator takes it than the fastest clock, and what a launch
    takes to arrive."""

    dispatch_ratio: float
    launch_s: float
    source: str


FRAMEWORK = "operators as its clock, of 3.8 GHz at most (assumed)"

HOSTS: Mapping[str, Host] = {
    "epyc": Host(
        dispatch_ratio=3.8 / 3.7,
        launch_s=2.2605e-6,
        source=f"EPYC 7313 with A100: empty kernel 2260.5 ns (arXiv 2504.11750, as its readers have it); {FRAMEWORK}",
    ),
    "xeon": Host(
        dispatch_ratio=1.0,
        launch_s=2.3746e-6,
        source=f"Xeon 8468V with H100: empty kernel 2374.6 ns (arXiv 2504.11750, as its readers have it); {FRAMEWORK}",
    ),
    "grace": Host(
        dispatch_ratio=3.8 / 3.4,
        launch_s=2.4e-6,
        source=f"Grace with GH200: a launch as on the others (assumed); {FRAMEWORK}",
    ),
}
"""By name. Nobody was found to state what an operator takes on each: the three differ by their clocks alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One run of a queue."""

    latency_s: float  # from the first dispatch to the end of the last kernel
    launch_and_queuing_s: float  # summed over kernels
    idle_frac: float  # of the device, over the run


def run(kernel_s: Floats, dispatch_s: float, launch_s: float) -> Queue:
    """Kernels in order; the host needs ``dispatch_s`` for each, and a launch takes ``launch_s`` to arrive."""
    launched = dispatch_s * np.arange(1, kernel_s.size + 1)
    done_before = np.concatenate(([0.0], np.cumsum(kernel_s)[:-1]))
    start = done_before + np.maximum.accumulate(launched + launch_s - done_before)
    end_s = float(start[-1] + kernel_s[-1])
    return Queue(
        latency_s=end_s,
        launch_and_queuing_s=float(np.sum(start - launched)),
        idle_frac=1.0 - float(kernel_s.sum()) / end_s,
    )


TURN_RATIO = 2.0
"""Launch and queuing time over that of launches alone, from which the device counts as the slower."""


def is_queuing(queue: Queue, num_kernels: int, launch_s: float) -> bool:
    """Whether kernels wait for the device, and no longer the device for kernels."""
    return queue.launch_and_queuing_s > TURN_RATIO * num_kernels * launch_s

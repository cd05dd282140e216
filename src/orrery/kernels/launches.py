"""A queue of kernels that a host fills and a device empties, launch by launch.

Kernel i is launched when the host has dispatched those before it; it starts a launch latency later, or when the device
has finished the kernel before:

    launch_i = i dispatch,  start_i = max(launch_i + latency, end_(i-1)),  end_i = start_i + kernel_i

The sum of start_i - launch_i is the total launch and queuing time. While the host is slower it is the latency times the
number of kernels; once the device is slower, kernels queue and it grows. Vellaisamy et al., arXiv 2504.11750.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
        latency_s=end_s, launch_and_queuing_s=float(np.sum(start - launched)),
        idle_frac=1.0 - float(kernel_s.sum()) / end_s,
    )  # fmt: skip

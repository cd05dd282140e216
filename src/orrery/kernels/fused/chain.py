"""Chains of element-wise functions over a batch of small arrays: one kernel each, or fused along one or both ways.

Fused down the chain (vertically), intermediates stay in registers: the batch is read once and written once. Fused
across the batch (horizontally), arrays of all problems are one launch that fills the device. Apart, every function of
every array is a launch, reads and writes memory, and has only its own elements to fill the device with. Arithmetic runs
beside memory: ``function_flops`` operations for one function and element. Amoros et al., arXiv 2508.07071.
"""

import math
from dataclasses import dataclass, replace

from orrery.hardware.device import Device

RESIDENT_THREADS = 2048
"""Threads that one processor of an NVIDIA GPU holds, one element each (CUDA C++ Programming Guide, technical
specifications)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """``num_functions`` functions one after the other over each of ``num_arrays`` arrays of ``num_elements``."""

    num_functions: int
    num_arrays: int
    num_elements: int
    element_bytes: float = 4.0
    function_flops: float = 2.0  # a multiply-add


def kernel_s(num_elements: float, moved_bytes: float, flops: float, device: Device, launch_s: float) -> float:
    """One kernel: what launching takes, or the slower of memory and vector units, as far as elements fill the device.

    A device holds so many threads at once; with fewer elements than that, memory and arithmetic run at that share.
    """
    filled_frac = min(1.0, num_elements / (RESIDENT_THREADS * device.num_compute_units))
    memory_s = moved_bytes / device.memory_bandwidth_bytes_per_s
    return launch_s + max(memory_s, flops / device.vector_flops_per_s) / filled_frac


def chain_s(chain: Chain, device: Device, launch_s: float, *, is_vertical: bool, is_horizontal: bool) -> float:
    """All functions over all arrays; ``launch_s`` is one kernel's from the host to the device, nothing hidden."""
    in_one = chain.num_functions if is_vertical else 1
    together = chain.num_arrays if is_horizontal else 1
    elements = float(chain.num_elements * together)
    kernels = math.ceil(chain.num_functions / in_one) * math.ceil(chain.num_arrays / together)
    moved, flops = 2.0 * elements * chain.element_bytes, elements * in_one * chain.function_flops
    return kernels * kernel_s(elements, moved, flops, device, launch_s)


def shortest_for(gain_ratio: float, chain: Chain, device: Device, launch_s: float, most: int = 2**24) -> int:
    """The fewest functions of a chain for which fusing both ways is ``gain_ratio`` times as fast; 0 where none is.

    The gain grows with the length until arithmetic binds the fused kernel, so that halving finds the first one.
    """

    def gain(length: int) -> float:
        longer = replace(chain, num_functions=length)
        apart, fused = (chain_s(longer, device, launch_s, is_vertical=v, is_horizontal=v) for v in (False, True))
        return apart / fused

    if gain(most) < gain_ratio:
        return 0
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gain(middle) >= gain_ratio else (middle, high)
    return high

"""Tracking of operand readiness in a processor: counters that the compiler sets, or a scoreboard.

A compiler that knows latencies writes into each instruction how long to wait; only what takes a varying time needs one
of a few counters a warp. A scoreboard finds out in hardware: every register of every warp has a bit for a pending
write and a count of pending readers.

    counters      warps x (counters x bits + stall bits + yield bit)
    scoreboard    warps x registers x (1 + ceil(log2(readers + 1)))

Analyzing Modern NVIDIA GPU Cores, arXiv 2503.20481.
"""

from dataclasses import dataclass
from math import ceil, log2

from orrery.base.errors import OutOfRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """One streaming multiprocessor: warps in flight, and what a warp can name."""

    num_warps: int
    num_registers: int  # of a warp: regular, uniform, and predicates of both kinds

    def __post_init__(self) -> None:
        if min(self.num_warps, self.num_registers) < 1:
            raise OutOfRange(f"{self}; write counts above 0.")


def counter_bits(core: Core, *, num_counters: int, width: int, stall: int) -> float:
    """Counters that the compiler sets, the stall count and the yield flag of every warp."""
    return float(core.num_warps * (num_counters * width + stall + 1))


def scoreboard_bits(core: Core, num_readers: int) -> float:
    """A pending write and up to ``num_readers`` pending readers of every register."""
    return float(core.num_warps * core.num_registers * (1 + ceil(log2(num_readers + 1))))

"""Data that every processor of a GPU hands to another one: through shared memory of a cluster, or through memory.

    in a cluster       latency between two processors, and bytes over what a processor is sent a cycle
    through memory     a store and a load, each with the latency of memory, and bytes twice over a processor's share of
                       what the last-level cache gives a cycle

All processors send at once. Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """Cycles of one exchange: waiting for its first byte, and for the others."""

    num_latency_cycles: float
    num_moving_cycles: float

    @property
    def num_cycles(self) -> float:
        """Both."""
        return self.num_latency_cycles + self.num_moving_cycles


def in_cluster(message_bytes: float, latency_cycles: float, cycle_bytes: float) -> Handed:
    """Through the shared memory of the other processor."""
    return Handed(num_latency_cycles=latency_cycles, num_moving_cycles=message_bytes / cycle_bytes)


def through_memory(message_bytes: float, latency_cycles: float, cycle_bytes: float) -> Handed:
    """A store by one and a load by the other."""
    return Handed(num_latency_cycles=2.0 * latency_cycles, num_moving_cycles=2.0 * message_bytes / cycle_bytes)

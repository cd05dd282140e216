"""Two processors on one memory, each with its own roofs: which one takes a piece of work, or how they share it.

    time       max(operations / peak, bytes / bandwidth)
    shared     1 / (1 / time here + 1 / time there): both done at once, for work that can be cut anywhere

The processor near the memory reads faster and computes slower, so it wins below a number of operations a byte and
loses above it. Duplex, arXiv 2409.01141.
"""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """Peak compute and memory rates of a processor."""

    flops_per_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not (self.flops_per_s > 0 and self.bytes_per_s > 0):
            raise OutOfRange(f"{self}; write rates above 0.")

    def time_s(self, flops: float, moved_bytes: float) -> float:
        """The slower of the two."""
        return max(flops / self.flops_per_s, moved_bytes / self.bytes_per_s)

    @property
    def ridge_flops_per_byte(self) -> float:
        """Operations a byte from which the arithmetic binds."""
        return self.flops_per_s / self.bytes_per_s


def shared_s(here: Roofs, there: Roofs, flops: float, moved_bytes: float) -> float:
    """Both at work on parts that they finish together."""
    first, second = here.time_s(flops, moved_bytes), there.time_s(flops, moved_bytes)
    return first * second / (first + second) if first + second else 0.0

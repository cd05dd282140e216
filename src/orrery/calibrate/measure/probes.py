"""Work that no model contains, timed for what it says about the machine: streams of bytes, empty launches."""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange
from orrery.kernels.ops import Op

STREAMS = ("read", "copy", "add")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Passes over ``footprint_bytes`` in all: the cache that holds them, or memory, sets the time.

    "read" is the inner product of two vectors, "copy" b = a, "add" c = a + b, each over FP32, in equal arrays that
    together fill the footprint, each byte moved once. (STREAM's triad moves the same bytes as its add; NumPy would need
    two passes for it.) [mccalpin-1995]
    """

    footprint_bytes: int
    kind: str = "copy"

    def __post_init__(self) -> None:
        if self.kind not in STREAMS:
            raise OutOfRange(f"A stream is one of {', '.join(STREAMS)}; got {self.kind!r}.")

    @property
    def num_arrays(self) -> int:
        """Equal arrays that the footprint is cut into."""
        return 3 if self.kind == "add" else 2

    @property
    def elements(self) -> int:
        """FP32 numbers in each of them."""
        return max(1, int(self.footprint_bytes) // (4 * self.num_arrays))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The smallest kernel that there is: what is left is the cost of asking for one."""


Probe = Op | Stream | Launch

"""The answer of this floor."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Amount = float | Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CollectiveTiming:
    """Floats for one size, arrays for many.

    ``wire_s`` is the bare roof of the chosen algorithm (its bytes at the link's stated rate), ``latency_s`` what it
    takes with no bytes at all, ``sent_bytes`` what each device sends; ``chosen`` is the fastest of
    ``algorithms``.
    """

    time_s: Amount
    wire_s: Amount
    latency_s: Amount
    sent_bytes: Amount
    algorithms: tuple[str, ...]
    chosen: int | NDArray[np.int64]

    @property
    def algorithm(self) -> str | NDArray[np.str_]:
        """The name of the fastest algorithm."""
        if isinstance(self.chosen, int):
            return self.algorithms[self.chosen]
        return np.array(self.algorithms)[self.chosen]


NOTHING = CollectiveTiming(time_s=0.0, wire_s=0.0, latency_s=0.0, sent_bytes=0.0, algorithms=("none",), chosen=0)
"""Time of sending nothing, or to nobody."""

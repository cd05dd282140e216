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
    takes with no bytes at all, ``bytes_per_device`` what each device sends, ``algorithm`` which was the fastest.
    """

    time_s: Amount
    wire_s: Amount
    latency_s: Amount
    bytes_per_device: Amount
    algorithm: str | NDArray[np.str_]

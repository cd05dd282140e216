"""The affinity of a router behind a published number of hops."""

import numpy as np


def followed_frac_of(hops_frac: float, num_devices: int) -> float:
    """The share followed that a best placement of single favourites shows: hops = (1 - share) (n - 1) / n."""
    return float(np.clip(1.0 - hops_frac * num_devices / (num_devices - 1.0), 0.0, 1.0))

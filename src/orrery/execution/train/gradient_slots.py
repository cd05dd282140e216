"""Gradients summed in pieces that fit where the links between nodes idle.

A layer keeps those links busy for its exchange of tokens and leaves them idle while experts compute and links inside
nodes gather. Cut finely enough, the sum of gradients fills that time, and only what is left over is waited for.
[fsmoe-2025]
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def left_over_s(reduce_s: Floats, layer_s: Floats, busy_s: Floats) -> Floats:
    """The part of a gradient sum of ``reduce_s`` that a layer of ``layer_s``, whose links are busy for ``busy_s``,
    cannot hide.
    """
    return np.maximum(0.0, reduce_s - np.maximum(0.0, layer_s - busy_s))

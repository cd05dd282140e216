"""Heaviness of a tensor's tails: the fourth moment and the largest value, against the spread.

Kurtosis E[(x - mean)^4] / variance^2 is 1 for signs, 1.8 for even spread, 3 for a normal law and more with outliers;
the crest factor is max |x| / RMS. Formats with even steps lose by a high crest factor: the largest value sets the
step.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def kurtosis(x: Floats, axis: int | None = None) -> NDArray[np.float64]:
    """The fourth central moment over the squared variance, along ``axis`` or of all elements; 3 for a normal law.

    Of constant elements it is 1, the least there is: they have no tails.
    """
    centred = np.asarray(x, dtype=np.float64)
    centred = centred - centred.mean(axis=axis, keepdims=True)
    square = centred * centred
    variance = square.mean(axis=axis)
    fourth = (square * square).mean(axis=axis)
    return np.where(variance > 0, fourth / np.where(variance > 0, variance * variance, 1.0), 1.0)


def crest_factor(x: Floats, axis: int = -1) -> NDArray[np.float64]:
    """The largest magnitude over the root mean square, along ``axis``; 1 where all are zero."""
    exact = np.asarray(x, dtype=np.float64)
    rms = np.sqrt((exact * exact).mean(axis=axis))
    return np.where(rms > 0, np.abs(exact).max(axis=axis) / np.where(rms > 0, rms, 1.0), 1.0)

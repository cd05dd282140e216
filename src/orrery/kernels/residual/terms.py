"""Features common to all kernels: sizes, and the terms of the predicted time.

    log2 of every size; yes and no as 1 and 0
    compute, memory and launch as shares of the time; log2 of time over launch; log2 of the two roofs' ratio
    log2 of the bytes over the last-level cache

Shares and logs only, so that devices of a generation can be told from one another's rows.
"""

from dataclasses import fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery.kernels.ops import Op, Timing

Floats = NDArray[np.float64]

SHARES = ("compute_frac", "memory_frac", "launch_frac", "log_launch_ratio", "log_balance", "log_cache_ratio")
SIGNED = ("skew",)
"""Sizes that may be zero or negative, taken as they are."""

UNKNOWN = ("result_bytes", "popularity", "kept_frac", "index_bits", "wide_frac")
"""Features that no table of measured kernels varies, so that nothing was learned of them."""


@cache
def sizes_of(kind: type[Op]) -> tuple[str, ...]:
    """The fields of an op class that are sizes or switches, not words."""
    return tuple(f.name for f in fields(kind) if f.type not in (str, "str") and f.name not in UNKNOWN)


def names_of(kind: type[Op]) -> tuple[str, ...]:
    """The columns of ``terms``, in order."""
    return (*sizes_of(kind), *SHARES)


def terms(op: Op, timing: Timing, cache_bytes: float) -> Floats:
    """One row of ``names_of`` for every element of the op's broadcast shape, flat."""
    time_s = np.maximum(np.ravel(timing.time_s), 1e-30)
    launch_s, compute_s, memory_s = (
        np.maximum(np.ravel(column), 1e-30) for column in (timing.overhead_s, timing.compute_s, timing.memory_s)
    )
    kind = type(op)
    x = np.empty((time_s.size, len(names_of(kind))))
    for i, name in enumerate(sizes_of(kind)):
        size = np.ravel(np.broadcast_to(np.asarray(getattr(op, name), dtype=np.float64), np.shape(timing.time_s)))
        is_plain = name in SIGNED or isinstance(getattr(op, name), bool)
        x[:, i] = size if is_plain else np.log2(np.maximum(size, 0.5))
    shares = (
        compute_s / time_s,
        memory_s / time_s,
        launch_s / time_s,
        np.log2(time_s / np.maximum(launch_s, 1e-9)),
        np.log2(compute_s / memory_s),
        np.log2(np.maximum(np.ravel(timing.bytes), 1.0) / max(cache_bytes, 1.0)),
    )
    for i, share in enumerate(shares, start=len(sizes_of(kind))):
        x[:, i] = share
    return x

"""Rate of matrix products by NumPy's BLAS, in FP32 and FP64."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orrery.calibrate.measure.state import num_blas_threads
from orrery.calibrate.micro.reading import Reading, rate_of, timed

SIDES = (256, 1024, 2048)


def products(subject: object) -> Iterator[Reading]:
    """Operations a second of square products."""
    threads = num_blas_threads()
    for format, kind in (("fp32", np.float32), ("fp64", np.float64)):
        for side in SIDES:
            left, right = np.ones((side, side), dtype=kind), np.ones((side, side), dtype=kind)
            samples = timed(partial(np.matmul, left, right))
            where = f"{side} x {side} x {side}, {threads or 'unknown'} threads"
            yield rate_of(f"product_{format}_{side}", samples, 2.0 * side**3, "flops_per_s", where)


BENCHMARKS = (products,)

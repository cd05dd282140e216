"""Bandwidth of copies and sums by their working set, by NumPy on one thread [mccalpin-1995]."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orrery.calibrate.micro.reading import Reading, rate_of, timed

FOOTPRINTS = tuple(2**i for i in (15, 18, 21, 24, 28))
MIN_BYTES = 2**28
"""Bytes that a sample moves at least."""


def bandwidth(subject: object) -> Iterator[Reading]:
    """Bytes read and written a second."""
    for footprint_bytes in FOOTPRINTS:
        size = f"{footprint_bytes // 1024} KiB"
        for name, arrays in (("copy", 2), ("add", 3)):
            held = [np.ones(footprint_bytes // (8 * arrays)) for _ in range(arrays)]
            call = partial(np.copyto, held[1], held[0]) if arrays == 2 else partial(np.add, *held)
            times = max(1, MIN_BYTES // footprint_bytes)
            samples = timed(call, times)
            amount = float(times * arrays * held[0].nbytes)
            yield rate_of(f"{name}_{footprint_bytes // 1024}_kib", samples, amount, "bytes_per_s", size)


BENCHMARKS = (bandwidth,)

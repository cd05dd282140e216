"""Latency of each level of the processor's memory: a chase of one place a cache line, in random order."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from orrery.calibrate.micro._kernel import chased
from orrery.calibrate.micro.chain import chained
from orrery.calibrate.micro.reading import Reading, of_samples, timed

LINE_WORDS = 8
FOOTPRINTS = tuple(2**i for i in (14, 17, 20, 23, 26, 28))
STEPS = 2**18


def latency(subject: object) -> Iterator[Reading]:
    """Seconds of a step, by the bytes that the chain visits."""
    for footprint_bytes in FOOTPRINTS:
        count = footprint_bytes // (8 * LINE_WORDS)
        links = np.zeros(count * LINE_WORDS, dtype=np.int64)
        links[::LINE_WORDS] = LINE_WORDS * chained(count)
        size, samples = footprint_bytes // 1024, timed(_walk(links))
        yield of_samples(f"load_latency_{size}_kib", samples, "s", f"{size} KiB, one thread, random lines", per=STEPS)


def _walk(links: NDArray[np.int64]) -> Callable[[], None]:
    """Steps that go on where the last call ended, so that a long chain is not walked at its beginning alone."""
    place = 0

    def walk() -> None:
        nonlocal place
        place = chased(links, place, STEPS)

    return walk


BENCHMARKS = (latency,)

"""The cells of [dong-2020-nas-bench-201]: four nodes, six edges, five operations, 15,625 networks.

Three stages of five cells on 32 x 32 images, with 16, 32 and 64 channels and a residual block between two stages.
"""

from collections.abc import Iterator
from functools import cache

from orrery.predictors.cells.kernels import Block, Place, classified, each, pooled, product, summed
from orrery.predictors.cells.space import Chosen, Route, Space

OPERATIONS = ("none", "skip", "convolution-1x1", "convolution-3x3", "average-pool-3x3")
NUM_STAGES, CELLS_OF_STAGE, NUM_NODES = 3, 5, 4
EDGES = tuple((start, end) for end in range(1, NUM_NODES) for start in range(end))
IMAGE_SIDE, FIRST_CHANNELS, NUM_CLASSES = 32, 16, 10


def edge(operation: str, at: Place) -> Block:
    """One operation between two nodes; "none" writes zeros."""
    taps = {"convolution-1x1": 1, "convolution-3x3": 9}.get(operation, 0)
    if taps:
        return (each(at), product(at, at.channels, taps), each(at))
    return {"none": (each(at),), "skip": (), "average-pool-3x3": (pooled(at),)}[operation]


def residual(to: Place) -> Block:
    """Half the side and twice the channels: two convolutions beside a pooled and widened short cut."""
    half, entered = to.channels // 2, Place(batch=to.batch, channels=to.channels // 2, side=2 * to.side)
    narrow = Place(batch=to.batch, channels=half, side=to.side)
    main = (each(entered), product(to, half, taps=9), each(to), each(to), product(to, to.channels, taps=9), each(to))
    return (*main, pooled(narrow, stride=2), product(to, half), summed(to))


def route(batch: int) -> Route:
    """Stem, stages, classes."""
    return tuple(_steps(batch))


def _steps(batch: int) -> Iterator[Block | Chosen]:
    at = Place(batch=batch, channels=FIRST_CHANNELS, side=IMAGE_SIDE)
    yield (product(at, 3, taps=9), each(at))
    for stage in range(NUM_STAGES):
        if stage:
            at = Place(batch=batch, channels=2 * at.channels, side=at.side // 2)
            yield residual(at)
        blocks = tuple(edge(operation, at) for operation in OPERATIONS)
        for _ in range(CELLS_OF_STAGE):
            for choice, (start, _) in enumerate(EDGES):
                yield Chosen(choice=choice, blocks=blocks)
                if start:
                    yield (summed(at),)
    yield (each(at), each(at), *classified(at, NUM_CLASSES))


@cache
def nas_bench_201() -> Space:
    """The space; every edge has columns of its own."""
    count = len(OPERATIONS)
    return Space(
        name="nas-bench-201",
        num_alternatives=(count,) * len(EDGES),
        first_column=tuple(count * i for i in range(len(EDGES))),
        route=cache(route),
    )

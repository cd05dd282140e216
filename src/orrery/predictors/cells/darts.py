"""The cells of [liu-2019-darts]: four nodes, each the sum of two operations on earlier outputs.

A normal and a reduction cell have eight choices each, two a node; an alternative is input x operations + operation.
They are stacked 14 times on 224 x 224 images, the fifth and tenth as reductions. Two liberties: nothing is "none", and
a node may take one input twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise

from orrery.predictors.cells.kernels import (
    Block,
    Place,
    classified,
    depthwise,
    each,
    one_pass,
    pooled,
    product,
    summed,
)
from orrery.predictors.cells.space import Chosen, Route, Space

NUM_CELLS, NUM_NODES, NUM_KINDS = 14, 4, 2
REDUCTIONS = (NUM_CELLS // 3, 2 * NUM_CELLS // 3)
IMAGE_SIDE, FIRST_CHANNELS, NUM_CLASSES = 224, 48, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Operation of an edge: ``num_pairs`` times a depthwise product over taps and a pointwise one, or none."""

    name: str
    window: int = 1  # pixels a side
    num_pairs: int = 0
    is_pooling: bool = False


OPERATIONS = (
    Operation(name="skip"),
    Operation(name="max-pool-3x3", window=3, is_pooling=True),
    Operation(name="average-pool-3x3", window=3, is_pooling=True),
    Operation(name="separable-3x3", window=3, num_pairs=2),
    Operation(name="separable-5x5", window=5, num_pairs=2),
    Operation(name="dilated-3x3", window=3, num_pairs=1),
    Operation(name="dilated-5x5", window=5, num_pairs=1),
)

NODES = tuple((kind, node) for kind in range(NUM_KINDS) for node in range(NUM_NODES))
"""Every node of the normal and the reduction cell."""

NODE_COLUMNS = tuple((2 + node) * len(OPERATIONS) for _, node in NODES)
"""Alternatives of each node's choices: a node may take both inputs of the cell and every node before it."""

_FIRST = tuple(accumulate(NODE_COLUMNS, initial=0))


def edge(operation: Operation, to: Place, stride: int) -> Block:
    """One operation between two nodes, to a tensor of that shape."""
    entered = Place(batch=to.batch, channels=to.channels, side=to.side * stride)
    if operation.is_pooling:
        return (pooled(to, stride), each(to))
    if not operation.num_pairs:
        return narrowed(to, to.channels) if stride > 1 else ()
    later = (each(to), depthwise(to, operation.window**2), product(to, to.channels), each(to))
    return (each(entered), *later[1:], *later * (operation.num_pairs - 1))


def narrowed(to: Place, inputs: int) -> Block:
    """Half the side: rectifier, two strided pointwise products of half the channels, side by side, norm."""
    entered = Place(batch=to.batch, channels=inputs, side=2 * to.side)
    half = product(Place(batch=to.batch, channels=to.channels // 2, side=to.side), inputs)
    return (each(entered), half, half, each(to), each(to))


def pointwise(to: Place, inputs: int) -> Block:
    """Rectifier, product, norm."""
    return (each(Place(batch=to.batch, channels=inputs, side=to.side)), product(to, inputs), each(to))


def stem(batch: int) -> Block:
    """Three strided convolutions, each with a norm and a rectifier."""
    found: Block = ()
    widths = (3, FIRST_CHANNELS // 2, FIRST_CHANNELS, FIRST_CHANNELS)
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        to = Place(batch=batch, channels=outputs, side=IMAGE_SIDE // 2 ** (i + 1))
        found += (product(to, inputs, taps=9), each(to), each(to))
    return found


def route(batch: int) -> Route:
    """Stem, cells, classes."""
    return tuple(_steps(batch))


def _steps(batch: int) -> Iterator[Block | Chosen]:
    yield stem(batch)
    older, old = FIRST_CHANNELS, FIRST_CHANNELS  # channels of the two cells before
    to = Place(batch=batch, channels=FIRST_CHANNELS, side=IMAGE_SIDE // 8)
    is_older_larger = True
    for cell in range(NUM_CELLS):
        stride = 2 if cell in REDUCTIONS else 1
        entered = Place(batch=batch, channels=to.channels * stride, side=to.side)
        to = Place(batch=batch, channels=to.channels * stride, side=to.side // stride)
        yield (narrowed if is_older_larger else pointwise)(entered, older)
        yield pointwise(entered, old)
        yield from _cell(to, stride)
        older, old, is_older_larger = old, NUM_NODES * to.channels, stride > 1
    yield classified(Place(batch=batch, channels=NUM_NODES * to.channels, side=to.side), NUM_CLASSES)


def _cell(to: Place, stride: int) -> Iterator[Block | Chosen]:
    """Four nodes, and all of them side by side."""
    by_stride = {s: tuple(edge(operation, to, s) for operation in OPERATIONS) for s in {1, stride}}
    for node in range(NUM_NODES):
        blocks = by_stride[stride] * 2 + by_stride[1] * node
        choice = 2 * ((NUM_NODES if stride > 1 else 0) + node)
        yield Chosen(choice=choice, blocks=blocks)
        yield Chosen(choice=choice + 1, blocks=blocks)
        yield (summed(to),)
    yield (one_pass(2 * NUM_NODES * to.elements),)


@cache
def darts() -> Space:
    """The space; the two choices of a node share their columns."""
    return Space(
        name="darts",
        num_alternatives=tuple(count for count in NODE_COLUMNS for _ in range(2)),
        first_column=tuple(first for first in _FIRST[:-1] for _ in range(2)),
        route=cache(route),
    )

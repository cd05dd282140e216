"""Networks of inverted bottlenecks on 224 x 224 images: MobileNetV2, and a space of its relatives.

An inverted bottleneck widens its input so many times by a pointwise product, reads taps x taps pixels of every channel,
and narrows again; a norm and a rectifier follow the first two, a norm the last [sandler-2018-mobilenetv2]. In the space
each of 21 places takes one of three windows and two widenings or, where nothing changes shape, is left out
[cai-2019-proxylessnas].
"""

from collections.abc import Iterator
from functools import cache
from itertools import accumulate

from orrery.predictors.cells.kernels import (
    Block,
    Place,
    classified,
    depthwise,
    each,
    product,
    summed,
)
from orrery.predictors.cells.space import Chosen, Route, Space

IMAGE_SIDE, STEM_CHANNELS, FIRST_CHANNELS, LAST_CHANNELS, NUM_CLASSES = 224, 32, 16, 1280, 1000

MOBILENET_V2 = ((6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Widening, channels, blocks and stride of the stages behind the first block."""

STAGES = ((24, 4, 2), (40, 4, 2), (80, 4, 2), (96, 4, 1), (192, 4, 2), (320, 1, 1))
"""Channels, places and stride of the space's stages."""

CANDIDATES = tuple((window, widening) for window in (3, 5, 7) for widening in (3, 6))
"""Window and widening; leaving out comes last where it is allowed."""


def inverted(to: Place, inputs: int, window: int, widening: int, stride: int) -> Block:
    """One inverted bottleneck; its input is added where nothing changes shape."""
    wide = inputs * widening
    entered = Place(batch=to.batch, channels=wide, side=to.side * stride)
    middle = Place(batch=to.batch, channels=wide, side=to.side)
    widened = (product(entered, inputs), each(entered), each(entered)) if widening > 1 else ()
    ends = (summed(to),) if stride == 1 and inputs == to.channels else ()
    return (*widened, depthwise(middle, window**2), each(middle), each(middle), product(to, wide), each(to), *ends)


def _stem(batch: int) -> Block:
    """A strided convolution and the first, narrow block."""
    to = Place(batch=batch, channels=STEM_CHANNELS, side=IMAGE_SIDE // 2)
    first = Place(batch=batch, channels=FIRST_CHANNELS, side=IMAGE_SIDE // 2)
    return (product(to, 3, taps=9), each(to), each(to), *inverted(first, STEM_CHANNELS, 3, 1, 1))


def _end(at: Place) -> Block:
    """A pointwise product to many channels, and the classes."""
    last = Place(batch=at.batch, channels=LAST_CHANNELS, side=at.side)
    return (product(last, at.channels), each(last), each(last), *classified(last, NUM_CLASSES))


def _places(stages: tuple[tuple[int, int, int], ...]) -> Iterator[tuple[int, int, int, int]]:
    """Inputs, channels, stride and side of every place."""
    inputs, side = FIRST_CHANNELS, IMAGE_SIDE // 2
    for channels, count, stride in stages:
        for place in range(count):
            now = stride if place == 0 else 1
            side //= now
            yield inputs, channels, now, side
            inputs = channels


def _reference(batch: int) -> Block:
    stages = tuple((channels, count, stride) for _, channels, count, stride in MOBILENET_V2)
    blocks = [
        inverted(Place(batch=batch, channels=channels, side=side), inputs, 3, MOBILENET_V2[0][0], stride)
        for inputs, channels, stride, side in _places(stages)
    ]
    last = Place(batch=batch, channels=MOBILENET_V2[-1][1], side=IMAGE_SIDE // 32)
    return (*_stem(batch), *(kernel for block in blocks for kernel in block), *_end(last))


def _only(batch: int) -> Route:
    return (Chosen(choice=0, blocks=(_reference(batch),)),)


def _route(batch: int) -> Route:
    steps: list[Block | Chosen] = [_stem(batch)]
    for choice, (inputs, channels, stride, side) in enumerate(_places(STAGES)):
        to = Place(batch=batch, channels=channels, side=side)
        blocks = tuple(inverted(to, inputs, window, widening, stride) for window, widening in CANDIDATES)
        may_leave_out = stride == 1 and inputs == channels
        steps.append(Chosen(choice=choice, blocks=(*blocks, ()) if may_leave_out else blocks))
    return (*steps, _end(Place(batch=batch, channels=STAGES[-1][0], side=IMAGE_SIDE // 32)))


@cache
def mobilenet_v2() -> Space:
    """The one network, as a space without a choice to make."""
    return Space(
        name="mobilenet-v2",
        num_alternatives=(1,),
        first_column=(0,),
        route=cache(_only),
    )


@cache
def mbconv() -> Space:
    """The space; every place has columns of its own."""
    counts = tuple(len(step.blocks) for step in _route(1) if isinstance(step, Chosen))
    return Space(
        name="mbconv",
        num_alternatives=counts,
        first_column=tuple(accumulate(counts, initial=0))[:-1],
        route=cache(_route),
    )

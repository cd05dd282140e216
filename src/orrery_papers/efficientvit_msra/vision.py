"""Image networks for small devices as the kernels that an inference launches, norms folded into what they follow.

MobileNetV3-Large [howard-2019-mobilenetv3, table 1], EfficientViT M2 and M5 [liu-2023-efficientvit] and MobileViT-XXS
[mehta-2022-mobilevit]. Passes that only put numbers in another order (patches, heads, concatenations) read and write
them once, like any other pass.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from orrery.predictors.cells.kernels import Block, Place, classified, depthwise, each, one_pass, product, summed
from orrery.predictors.cells.space import Chosen, Route, Space

NUM_CLASSES = 1000

MOBILENET_V3 = (
    (3, 16, 16, False, 1),
    (3, 64, 24, False, 2),
    (3, 72, 24, False, 1),
    (5, 72, 40, True, 2),
    (5, 120, 40, True, 1),
    (5, 120, 40, True, 1),
    (3, 240, 80, False, 2),
    (3, 200, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 480, 112, True, 1),
    (3, 672, 112, True, 1),
    (5, 672, 160, True, 2),
    (5, 960, 160, True, 1),
    (5, 960, 160, True, 1),
)
"""Window, width inside, channels, whether channels are weighed, stride."""

EFFICIENT_VIT = {
    "efficientvit-m2": ((128, 1, 4), (192, 2, 3), (224, 3, 2)),
    "efficientvit-m5": ((192, 1, 3), (288, 3, 3), (384, 4, 4)),
}
"""Channels, blocks and heads of the three stages, at 14, 7 and 4 pixels a side."""

SIDES, KEY_FEATURES, WINDOW, FFN_RATIO, QUERY_TAPS = (14, 7, 4), 16, 7, 2, 25

MOBILE_VIT = ((48, 64, 2, 32), (64, 80, 4, 16), (80, 96, 3, 8))
"""Channels, width, layers and side of the stages with attention."""

PATCH = 4  # pixels that share one place among the sequences


def _weighed(at: Place) -> Block:
    """Squeeze and excitation: means, two small products, every channel scaled."""
    pixel, narrow = (Place(batch=at.batch, channels=c, side=1) for c in (at.channels, at.channels // 4))
    return (one_pass(at.elements), product(narrow, at.channels), product(pixel, narrow.channels), each(at))


def _bottleneck(to: Place, inputs: int, wide: int, taps: int, stride: int, is_weighed: bool) -> Block:
    """Widen, read a window of every channel, narrow; rectifiers between, and the input where shapes agree."""
    entered = Place(batch=to.batch, channels=wide, side=to.side * stride)
    middle = Place(batch=to.batch, channels=wide, side=to.side)
    widened = (product(entered, inputs), each(entered)) if wide != inputs else ()
    weighed = _weighed(middle) if is_weighed else ()
    ends = (summed(to),) if stride == 1 and inputs == to.channels else ()
    return (*widened, depthwise(middle, taps), each(middle), *weighed, product(to, wide), *ends)


def mobilenet_v3_large(batch: int) -> Iterator[Block]:
    """On 224 x 224 pixels."""
    side, inputs = 112, 16
    stem = Place(batch=batch, channels=inputs, side=side)
    yield (product(stem, 3, taps=9), each(stem))
    for window, wide, channels, is_weighed, stride in MOBILENET_V3:
        side //= stride
        yield _bottleneck(Place(batch=batch, channels=channels, side=side), inputs, wide, window**2, stride, is_weighed)
        inputs = channels
    last, pixel = Place(batch=batch, channels=960, side=side), Place(batch=batch, channels=1280, side=1)
    yield (product(last, inputs), each(last), one_pass(last.elements), product(pixel, 960), each(pixel))
    yield (product(Place(batch=batch, channels=NUM_CLASSES, side=1), 1280),)


def _feed_forward(at: Place) -> Block:
    wide = Place(batch=at.batch, channels=FFN_RATIO * at.channels, side=at.side)
    return (product(wide, at.channels), each(wide), product(at, wide.channels), summed(at))


def _mixed(at: Place) -> Block:
    """A window of every channel added, and a feed-forward part."""
    return (depthwise(at, 9), summed(at), *_feed_forward(at))


def _cascaded(at: Place, heads: int) -> Block:
    """Heads one after the other on their part of the channels, each with what the one before found."""
    part = at.channels // heads
    tokens = min(WINDOW, at.side) ** 2
    found: Block = ()
    for head in range(heads):
        piece, query = (Place(batch=at.batch, channels=c, side=at.side) for c in (part, KEY_FEATURES))
        joined = (summed(piece),) if head else ()
        qkv = Place(batch=at.batch, channels=part + 2 * KEY_FEATURES, side=at.side)
        scores = Place(batch=at.batch, channels=tokens, side=at.side)
        found += (
            *joined,
            product(qkv, part),
            each(qkv),
            depthwise(query, QUERY_TAPS),
            product(scores, KEY_FEATURES),
            each(scores),
            each(scores),
            product(piece, tokens),
        )
    return (each(at), *found, each(at), each(at), product(at, at.channels), summed(at))


def _merged(to: Place, inputs: int) -> Block:
    """Half the side: widened four times, a strided window, channels weighed, narrowed; mixed before and after."""
    entered = Place(batch=to.batch, channels=inputs, side=2 * to.side)
    wide, half = (Place(batch=to.batch, channels=4 * inputs, side=side) for side in (2 * to.side, to.side))
    return (
        *_mixed(entered),
        product(wide, inputs),
        each(wide),
        depthwise(half, 9),
        each(half),
        *_weighed(half),
        product(to, half.channels),
        *_mixed(to),
    )


def efficientvit(name: str, batch: int) -> Iterator[Block]:
    """On 224 x 224 pixels, which four strided convolutions take to 14 x 14."""
    stages = EFFICIENT_VIT[name]
    inputs, first = 3, stages[0][0]
    for step in range(4):
        to = Place(batch=batch, channels=first // 2 ** (3 - step), side=112 // 2**step)
        yield (product(to, inputs, taps=9), each(to))
        inputs = to.channels
    for (channels, blocks, heads), side in zip(stages, SIDES, strict=True):
        at = Place(batch=batch, channels=channels, side=side)
        if channels != inputs:
            yield _merged(at, inputs)
        for _ in range(blocks):
            yield (*_mixed(at), *_cascaded(at, heads), *_mixed(at))
        inputs = channels
    yield classified(Place(batch=batch, channels=inputs, side=SIDES[-1]), NUM_CLASSES)


def _unfolded(at: Place, width: int, layers: int) -> Block:
    """Local windows, attention among pixels of one place of all patches, and both side by side."""
    wide = Place(batch=at.batch, channels=width, side=at.side)
    twice, tripled = (Place(batch=at.batch, channels=c * width, side=at.side) for c in (2, 3))
    scores = Place(batch=at.batch, channels=at.side**2 // PATCH, side=at.side)
    layer = (
        each(wide),
        product(tripled, width),
        each(tripled),
        product(scores, width),
        each(scores),
        each(scores),
        product(wide, scores.channels),
        each(wide),
        product(wide, width),
        summed(wide),
        each(wide),
        product(twice, width),
        each(twice),
        product(wide, twice.channels),
        summed(wide),
    )
    both = Place(batch=at.batch, channels=2 * at.channels, side=at.side)
    return (
        product(at, at.channels, taps=9),
        each(at),
        product(wide, at.channels),
        each(wide),
        *layer * layers,
        each(wide),
        product(at, width),
        each(at),
        one_pass(2 * both.elements),
        product(at, both.channels, taps=9),
        each(at),
    )


def mobilevit_xxs(batch: int) -> Iterator[Block]:
    """On 256 x 256 pixels."""
    stem = Place(batch=batch, channels=16, side=128)
    yield (product(stem, 3, taps=9), each(stem))
    inputs = 16
    for channels, side, stride in ((16, 128, 1), (24, 64, 2), (24, 64, 1), (24, 64, 1)):
        yield _bottleneck(Place(batch=batch, channels=channels, side=side), inputs, 2 * inputs, 9, stride, False)
        inputs = channels
    for channels, width, layers, side in MOBILE_VIT:
        at = Place(batch=batch, channels=channels, side=side)
        yield _bottleneck(at, inputs, 2 * inputs, 9, 2, False)
        yield _unfolded(at, width, layers)
        inputs = channels
    last = Place(batch=batch, channels=320, side=8)
    yield (product(last, inputs), each(last), *classified(last, NUM_CLASSES))


NETWORKS: Mapping[str, Callable[[int], Iterator[Block]]] = {
    "mobilenet-v3-large": mobilenet_v3_large,
    "mobilevit-xxs": mobilevit_xxs,
    "efficientvit-m2": lambda batch: efficientvit("efficientvit-m2", batch),
    "efficientvit-m5": lambda batch: efficientvit("efficientvit-m5", batch),
}
"""By the names that papers use."""


@cache
def fixed(name: str) -> Space:
    """One of the networks, as a space without a choice to make."""

    def route(batch: int) -> Route:
        kernels = tuple(kernel for block in NETWORKS[name](batch) for kernel in block)
        return (Chosen(choice=0, blocks=(kernels,)),)

    return Space(name=name, num_alternatives=(1,), first_column=(0,), route=cache(route))

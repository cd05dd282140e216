"""Image networks by name, for pictures of 224 x 224 pixels in three colours.

VGG-16 (Simonyan and Zisserman 2014, arXiv 1409.1556, table 1 D), ResNet-50, -101 and -152 (He et al. 2015, arXiv
1512.03385, table 1; the 3 x 3 of a stage's first unit strides), MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381,
table 2), ViT-B/16 and ViT-L/16 (Dosovitskiy et al. 2020, arXiv 2010.11929, table 1), and ViT-Ti/16 and ViT-S/16, which
DeiT is (Touvron et al. 2020, arXiv 2012.12877, table 1).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from orrery.models.networks import Convolution, Layer, Network, RowWise, SelfAttention, Unit

SIDE, COLOURS = 224, 3

VGG_STAGES = ((224, 64, 2), (112, 128, 2), (56, 256, 3), (28, 512, 3), (14, 512, 3))
"""Side, channels and convolutions of each stage; a pooling by two follows each."""

RESNET_STAGES = ((56, 64), (28, 128), (14, 256), (7, 512))
"""Side and inner channels of each stage."""

WIDENS = 4
"""Outputs of a residual unit over its inner channels; a transformer's inner features over its own."""

MOBILENET_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, units and stride of each stage."""

PATCH = 16

CLASSES = 1000


def _vgg() -> Iterator[Unit]:
    inputs = COLOURS
    for stage, (side, width, count) in enumerate(VGG_STAGES, start=1):
        for i in range(count):
            left = side // 2 if i == count - 1 else side
            layer = Convolution(positions=side**2, inputs=inputs, outputs=width, taps=9, has_activation=True)
            yield Unit(name=f"conv{stage}_{i + 1}", layers=(layer,), num_results=left**2 * width, num_channels=width)
            inputs = width
    for i, (k, n) in enumerate(((512 * 49, 4096), (4096, 4096), (4096, CLASSES)), start=6):
        yield _connected(f"fc{i}", k, n, has_activation=n != CLASSES)


def _resnet(counts: Sequence[int]) -> Iterator[Unit]:
    stem = _normed(positions=112**2, inputs=COLOURS, outputs=64, taps=49)
    yield Unit(name="stem", layers=(stem,), num_results=56**2 * 64, num_channels=64)
    inputs, before = 64, 56
    for stage, (count, (side, width)) in enumerate(zip(counts, RESNET_STAGES, strict=True), start=2):
        for i in range(count):
            layers = [
                _normed(positions=before**2, inputs=inputs, outputs=width),
                _normed(positions=side**2, inputs=width, outputs=width, taps=9),
                _normed(positions=side**2, inputs=width, outputs=WIDENS * width),
            ]
            if i == 0:
                shortcut = _normed(positions=side**2, inputs=inputs, outputs=WIDENS * width, has_activation=False)
                layers.append(shortcut)
            inputs, before = WIDENS * width, side
            yield Unit(
                name=f"conv{stage}_{i + 1}",
                layers=tuple(layers),
                num_results=side**2 * inputs,
                num_channels=inputs,
                num_additions=1,
            )
    yield _connected("fc", inputs, CLASSES)


def _mobilenet() -> Iterator[Unit]:
    stem = _normed(positions=112**2, inputs=COLOURS, outputs=32, taps=9)
    yield Unit(name="stem", layers=(stem,), num_results=112**2 * 32, num_channels=32)
    inputs, side = 32, 112
    for stage, (widens, width, count, stride) in enumerate(MOBILENET_STAGES, start=1):
        for i in range(count):
            before, side, inner = side, side // (stride if i == 0 else 1), widens * inputs
            layers = [
                _normed(positions=side**2, inputs=inner, outputs=inner, taps=9, groups=inner),
                _normed(positions=side**2, inputs=inner, outputs=width, has_activation=False),
            ]
            if widens > 1:
                layers.insert(0, _normed(positions=before**2, inputs=inputs, outputs=inner))
            yield Unit(
                name=f"block{stage}_{i + 1}",
                layers=tuple(layers),
                num_results=side**2 * width,
                num_channels=width,
                num_additions=int(inputs == width and side == before),
            )
            inputs = width
    last = _normed(positions=side**2, inputs=inputs, outputs=1280)
    yield Unit(name="last", layers=(last,), num_results=1280, num_channels=1280)
    yield _connected("fc", 1280, CLASSES)


def _vit(count: int, width: int, num_heads: int) -> Iterator[Unit]:
    patches = (SIDE // PATCH) ** 2
    tokens = patches + 1
    embedding = Convolution(positions=patches, inputs=COLOURS, outputs=width, taps=PATCH**2)
    yield Unit(name="patches", layers=(embedding,), num_results=tokens * width, num_channels=width)
    norm, inner = RowWise(kind="layer_norm", tokens=tokens, width=width), WIDENS * width
    layers: tuple[Layer, ...] = (
        norm,
        Convolution(positions=tokens, inputs=width, outputs=3 * width),
        SelfAttention(
            tokens=tokens, num_heads=num_heads, num_kv_heads=num_heads, head_size=width // num_heads, is_causal=False
        ),
        Convolution(positions=tokens, inputs=width, outputs=width),
        norm,
        Convolution(positions=tokens, inputs=width, outputs=inner),
        RowWise(kind="gelu", tokens=tokens, width=inner),
        Convolution(positions=tokens, inputs=inner, outputs=width),
    )
    for i in range(count):
        yield Unit(name=f"layer{i + 1}", layers=layers, num_results=tokens * width, num_channels=width, num_additions=2)
    classifier = Convolution(positions=1, inputs=width, outputs=CLASSES)
    yield Unit(name="head", layers=(norm, classifier), num_results=CLASSES, num_channels=CLASSES)


def _normed(*, has_activation: bool = True, **sizes: int) -> Convolution:
    """A convolution with a norm of batches behind it, and an activation unless nothing follows the norm."""
    return Convolution(has_batch_norm=True, has_activation=has_activation, **sizes)


def _connected(name: str, inputs: int, outputs: int, *, has_activation: bool = False) -> Unit:
    layer = Convolution(positions=1, inputs=inputs, outputs=outputs, has_activation=has_activation)
    return Unit(name=name, layers=(layer,), num_results=outputs, num_channels=outputs)


BUILDERS: Mapping[str, Callable[[], Iterator[Unit]]] = {
    "vgg-16": _vgg,
    "resnet-50": partial(_resnet, (3, 4, 6, 3)),
    "resnet-101": partial(_resnet, (3, 4, 23, 3)),
    "resnet-152": partial(_resnet, (3, 8, 36, 3)),
    "mobilenet-v2": _mobilenet,
    "vit-ti-16": partial(_vit, 12, 192, 3),
    "vit-s-16": partial(_vit, 12, 384, 6),
    "vit-b-16": partial(_vit, 12, 768, 12),
    "vit-l-16": partial(_vit, 24, 1024, 16),
}


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_.-]+", "", name.casefold())


SPELLINGS: Mapping[str, str] = {_squeezed(name): name for name in BUILDERS}


def find_network(name: str) -> str | None:
    """Return the name of ``BUILDERS`` behind a spelling; None where there is none."""
    return SPELLINGS.get(_squeezed(name))


def network_of(name: str) -> Network:
    """The network of that name, one of ``BUILDERS``."""
    name = find_network(name) or name
    return Network(name=name, units=tuple(BUILDERS[name]()), num_elements=SIDE**2 * COLOURS)

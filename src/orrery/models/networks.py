"""Image networks as chains of units that a device may hand over between: their convolutions and what leaves them.

VGG-16 (Simonyan and Zisserman 2014, arXiv 1409.1556, table 1 D) and ResNet-50, -101 and -152 (He et al. 2015, arXiv
1512.03385, table 1; the 3 x 3 of a stage's first unit strides). A unit has one input and one output, so a residual
unit is one; norms and activations run with the convolution before them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution at ``positions`` pixels of its output; a fully connected layer has one position and one tap."""

    positions: int
    inputs: int
    outputs: int
    taps: int = 1

    @property
    def num_macs(self) -> int:
        """Multiply-adds of one picture."""
        return self.positions * self.taps * self.inputs * self.outputs

    @property
    def num_weights(self) -> int:
        """Elements of its weights, without biases and norms."""
        return self.taps * self.inputs * self.outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Convolutions between two places where the network can be cut."""

    name: str
    layers: tuple[Convolution, ...]
    num_results: int  # elements that leave it, behind its pooling
    num_channels: int  # of them

    def squeezed(self, channels: int) -> "Bottleneck":
        """An encoder of 1 x 1 to so many channels of what leaves it, and the decoder of 1 x 1 back."""
        positions = self.num_results // self.num_channels
        return Bottleneck(
            encoder=Convolution(positions=positions, inputs=self.num_channels, outputs=channels),
            decoder=Convolution(positions=positions, inputs=channels, outputs=self.num_channels),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Fewer channels between a unit and the next (Eshratifar et al., BottleNet, arXiv 1902.01000)."""

    encoder: Convolution
    decoder: Convolution

    @property
    def num_results(self) -> int:
        """Elements between the two."""
        return self.encoder.positions * self.encoder.outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Units in their order, for pictures of 224 x 224 pixels in three colours."""

    name: str
    units: tuple[Unit, ...]
    num_pixels: int = 224 * 224 * 3

    @property
    def num_macs(self) -> int:
        """Multiply-adds of one picture."""
        return sum(layer.num_macs for unit in self.units for layer in unit.layers)

    @property
    def num_weights(self) -> int:
        """Elements of all weights."""
        return sum(layer.num_weights for unit in self.units for layer in unit.layers)


VGG_STAGES = ((224, 64, 2), (112, 128, 2), (56, 256, 3), (28, 512, 3), (14, 512, 3))
"""Side, channels and convolutions of each stage; a pooling by two follows each."""

RESNET_STAGES = ((56, 64), (28, 128), (14, 256), (7, 512))
"""Side and inner channels of each stage."""

WIDENS = 4
"""Outputs of a residual unit over its inner channels."""

CLASSES = 1000


def _vgg() -> Iterator[Unit]:
    inputs = 3
    for stage, (side, width, count) in enumerate(VGG_STAGES, start=1):
        for i in range(count):
            left = side // 2 if i == count - 1 else side
            layer = Convolution(positions=side**2, inputs=inputs, outputs=width, taps=9)
            yield Unit(name=f"conv{stage}_{i + 1}", layers=(layer,), num_results=left**2 * width, num_channels=width)
            inputs = width
    for i, (k, n) in enumerate(((512 * 49, 4096), (4096, 4096), (4096, CLASSES)), start=6):
        yield _connected(f"fc{i}", k, n)


def _resnet(counts: Sequence[int]) -> Iterator[Unit]:
    stem = Convolution(positions=112**2, inputs=3, outputs=64, taps=49)
    yield Unit(name="stem", layers=(stem,), num_results=56**2 * 64, num_channels=64)
    inputs, before = 64, 56
    for stage, (count, (side, width)) in enumerate(zip(counts, RESNET_STAGES, strict=True), start=2):
        for i in range(count):
            layers = [
                Convolution(positions=before**2, inputs=inputs, outputs=width),
                Convolution(positions=side**2, inputs=width, outputs=width, taps=9),
                Convolution(positions=side**2, inputs=width, outputs=WIDENS * width),
            ]
            if i == 0:
                layers.append(Convolution(positions=side**2, inputs=inputs, outputs=WIDENS * width))
            inputs, before = WIDENS * width, side
            results = side**2 * inputs
            yield Unit(name=f"conv{stage}_{i + 1}", layers=tuple(layers), num_results=results, num_channels=inputs)
    yield _connected("fc", inputs, CLASSES)


def _connected(name: str, inputs: int, outputs: int) -> Unit:
    layer = Convolution(positions=1, inputs=inputs, outputs=outputs)
    return Unit(name=name, layers=(layer,), num_results=outputs, num_channels=outputs)


BUILDERS: Mapping[str, Callable[[], Iterator[Unit]]] = {
    "vgg-16": _vgg,
    "resnet-50": partial(_resnet, (3, 4, 6, 3)),
    "resnet-101": partial(_resnet, (3, 4, 23, 3)),
    "resnet-152": partial(_resnet, (3, 8, 36, 3)),
}


def network_of(name: str) -> Network:
    """The network of that name, one of ``BUILDERS``."""
    return Network(name=name, units=tuple(BUILDERS[name]()))

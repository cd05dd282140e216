"""Image networks as lists of convolutions: multiply-adds of a picture, and elements that pass between layers.

AlexNet (Krizhevsky et al. 2012, two groups), VGG-16 (Simonyan and Zisserman 2014), GoogLeNet (Szegedy et al. 2015,
table 1) and ResNet-50 (He et al. 2016, table 1); fully connected layers are convolutions of one position.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution of ``kernel`` x ``kernel`` that leaves ``height`` x ``height`` positions."""

    height: int
    kernel: int
    num_inputs: int  # channels, of one group
    num_outputs: int
    is_normed: bool = False  # a batch norm follows

    @property
    def num_multiply_adds(self) -> int:
        """Multiply-adds of one picture, forward."""
        return self.num_results * self.kernel**2 * self.num_inputs

    @property
    def num_parameters(self) -> int:
        """Weights, without norms."""
        return self.kernel**2 * self.num_inputs * self.num_outputs

    @property
    def num_results(self) -> int:
        """Elements of the output."""
        return self.height**2 * self.num_outputs


def alexnet() -> Iterator[Convolution]:
    """Five convolutions, three fully connected layers."""
    yield from _layers((55, 11, 3, 96), (27, 5, 48, 256), (13, 3, 256, 384), (13, 3, 192, 384), (13, 3, 192, 256))
    yield from _layers((1, 6, 256, 4096), (1, 1, 4096, 4096), (1, 1, 4096, 1000))


def vgg16() -> Iterator[Convolution]:
    """Five stages of convolutions of 3 x 3, three fully connected layers."""
    inputs = 3
    for height, width, count in ((224, 64, 2), (112, 128, 2), (56, 256, 3), (28, 512, 3), (14, 512, 3)):
        for _ in range(count):
            yield from _layers((height, 3, inputs, width))
            inputs = width
    yield from _layers((1, 7, 512, 4096), (1, 1, 4096, 4096), (1, 1, 4096, 1000))


INCEPTIONS = (
    (28, 192, 64, 96, 128, 16, 32, 32),
    (28, 256, 128, 128, 192, 32, 96, 64),
    (14, 480, 192, 96, 208, 16, 48, 64),
    (14, 512, 160, 112, 224, 24, 64, 64),
    (14, 512, 128, 128, 256, 24, 64, 64),
    (14, 512, 112, 144, 288, 32, 64, 64),
    (14, 528, 256, 160, 320, 32, 128, 128),
    (7, 832, 256, 160, 320, 32, 128, 128),
    (7, 832, 384, 192, 384, 48, 128, 128),
)
"""Height, inputs, then outputs of 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5 and pool projection."""


def googlenet() -> Iterator[Convolution]:
    """A stem, nine inception blocks, a classifier; no auxiliary classifiers."""
    yield from _layers((112, 7, 3, 64), (56, 1, 64, 64), (56, 3, 64, 192))
    for height, inputs, one, reduce3, three, reduce5, five, pool in INCEPTIONS:
        yield from _layers(
            (height, 1, inputs, one),
            (height, 1, inputs, reduce3),
            (height, 3, reduce3, three),
            (height, 1, inputs, reduce5),
            (height, 5, reduce5, five),
            (height, 1, inputs, pool),
        )
    yield from _layers((1, 1, 1024, 1000))


def resnet50() -> Iterator[Convolution]:
    """A stem, sixteen bottlenecks (the first 1 x 1 of a stage strides), a classifier."""
    return resnet((3, 4, 6, 3))


def resnet(counts: Sequence[int]) -> Iterator[Convolution]:
    """The same with so many bottlenecks in the stages; without a classifier where there are fewer than four."""
    yield Convolution(height=112, kernel=7, num_inputs=3, num_outputs=64, is_normed=True)
    inputs = 64
    for count, (width, height) in zip(counts, ((64, 56), (128, 28), (256, 14), (512, 7)), strict=False):
        for unit in range(count):
            layers = [(1, inputs, width), (3, width, width), (1, width, 4 * width)]
            for kernel, k, n in [*layers, (1, inputs, 4 * width)] if unit == 0 else layers:
                yield Convolution(height=height, kernel=kernel, num_inputs=k, num_outputs=n, is_normed=True)
            inputs = 4 * width
    if len(counts) == 4:
        yield from _layers((1, 1, 2048, 1000))


def _layers(*layers: tuple[int, int, int, int]) -> Iterator[Convolution]:
    for height, kernel, inputs, outputs in layers:
        yield Convolution(height=height, kernel=kernel, num_inputs=inputs, num_outputs=outputs)


NETWORKS: Mapping[str, Callable[[], Iterator[Convolution]]] = {
    "resnet-50": resnet50,
    "googlenet-v1": googlenet,
    "vgg-16": vgg16,
    "alexnet": alexnet,
}
"""By the names that papers use."""

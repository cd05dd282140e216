"""Tiny networks that microcontrollers train, layer by layer.

ResNet8 and DS-CNN are MLPerf Tiny's image classification and keyword spotting (Banbury et al., arXiv 2106.07597).
"""

from collections.abc import Callable, Iterator, Mapping

from orrery.kernels.cluster.training import ClusterLayer

TAPS = 9


def resnet8() -> Iterator[ClusterLayer]:
    """A stem and three stages of two convolutions on 32 x 32 pictures."""
    yield ClusterLayer(positions=1024, taps=TAPS, inputs=3, outputs=16, is_first=True)
    inputs = 16
    for side, width in ((32, 16), (16, 32), (8, 64)):
        yield ClusterLayer(positions=side**2, taps=TAPS, inputs=inputs, outputs=width)
        yield ClusterLayer(positions=side**2, taps=TAPS, inputs=width, outputs=width)
        if width != inputs:
            yield ClusterLayer(positions=side**2, taps=1, inputs=inputs, outputs=width)
        inputs = width
    yield ClusterLayer(positions=1, taps=1, inputs=64, outputs=10)


def ds_cnn() -> Iterator[ClusterLayer]:
    """A convolution of 10 x 4 and four pairs of depthwise and pointwise layers on 25 x 5 positions."""
    yield ClusterLayer(positions=125, taps=40, inputs=1, outputs=64, is_first=True)
    for _ in range(4):
        yield ClusterLayer(positions=125, taps=TAPS, inputs=64, outputs=64, is_depthwise=True)
        yield ClusterLayer(positions=125, taps=1, inputs=64, outputs=64)
    yield ClusterLayer(positions=1, taps=1, inputs=64, outputs=12)


NETWORKS: Mapping[str, Callable[[], Iterator[ClusterLayer]]] = {"resnet8": resnet8, "ds-cnn": ds_cnn}

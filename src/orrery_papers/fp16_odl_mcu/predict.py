"""FP16 learning on a microcontroller: training steps of tiny networks by the cycles of their products."""

from collections.abc import Callable, Iterator, Mapping

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.training import ClusterLayer, step_cycles

LOAD_CYCLES = 1.0
TAPS = 9
OVERHEAD = "instructions around the loops, moves between memories and stalls of the float units that are not counted"
COUNTED = f"{OVERHEAD}; and which multiply-adds the paper counts was not found"


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


def predict(paper: Paper) -> Iterator[Prediction]:
    """One layer, two networks, and a pointwise layer."""
    for claim in paper.claims:
        if claim.missing:
            continue
        setup = claim.setup
        cores, lanes = cores_of(setup), int(setup.number("num_lanes"))
        if claim.metric == "speedup":
            layer = layer_of(setup, 1 if claim.id == "continual" else TAPS)
            wide, narrow = (step_cycles(layer, cores, n) for n in (1, lanes))
            yield Prediction(
                claim=claim.id,
                predicted=wide / narrow,
                differs=OVERHEAD,
                because=f"{layer.num_macs / wide:.2f} multiply-adds a cycle in FP32, {layer.num_macs / narrow:.2f}",
            )
            continue
        layers = list(NETWORKS[setup.word("network")]())
        macs, cycles = sum(x.num_macs for x in layers), sum(step_cycles(x, cores, lanes) for x in layers)
        is_time = claim.metric == "train_step_time"
        yield Prediction(
            claim=claim.id,
            predicted=cycles / setup.number("core_clock_hz") if is_time else macs / cycles,
            because=f"{macs / 1e6:.1f} million multiply-adds in {cycles / 1e6:.2f} million cycles",
            differs=COUNTED,
        )


def cores_of(setup: Setup) -> Cores:
    """The set-up's cluster."""
    return Cores(
        num_cores=int(setup.number("num_cores")),
        num_float_units=int(setup.number("num_float_units")),
        num_banks=int(setup.number("num_core_banks")),
        num_load_cycles=LOAD_CYCLES,
    )


def layer_of(setup: Setup, taps: int) -> ClusterLayer:
    """A convolution with as many outputs as inputs."""
    channels = int(setup.number("num_layer_channels"))
    return ClusterLayer(
        positions=int(setup.number("num_layer_side")) ** 2, taps=taps, inputs=channels, outputs=channels
    )

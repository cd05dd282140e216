"""A training step of a tiny network on a cluster of small cores, in FP32 and in lanes of FP16. [fp16-odl-mcu-2023]"""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.networks import NETWORKS
from orrery.kernels.cluster.training import ClusterLayer, step_cycles

LAYER = "layer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The network (or ``layer``: one convolution of ``channels`` on ``side`` x ``side`` pixels), and the cores."""

    network: str = "resnet8"  # resnet8, ds-cnn, layer
    channels: int = 64
    side: int = 8
    taps: int = 9
    cores: str = "8"
    float_units: int = 4
    banks: int = 16
    lanes: str = "1,2"  # numbers of an instruction: 1 is FP32, 2 is FP16 in 32-bit registers
    clock_hz: float = 450e6


def run(request: Run) -> tuple[Row, ...]:
    """A row for each number of cores and lanes: cycles of a step, its seconds, and multiply-adds a cycle."""
    sizes: Sizes = request.sizes
    layers = _layers(sizes)
    macs = sum(layer.num_macs for layer in layers)
    if not 1e3 <= sizes.clock_hz <= 1e11:
        raise ScenarioError(f"set: clock_hz = {sizes.clock_hz:g}; write 1e3 to 1e11.")
    rows = list[Row]()
    for count in numbers("cores", sizes.cores, least=1, most=1024):
        wide_cycles = 0.0
        for lanes in numbers("lanes", sizes.lanes, least=1, most=32):
            cores = Cores(
                num_cores=int(count),
                num_float_units=min(int(count), whole("float_units", sizes.float_units, most=1024)),
                num_banks=whole("banks", sizes.banks, least=0, most=4096),
            )
            cycles = sum(step_cycles(layer, cores, int(lanes)) for layer in layers)
            wide_cycles = wide_cycles or cycles
            rows.append(
                {
                    "cores": int(count),
                    "lanes": int(lanes),
                    "cycles": cycles,
                    "step_s": cycles / sizes.clock_hz,
                    "macs_per_cycle": macs / cycles,
                    "speedup": wide_cycles / cycles,
                }
            )
    return tuple(rows)


def _layers(sizes: Sizes) -> Sequence[ClusterLayer]:
    if sizes.network in NETWORKS:
        return list(NETWORKS[sizes.network]())
    if sizes.network != LAYER:
        raise ScenarioError(f"set: network = {sizes.network!r}; write {', '.join(NETWORKS)} or {LAYER}.")
    channels = whole("channels", sizes.channels, most=10_000)
    side, taps = whole("side", sizes.side, most=4096), whole("taps", sizes.taps, most=1000)
    return [ClusterLayer(positions=side**2, taps=taps, inputs=channels, outputs=channels)]


EXPERIMENT = Experiment(
    name="small-core-training",
    question="How long does a training step take on a cluster of small cores, and what do lanes of FP16 gain?",
    run=run,
    num_steps=1,
    claims=("fp16-odl-mcu",),
    sizes=Sizes,
    keys=("cores", "lanes"),
    curve=("cores", "step_s"),
)

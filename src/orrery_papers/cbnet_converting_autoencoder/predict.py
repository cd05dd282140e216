"""CBNet: an autoencoder before a small network, against a network with an early exit."""

from collections.abc import Iterator
from itertools import pairwise

from orrery.execution.edge.early_exit import Runtime, exiting_s, run_s

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction

PIXELS = 784
TRUNK = ((30, 5, 1, 5),)
BRANCH, BRANCH_INPUTS = ((15, 3, 5, 10),), 490
REST, REST_WIDTHS = ((15, 5, 5, 10), (7, 5, 10, 20)), (720, 84, 10)
"""LeNet with an exit behind its first convolution: height, kernel, inputs and outputs; fully connected widths."""

CLASSES = 10
DIFFERS = (
    "the layers that the authors compare are not known; here nearly every cost is a layer's call, and an autoencoder "
    "of four layers leaves little to gain over a network of four more"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Expected latency with exits over the pipeline's, and the energy that follows."""
    for claim in paper.claims:
        if claim.missing:
            continue
        exiting, ours = latencies(claim.setup)
        ratio = exiting / ours
        yield Prediction(
            claim=claim.id,
            predicted=1.0 - 1.0 / ratio if claim.metric == "energy_reduction" else ratio,
            because=f"{exiting * 1e3:.2f} ms expected with an exit that answers {claim.setup.number('easy_frac'):.0%}, "
            f"{ours * 1e3:.2f} ms converted",
            differs=DIFFERS,
        )


def latencies(setup: Setup) -> tuple[float, float]:
    """With an early exit, and converted first."""
    runtime = Runtime(flops_per_s=setup.number("device_flops_per_s"), call_s=setup.number("call_s"))
    early = [*map(convolution, (*TRUNK, *BRANCH)), 2.0 * BRANCH_INPUTS * CLASSES]
    rest = [*map(convolution, REST), *connected(REST_WIDTHS)]
    hidden, code = setup.number("num_hidden_features"), setup.number("num_code_features")
    autoencoder = connected((PIXELS, hidden, code, hidden, PIXELS))
    return (
        exiting_s(early, rest, setup.number("easy_frac"), runtime),
        run_s([*autoencoder, *early], runtime),
    )


def convolution(shape: tuple[int, int, int, int]) -> float:
    """Operations of one."""
    height, kernel, inputs, outputs = shape
    return 2.0 * height**2 * kernel**2 * inputs * outputs


def connected(widths: tuple[float, ...]) -> list[float]:
    """Operations of fully connected layers."""
    return [2.0 * a * b for a, b in pairwise(widths)]

"""EfficientViT: four networks kernel by kernel on a GPU and on a processor."""

from collections.abc import Iterator

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.predictors.cells.pool import bench
from orrery_papers.efficientvit_msra.vision import fixed

ONLY = np.zeros((1, 1), np.int64)
DIFFERS = (
    "kernels of FP32 by the device's rules, with depthwise windows read once a tap; the library of the time may "
    "do reorderings and windows far worse than a plain pass"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates over the baseline's, by claim."""
    for claim in paper.claims:
        if claim.missing:
            continue
        setup = claim.setup
        ours, other = (images_per_s(setup, setup.word(line)) for line in ("network", "baseline_network"))
        is_gain = claim.metric == "throughput_gain"
        yield Prediction(
            claim=claim.id,
            predicted=ours / other - (1.0 if is_gain else 0.0),
            differs=DIFFERS,
            because=f"{setup.word('network')} {ours:.0f} pictures a second, {setup.word('baseline_network')} "
            f"{other:.0f}",
        )


def images_per_s(setup: Setup, network: str) -> float:
    """A batch over its latency, launches ahead of the device."""
    batch = int(setup.number("num_batch"))
    machine = bench(get_device(setup.word("device")), fixed(network), batch).truth
    return batch / float(machine.latency_s(ONLY)[0])

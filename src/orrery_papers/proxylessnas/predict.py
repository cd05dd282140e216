"""ProxylessNAS: networks that are searched for two devices."""

from collections.abc import Iterator

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.predictors.cells.latency import Machine
from orrery.predictors.cells.mbconv import mbconv, mobilenet_v2
from orrery.predictors.cells.pool import bench
from orrery.predictors.cells.space import Space
from orrery.predictors.cells.targeted import Targeted, found_for
from orrery.predictors.studies.latency_aware_search import SEARCH_STEPS

NUM_RUNS = 8
ONLY = np.zeros((1, 1), np.int64)
HOST = "a framework of 2018 took longer for each of some 150 launches, which bind both networks"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The search for the GPU, then for a mobile processor."""
    setup, mobile = paper.setups["gpu"], paper.setups["cpu"]
    batch = int(setup.number("num_batch"))
    old_s, found = compared(setup)
    yield Prediction(
        claim="gpu-speedup",
        predicted=old_s / found.latency_s,
        because=f"{found.flops / batch / 2e6:.0f} million multiply-adds in {found.latency_s * 1e3:.2f} ms, "
        f"MobileNetV2 {old_s * 1e3:.2f} ms",
        differs="work stands in for accuracy, and the paper's space is wider",
    )
    _, own = compared(mobile)
    other_s = float(machine(mobile, mbconv()).latency_s(found.cell)[0])
    yield Prediction(
        claim="specialized",
        predicted=other_s / own.latency_s,
        because=f"{own.latency_s * 1e3:.1f} ms searched for it, {other_s * 1e3:.1f} ms searched for the GPU",
        differs="eight runs end in like networks on both, and the GPU's happens to be the better",
    )
    yield Prediction(claim="mobilenet-latency", predicted=old_s, because=f"batch {batch}, launches ahead", differs=HOST)
    yield Prediction(claim="latency", predicted=found.latency_s, because=f"batch {batch}", differs=HOST)


def compared(setup: Setup) -> tuple[float, Targeted]:
    """MobileNetV2's latency, and the fastest network found with no less work."""
    old = machine(setup, mobilenet_v2())
    requested = float(old.plan.total(old.plan.flops, ONLY)[0])
    return float(old.latency_s(ONLY)[0]), found_for(machine(setup, mbconv()), requested, NUM_RUNS, SEARCH_STEPS, 0)


def machine(setup: Setup, space: Space) -> Machine:
    """A space on the set-up's device as its data sheet has it."""
    return bench(get_device(setup.word("device")), space, int(setup.number("num_batch"))).truth

"""ProxylessNAS: networks that a differentiable search finds for two devices, by orrery search."""

from collections.abc import Iterator

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.search.answer import DeviceResult
from orrery.scenario.search.ask import search

HOST = "a framework of 2018 took longer for each of some 150 launches, which bind both networks"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The search for the GPU, then for both devices with one picture."""
    setup, mobile = paper.setups["gpu"], paper.setups["cpu"]
    batch = int(setup.number("num_batch"))
    (found,) = searched(setup.word("device"), setup)
    old_s, new_s = found.reference["latency"], found.best.metrics["latency"]
    yield Prediction(
        claim="gpu-speedup",
        predicted=old_s / new_s,
        because=f"{found.best.metrics['work'] / 1e6:.0f} million multiply-adds in {new_s * 1e3:.2f} ms, "
        f"MobileNetV2 {old_s * 1e3:.2f} ms",
        differs="work stands in for accuracy, and the paper's space is wider",
    )
    gpu, own = searched(f"{setup.word('device')},{mobile.word('device')}", mobile)
    own_s, other_s = own.best.metrics["latency"], gpu.latency_s_on[own.device]
    yield Prediction(
        claim="specialized",
        predicted=other_s / own_s,
        because=f"one picture: {own_s * 1e3:.1f} ms searched for it, {other_s * 1e3:.1f} ms searched for the GPU",
    )
    yield Prediction(claim="mobilenet-latency", predicted=old_s, because=f"batch {batch}, launches ahead", differs=HOST)
    yield Prediction(claim="latency", predicted=new_s, because=f"batch {batch}", differs=HOST)


def searched(devices: str, setup: Setup) -> tuple[DeviceResult, ...]:
    """The fastest network of no less work than MobileNetV2's, for each device."""
    found = search(
        space="mbconv",
        device=devices,
        batch=int(setup.number("num_batch")),
        objective="latency,score",
        scores="work",
        min_score_ratio=1.0,
        method="differentiable",
    )
    if isinstance(found, InfeasibleAnswer):
        raise OutOfRange(str(found.infeasible))
    return found.devices

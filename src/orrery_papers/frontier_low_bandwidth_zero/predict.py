"""A 20B GPT on Frontier with its state cut at three levels, against ZeRO++ and ZeRO-3."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train import TrainAnswer
from orrery_papers.shared.trained_by import settings_of, trained

OURS, NARROW, PLAIN = "three-level", "zero-plus-plus", "zero3"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates of the three plans at the most devices, and of the paper's own at the fewest."""
    setup = paper.setups["gpt-20b"]
    most, fewest = int(setup.number("num_devices")), int(setup.number("num_scaling_devices"))
    full = {name: step_on(setup, name, most) for name in (OURS, NARROW, PLAIN)}
    ours = full[OURS]
    crossing = ours.parts["parameter gathering"] / ours.step_time_s
    ratios = {
        "rate-over-zero-plus-plus": (OURS, NARROW),
        "zero-plus-plus-over-zero3": (NARROW, PLAIN),
        "rate-over-zero3": (OURS, PLAIN),
    }
    for claim, (better, worse) in ratios.items():
        yield Prediction(
            claim=claim,
            predicted=full[worse].step_time_s / full[better].step_time_s,
            because=f"{_shown(better, full[better])}; {_shown(worse, full[worse])}; {percent(crossing)} of our step "
            "crosses nodes",
            differs="at the links' rates nearly all traffic hides under layers' work; how far collectives stay below "
            "the links on this network was not measured",
        )
    small = step_on(setup, OURS, fewest)
    yield Prediction(
        claim="scaling-efficiency",
        predicted=ours.model_flops_per_s_per_device / small.model_flops_per_s_per_device,
        because=f"only a step's end crosses between nodes, on {most} as on {fewest} devices",
        differs="contention of a machine in use, and a slowest node, are not modelled",
    )
    yield Prediction(claim="scale", predicted=float(ours.layout.num_devices), because="48 nodes of eight dies")


def _shown(name: str, answer: TrainAnswer) -> str:
    rate, held = answer.model_flops_per_s_per_device / 1e12, answer.peak_memory_bytes / 1e9
    return f"{name} {rate:.0f} TFLOP/s a device and {held:.0f} GB"


def step_on(setup: Setup, partition: str, devices: int) -> TrainAnswer:
    """``orrery train --partition`` on so many dies, with the links of a package, a node and the system."""
    each = int(setup.number("num_global_batch") / setup.number("num_devices"))
    package, rate = (setup.number(line) for line in ("num_devices_per_package", "package_link_bytes_per_s"))
    return trained(
        **settings_of(
            setup,
            devices=devices,
            global_batch=each * devices,
            partition=partition,
            link_levels=f"package:{package:g}:{rate:g}",
        )
    )

"""A 20B GPT on Frontier with its state cut at three levels, against ZeRO++ and ZeRO-3."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from orrery.catalog.frameworks import get_framework
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import Recompute
from orrery.training.levels import Topology
from orrery.training.partition import PartitionedStep, get_plan, partitioned_step
from orrery_papers.shared.frontier import die_of, levels_of
from orrery_papers.shared.trained import training_job

OURS, NARROW, PLAIN = "three-level-partition", "zero-plus-plus", "zero3-partition"
CARDS = 4.0
"""Network cards of a node."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates of the three plans at the most devices, and of the paper's own at the fewest."""
    setup = paper.setups["gpt-20b"]
    most, fewest = int(setup.number("num_devices")), int(setup.number("num_scaling_devices"))
    plans = (OURS, NARROW, PLAIN)
    full = {name: step_on(setup, name, most) for name in plans}
    single = {name: step_on(setup, name, most, slower_ratio=CARDS, hides=False) for name in plans}
    ours = full[OURS]
    crossing = ours.parts["once a step, between groups"] / ours.time_s
    ratios = {
        "rate-over-zero-plus-plus": (OURS, NARROW),
        "zero-plus-plus-over-zero3": (NARROW, PLAIN),
        "rate-over-zero3": (OURS, PLAIN),
    }
    for claim, (better, worse) in ratios.items():
        alone = _ratio(single[better], single[worse])
        yield Prediction(
            claim=claim,
            predicted=_ratio(full[better], full[worse]),
            because=f"{_shown(full[better])}; {_shown(full[worse])}; {crossing:.0%} of our step crosses nodes",
            differs="at the links' rates nearly all traffic hides under layers' work; with one card of a node's four "
            f"and nothing hidden the same plans give {alone:.2f}",
        )
    small = step_on(setup, OURS, fewest)
    yield Prediction(
        claim="scaling-efficiency",
        predicted=ours.model_flops_per_s_per_device / small.model_flops_per_s_per_device,
        because=f"only a step's end crosses between nodes, on {most} as on {fewest} devices",
    )
    yield Prediction(claim="scale", predicted=float(ours.num_devices), because="48 nodes of eight dies")


def _ratio(better: PartitionedStep, worse: PartitionedStep) -> float:
    return better.model_flops_per_s_per_device / worse.model_flops_per_s_per_device


def _shown(step: PartitionedStep) -> str:
    rate, held = step.model_flops_per_s_per_device / 1e12, step.memory_bytes / 1e9
    return f"{step.plan.name} {rate:.0f} TFLOP/s a device and {held:.0f} GB"


def on_dies(setup: Setup, num_devices: int, slower_ratio: float, hides: bool) -> tuple[TrainingJob, Topology]:
    """The job and the machine's levels, with links between nodes so many times slower than stated.

    Where it ``hides``, gathers and reductions run beside the layers' work.
    """
    each = int(setup.number("num_global_batch")) // int(setup.number("num_devices"))
    job, die = training_job(setup, num_devices=num_devices, global_batch=each * num_devices), die_of(setup)
    framework = get_framework(setup.word("engine"), die, job.recipe.name)
    job = replace(
        job,
        cluster=replace(job.cluster, device=die, devices_per_node=die.devices_per_node),
        framework=replace(framework, overlaps_parameters=hides),
    )
    *inside, system = levels_of(setup, num_devices).levels
    link = replace(system.link, each_way_bytes_per_s=system.link.each_way_bytes_per_s / slower_ratio)
    return job, Topology(levels=(*inside, replace(system, link=link)))


def step_on(
    setup: Setup, name: str, num_devices: int, *, slower_ratio: float = 1.0, hides: bool = True
) -> PartitionedStep:
    """One step under the plan called ``name``."""
    job, topology = on_dies(setup, num_devices, slower_ratio, hides)
    return partitioned_step(
        job,
        topology,
        get_plan(name, topology),
        micro_batch=int(setup.number("num_micro_batch")),
        recompute=cast(Recompute, setup.word("recompute")),
    )

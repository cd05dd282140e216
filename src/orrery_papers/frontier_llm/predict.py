"""Megatron-DeepSpeed on Frontier: the best plans for 22B, 175B and 1T, and how they scale."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.catalog.frameworks import get_framework
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.planner.training.search import search
from orrery.planner.training.space import FixedSettings
from orrery_papers.shared.frontier import die_of
from orrery_papers.shared.trained import Trained, trained, training_job, training_layout

KERNELS = (
    "no run of this generation is in the tables, so kernels and collectives reach the shares of peaks that other "
    "makers' do: about 140 TFLOP/s for a die's products, where public searches found at most 147 and 127 on one die "
    "alone (the latter takes some 5 points off); what both dies reach within the package's power with libraries of "
    "2023, and what fused attention did as ported then, was not found"
)
OPERATIONS_PER_PARAMETER = 6.0
"""Forward two, backward four, for every parameter and token. [kaplan-2020]"""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Operations, searched plans, and scaling at fixed work a replica and at fixed work in all."""
    claims = {claim.id: claim for claim in paper.claims}
    one = paper.setups["1t"]
    yield Prediction(
        claim="training-compute",
        predicted=OPERATIONS_PER_PARAMETER * one.number("num_parameters") * one.number("num_training_tokens"),
        because="six operations for every parameter and token",
    )
    for name in ("22b", "175b", "1t"):
        found = best_plan(paper.setups[name])
        yield Prediction(
            claim=f"throughput-{name}",
            predicted=found.peak_frac,
            differs=KERNELS,
            because=f"the fastest plan that fits: {found.layout}, {found.peak_memory_bytes / 1e9:.0f} GB a device",
        )
    for name in ("175b", "1t"):
        weak, strong = claims[f"weak-scaling-{name}"].setup, claims[f"strong-scaling-{name}"].setup
        least, most = scaled(weak, is_weak=True)
        yield Prediction(
            claim=f"weak-scaling-{name}",
            predicted=_gain(least, most),
            because="every replica does the same; the gradients' exchange is what is added",
        )
        least, most = scaled(strong, is_weak=False)
        idle = (float(r.steps.parts["bubble"][0]) / r.step_s for r in (least, most))
        yield Prediction(
            claim=f"strong-scaling-{name}",
            predicted=_gain(least, most),
            because="idle time grows from {:.1%} to {:.1%} of a step as replicas share the batch".format(*idle),
            differs="contention of a machine in use, and a slowest node, are not modelled",
        )
        yield Prediction(
            claim=f"devices-{name}", predicted=float(most.layout.num_devices), because=f"tp x pp x dp of {most.layout}"
        )


def _gain(least: Trained, most: Trained) -> float:
    return most.tokens_per_s_per_device / least.tokens_per_s_per_device


def job_of(setup: Setup, num_devices: int = 0, global_batch: int = 0) -> TrainingJob:
    """The set-up's job on dies, with fused attention."""
    job, die = training_job(setup, num_devices=num_devices, global_batch=global_batch), die_of(setup)
    framework = get_framework(setup.word("engine"), die, job.recipe.name)
    return replace(
        job,
        cluster=replace(job.cluster, device=die, devices_per_node=die.devices_per_node),
        framework=replace(framework, has_fused_attention=True),
    )


def best_plan(setup: Setup) -> Trained:
    """The fastest of all degrees and micro-batches that fits."""
    job = job_of(setup)
    requested = FixedSettings(
        cp=1,
        vp=1,
        schedule="1f1b",
        sharding=setup.word("sharding"),
        recompute=setup.word("recompute"),
        recompute_layers=0,
        is_sequence_parallel=False,
    )
    return trained(job, search(job, requested, count=1).best[0].layout)


def scaled(setup: Setup, *, is_weak: bool) -> tuple[Trained, Trained]:
    """The stated layout on the fewest and on all devices; the batch grows with them or stays."""
    fewest, most = int(setup.number("num_scaling_devices")), int(setup.number("num_devices"))
    whole = int(setup.number("num_global_batch"))

    def on(devices: int) -> Trained:
        batch = whole * devices // most if is_weak else whole
        return trained(job_of(setup, devices, batch), training_layout(setup, devices))

    return on(fewest), on(most)

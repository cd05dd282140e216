"""Megatron-DeepSpeed on Frontier: the best plans for 22B, 175B and 1T, and how they scale."""

from collections.abc import Iterator
from typing import Any

from orrery.base.errors import FactError
from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train import TrainAnswer
from orrery.scenario.train_plan import train_plan
from orrery.training.worth import peak_flops_per_s
from orrery_papers.shared.trained import megatron_flops
from orrery_papers.shared.trained_by import settings_of, trained

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
            predicted=megatron_frac(found),
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
        before, after = (percent(r.parts["bubble"] / r.step_time_s, 1) for r in (least, most))
        yield Prediction(
            claim=f"strong-scaling-{name}",
            predicted=_gain(least, most),
            because=f"idle time grows from {before} to {after} of a step as replicas share the batch",
            differs="contention of a machine in use, and a slowest node, are not modelled",
        )
        yield Prediction(
            claim=f"devices-{name}", predicted=float(most.layout.num_devices), because=f"tp x pp x dp of {most.layout}"
        )


def _gain(least: TrainAnswer, most: TrainAnswer) -> float:
    return most.tokens_per_s_per_device / least.tokens_per_s_per_device


FUSED: dict[str, Any] = {"fused_attention": True}
"""The authors ported FlashAttention to the framework."""


def best_plan(setup: Setup) -> TrainAnswer:
    """``orrery train --plan``: the fastest of all degrees and micro-batches that fits."""
    given = settings_of(setup, tp=None, pp=None, micro_batch=None, **FUSED)
    found = train_plan(**given, cp=1, vp=1, schedule="1f1b", recompute_layers=0, count=1).plans
    if not found:
        raise FactError(f"setup {setup.name}: no plan fits.")
    return found[0]


def scaled(setup: Setup, *, is_weak: bool) -> tuple[TrainAnswer, TrainAnswer]:
    """The stated layout on the fewest and on all devices; the batch grows with them or stays."""
    fewest, most = int(setup.number("num_scaling_devices")), int(setup.number("num_devices"))
    whole = int(setup.number("num_global_batch"))

    def on(devices: int) -> TrainAnswer:
        batch = whole * devices // most if is_weak else whole
        return trained(**settings_of(setup, devices=devices, global_batch=batch, **FUSED))

    return on(fewest), on(most)


def megatron_frac(answer: TrainAnswer) -> float:
    """Operations per second as Megatron-LM counts them, over the dense peak."""
    flops = megatron_flops(answer.job, answer.layout.recompute == "full")
    return flops / answer.step_time_s / answer.layout.num_devices / peak_flops_per_s(answer.job)

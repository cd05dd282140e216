"""Megatron-LM in three dimensions: ten GPTs from 1.7B on 32 devices to 1T on 3,072, and interleaved chunks."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery_papers.shared.trained import Trained, trained, training_job, training_layout

SIZES = ("1.7b", "3.6b", "7.5b", "18b", "39b", "76b", "145b", "310b", "530b", "1t")
KERNELS = "kernels and collectives are those of today's libraries, not of 2021, and waits between nodes are a mean"

ATTENTION = (
    "scores, their softmax and their dropout pass through memory as kernels of their own, which weighs most where "
    "layers are narrow; the scripts' kernels merged more of it"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gain of interleaving, and every row of table 1."""
    claims = {claim.id: claim for claim in paper.claims}
    for claim in ("interleaved-gain", "interleaved-gain-batch-12"):
        plain, chunks = (run_of(claims[claim].setup, which) for which in ("baseline_layout", "layout"))
        before, after = (percent(float(r.steps.parts["bubble"][0]) / r.step_s, 1) for r in (plain, chunks))
        yield Prediction(
            claim=claim,
            predicted=plain.step_s / chunks.step_s - 1.0,
            because=f"idle time falls from {before} to {after} of a step with four chunks a device",
        )
    runs = {name: run_of(paper.setups[name]) for name in SIZES}
    largest = runs["1t"]
    bubble = float(largest.steps.parts["bubble"][0]) / largest.step_s
    devices = largest.layout.num_devices
    yield Prediction(
        claim="aggregate-throughput",
        predicted=devices * largest.megatron_flops_per_s_per_device,
        differs=KERNELS,
        because=f"{largest.layout} on {devices} devices; {percent(bubble, 1)} of a step is the pipeline's idle time",
    )
    yield Prediction(
        claim="fraction-of-peak",
        predicted=largest.peak_frac,
        because="the same rate over 312 TFLOP/s a device",
        differs=KERNELS,
    )
    yield Prediction(claim="cluster-scale", predicted=float(devices), because=f"tp x pp x dp of {largest.layout}")
    for name, run in runs.items():
        yield Prediction(
            claim=f"rate-{name.replace('.', '-')}",
            predicted=run.megatron_flops_per_s_per_device,
            because=f"{run.layout}: {run.step_s:.1f} s a step",
            differs=ATTENTION if run.layout.pp == 1 else KERNELS,
        )


def run_of(setup: Setup, line: str = "layout") -> Trained:
    """The set-up's job under one of its layouts."""
    job = as_of_2021(training_job(setup))
    return trained(job, training_layout(setup, job.cluster.num_devices, setup.word(line)))


def as_of_2021(job: TrainingJob) -> TrainingJob:
    """Attention through scores in memory, and no tensor-parallel sum beside weight gradients: both came later."""
    before = replace(job.framework, has_fused_attention=False, overlaps_weight_gradients=False)
    return replace(job, framework=before)

"""FP8 against BF16: Llama 3.1 405B on H100 in both, and the loss gap of a small decoder."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment
from orrery_papers.shared.trained import Trained, trained, training_job, training_layout

PASSES_FLOPS = 6.0
"""Forward and backward of one parameter and token. [kaplan-2020]"""

BF16, FP8 = "bf16", "fp8"
FP8_ROW = "fp8 e4m3 forward, e5m2 backward"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The budget, both times, and the gap."""
    setup = paper.setups["405b"]
    runs = {recipe: run_of(setup, recipe) for recipe in (BF16, FP8)}
    size, tokens = float(runs[BF16].job.model.num_parameters), setup.number("num_training_tokens")
    yield Prediction(claim="model-size", predicted=size, because="the model's published sizes")
    yield Prediction(
        claim="budget", predicted=PASSES_FLOPS * size * tokens, because="six operations a parameter and token"
    )
    times = {recipe: tokens / run.tokens_per_s_per_device for recipe, run in runs.items()}
    text = ", ".join(f"{recipe} {time / 3.6e9:.1f}" for recipe, time in times.items())
    yield Prediction(
        claim="speedup",
        predicted=times[BF16] / times[FP8],
        because=f"steps of {runs[BF16].step_s:.1f} and {runs[FP8].step_s:.1f} s; million hours of H100 in all: {text}",
    )
    found = run_experiment("fp8-and-bf16", steps=int(paper.setups["decoder"].number("num_steps"))).rows
    rows = {row["recipe"]: float(row["loss"]) for row in found}
    yield Prediction(
        claim="loss-gap",
        predicted=rows[FP8_ROW] / rows[BF16],
        because=", ".join(f"{name} {loss:.4f}" for name, loss in rows.items()),
    )


def run_of(setup: Setup, recipe: str) -> Trained:
    """One step of the set-up in a precision."""
    job = training_job(setup, recipe=recipe)
    return trained(job, training_layout(setup, job.cluster.num_devices))

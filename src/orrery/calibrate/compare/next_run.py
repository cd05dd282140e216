"""The next measurement: of a few short runs, the one about which the two likeliest causes differ most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from orrery.base.errors import OrreryError
from orrery.calibrate.compare.cells import bounded
from orrery.calibrate.compare.fit import Fitted
from orrery.calibrate.compare.run import Run, ServingRun, TrainingRun, Value, predict
from orrery.execution.memory import Infeasible
from orrery.serving.workload import Workload

CONCURRENCIES = (1, 16, 128)
PROMPTS = (64, 4096)
OUTPUT_TOKENS = 128
REQUESTS_PER_SLOT = 4
ASKED = ("ttft_s", "tpot_s", "output_tokens_per_s")
ASKED_OF_TRAINING = ("step_time_s",)

TELLING = 1.0
"""Deviations by which two answers must differ for a run to be worth its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """A run to make, the metric to look at, and what each cause says of it."""

    what: str
    metric: str
    first: str
    first_value: float  # in the metric's unit
    second: str
    second_value: float
    difference_ratio: float  # of their logs, in deviations of the prediction


def next_run(runs: Sequence[Run], first: Fitted, second: Fitted) -> NextRun | None:
    """The most telling run; None where no candidate tells the two apart."""
    best: NextRun | None = None
    for what, run in _candidates(runs):
        text = [_describe(run, fitted) for fitted in (first, second)]
        if text[0] is None or text[1] is None:
            continue
        for metric, one in text[0].items():
            other = text[1][metric]
            if not (one.value > 0 and other.value > 0):
                continue
            difference = abs(log(one.value / other.value)) / bounded(one.deviation_ratio)
            if difference > max(TELLING, best.difference_ratio if best else 0.0):
                best = NextRun(
                    what=what,
                    metric=metric,
                    first=first.cause.name,
                    first_value=one.value,
                    second=second.cause.name,
                    second_value=other.value,
                    difference_ratio=difference,
                )
    return best


def _describe(run: Run, fitted: Fitted) -> dict[str, Value] | None:
    """Prediction of a run under a cause at its severity; None where it could not run."""
    try:
        changed = fitted.cause.change(run, fitted.severity) or run
        found = predict(changed, ASKED_OF_TRAINING if isinstance(run, TrainingRun) else ASKED)
    except OrreryError:
        return None
    return None if isinstance(found, Infeasible) else found


def _candidates(runs: Sequence[Run]) -> Iterator[tuple[str, Run]]:
    """Short runs of the first deployment with other loads and lengths; of a training job, other sizes."""
    first = runs[0]
    if isinstance(first, TrainingRun):
        yield from _training(first)
        return
    for concurrency in CONCURRENCIES:
        for prompt in PROMPTS:
            yield _serving(first, concurrency, prompt)


def _serving(run: ServingRun, concurrency: int, prompt: int) -> tuple[str, Run]:
    requests = max(8, REQUESTS_PER_SLOT * concurrency)
    workload = Workload(
        mode="closed", input_tokens=prompt, output_tokens=OUTPUT_TOKENS, concurrency=concurrency, num_requests=requests
    )
    what = (
        f"vllm bench serve --dataset-name random --random-input-len {prompt} --random-output-len {OUTPUT_TOKENS} "
        f"--max-concurrency {concurrency} --num-prompts {requests}"
    )
    return what, replace(run, workload=workload, requested=workload)


def _training(run: TrainingRun) -> Iterator[tuple[str, Run]]:
    """The same job with shorter samples, a smaller batch, recomputation, or one replica."""
    job, layout = run.job, run.layout
    accumulated = job.num_micro_batches(layout)
    changes: list[tuple[str, dict[str, int], dict[str, object]]] = [
        ("samples of a quarter of the length", {"seq_len": max(1, job.seq_len // 4)}, {}),
        ("one micro-batch a step", {"global_batch": job.global_batch // accumulated}, {}),
        ("full recomputation on", {}, {"recompute": "full"}),
    ]
    if layout.dp > 1:
        changes.append(("one data-parallel replica", {"global_batch": job.global_batch // layout.dp}, {"dp": 1}))
    for what, of_job, of_layout in changes:
        yield what, _changed(run, of_job, of_layout)


def _changed(run: TrainingRun, of_job: dict[str, int], of_layout: dict[str, object]) -> TrainingRun:
    job = replace(run.job, **of_job)
    layout = replace(run.layout, **of_layout)  # pyright: ignore[reportArgumentType]
    if layout.num_devices != run.layout.num_devices:
        job = replace(job, cluster=replace(job.cluster, num_devices=layout.num_devices))
    return replace(run, job=job, layout=layout, row=replace(run.row, job=job, layout=layout))

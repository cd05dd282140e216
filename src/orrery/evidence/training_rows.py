"""Training rows to predictions: rows of one job are answered together."""

from collections.abc import Callable
from dataclasses import dataclass

from orrery.base.cost import Interval, Spread
from orrery.base.errors import OrreryError, UnknownName
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.metrics import FITS, METRICS, OUTCOME_COLUMNS
from orrery.evidence.notes import with_notes
from orrery.evidence.row import Row
from orrery.evidence.tables import Table
from orrery.evidence.training_row import (
    CLEARLY,
    counts_full_attention,
    is_last_rank,
    leaves_device,
    leaves_recompute_open,
    memory_tool,
    read_training_row,
    usable_bytes,
)
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.models.model import SoftmaxAttention
from orrery.training.columns import columns_of
from orrery.training.error_range import spread_of
from orrery.training.reported import RESERVED_RATIO, outside_bytes, reported_bytes
from orrery.training.step import Steps, step_of
from orrery.training.worth import peak_flops_per_s

Progress = Callable[[int, int], None]

RATES = ("tokens_per_s_per_device", "model_flops_per_s_per_device", "mfu_frac")
"""Metrics that fall when the step takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Read:
    """One row that was understood."""

    number: int
    row: Row
    job: TrainingJob
    layout: TrainingLayout


def answer(table: Table, rows: Rows, answers: Answers, on_progress: Progress | None = None) -> None:
    """Predict every metric that the given training rows state."""
    by_job: dict[int, list[Read]] = {}
    for one in read(table, rows, answers):
        by_job.setdefault(id(one.job), []).append(one)
    done = 0
    for members in by_job.values():
        try:
            steps = step_of(members[0].job, columns_of([m.layout for m in members]))
        except OrreryError as error:
            answers.decline([m.number for m in members], str(error))
        else:
            for index, member in enumerate(members):
                _note(answers, table, member, steps, index)
        done += len(members)
        if on_progress:
            on_progress(done, len(rows))


def read(table: Table, rows: Rows, answers: Answers) -> list[Read]:
    """The rows that describe a job and a layout; the others are declined with the reason."""
    out: list[Read] = []
    for number in map(int, rows):
        row = Row(with_notes({c: v[number] for c, v in table.columns.items()}))
        try:
            job, layout = read_training_row(row)
        except UnknownName as error:
            answers.decline([number], f"unknown {error.kind} {error.name}")
        except OrreryError as error:
            answers.decline([number], str(error))
        else:
            out.append(Read(number=number, row=row, job=job, layout=layout))
    return out


def _note(answers: Answers, table: Table, member: Read, steps: Steps, index: int) -> None:
    """Write one row's answer down."""
    memory = float(steps.memory_bytes[index])
    if any(c in table.columns for c in OUTCOME_COLUMNS) and not leaves_device(member.row):
        slack = CLEARLY if leaves_recompute_open(member.row, member.layout) else 1.0
        device, outside = member.job.cluster.device, outside_bytes(member.job.framework, member.layout)
        held = RESERVED_RATIO * memory if device.kind == "gpu" else memory  # compilers allocate nothing twice
        fits = held <= slack * usable_bytes(device, outside)
        answers.predict_one(FITS, member.number, float(fits))
    answers.assumed.update(member.row.assumed)
    for metric in METRICS["training"]:
        if member.row.word(metric):
            value = metric_of(steps, index, metric, member)
            spread = spread_of(member.job, "peak_memory_bytes" if metric.startswith("peak") else "step_time_s")
            answers.predict_one(metric, member.number, value, _around(value, metric, spread))


def metric_of(steps: Steps, index: int, metric: str, member: Read) -> float:
    """The value of a metric of the schema, counted as the row counts."""
    time_s, layout, job = float(steps.time_s[index]), member.layout, member.job
    if metric == "step_time_s":
        return time_s
    if metric == "micro_step_time_s":
        return time_s / job.num_micro_batches(layout)
    if metric == "tokens_per_s_per_device":
        return float(steps.tokens_per_s_per_device[index])
    if metric == "peak_memory_bytes":
        held = steps.last.total if is_last_rank(member.row) else steps.memory_bytes
        return reported_bytes(float(held[index]), memory_tool(member.row, job.framework), job.framework, layout)
    flops = float(steps.model_flops[index])
    if counts_full_attention(member.row):
        flops += uncounted_flops(job)
    rate = flops / time_s / layout.num_devices
    return rate / (member.row.number("mfu_peak_flops_per_s") or peak_flops_per_s(job)) if metric == "mfu_frac" else rate


def uncounted_flops(job: TrainingJob) -> float:
    """Operations that counting every pair of tokens adds to a step where attention is causal."""
    pairs = job.global_batch * job.seq_len * (job.seq_len - 1) / 2.0
    width = sum(
        b.count * b.mixer.num_heads * (b.mixer.head_size + b.mixer.value_head_size)
        for b in job.model.blocks
        if isinstance(b.mixer, SoftmaxAttention) and b.mixer.is_causal
    )
    return 3.0 * 2.0 * pairs * width


def _around(value: float, metric: str, spread: Spread | None) -> Interval | None:
    if spread is None:
        return None
    if metric not in RATES:
        return spread.around(value)
    return Interval(
        low_80=value / spread.high_80_ratio,
        high_80=value / spread.low_80_ratio,
        low_95=value / spread.high_95_ratio,
        high_95=value / spread.low_95_ratio,
        because=spread.because,
    )

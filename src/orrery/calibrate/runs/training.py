"""Training runs: which constants of a framework they may correct, and what is predicted with others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.problem import Cell, Constant, Constants, Ints, Reference, Subject
from orrery.calibrate.runs.read import TOOL
from orrery.calibrate.runs.reference_predictions import training_references
from orrery.calibrate.runs.user_settings import one_of
from orrery.catalog.frameworks import ASSUMED
from orrery.evidence.answers import Answers
from orrery.evidence.tables import Table
from orrery.evidence.training_row import is_out_of_memory
from orrery.evidence.training_rows import Read, metric_of, read
from orrery.execution.train.units import Units, units
from orrery.training.columns import Columns, choices, columns_of
from orrery.training.step import step_of

CONSTANTS = (
    Constant(
        name="host_layer_s",
        stiffness=0.5,
        low=1e-5,
        high=5e-3,
        needs="short samples or a small micro-batch, where a layer is done before its kernels are launched",
    ),
    Constant(
        name="host_backward_ratio", stiffness=0.4, low=0.5, high=5.0, needs="the same: steps that wait for launches"
    ),
    Constant(
        name="host_expert_s", stiffness=0.5, low=1e-5, high=2e-2, needs="a model with experts and a small micro-batch"
    ),
    Constant(
        name="host_collective_s",
        stiffness=1.0,
        low=1e-6,
        high=3e-3,
        needs="tensor parallelism with small micro-batches",
    ),
    Constant(
        name="step_s",
        stiffness=1.0,
        low=1e-4,
        high=2.0,
        needs="two global batches on the same devices: what does not grow with the batch",
    ),
    Constant(
        name="matrix_ratio",
        stiffness=0.25,
        low=0.5,
        high=3.0,
        needs="one node with long samples, where products take most of the step",
    ),
    Constant(
        name="elementwise_ratio",
        stiffness=0.25,
        low=0.3,
        high=6.0,
        needs="runs with and without fusion or recomputation",
    ),
    Constant(
        name="attention_ratio",
        stiffness=0.5,
        low=0.3,
        high=6.0,
        needs="two sample lengths, one of 16,384 tokens or more",
    ),
    Constant(name="network_ratio", stiffness=0.25, low=0.5, high=6.0, needs="tensor or data parallelism inside a node"),
    Constant(
        name="scaleout_ratio", stiffness=0.25, low=0.5, high=8.0, needs="several nodes with the same work on each"
    ),
    Constant(
        name="contention_ratio",
        stiffness=0.25,
        low=1.0,
        high=4.0,
        needs="runs with collectives beside compute, and without",
    ),
    Constant(
        name="fragmentation_ratio",
        stiffness=0.25,
        low=1.0,
        high=2.0,
        needs="the peak of memory of several micro-batch sizes",
    ),
    Constant(name="fixed_bytes", stiffness=2.0, low=1e6, high=2e10, needs="the peak of memory of a small model"),
    Constant(
        name="update_bytes",
        stiffness=2.0,
        low=0.01,
        high=32.0,
        needs="the peak of memory of a model whose optimizer is not sharded",
    ),
)
"""Stiffness as in the fit of the shipped constants (tools/fit/training.py)."""

TIMES = ("step_time_s", "tokens_per_s_per_device", "micro_step_time_s", "model_flops_per_s_per_device", "mfu_frac")
"""The first of these that a run states; the others are the same time once more."""

MEMORY = "peak_memory_bytes"
NOISE = {MEMORY: 0.05}
TIME_NOISE = 0.04


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """One run with everything that does not depend on the constants."""

    member: Read
    columns: Columns
    units: Units
    which: Ints
    metrics: tuple[str, ...]


class TrainingRuns:
    """Rows of a table as jobs and layouts."""

    def __init__(self, table: Table) -> None:
        answers = Answers(len(table))
        members = read(table, np.arange(len(table)), answers)
        self.runs = [run for m in members if not is_out_of_memory(m.row) and (run := _trained(m))]
        self.declined: dict[int, str] = dict(answers.declined)
        if not self.runs:
            reasons = Counter(self.declined.values()).most_common(3)
            text = "; ".join(f"{n} x {reason}" for reason, n in reasons) or "none states a time or a peak of memory"
            raise ScenarioError(f"No run can be predicted: {text}")
        self.table = table.take([run.member.number for run in self.runs])
        self.constants = CONSTANTS
        self.subject = _subject(self.table, self.runs)
        self.start: Constants = {c: getattr(self.runs[0].member.job.framework, c) for c in ASSUMED}
        self.cells = tuple(
            Cell(run=i, mode=_kind(run), metric=m, measured=run.member.row.number(m), noise=NOISE.get(m, TIME_NOISE))
            for i, run in enumerate(self.runs)
            for m in run.metrics
        )

    def predict(self, run: int, constants: Constants) -> Mapping[str, float]:
        """Time and peak of one run."""
        one = self.runs[run]
        job = replace(one.member.job, framework=replace(one.member.job.framework, **constants))
        steps = step_of(job, one.columns, (replace(one.units, job=job), one.which))
        return {m: metric_of(steps, 0, m, one.member) for m in one.metrics}

    def references(self) -> Sequence[Reference]:
        """Other models and layouts."""
        job = self.runs[0].member.job
        return tuple(training_references(job.framework, job.cluster.device, job.recipe))

    def spread_key(self, cell: Cell) -> str:
        """By kind of task, time or memory."""
        return f"{cell.mode}.{MEMORY if cell.metric == MEMORY else 'step_time_s'}"


def _kind(run: Trained) -> str:
    return "pretrain" if run.member.job.task in ("pretrain", "forward_backward") else "finetune"


def _trained(member: Read) -> Trained | None:
    stated = [m for m in TIMES if member.row.word(m)][:1] + [m for m in (MEMORY,) if member.row.word(m)]
    if not stated:
        return None
    columns = columns_of([member.layout])
    choice, which = choices(columns)
    found = units(member.job, choice)
    return Trained(member=member, columns=columns, units=found, which=which, metrics=tuple(stated))


def _subject(table: Table, runs: Sequence[Trained]) -> Subject:
    """The one framework, recipe and device of all runs."""
    jobs = [run.member.job for run in runs]
    for column, names in (
        ("device", Counter(j.cluster.device.name for j in jobs)),
        ("framework", Counter(j.framework.name for j in jobs)),
        ("precision", Counter(j.recipe.name for j in jobs)),
    ):
        if len(names) > 1:
            listed = ", ".join(f"{name} ({n} runs)" for name, n in names.items())
            raise ScenarioError(
                f"{column}: the runs are of {len(names)}: {listed}. A correction is of one; calibrate each alone."
            )
    job = jobs[0]
    return Subject(
        kind="framework",
        base=job.framework.name,
        version="",
        precision=job.recipe.name,
        device=job.cluster.device.name,
        models=tuple(dict.fromkeys(j.model.name for j in jobs)),
        tools=one_of([{TOOL: t} for t in table.columns.get(TOOL, ())], TOOL),
    )

"""Published training runs as jobs and what was measured; and how far off some constants are on each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OrreryError
from orrery.evidence.answers import Answers
from orrery.evidence.split import FIT, sides
from orrery.evidence.tables import read_table
from orrery.evidence.training_rows import Read, metric_of, read
from orrery.execution.train.units import Units, units
from orrery.training.columns import Columns, choices, columns_of
from orrery.training.error_range import kind_of
from orrery.training.step import Steps, step_of

Floats = NDArray[np.float64]
Theta = dict[str, float]

ONLY_FITTED = Path(__file__).resolve().parents[2] / "docs" / "data" / "fitted-training.csv"
"""Runs of a framework on some devices, all of which fit: its runs on other devices, in unseen-training.csv, do not."""

OTHER_COUNT = "flops counted"
"""Words of a note that says that a source counts operations in a way of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One measured row with everything that does not depend on the constants."""

    file: str
    side: str
    member: Read
    columns: Columns
    units: Units
    which: NDArray[np.int64]
    kind: str  # of work, as intervals tell it apart
    time_s: float  # measured; NaN where the row states memory alone
    memory_bytes: float

    @property
    def key(self) -> tuple[str, str, str]:
        """Framework, generation, and the format of products, whose kernels the constants are of."""
        job = self.member.job
        return job.framework.name, job.cluster.device.generation, job.recipe.forward_format


def read_runs(folder: Path) -> list[Run]:
    """Every row of the training tables, and of those that only serve to fit, that can be predicted."""
    out: list[Run] = []
    for path in (*sorted((folder / "training").glob("*.csv*")), ONLY_FITTED):
        table = read_table(path)
        side = np.full(len(table), FIT) if path == ONLY_FITTED else sides(table, "training")
        answers = Answers(len(table))
        for member in read(table, np.arange(len(table)), answers):
            time_s, memory = measured_time_s(member), member.row.number("peak_memory_bytes") or np.nan
            if member.row.word("status").casefold() == "oom":
                continue
            columns = columns_of([member.layout])
            try:
                choice, which = choices(columns)
                found = units(member.job, choice)
            except OrreryError:
                continue
            if not time_s > 0:
                time_s = time_of_rate_s(member, step_of(member.job, columns, (found, which)))
            if not (time_s > 0 or memory > 0):
                continue
            out.append(
                Run(
                    path.name,
                    str(side[member.number]),
                    member,
                    columns,
                    found,
                    which,
                    kind_of(member.job),
                    time_s,
                    memory,
                )
            )
    return out


def measured_time_s(member: Read) -> float:
    """Seconds of a step, from the metric that the row states."""
    row, job = member.row, member.job
    if value := row.number("step_time_s"):
        return value
    if value := row.number("tokens_per_s_per_device"):
        return job.tokens_per_step / value / member.layout.num_devices
    if value := row.number("micro_step_time_s"):
        return value * job.num_micro_batches(member.layout)
    return float("nan")


def time_of_rate_s(member: Read, run_steps: Steps) -> float:
    """Seconds of a step of a row that states operations a second or utilisation alone, counted as its source counts."""
    if OTHER_COUNT in member.row.word("note").casefold():
        return float("nan")
    for metric in ("model_flops_per_s_per_device", "mfu_frac"):
        if value := member.row.number(metric):
            return float(run_steps.time_s[0]) * metric_of(run_steps, 0, metric, member) / value
    return float("nan")


def steps_of(run: Run, theta: Theta) -> Steps:
    """The run's prediction with these constants."""
    framework = replace(run.member.job.framework, **theta)
    job = replace(run.member.job, framework=framework)
    return step_of(job, run.columns, (replace(run.units, job=job), run.which))


def time_errors(runs: Sequence[Run], thetas: Sequence[Theta]) -> Floats:
    """log(measured / predicted) of the step."""
    return np.array([np.log(r.time_s / float(steps_of(r, t).time_s[0])) for r, t in zip(runs, thetas, strict=True)])


def memory_errors(runs: Sequence[Run], thetas: Sequence[Theta]) -> Floats:
    """log(measured / predicted) of the peak."""
    return np.array(
        [
            np.log(r.memory_bytes / metric_of(steps_of(r, t), 0, "peak_memory_bytes", r.member))
            for r, t in zip(runs, thetas, strict=True)
        ]
    )

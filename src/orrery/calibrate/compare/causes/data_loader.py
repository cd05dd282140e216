"""Batches arrive too late: a step of training takes at least as long as its samples take to load.

Each data-parallel rank loads s tokens a second beside computing, so a step is max(step, tokens of a rank / s).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orrery.calibrate.compare.cause import Cause
from orrery.calibrate.compare.change import with_fields
from orrery.calibrate.compare.run import Run, TrainingRun
from orrery.training.columns import columns_of
from orrery.training.step import step_of

SLOWEST = 0.1
"""Slowest loader considered, as a share of the rate that the slowest run needs: loaders that are ten times too slow do
not stay unnoticed."""


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """Tokens a second of a rank, from what the fastest run needs down to a tenth of the slowest one's."""
    rates = [_needed(run)[0] for run in runs if isinstance(run, TrainingRun)]
    return tuple(float(v) for v in np.geomspace(0.95 * max(rates), SLOWEST * min(rates), 6)) if rates else ()


def _needed(run: TrainingRun) -> tuple[float, float]:
    """Tokens a second that a rank reads at the predicted pace, and the predicted step."""
    time_s = float(step_of(run.job, columns_of([run.layout])).time_s[0])
    return run.job.tokens_per_step / run.layout.dp / time_s, time_s


def change(run: Run, severity: float) -> Run | None:
    """The step waits for what the loader has not brought."""
    if not isinstance(run, TrainingRun):
        return None
    needed, time_s = _needed(run)
    wait_s = max(0.0, needed / severity - 1.0) * time_s
    slow = with_fields(run.job.framework, step_s=run.job.framework.step_s + wait_s)
    return replace(run, job=with_fields(run.job, framework=slow))


def describe(run: Run, severity: float) -> str:
    """The loader's rate."""
    samples = severity / run.job.seq_len if isinstance(run, TrainingRun) else 0.0
    return f"a loader of {severity:,.0f} tokens ({samples:.3g} samples) a second and data-parallel rank"


CAUSE = Cause(
    name="data-loader",
    title="a data loader that cannot keep up",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="Layouts and devices that would read fastest suffer most: all end at the same tokens a second and rank.",
    hides="Runs that need fewer tokens a second than the loader brings come out as predicted; serving cannot show it.",
    checks=(
        "a run on synthetic (mock) data: is it faster?",
        "num_workers, prefetch_factor, pin_memory; iostat -x and the file system's load; tokenisation on the fly",
        "torch profiler: time in DataLoader.__next__ between steps",
    ),
)

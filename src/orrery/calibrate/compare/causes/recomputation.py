"""Training makes activations again in the backward pass though the row says that it does not (or less of it)."""

from collections.abc import Sequence
from dataclasses import replace

from orrery.calibrate.compare.cause import Cause
from orrery.calibrate.compare.run import Run, TrainingRun

KINDS = ("selective", "full")


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """The core of attention, then whole layers."""
    return (1.0, 2.0)


def change(run: Run, severity: float) -> Run | None:
    """The layout with recomputation."""
    kind = KINDS[round(severity) - 1]
    if not isinstance(run, TrainingRun) or run.layout.recompute in KINDS[round(severity) - 1 :]:
        return None
    return replace(run, layout=replace(run.layout, recompute=kind, recompute_layers=0))


def describe(run: Run, severity: float) -> str:
    """Which recomputation."""
    assumed = run.layout.recompute if isinstance(run, TrainingRun) else "none"
    return f"recomputation {KINDS[round(severity) - 1]}, not {assumed}"


CAUSE = Cause(
    name="recomputation",
    title="activation recomputation that was not said",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="Steps are up to a third longer in every layout, and memory is lower than predicted.",
    hides="Serving, and runs that said full recomputation, cannot show it.",
    checks=(
        "--recompute-granularity, --recompute-activations, gradient_checkpointing, activation_checkpoint in the config",
        "torch.cuda.max_memory_allocated beside the prediction's peak_memory_bytes",
    ),
    is_stepwise=True,
)

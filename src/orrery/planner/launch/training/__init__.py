"""Launch scripts of a training plan: one file a framework, held to the flags that a version of it really knows."""

from collections.abc import Callable

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training import (
    deepspeed,
    fsdp,
    megatron_bridge,
    megatron_lm,
    megatron_settings,
    slurm,
    torchtitan,
)
from orrery.planner.launch.training.fit import misfit
from orrery.planner.launch.training.script import Script, Unsupported

WRITERS: dict[str, Callable[[TrainingJob, TrainingLayout], Script | Unsupported]] = {
    "megatron-lm": megatron_lm.write,
    "megatron-bridge": megatron_bridge.write,
    "deepspeed": deepspeed.write,
    "torchtitan": torchtitan.write,
    "fsdp": fsdp.write,
}
"""Framework -> how its start is written."""


SCHEDULES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("megatron-lm", "megatron-bridge", "megatron-llama", "nemo"), megatron_settings.SCHEDULES),
    **dict.fromkeys(("deepspeed", "megatron-deepspeed"), ("1f1b",)),
    "torchtitan": tuple(torchtitan.SCHEDULES),
    "hai-llm": ("1f1b", "dualpipe"),
}
"""Framework -> pipeline schedules that it runs; of those that are not named here nothing is known."""


def launches(job: TrainingJob, layout: TrainingLayout) -> dict[str, str]:
    """Framework -> its command or configuration file; ``slurm`` wraps the job's own framework, else the first."""
    made = scripts(job, layout)
    texts = {name: s.config or slurm.by_hand(job, layout, s) for name, s in made.items()}
    if made:
        wrapped = job.framework.name if job.framework.name in made else next(iter(made))
        texts["slurm"] = slurm.batch(job, layout, made[wrapped])
    return texts


def refusals(job: TrainingJob, layout: TrainingLayout) -> dict[str, str]:
    """Framework -> why it cannot run the layout, and what to write instead."""
    written = _written(job, layout)
    reasons = {name: w.reason for name, w in written.items() if isinstance(w, Unsupported)}
    if len(reasons) == len(written):
        reasons["slurm"] = "no framework can run this layout, so there is nothing to queue"
    return reasons


def scripts(job: TrainingJob, layout: TrainingLayout) -> dict[str, Script]:
    """Framework -> its start in parts, for those that can run the layout."""
    return {name: w for name, w in _written(job, layout).items() if isinstance(w, Script)}


def _written(job: TrainingJob, layout: TrainingLayout) -> dict[str, Script | Unsupported]:
    if reason := misfit(job, layout):
        return dict.fromkeys(WRITERS, Unsupported(reason=reason))
    return {name: write(job, layout) for name, write in WRITERS.items()}


__all__ = ["SCHEDULES", "WRITERS", "launches", "refusals", "scripts"]

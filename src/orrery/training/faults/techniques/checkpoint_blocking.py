"""Blocking saves: training stands until every device's part is in storage."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.training.faults.saving import SaveCost, Saving


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingKnobs:
    """``is_streamed``: blocks are written while later ones are still copied; else copy and write take turns."""

    is_streamed: bool = False


def rule(saving: Saving, interval_steps: int, knobs: BlockingKnobs) -> SaveCost:
    """s / copy + s / write, or the longer of the two where they are streamed; durable at once."""
    copy_s = saving.shard_bytes / saving.copy_bytes_per_s
    write_s = saving.shard_bytes / saving.write_bytes_per_s
    return SaveCost(
        blocked_s=max(copy_s, write_s) if knobs.is_streamed else copy_s + write_s,
        durable_lag_s=0.0,
        load_s=copy_s + write_s,
        copy_s=copy_s,
    )


TECHNIQUE = Technique(
    name="checkpoint-blocking",
    word="blocking",
    extension_point="training.checkpoint",
    rule=rule,
    knobs=BlockingKnobs,
    gains="What is saved is in storage when training goes on, and no host memory is held.",
    costs="Every device waits for its part of the file system's bandwidth.",
    claims=("young-1974", "datastates-llm"),
)

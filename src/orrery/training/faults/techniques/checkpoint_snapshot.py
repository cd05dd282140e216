"""Snapshot saves: training stands while state is copied to host memory, and the write runs behind it."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.training.faults.saving import SaveCost, Saving, streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotKnobs:
    """``waits_for_write``: one snapshot at a time, so the next waits until this one is in storage."""

    waits_for_write: bool = True


def rule(saving: Saving, interval_steps: int, knobs: SnapshotKnobs) -> SaveCost:
    """s / copy, and what is still missing of the write before it when steps are shorter than the write."""
    found = streamed(saving, interval_steps, 0.0, waits_for_write=knobs.waits_for_write)
    ahead = 0.0 if knobs.waits_for_write else found.left_bytes
    copy_s = saving.shard_bytes / saving.copy_bytes_per_s
    write_s = saving.shard_bytes / saving.write_bytes_per_s
    return SaveCost(
        blocked_s=found.steady_s,
        durable_lag_s=max(0.0, ahead / saving.write_bytes_per_s + write_s - copy_s),
        load_s=copy_s + write_s,
        copy_s=copy_s,
        host_bytes=min(saving.shard_bytes, saving.buffer_bytes) * saving.devices_per_node,
    )


TECHNIQUE = Technique(
    name="checkpoint-snapshot",
    word="snapshot",
    extension_point="training.checkpoint",
    rule=rule,
    knobs=SnapshotKnobs,
    gains="Training waits for the device's own link instead of its share of the file system.",
    costs="Host memory for the whole state; a failure before the write is through falls back one save farther.",
    claims=("checkfreq-2021", "datastates-llm"),
)

"""Lazy saves: state is copied while forward and backward leave it unchanged, and streams on to storage."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.training.faults.saving import SaveCost, Saving, streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyKnobs:
    """``hidden_frac`` of forward and backward is free for copies; less where other copies use the device's link."""

    hidden_frac: float = 1.0


def rule(saving: Saving, interval_steps: int, knobs: LazyKnobs) -> SaveCost:
    """max(0, copy - forward - backward): the update must not begin before the copy has ended.

    A copy that finds the pinned buffer still full of the save before goes on at the rate of storage.
    """
    hidden_s = knobs.hidden_frac * saving.immutable_s
    found = streamed(saving, interval_steps, hidden_s, waits_for_write=False)
    copy_s = saving.shard_bytes / saving.copy_bytes_per_s
    write_s = saving.shard_bytes / saving.write_bytes_per_s
    queued_s = (found.left_bytes + saving.shard_bytes) / saving.write_bytes_per_s
    return SaveCost(
        blocked_s=found.steady_s,
        durable_lag_s=max(0.0, max(copy_s, queued_s) - found.steady_s),
        load_s=copy_s + write_s,
        copy_s=copy_s,
        host_bytes=min(saving.shard_bytes, saving.buffer_bytes) * saving.devices_per_node,
    )


TECHNIQUE = Technique(
    name="checkpoint-lazy",
    word="lazy",
    extension_point="training.checkpoint",
    rule=rule,
    knobs=LazyKnobs,
    gains="A copy that ends within one forward and backward pass stops nothing.",
    costs="Pinned host memory, and the device's link beside the step; the newest save is the last to be safe.",
    claims=("datastates-llm",),
)

"""Result of an offloading schedule, and the parts that schedules share."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.execution.offload.lanes import Lanes
from orrery.execution.offload.tiers import MemoryUse
from orrery.execution.offload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedStep:
    """One optimizer step of one device."""

    step_s: float
    held: MemoryUse
    busy_s: Mapping[str, float]  # seconds of work by lane
    choices: Mapping[str, float]  # what the schedule settled itself


def finished(
    lanes: Lanes, held: MemoryUse, *, step_s: float = 0.0, choices: Mapping[str, float] | None = None
) -> OffloadedStep:
    """The answer when everything ran; ``step_s`` where a step is shorter than the time until all lanes are free."""
    return OffloadedStep(step_s=step_s or lanes.end_s, held=held, busy_s=lanes.busy_s, choices=choices or {})


def activations_bytes(work: Work, recomputes: bool) -> float:
    """Activations on the device: every layer's input, or all of every layer; and what is on top of them.

    That is the logits at the turn, or one layer in full when layers are recomputed after it.
    """
    if recomputes:
        return work.checkpoint_bytes + max(work.activation_bytes, work.logits_bytes)
    return work.num_layers * work.activation_bytes + work.logits_bytes


def backward_s(work: Work, recomputes: bool) -> float:
    """One layer back; a checkpoint runs the whole layer forward again first."""
    return work.backward_s + work.forward_s if recomputes else work.backward_s

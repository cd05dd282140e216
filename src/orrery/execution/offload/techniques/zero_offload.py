"""ZeRO-Offload: gradients stream to the host during the backward pass, where Adam runs over its own states."""

from dataclasses import dataclass
from typing import ClassVar

from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import Lanes, walk
from orrery.execution.offload.step import OffloadedStep, activations_bytes, backward_s, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work

STREAMED_LAYERS = 2
"""Layers' gradients on the device at a time: one being made, one being copied."""

SUM_BYTES = 6.0
"""Memory traffic of adding one 16-bit gradient to what the host has summed so far: two in, one out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroOffloadKnobs(OffloadKnobs):
    """``is_delayed``: the update of one step runs under the next step's passes, which use parameters one step old.

    ``is_pinned`` False: gradients land in pageable memory, and the device waits for each copy.
    """

    shares_states: ClassVar[bool] = True
    rung: ClassVar[int] = 1
    recomputes: bool = True
    is_delayed: bool = False
    is_pinned: bool = True


def rule(work: Work, tiers: Tiers, knobs: ZeroOffloadKnobs) -> OffloadedStep:
    """4 bytes a parameter cross the link: gradients down in every micro-batch, 16-bit parameters up once a step.

    Each rank moves and updates its part of the parameters; ranks scatter gradients before and gather parameters after.
    The update waits for the last gradient (their norm is clipped); new parameters go up layer by layer behind it.
    """
    lanes, n = Lanes(tiers), work.num_layers
    part = work.num_parameters / tiers.num_ranks
    layer = work.num_layer_parameters
    down = layer / tiers.num_ranks * work.gradient_bytes

    def sink(done_s: float) -> float | None:
        scattered_s = lanes.share(layer * work.gradient_bytes, done_s)
        if knobs.is_pinned:
            here_s = lanes.to_host(down, scattered_s)
        else:
            here_s = lanes.run("to_host", down / tiers.pageable_bytes_per_s, scattered_s)
        if work.num_micro_batches > 1:
            lanes.host_update(layer / tiers.num_ranks, SUM_BYTES, here_s)
        return None if knobs.is_pinned else here_s

    for _ in range(work.num_micro_batches):
        lanes.run("gpu", n * work.forward_s + work.outer_forward_s + work.outer_backward_s)
        walk(lanes, n, backward_s(work, knobs.recomputes), lambda free_s: free_s, sink, start_s=lanes.run("gpu", 0.0))
    lanes.to_host(work.num_outer_parameters / tiers.num_ranks * work.gradient_bytes, lanes.run("gpu", 0.0))
    passes_s = lanes.end_s
    chunks = n + 1
    for _ in range(chunks):
        updated_s = lanes.host_update(part / chunks, work.update_bytes, passes_s)
        lanes.share(
            work.num_parameters / chunks * work.parameter_bytes,
            lanes.to_gpu(part / chunks * work.parameter_bytes, updated_s),
        )
    update_s = lanes.end_s - passes_s
    gradients = STREAMED_LAYERS * layer * work.gradient_bytes
    held = MemoryUse(
        gpu_bytes=work.num_parameters * work.parameter_bytes + gradients + activations_bytes(work, knobs.recomputes),
        host_bytes=part * (work.gradient_bytes + work.state_bytes),
    )
    step_s = max(passes_s, update_s, *lanes.busy_s.values()) if knobs.is_delayed else 0.0
    return finished(lanes, held, step_s=step_s, choices={"update_s": update_s})


TECHNIQUE = Technique(
    name="zero-offload",
    extension_point="execution.offload",
    rule=rule,
    knobs=ZeroOffloadKnobs,
    gains="Only 16-bit parameters stay: two bytes a parameter on the device instead of sixteen.",
    costs="The host's memory bandwidth sets the time of the update; parameters and gradients cross the link.",
    claims=("ren-2021",),
)

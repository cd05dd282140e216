"""Layerwise update: one group of layers learns in a step; gradients and states of the others are not on the device."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import Lanes
from orrery.execution.offload.step import OffloadedStep, activations_bytes, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerwiseUpdateKnobs(OffloadKnobs):
    """``num_groups`` share the layers; 0 makes every layer a group, and embeddings and head one more each."""

    num_groups: int = 0
    recomputes: bool = False

    def __post_init__(self) -> None:
        check_range(self, "num_groups", 0, 10_000)


def rule(work: Work, tiers: Tiers, knobs: LayerwiseUpdateKnobs) -> OffloadedStep:
    """The mean step over one round of all groups.

    Back from the top to the group: inputs' gradients of the layers above and of the group, weights' gradients of the
    group alone. Its states go up under the forward pass, and down again after the update.
    """
    groups, size = _groups(work, knobs)
    n, share = work.num_layers, 1.0 / groups
    inputs_s = work.backward_s - work.weight_gradient_s
    again_s = work.forward_s if knobs.recomputes else 0.0
    total_s, lanes = 0.0, Lanes(tiers)
    for g in range(groups):
        above = min(n, (g + 1) * n * share)
        start_s = lanes.end_s
        ready_s = lanes.to_gpu(size * work.state_bytes, start_s)
        passes_s = work.num_micro_batches * (
            n * work.forward_s
            + work.outer_forward_s
            + work.outer_backward_s
            + above * (inputs_s + again_s)
            + n * share * work.weight_gradient_s
        )
        done_s = lanes.run("gpu", passes_s, start_s)
        updated_s = lanes.device_update(size, work.update_bytes, done_s, ready_s)
        lanes.to_host(size * work.state_bytes, updated_s)
        total_s += lanes.end_s - start_s
    held = MemoryUse(
        gpu_bytes=work.num_parameters * work.parameter_bytes
        + size * (work.gradient_bytes + work.state_bytes)
        + activations_bytes(work, knobs.recomputes),
        host_bytes=work.num_parameters * work.state_bytes,
    )
    return finished(lanes, held, step_s=total_s / groups, choices={"groups": float(groups)})


def _groups(work: Work, knobs: LayerwiseUpdateKnobs) -> tuple[int, float]:
    """How many groups, and the parameters of the largest: layers dealt out evenly, and the outer weights by halves."""
    if knobs.num_groups == 0:
        return work.num_layers + 2, max(work.num_layer_parameters, work.num_outer_parameters / 2.0)
    layers = -(-work.num_layers // knobs.num_groups)
    outer = work.num_outer_parameters if knobs.num_groups == 1 else work.num_outer_parameters / 2.0
    return knobs.num_groups, layers * work.num_layer_parameters + outer


TECHNIQUE = Technique(
    name="layerwise-update",
    extension_point="execution.offload",
    rule=rule,
    knobs=LayerwiseUpdateKnobs,
    gains="Gradients and states of one group instead of all, with any optimizer; lower groups cost the only long ways.",
    costs="A group learns once in a round of steps; its states cross the link twice.",
    claims=("liu-2024",),
    measure="the loss after as many steps, since a group learns once in a round",
)

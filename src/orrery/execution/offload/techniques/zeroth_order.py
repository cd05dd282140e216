"""Zeroth-order streaming: two forward passes with opposite noise, while blocks come from the host and go back."""

from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import Lanes, walk
from orrery.execution.offload.step import OffloadedStep, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work

PERTURBATIONS = 4
"""Sweeps over the parameters in a step: noise added, taken off twice, added again, and the update (made, with the last
step's result, when the block is on the device anyway)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZerothOrderKnobs(OffloadKnobs):
    """``num_buffers`` blocks on the device: one on its way up, one computed, one on its way down.

    ``is_offloaded`` False keeps all blocks on the device.
    """

    num_forward: ClassVar[float] = 2.0
    has_backward: ClassVar[bool] = False
    fetches_from: ClassVar[str] = "host"
    always_recomputes: ClassVar[str] = "nothing"
    num_buffers: int = 3
    is_offloaded: bool = True

    def __post_init__(self) -> None:
        check_above(self, "num_buffers", 0)


def rule(work: Work, tiers: Tiers, knobs: ZerothOrderKnobs) -> OffloadedStep:
    """A block's visit runs both forward passes; nothing is kept for a backward pass, and there is no optimizer state.

    Hidden while parameters / link <= 2 x forward + sweeps, in each direction. Noise is drawn again from its seed, one
    weight at a time.
    """
    lanes, layer = Lanes(tiers), work.layer_bytes
    swept_s = PERTURBATIONS * 2.0 * layer / tiers.gpu_memory_bytes_per_s
    moved = layer if knobs.is_offloaded else 0.0

    def sink(done_s: float) -> None:
        lanes.to_host(moved, done_s)

    for _ in range(work.num_micro_batches):
        end_s = walk(
            lanes,
            work.num_layers,
            2.0 * work.forward_s + swept_s,
            lambda free_s: lanes.to_gpu(moved, free_s),
            sink,
            depth=knobs.num_buffers,
            start_s=lanes.run("gpu", 0.0),
        )
        lanes.run("gpu", 2.0 * work.outer_forward_s, end_s)
    blocks = min(knobs.num_buffers, work.num_layers) if knobs.is_offloaded else work.num_layers
    noise = work.num_largest_parameters * work.parameter_bytes
    in_use = max(work.activation_bytes, work.logits_bytes) + 2.0 * work.boundary_bytes
    held = MemoryUse(
        gpu_bytes=work.num_outer_parameters * work.parameter_bytes + blocks * layer + noise + in_use,
        host_bytes=work.num_layers * layer if knobs.is_offloaded else 0.0,
    )
    return finished(lanes, held)


TECHNIQUE = Technique(
    name="zeroth-order-streaming",
    extension_point="execution.offload",
    rule=rule,
    knobs=ZerothOrderKnobs,
    gains="The device holds what three blocks of inference need: no gradients, states or kept activations.",
    costs="Many more steps to learn the same; small batches wait for the link.",
    claims=("wang-2025", "malladi-2023"),
    measure="how many more steps your task needs without backward passes",
)

"""Adapters only: the base model is frozen, in 16 bits or in four; low-rank adapters alone have gradients and states."""

from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import Lanes
from orrery.execution.offload.step import OffloadedStep, activations_bytes, backward_s, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work
from orrery.execution.train.job import NF4_BYTES

ADAPTER_BYTES = 16.0
"""16-bit weight and gradient, FP32 copy and two moments of Adam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptersOnlyKnobs(OffloadKnobs):
    """Adapters of ``rank`` on every linear layer; ``is_4bit`` stores the frozen layers in NF4, widened to compute."""

    trains: ClassVar[str] = "adapters"
    rank: int = 16
    is_4bit: bool = False
    recomputes: bool = True

    def __post_init__(self) -> None:
        check_above(self, "rank", 0)


def rule(work: Work, tiers: Tiers, knobs: AdaptersOnlyKnobs) -> OffloadedStep:
    """No gradients of frozen weights are made; of frozen layers one at a time is widened to 16 bits."""
    lanes, n = Lanes(tiers), work.num_layers
    adapters = knobs.rank * work.num_adapter_parameters
    back_s = backward_s(work, knobs.recomputes) - work.weight_gradient_s
    passes_s = n * (work.forward_s + back_s) + work.outer_forward_s + work.outer_backward_s
    widened = work.layer_bytes + NF4_BYTES * work.num_layer_parameters if knobs.is_4bit else 0.0
    visits = 3 if knobs.recomputes else 2
    lanes.run("gpu", work.num_micro_batches * (passes_s + visits * n * widened / tiers.gpu_memory_bytes_per_s))
    lanes.device_update(adapters, work.update_bytes)
    frozen = n * work.num_layer_parameters * (NF4_BYTES if knobs.is_4bit else work.parameter_bytes)
    held = MemoryUse(
        gpu_bytes=frozen
        + (work.layer_bytes if knobs.is_4bit else 0.0)
        + work.num_outer_parameters * work.parameter_bytes
        + ADAPTER_BYTES * adapters
        + activations_bytes(work, knobs.recomputes)
    )
    return finished(lanes, held, choices={"adapter_parameters": adapters})


TECHNIQUE = Technique(
    name="adapters-only",
    extension_point="execution.offload",
    rule=rule,
    knobs=AdaptersOnlyKnobs,
    gains="Gradients and states of a few thousandths of the parameters, and a base of four bits a parameter.",
    costs="Updates have low rank; 4-bit weights are widened at every visit.",
    claims=("hu-2021", "dettmers-2023"),
    measure="the quality that updates of low rank reach on your task",
)

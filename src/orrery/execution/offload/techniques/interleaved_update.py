"""Interleaved update: states lie on the host, and every few subgroups one is updated on the device instead."""

from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import Lanes, walk
from orrery.execution.offload.step import OffloadedStep, activations_bytes, backward_s, finished
from orrery.execution.offload.techniques import zero_offload
from orrery.execution.offload.techniques.zero_offload import ZeroOffloadKnobs
from orrery.execution.offload.tiers import MemoryUse, Tiers, shortage
from orrery.execution.offload.work import Work

LONGEST_STRIDE = 12
DEVICE_BUFFERS = 2
"""Subgroups of states on the device: one updated, one on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterleavedUpdateKnobs(OffloadKnobs):
    """Every ``stride``-th subgroup of ``num_subgroup_parameters`` goes through the device.

    0 lets the model choose, 1 sends all, and more than there are subgroups sends none: that is ZeRO-Offload.
    """

    shares_states: ClassVar[bool] = True
    rung: ClassVar[int] = 2
    num_subgroup_parameters: float = 1e8
    stride: int = 0
    recomputes: bool = True

    def __post_init__(self) -> None:
        check_above(self, "num_subgroup_parameters", 0)
        check_above(self, "stride", -1)


def rule(work: Work, tiers: Tiers, knobs: InterleavedUpdateKnobs) -> OffloadedStep:
    """Gradients leave widened and pinned under the backward pass; then both processors update, at the best stride.

    The device's subgroups bring 12 bytes a parameter up and down again; the host's send 2 up. Copies share the host's
    memory with the host's own update: what passes beside one of its subgroups counts against its bandwidth.
    """
    count = max(1, ceil(work.num_parameters / tiers.num_ranks / knobs.num_subgroup_parameters))
    none = zero_offload.rule(work, tiers, ZeroOffloadKnobs(recomputes=knobs.recomputes))
    none = replace(none, choices={**none.choices, "stride": float(count + 1)})
    if knobs.stride > count:
        return none
    strides = [knobs.stride] if knobs.stride else range(1, min(LONGEST_STRIDE, count) + 1)
    best = min(strides, key=lambda stride: _update_s(work, tiers, Lanes(tiers), count, stride, 0.0))
    found = _interleaved(work, tiers, knobs, count, best)
    is_none_best = not knobs.stride and none.step_s < found.step_s and shortage(none.held, tiers) is None
    return none if is_none_best else found


def _interleaved(work: Work, tiers: Tiers, knobs: InterleavedUpdateKnobs, count: int, stride: int) -> OffloadedStep:
    """A step of ``count`` subgroups, every ``stride``-th of them through the device."""
    lanes = Lanes(tiers)
    passes_s = _passes_s(work, tiers, lanes, knobs.recomputes)
    update_s = _update_s(work, tiers, lanes, count, stride, passes_s)
    part = work.num_parameters / tiers.num_ranks
    held = MemoryUse(
        gpu_bytes=part * (work.parameter_bytes + work.gradient_bytes)
        + DEVICE_BUFFERS * part / count * work.state_bytes
        + 2.0 * work.layer_bytes * (tiers.num_ranks > 1)
        + activations_bytes(work, knobs.recomputes),
        host_bytes=part * (work.state_bytes + 2.0 * work.gradient_bytes),
    )
    return finished(lanes, held, choices={"stride": float(stride), "passes_s": passes_s, "update_s": update_s})


def _passes_s(work: Work, tiers: Tiers, lanes: Lanes, recomputes: bool) -> float:
    """Forward and back; ranks gather every layer twice and scatter gradients, whose parts go down widened to FP32."""
    layer, n = work.num_layer_parameters, work.num_layers

    def sink(done_s: float) -> None:
        scattered_s = lanes.share(layer * work.gradient_bytes, done_s)
        lanes.to_host(layer / tiers.num_ranks * 2.0 * work.gradient_bytes, scattered_s)

    def fetch(free_s: float) -> float:
        return lanes.share(work.layer_bytes, free_s)

    for _ in range(work.num_micro_batches):
        end_s = walk(lanes, n, work.forward_s, fetch, lambda _: None, start_s=lanes.run("gpu", 0.0))
        turn_s = lanes.run("gpu", work.outer_forward_s + work.outer_backward_s, end_s)
        walk(lanes, n, backward_s(work, recomputes), fetch, sink, start_s=turn_s)
    return lanes.end_s


def _update_s(work: Work, tiers: Tiers, lanes: Lanes, count: int, stride: int, start_s: float) -> float:
    """From the last gradient to the last parameter; the next device subgroup comes up while one is updated."""
    each = work.num_parameters / tiers.num_ranks / count
    states = each * work.state_bytes
    through = count // stride
    beside = work.parameter_bytes
    if through < count:
        beside += 2.0 * work.state_bytes * through / (count - through)
    up_s: list[float] = []
    down_s: list[float] = []
    for i in range(1, count + 1):
        if i % stride == 1 or stride == 1:
            while len(up_s) < min(through, len(down_s) + DEVICE_BUFFERS):
                j = len(up_s) - DEVICE_BUFFERS
                up_s.append(lanes.to_gpu(states, down_s[j] if j >= 0 else start_s))
            if len(down_s) < through:
                updated_s = lanes.device_update(each, work.update_bytes, up_s[len(down_s)])
                down_s.append(lanes.to_host(states, updated_s))
                continue
        updated_s = lanes.host_update(each, work.update_bytes + work.gradient_bytes, start_s, beside=beside)
        lanes.to_gpu(each * work.parameter_bytes, updated_s)
    return lanes.end_s - start_s


TECHNIQUE = Technique(
    name="interleaved-update",
    extension_point="execution.offload",
    rule=rule,
    knobs=InterleavedUpdateKnobs,
    gains="Both processors update at once, over a link that would be idle in both directions.",
    costs="Room on the device for gradients and two subgroups of states; copies compete for the host's memory.",
    claims=("maurya-2024",),
    measure="the rate of copies between host and device while the host updates",
)

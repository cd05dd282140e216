"""Overlapped update: drives are a lane of their own; Adam runs under the backward pass, and activations are swapped."""

from dataclasses import dataclass, replace
from typing import ClassVar

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import FP32_BYTES, STAGED_LAYERS, Fetch, Lanes, staged, walk
from orrery.execution.offload.step import OffloadedStep, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work

TRIALS = 20
"""Shares of the activations that the search tries, beside none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlappedUpdateKnobs(OffloadKnobs):
    """``swapped_frac`` of what products and attention make is swapped out and not computed again; -1 searches it.

    ``num_buffers`` layers of parameters are on the device at a time, and gradients of as many. ``is_overlapped`` False
    waits with the update until the backward pass is over, and reads, updates and writes one layer after another.
    """

    shares_states: ClassVar[bool] = True
    rung: ClassVar[int] = 3
    fetches_from: ClassVar[str] = "nvme"
    always_recomputes: ClassVar[str] = "what it does not swap out"
    swapped_frac: float = -1.0
    num_buffers: int = 2
    is_overlapped: bool = True

    def __post_init__(self) -> None:
        check_above(self, "num_buffers", 0)
        check_range(self, "swapped_frac", -1.0, 1.0)


def rule(work: Work, tiers: Tiers, knobs: OverlappedUpdateKnobs) -> OffloadedStep:
    """The step at the share of swapped activations that makes it shortest."""
    if knobs.swapped_frac >= 0.0:
        return _step(work, tiers, knobs)
    shares = [i / TRIALS for i in range(TRIALS + 1)]
    return min((_step(work, tiers, replace(knobs, swapped_frac=x)) for x in shares), key=lambda s: s.step_s)


def _step(work: Work, tiers: Tiers, knobs: OverlappedUpdateKnobs) -> OffloadedStep:
    """Forward: parameters up from the drives, activations down, to host memory until it is full, then to the drives.

    Backward: parameters and activations up, gradients down, and behind each gradient its states from the drives,
    Adam on the host, and states and 16-bit parameters back to the drives. No step waits for another one's update. In
    turn, FP32 gradients lie on the drives until then, as ZeRO-Infinity's do.
    """
    lanes, n, ranks = Lanes(tiers), work.num_layers, tiers.num_ranks
    layer, part = work.layer_bytes, work.num_layer_parameters / ranks
    swapped = work.boundary_bytes + knobs.swapped_frac * (work.kept_bytes - work.boundary_bytes)
    again_s = work.backward_s + (1.0 - knobs.swapped_frac) * work.recompute_s
    staging = STAGED_LAYERS * part * (work.state_bytes + work.gradient_bytes + work.parameter_bytes)
    in_host = min(1.0, max(0.0, tiers.host_bytes - staging) / (n * swapped))
    last = work.num_micro_batches - 1

    def fetch(activations: float) -> Fetch:
        def read(free_s: float) -> float:
            return lanes.read(layer / ranks + (1.0 - in_host) * activations, free_s)

        def copy(read_s: float) -> float:
            return lanes.share(layer, lanes.to_gpu(layer / ranks + activations, read_s))

        return staged(read, copy)

    def keep(done_s: float) -> None:
        lanes.write((1.0 - in_host) * swapped, lanes.to_host(swapped, done_s))

    def sink(done_s: float, *, updates: bool) -> None:
        scattered_s = lanes.share(work.num_layer_parameters * work.gradient_bytes, done_s)
        here_s = lanes.to_host(part * work.gradient_bytes, scattered_s)
        if updates and not knobs.is_overlapped:
            lanes.write(part * FP32_BYTES, here_s)
        elif updates:
            read_s = lanes.read(part * work.state_bytes, done_s)
            updated_s = lanes.host_update(part, work.update_bytes, here_s, read_s)
            lanes.write(part * (work.state_bytes + work.parameter_bytes), updated_s)

    for i in range(work.num_micro_batches):
        end_s = walk(lanes, n, work.forward_s, fetch(0.0), keep, depth=knobs.num_buffers, start_s=lanes.run("gpu", 0.0))
        turn_s = lanes.run("gpu", work.outer_forward_s + work.outer_backward_s, end_s)
        walk(
            lanes,
            n,
            again_s,
            fetch(swapped),
            lambda done_s, now=i == last: sink(done_s, updates=now),
            depth=knobs.num_buffers,
            start_s=turn_s,
        )
    passes_s = lanes.end_s
    waiting = 0.0 if knobs.is_overlapped else part * FP32_BYTES
    if not knobs.is_overlapped:
        for _ in range(n):
            read_s = lanes.read(part * (work.state_bytes + FP32_BYTES), lanes.end_s)
            updated_s = lanes.host_update(part, work.update_bytes, read_s)
            lanes.write(part * (work.state_bytes + work.parameter_bytes), updated_s)
    held = MemoryUse(
        gpu_bytes=2.0 * knobs.num_buffers * layer
        + max(work.activation_bytes, work.logits_bytes)
        + 2.0 * swapped
        + work.num_outer_parameters * work.parameter_bytes,
        host_bytes=staging + in_host * n * swapped,
        nvme_bytes=(1.0 - in_host) * n * swapped
        + n * waiting
        + work.num_parameters / ranks * (work.parameter_bytes + work.state_bytes),
    )
    return finished(
        lanes,
        held,
        choices={"swapped_frac": knobs.swapped_frac, "swapped_bytes": n * swapped, "update_s": lanes.end_s - passes_s},
    )


TECHNIQUE = Technique(
    name="overlapped-update",
    extension_point="execution.offload",
    rule=rule,
    knobs=OverlappedUpdateKnobs,
    gains="The update hides under the backward pass, and idle link time saves recomputation.",
    costs="Drives must keep up with the backward pass in both directions.",
    claims=("liao-2024",),
)

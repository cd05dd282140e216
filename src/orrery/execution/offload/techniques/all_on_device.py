"""All on the device: parameters, gradients and Adam's states, as data parallel training keeps them."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import Lanes, walk
from orrery.execution.offload.step import OffloadedStep, activations_bytes, backward_s, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOnDeviceKnobs(OffloadKnobs):
    """``recomputes``: only layers' inputs are kept, and every layer runs forward again before it runs back.

    ``has_buckets``: gradients are copied into buckets before ranks add them up, so they are held twice (PyTorch's
    DistributedDataParallel unless gradient_as_bucket_view is set).
    """

    recomputes: bool = True
    has_buckets: bool = False


def rule(work: Work, tiers: Tiers, knobs: AllOnDeviceKnobs) -> OffloadedStep:
    """2 + 2 + 12 = 16 bytes a parameter in mixed precision, and the activations; ranks add up gradients while they run
    back through the last micro-batch.
    """
    lanes, n = Lanes(tiers), work.num_layers
    for i in range(work.num_micro_batches):
        lanes.run("gpu", n * work.forward_s + work.outer_forward_s + work.outer_backward_s)
        added = 2.0 * work.num_layer_parameters * work.gradient_bytes * (i == work.num_micro_batches - 1)
        start_s = lanes.run("gpu", 0.0)

        def sink(done_s: float, moved: float = added) -> None:
            lanes.share(moved, done_s)

        walk(lanes, n, backward_s(work, knobs.recomputes), lambda free_s: free_s, sink, start_s=start_s)
    lanes.device_update(work.num_parameters, work.update_bytes, lanes.end_s)
    gradients = work.gradient_bytes * (2.0 if knobs.has_buckets else 1.0)
    each = work.parameter_bytes + gradients + work.state_bytes
    held = MemoryUse(gpu_bytes=each * work.num_parameters + activations_bytes(work, knobs.recomputes))
    return finished(lanes, held)


TECHNIQUE = Technique(
    name="all-on-device",
    extension_point="execution.offload",
    rule=rule,
    knobs=AllOnDeviceKnobs,
    gains="Nothing leaves the device: no copies, and the update runs at the device's own bandwidth.",
    costs="16 bytes a parameter of device memory before the first activation.",
    claims=("rajbhandari-2020",),
)

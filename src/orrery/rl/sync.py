"""New weights on their way from the trainer's layout to the engine's, and the trainer's state off its devices and back.

same devices    each rank gathers the pieces of every tensor that others hold, and hands it to the engine beside it:
                bytes over the slowest link of those ranks, and a host's work for each tensor, one behind the other
separate pools  tensors are gathered and packed while those before them are broadcast to all engines, so the slower of
                the two decides
state           optimizer and weights leave for the host before the engine takes the memory, and come back after it
"""

from math import inf

from orrery.models.model import Block, Model
from orrery.rl.job import RlJob
from orrery.training.ranks import Rank

WEIGHT_BYTES = 2.0
"""Bytes of a weight as it travels: 16 bits, also where the engine quantizes it on arrival."""

APART = {"qkv": 3, "gate_up": 2, "shared_gate_up": 2, "qkv_a": 2}
"""Products that checkpoints keep as several tensors."""

NORMS = 2
"""Number of norm tensors in a layer."""

OFFLOADED = ("weights", "optimizer")
"""State that leaves the device; gradients are dropped."""


def weight_sync_s(job: RlJob) -> float:
    """From the last update to the first token of the new policy, the engine awake."""
    device, model = job.training.cluster.device, job.training.model
    size = WEIGHT_BYTES * model.num_parameters
    gather_s = size * (1.0 - 1.0 / holders(job)) / job.training.cluster.link(holders(job)).each_way_bytes_per_s
    if job.is_colocated:
        return gather_s + num_tensors(model) * job.framework.colocated_tensor_s
    is_near = job.num_devices <= job.training.cluster.devices_per_node
    rate = device.scaleup.each_way_bytes_per_s
    if not is_near:
        rate = min(rate, job.framework.broadcast_ratio * device.scaleout.each_way_bytes_per_s)
    return max(gather_s + num_tensors(model) * job.framework.separate_tensor_s, size / rate)


def holders(job: RlJob) -> int:
    """Neighbouring ranks that hold a whole model between them."""
    layout = job.layout
    if layout.sharding == "zero3":
        return layout.num_devices
    experts = layout.ep * layout.etp if any(b.experts for b in job.training.model.blocks) else 1
    return min(layout.num_devices, max(layout.tp, experts) * layout.pp)


def num_tensors(model: Model) -> int:
    """Weight tensors of a checkpoint: those of every layer, of every expert, and of both ends."""
    return sum(b.count * _of_layer(b) for b in model.blocks) + (2 if model.is_head_tied else 3)


def _of_layer(block: Block) -> int:
    experts = block.experts
    routed = experts.num_experts * (3 if experts.is_gated else 2) if experts else 0
    return sum(APART.get(x.name, 1) for x in block.linears) + routed + NORMS


def offload_s(job: RlJob, ranks: tuple[Rank, ...]) -> float:
    """State out and back, and the engine to sleep and awake; 0 where the pools share no device."""
    if not job.is_colocated:
        return 0.0
    sleep_s = 2.0 * job.framework.sleep_s
    return sleep_s + (2.0 * offloaded_bytes(ranks) / job.framework.offload_bytes_per_s if job.offloads else 0.0)


def reference_bytes(job: RlJob, ranks: tuple[Rank, ...]) -> float:
    """Bytes of a reference policy in 16 bits on the fullest device, cut as the policy is."""
    each = job.training.recipe.weights_bytes or job.training.framework.weights_bytes
    return WEIGHT_BYTES / each * max(r.parts["weights"] for r in ranks)


def swap_s(job: RlJob, ranks: tuple[Rank, ...]) -> float:
    """A reference policy's weights from the host to the device, and the policy's back after it; 0 where it stays."""
    if not (job.has_reference and job.framework.keeps_reference_on_host):
        return 0.0
    return 2.0 * reference_bytes(job, ranks) / job.training.cluster.device.host.each_way_bytes_per_s


def offloaded_bytes(ranks: tuple[Rank, ...]) -> float:
    """Bytes that leave the fullest device."""
    return max((sum(r.parts[name] for name in OFFLOADED) for r in ranks), default=-inf)

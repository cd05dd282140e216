"""Step cost of data parallelism: gradients summed, sharded state gathered, weights updated.

Gradients of dense parameters meet over all data and context ranks, those of experts over the ranks that hold the same
experts. Sharded state lives in groups of ``sharding_group`` ranks; copies of the groups sum their shards (HSDP).
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.train.exchanges import curves_of
from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.kernels.ops import Elementwise
from orrery.network.group import LARGEST_CHASSIS_DEVICES
from orrery.training.columns import Columns, distinct
from orrery.training.expert_moves import copied_parameters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sync:
    """Seconds of collectives measured alone; arrays of the layouts.

    Step: once a step for the whole stage (unsharded to zero2, and zero3 in a pipeline, which keeps what it gathered).
    Layer: once a layer and micro-batch (zero3 without a pipeline).
    """

    reduce_s: Floats  # gradients, whole stage
    gather_s: Floats  # updated parameters, whole stage
    layer_gather_s: Floats  # parameters of one layer before its forward pass
    layer_regather_s: Floats  # and again before its backward pass, from the nearer copy where there is one
    layer_reduce_s: Floats  # gradients of one layer after its backward pass
    layer_copy_s: Floats  # between the tensors of one layer and the buffers that its collectives use, both passes
    start_s: Floats  # parameters that a micro-batch waits for before its first layer
    end_s: Floats  # gradients that are summed after its last one
    apart_s: Floats  # parameters and gradients of an end that travel beside layers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Parameters of the fullest pipeline stage on one device; arrays of the layouts."""

    dense_parameters: Floats
    expert_parameters: Floats
    trained_parameters: Floats
    layer_dense_parameters: Floats  # of one layer
    layer_expert_parameters: Floats
    embedding_parameters: Floats
    head_parameters: Floats  # 0 where the embedding is the head


STAGE_FIELDS = tuple(f.name for f in fields(Stage))


def gradient_bytes(job: TrainingJob) -> float:
    """Bytes of a gradient on the wire."""
    return job.recipe.gradient_wire_bytes or job.recipe.gradient_bytes or job.framework.gradient_bytes


class Groups:
    """Collective times of the groups that occur, looked up by (ranks, stride) of each layout."""

    def __init__(self, job: TrainingJob, ranks: Ints, stride: Ints) -> None:
        self.job, self.is_alone = job, int(ranks.max(initial=1)) == 1
        if self.is_alone:
            return
        first, self.which = distinct(np.array([ranks, stride]))
        self.known = tuple((int(ranks[i]), int(stride[i])) for i in first)
        inside = fast_domain(job)
        near, far = job.framework.network_ratio, job.framework.scaleout_ratio
        self.ratio = np.array([near if n * step <= inside else far for n, step in self.known])[self.which]

    def time_s(self, kind: str, message_bytes: Floats) -> Floats:
        """Time (s) of one collective, for each layout."""
        if self.is_alone:
            return np.zeros(message_bytes.shape)
        return self.ratio * curves_of(self.job, kind, self.known).time_s(self.which, message_bytes)


def fast_domain(job: TrainingJob) -> int:
    """Neighbours that the fast link joins: a node, or a rack where the link runs through it."""
    joined = job.cluster.device.scaleup.num_devices
    return max(job.cluster.devices_per_node, joined if joined > LARGEST_CHASSIS_DEVICES else 0)


def sync_of(job: TrainingJob, x: Columns, stage: Stage) -> Sync:
    """All collectives of data parallelism."""
    zero = np.zeros(len(x))
    is_plain, is_full = x.sharding == 0, x.gathers_layers
    trains_all = job.task not in FROZEN
    shards, wire, sent = x.sharding_group, gradient_bytes(job), job.gathered_weight_bytes
    inner = Groups(job, shards, x.tp)
    experts = Groups(job, x.expert_copies, x.ep * x.etp)
    outer = Groups(job, np.maximum(x.data_ranks // shards, 1), x.tp * shards)
    reduce_s = gather_s = layer_gather_s = layer_regather_s = layer_reduce_s = layer_copy_s = zero
    start_s = end_s = apart_s = zero
    if not is_full.all():
        dense = stage.dense_parameters if trains_all else stage.trained_parameters
        expert = stage.expert_parameters if trains_all else 0.0 * stage.expert_parameters
        reduce_s = outer.time_s("all_reduce", wire * np.where(is_plain, dense, dense / shards))
        if is_plain.any():
            summed = inner.time_s("all_reduce", wire * dense) + experts.time_s("all_reduce", wire * expert)
            reduce_s = reduce_s + is_plain * summed
        if not is_plain.all():
            shared = inner.time_s("reduce_scatter", wire * dense) + experts.time_s("reduce_scatter", wire * expert)
            reduce_s = reduce_s + ~is_plain * shared
            updated = inner.time_s("all_gather", sent * dense) + experts.time_s("all_gather", sent * expert)
            gather_s = ~is_full * ~is_plain * updated
        reduce_s = ~is_full * reduce_s
    if is_full.any():
        own = inner.time_s("all_gather", sent * stage.layer_dense_parameters)
        routed = experts.time_s("all_gather", sent * stage.layer_expert_parameters)
        layer_gather_s = layer_regather_s = is_full * (own + routed)
        if x.secondary_group.any():
            second = Groups(job, np.where(x.secondary_group > 0, x.secondary_group, shards), x.tp)
            layer_regather_s = is_full * (second.time_s("all_gather", sent * stage.layer_dense_parameters) + routed)
        if trains_all:
            layer_reduce_s = is_full * (
                inner.time_s("reduce_scatter", wire * stage.layer_dense_parameters)
                + outer.time_s("all_reduce", wire * stage.layer_dense_parameters / shards)
                + experts.time_s("reduce_scatter", wire * stage.layer_expert_parameters)
            )
        layer_copy_s = is_full * copy_s(job, x, stage.layer_dense_parameters, stage.layer_expert_parameters, gathers=2)
        is_apart = job.framework.gathers_ends_apart
        first = stage.embedding_parameters + (0.0 if is_apart else stage.head_parameters)
        beside = stage.head_parameters * is_apart
        ends_copy_s = is_full * copy_s(job, x, first + beside, zero, gathers=1)
        start_s = is_full * inner.time_s("all_gather", sent * first) + ends_copy_s
        end_s = is_full * trains_all * inner.time_s("reduce_scatter", wire * first)
        beside_reduce_s = is_full * trains_all * inner.time_s("reduce_scatter", wire * beside)
        apart_s = is_full * inner.time_s("all_gather", sent * beside) + beside_reduce_s
    copied, copies = copied_parameters(job, x, stage.expert_parameters)
    if copied.any():
        own = np.where(is_plain, 1, x.expert_copies)  # ranks with the same slots have summed and share what is sharded
        apart = Groups(job, copies, x.etp * np.maximum(x.ep // copies, 1))
        reduce_s = reduce_s + apart.time_s("all_reduce", wire * copied / own)
    return Sync(
        reduce_s=reduce_s,
        gather_s=gather_s,
        layer_gather_s=layer_gather_s,
        layer_regather_s=layer_regather_s,
        layer_reduce_s=layer_reduce_s,
        layer_copy_s=layer_copy_s,
        start_s=start_s,
        end_s=end_s,
        apart_s=apart_s,
    )


def copy_s(job: TrainingJob, x: Columns, dense_parameters: Floats, expert_parameters: Floats, gathers: int) -> Floats:
    """Copies of parameters out of what was gathered, and of their gradients into what will be reduced.

    Each byte is read and written. Gradients leave products in the compute format; where they are summed in a wider one,
    views of a flat parameter are joined first and widened after, and single tensors are widened on their way.
    """
    f, wire, sent = job.framework, gradient_bytes(job), job.gathered_weight_bytes
    made = max(sent, COMPUTE_BYTES)
    out_bytes = gathers * 2.0 * sent * (f.shard_copies == "both")
    joined_bytes = 2.0 * made + (made + wire) * (wire != made)
    in_bytes = {"nothing": 0.0, "gradients": joined_bytes, "both": made + wire}[f.shard_copies]
    each_bytes = out_bytes + in_bytes * (job.task not in FROZEN)
    if not each_bytes:
        return np.zeros(len(x))
    moved = (x.sharding_group > 1) * dense_parameters + (x.expert_copies > 1) * expert_parameters
    return _stream_s(job, each_bytes * moved)


def update_s(job: TrainingJob, x: Columns, stage: Stage) -> Floats:
    """Adam and what goes with it, streamed through memory: norm of the gradients, both moments, both copies, casts."""
    f, recipe = job.framework, job.recipe
    if job.task == "forward_backward":
        return np.zeros(len(x))
    held = recipe.gradient_bytes or f.gradient_bytes
    moments = recipe.moments_bytes or f.moments_bytes
    master = recipe.master_bytes if recipe.master_bytes >= 0 else f.master_bytes
    own = recipe.weights_bytes or f.weights_bytes
    moved = 2.0 * held + 2.0 * moments + 2.0 * master + (own if master else 2.0 * own)
    ways = np.where(x.sharding > 0, x.sharding_group, 1)
    expert_ways = np.where(x.sharding > 0, x.expert_copies, 1)
    own = (
        stage.dense_parameters / ways + stage.expert_parameters / expert_ways
        if job.task not in FROZEN
        else stage.trained_parameters / ways
    )
    zeroed = (
        held
        * (stage.trained_parameters if job.task in FROZEN else stage.dense_parameters + stage.expert_parameters)
        * (x.sharding < 2)
    )
    casts = recipe.weight_casts * (2.0 + 1.0) * (stage.dense_parameters + stage.expert_parameters)
    return f.elementwise_ratio * _stream_s(job, moved * own + zeroed + casts)


def _stream_s(job: TrainingJob, moved_bytes: Floats) -> Floats:
    """Seconds in which bytes stream through a device's memory."""
    tokens = np.maximum(moved_bytes / SUM_BYTES / WIDTH, 1.0).astype(np.int64)
    op = Elementwise(kind="add", tokens=tokens, width=WIDTH)
    return (moved_bytes > 0.0) * kernels.predict(op, job.cluster.device, job.framework.kernels).time_s


SUM_BYTES, WIDTH = 6.0, 1024
"""Bytes of one element of a 16-bit sum, as which the stream is timed; elements a row."""

COMPUTE_BYTES = 2.0
"""Least bytes of a gradient as a product makes it: narrower recipes widen products' results to 16 bits."""

"""Peak memory of each device of a training job, by category.

State: weights, gradients, optimizer, each divided by what shares it. Activations: micro-batches in flight times what
the stage's layers keep, and what the backward pass of one layer holds for a moment, or the logits of the last stage
where they are more; of what goes to the host, two layers' alone. On top: gathered layers of sharded parameters,
buckets, gradients that nobody reads, and what the allocator loses. The update needs room for what the optimizer makes
and drops again, but by then activations are gone; loading a whole checkpoint comes before them (both count as
``update``). Gradients that are dropped after each update are made while activations go, so only what they have beyond
those counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import BASE_WEIGHTS, FROZEN, TrainingJob
from orrery.execution.train.modules import MODULES
from orrery.execution.train.saved_activations import WIDE_BYTES
from orrery.execution.train.units import Units
from orrery.training.columns import SHARDINGS, Columns
from orrery.training.expert_gathers import gathered_expert_bytes
from orrery.training.expert_moves import moved_parameters
from orrery.training.sync import COMPUTE_BYTES, Stage, gradient_bytes

Floats = NDArray[np.float64]

USABLE_FRAC = 0.985
"""Share of the reported capacity that a process may fill: the driver, its context and libraries hold the rest."""

CATEGORIES = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "buffers",
    "fragmentation",
    "update",
    "fixed",
)


RESIDENT_LAYERS = 2.0
"""Layers whose activations are on the device where they go to the host: the one at work, and one on its way."""


def room_bytes(job: TrainingJob) -> float:
    """Memory of a device that a process may fill."""
    return USABLE_FRAC * job.cluster.device.memory_capacity_bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryBytes:
    """Bytes of one device by category; arrays of the layouts. ``total`` is the allocator's peak."""

    parts: dict[str, Floats]

    @property
    def total(self) -> Floats:
        """All categories together."""
        return sum(self.parts.values(), np.zeros(1))


def held_bytes(
    job: TrainingJob,
    x: Columns,
    units: Units,
    which: NDArray[np.int64],
    *,
    stage: Stage,
    layers: Floats,
    in_flight: Floats,
    copies: Floats,
    has_head: NDArray[np.bool_],
    kinds: Sequence[Floats] = (),
) -> MemoryBytes:
    """Bytes on the devices of one kind of stage; ``in_flight`` counts micro-batches of all the stage's layers.

    ``kinds`` are its layers of each kind, in the model's order; empty = in the model's proportion.
    """
    f, recipe = job.framework, job.recipe
    counts = kinds or [layers * (count / units.num_layers) for count, _ in units.kinds]
    full, every = x.gathers_layers, stage.dense_parameters + stage.expert_parameters
    gradient = recipe.gradient_bytes or f.gradient_bytes
    weights, gradients, optimizer = _state(job, x, stage, copies)
    if job.task not in FROZEN and job.recipe.weight_copy_bytes:
        weights = weights + _narrow_copies(job, x, units, which, counts, copies)
    elif job.base_format:
        weights = weights + _kept_wide(job, x, units, which, has_head)
    longest = max(job.longest_seq_len, job.seq_len) / job.seq_len
    each = np.where(x.tp > 1, f.parallel_logits_bytes or f.logits_bytes, f.logits_bytes)
    logits = longest * np.where(has_head, each * units.head.logit_elements[which], 0.0)
    saved, moment = activations_of(job, x, units, which, counts, layers)
    if job.activation_offload_bytes_per_s:
        in_flight = np.minimum(in_flight, RESIDENT_LAYERS / layers)
    sent = np.where((x.pp > 1) & ~has_head, units.layer.boundary_bytes[which], 0.0) * f.keeps_stage_outputs
    moment = longest * moment + _widened(job, units, which, has_head)
    activations = longest * in_flight * (saved + sent) + np.maximum(moment - logits, 0.0)
    gathered = (
        job.gathered_weight_bytes * (2.0 * stage.layer_dense_parameters + 2.0 * stage.layer_expert_parameters) * full
    )
    ends = stage.head_parameters + (0.0 if f.gathers_ends_apart else stage.embedding_parameters)
    gathered = gathered + full * job.gathered_weight_bytes * ends  # at the loss
    gathered = gathered + np.where(x.keeps_gathered, copies * job.gathered_weight_bytes * every, 0.0)
    second = np.zeros(len(x))
    if x.secondary_group.any():
        held = np.where(x.secondary_group > 0, job.gathered_weight_bytes * stage.dense_parameters, 0.0)
        second = held / np.maximum(x.secondary_group, 1)
    if job.task in FROZEN:
        unsummed = full * _unsummed_bytes(job) * stage.trained_parameters / layers
    else:
        unsummed = full * _unsummed_bytes(job) * (stage.layer_dense_parameters + stage.layer_expert_parameters)
    bucket = np.where((x.data_ranks > 1) & ~full, np.minimum(f.bucket_bytes, gradient * every), 0.0)
    bucket = bucket * (not f.has_flat_gradients)
    moved = moved_parameters(job, x, stage.layer_expert_parameters)
    if moved.any():  # one layer's at a time, beside those that still stand there
        gathered = gathered + expert_state_bytes(job, x) * moved
    gathered = gathered + gathered_expert_bytes(units)[which]
    loose = activations + logits + gathered + second + unsummed + bucket
    dropped = _made_late(job, x) * f.fragmentation_ratio * (longest * in_flight * saved + logits)
    gradients = np.maximum(gradients - dropped, 0.0)  # what has gone by the time they are all there
    unread = np.where(x.sharding == 3, 0.0, _unread_gradients(job, units, which, counts))
    parts = {
        "weights": weights,
        "gradients": gradients,
        "optimizer": optimizer,
        "activations": activations,
        "logits": logits,
        "buffers": loose - activations - logits + unread,
    }
    parts["fragmentation"] = (f.fragmentation_ratio - 1.0) * loose
    updated = optimizer / max(optimizer_bytes(job), 1.0)  # parameters; activations are gone when they are updated
    parts["update"] = np.maximum(f.update_bytes * updated - f.fragmentation_ratio * loose, 0.0)
    if f.loads_whole:  # before there are gradients, states or activations
        beside = gradients + optimizer + f.fragmentation_ratio * loose
        whole = np.where(x.sharding == 3, weight_bytes(job) * every - beside, 0.0)
        parts["update"] = np.maximum(parts["update"], whole)
    parts["fixed"] = np.full(loose.shape, f.fixed_bytes)
    return MemoryBytes(parts=parts)


def _unsummed_bytes(job: TrainingJob) -> float:
    """Bytes of a gathered layer's gradient while it waits to be summed: as it travels, and the tensor copied from."""
    wire = gradient_bytes(job)
    return wire + max(job.gathered_weight_bytes, COMPUTE_BYTES) * (job.framework.shard_copies != "nothing")


def _made_late(job: TrainingJob, x: Columns) -> NDArray[np.bool_]:
    """Whether no gradient is there yet when activations are most, at the loss: they are dropped after each update, no
    earlier micro-batch has left any, and no buckets of all of them stand beside the parameters."""
    is_only = job.global_batch <= x.dp * x.micro_batch
    has_buckets = (x.data_ranks > 1) & (x.sharding < SHARDINGS.index("zero2"))
    return is_only & (x.pp == 1) & ~has_buckets & job.framework.drops_gradients


def _kept_wide(
    job: TrainingJob, x: Columns, units: Units, which: NDArray[np.int64], has_head: NDArray[np.bool_]
) -> Floats:
    """Bytes of the embedding beyond 4-bit weights, and of the head where it is not quantised."""
    apart = ~has_head | (x.pp == 1)  # the first stage, or the only one
    wide = np.where(apart, units.embedding.parameters[which], 0.0)
    if not job.framework.quantises_head and not job.model.is_head_tied:
        wide = wide + np.where(has_head, units.head.parameters[which], 0.0)
    return (WIDE_BYTES - weight_bytes(job)) * wide / np.where(x.sharding == 3, x.sharding_group, 1)


def _widened(job: TrainingJob, units: Units, which: NDArray[np.int64], has_head: NDArray[np.bool_]) -> Floats:
    """The largest frozen 4-bit weight in the 16 bits that its product reads."""
    if not job.base_format:
        return np.zeros(which.shape)
    largest = np.max([shape.elements[which] for shape in units.shapes], axis=0)
    if job.framework.quantises_head:
        largest = np.maximum(largest, np.where(has_head, units.head.parameters[which], 0.0))
    return WIDE_BYTES * largest


def activations_of(
    job: TrainingJob, x: Columns, units: Units, which: NDArray[np.int64], counts: Sequence[Floats], layers: Floats
) -> tuple[Floats, Floats]:
    """Activations of one micro-batch in a stage's layers, and the transient memory of one layer's backward pass.

    A layer that is recomputed is there whole while its gradients are made; of modules the largest one is.
    """
    saved_bytes, moment = np.zeros(len(x)), np.zeros(len(x))
    bits = module_bits(x) if x.recompute_modules.any() else None
    part = np.where((x.recompute == 2) & (x.recompute_layers > 0), np.minimum(x.recompute_layers / layers, 1.0), 1.0)
    for count, (_, layer) in zip(counts, units.kinds, strict=True):
        everything = layer.everything_bytes[which]
        chosen = np.choose(x.recompute, [everything, layer.selective_bytes[which], layer.boundary_bytes[which]])
        again = np.where(x.recompute > 0, np.maximum(everything - chosen, 0.0), 0.0)
        if bits is not None:
            saved = bits * layer.module_bytes[:, which]
            chosen = np.where(bits.any(axis=0), everything - saved.sum(axis=0), chosen)
            again = np.maximum(again, saved.max(axis=0))
        saved_bytes = saved_bytes + count * (part * chosen + (1.0 - part) * everything)
        moment = np.maximum(moment, (count > 0.0) * (again + layer.working_bytes[which]))
    return saved_bytes, moment


def saved_bytes_each(job: TrainingJob, x: Columns, units: Units, which: NDArray[np.int64]) -> Floats:
    """Bytes that the average layer saves of one micro-batch for its backward pass."""
    counts = [np.full(len(x), count / units.num_layers) for count, _ in units.kinds]
    return activations_of(job, x, units, which, counts, units.num_layers / x.pp)[0]


def module_bits(x: Columns) -> NDArray[np.bool_]:
    """Which modules each layout recomputes; (modules, layouts)."""
    return (x.recompute_modules >> np.arange(len(MODULES))[:, None] & 1).astype(np.bool_)


def _narrow_copies(
    job: TrainingJob, x: Columns, units: Units, which: NDArray[np.int64], counts: Sequence[Floats], copies: Floats
) -> Floats:
    """Narrow copies of the layers' weights beside the wide ones; sharded parameters are cast as they are gathered."""
    each = sum(
        (
            n * (k.dense_parameters[which] + k.expert_parameters[which])
            for n, (_, k) in zip(counts, units.kinds, strict=True)
        ),
        np.zeros(len(x)),
    )
    return np.where(x.sharding == 3, 0.0, copies * job.recipe.weight_copy_bytes * each)


def _unread_gradients(job: TrainingJob, units: Units, which: NDArray[np.int64], counts: Sequence[Floats]) -> Floats:
    """Where products add straight to the summed gradients, autograd still gets a tensor of the weight's size, which
    nobody reads: one in 16 bits for every distinct size, kept for good."""
    if not job.framework.keeps_unread_gradients or job.task in FROZEN:
        return np.zeros(which.shape)
    total, is_here = np.zeros(which.shape), [count > 0.0 for count in counts]
    for shape in units.shapes:
        is_new = is_here[shape.kind]
        for kind, is_alike in shape.twins:
            is_new = is_new & ~(is_here[kind] & is_alike[which])
        total = total + WIDE_BYTES * shape.elements[which] * is_new
    return total


def _state(job: TrainingJob, x: Columns, stage: Stage, copies: Floats | float) -> tuple[Floats, Floats, Floats]:
    """Weights, gradients and optimizer state of a device."""
    f, recipe = job.framework, job.recipe
    is_frozen = job.task in FROZEN

    def shared(least: int) -> Floats:
        """Parameters on a device where sharding of at least that stage divides them."""
        ways = np.where(x.sharding >= least, x.sharding_group, 1)
        expert_ways = np.where(x.sharding >= least, x.expert_copies, 1)
        return stage.dense_parameters / ways + stage.expert_parameters / expert_ways

    weights = copies * weight_bytes(job) * shared(3)
    gradient = recipe.gradient_bytes or f.gradient_bytes
    if is_frozen:
        weights = weights + (recipe.weights_bytes or f.weights_bytes) * stage.trained_parameters
        gradients, trained = (
            gradient * stage.trained_parameters,
            stage.trained_parameters / np.where(x.sharding > 0, x.sharding_group, 1),
        )
    else:
        unsummed = np.where(x.keeps_gathered, stage.dense_parameters + stage.expert_parameters, shared(2))
        gradients, trained = copies * gradient * unsummed, shared(1)
    return weights, gradients, optimizer_bytes(job) * trained


def optimizer_bytes(job: TrainingJob) -> float:
    """Bytes of optimizer state per parameter: a 32-bit copy and both moments."""
    f, recipe = job.framework, job.recipe
    master = recipe.master_bytes if recipe.master_bytes >= 0 else f.master_bytes
    return 0.0 if job.task == "forward_backward" else master + (recipe.moments_bytes or f.moments_bytes)


def weight_bytes(job: TrainingJob) -> float:
    """Bytes of weights per parameter. Frozen ones are cast once: only what products read is kept."""
    recipe = job.recipe
    if job.base_format:
        return BASE_WEIGHTS[job.base_format]
    if job.task in FROZEN:
        return recipe.weight_copy_bytes or 2.0
    return recipe.weights_bytes or job.framework.weights_bytes


def expert_state_bytes(job: TrainingJob, x: Columns) -> Floats:
    """Weights and optimizer state of one parameter of an expert, where ranks with the same experts share them."""
    shared = [np.where(x.sharding >= least, x.expert_copies, 1) for least in (3, 1)]
    return weight_bytes(job) / shared[0] + optimizer_bytes(job) / shared[1]


def state_bytes(job: TrainingJob, x: Columns, stage: Stage) -> Floats:
    """Weights, gradients and optimizer state together, one copy of the parameters: the least that a device holds."""
    weights, gradients, optimizer = _state(job, x, stage, 1.0)
    return weights + gradients + optimizer

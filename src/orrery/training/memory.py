"""What each device of a training job holds at its fullest, by category.

State: weights, gradients, optimizer, each divided by what shares it. Activations: micro-batches in flight times what a
layer keeps, and with recomputation the working set of one layer. Ends: logits of the last stage. On top: gathered
layers of sharded parameters, buckets, and what the allocator loses. The update needs room for what the optimizer makes
and drops again, but by then activations are gone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import FROZEN, NF4_BYTES, TrainingJob
from orrery.execution.train.units import Units
from orrery.training.columns import Columns
from orrery.training.sync import Stage, gradient_bytes

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """Bytes of one device by category; arrays of the layouts. ``total`` is the allocator's peak."""

    parts: dict[str, Floats]

    @property
    def total(self) -> Floats:
        """All categories together."""
        return sum(self.parts.values(), np.zeros(1))


def held_bytes(
    job: TrainingJob, x: Columns, units: Units, which: NDArray[np.int64], *, stage: Stage, layers: Floats,
    in_flight: Floats, copies: Floats, has_head: NDArray[np.bool_],
) -> Held:  # fmt: skip
    """Of the devices of one kind of stage; ``in_flight`` counts micro-batches of all the stage's layers."""
    f, recipe, layer = job.framework, job.recipe, units.layer
    full, every = x.gathers_layers, stage.dense_parameters + stage.expert_parameters
    gradient = recipe.gradient_bytes or f.gradient_bytes
    weights, gradients, optimizer = _state(job, x, stage, copies)
    kept = np.choose(np.minimum(x.recompute, 2), [layer.everything_bytes[which], layer.selective_bytes[which],
                                                  layer.boundary_bytes[which]])  # fmt: skip
    part = np.where((x.recompute == 2) & (x.recompute_layers > 0), np.minimum(x.recompute_layers / layers, 1.0), 1.0)
    kept = part * kept + (1.0 - part) * layer.everything_bytes[which]
    again = np.where(x.recompute == 2, layer.everything_bytes[which] - layer.boundary_bytes[which], 0.0)
    longest = max(job.longest_seq_len, job.seq_len) / job.seq_len
    activations = longest * (in_flight * layers * kept + again)
    logits = longest * np.where(has_head, f.logits_bytes * units.head.logit_elements[which], 0.0)
    gathered = (
        recipe.gathered_weight_bytes * (2.0 * stage.layer_dense_parameters + 2.0 * stage.layer_expert_parameters) * full
    )
    gathered = gathered + np.where(x.keeps_gathered, copies * recipe.gathered_weight_bytes * every, 0.0)
    second = np.where(x.secondary_group > 0, recipe.gathered_weight_bytes * stage.dense_parameters, 0.0) / np.maximum(
        x.secondary_group, 1
    )
    unsummed = np.where(full, gradient_bytes(job) * (stage.layer_dense_parameters + stage.layer_expert_parameters), 0.0)
    bucket = np.where((x.data_ranks > 1) & ~full, np.minimum(f.bucket_bytes, gradient * every), 0.0)
    bucket = bucket * (not f.has_flat_gradients)
    parts = {
        "weights": weights, "gradients": gradients, "optimizer": optimizer, "activations": activations,
        "logits": logits, "buffers": gathered + second + unsummed + bucket,
    }  # fmt: skip
    loose = activations + logits + parts["buffers"]
    parts["fragmentation"] = (f.fragmentation_ratio - 1.0) * loose
    updated = optimizer / max(_optimizer_bytes(job), 1.0)  # parameters; activations are gone when they are updated
    parts["update"] = np.maximum(f.update_bytes * updated - f.fragmentation_ratio * loose, 0.0)
    parts["fixed"] = np.full(loose.shape, f.fixed_bytes)
    return Held(parts=parts)


def _state(job: TrainingJob, x: Columns, stage: Stage, copies: Floats | float) -> tuple[Floats, Floats, Floats]:
    """Weights, gradients and optimizer state of a device."""
    f, recipe = job.framework, job.recipe
    is_frozen = job.task in FROZEN

    def shared(least: int) -> Floats:
        """Parameters on a device where sharding of at least that stage divides them."""
        ways = np.where(x.sharding >= least, x.sharding_group, 1)
        expert_ways = np.where(x.sharding >= least, x.expert_copies, 1)
        return stage.dense_parameters / ways + stage.expert_parameters / expert_ways

    weights = copies * _weight_bytes(job) * shared(3)
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
    return weights, gradients, _optimizer_bytes(job) * trained


def _optimizer_bytes(job: TrainingJob) -> float:
    """Of one parameter: a 32-bit copy and both moments."""
    f, recipe = job.framework, job.recipe
    master = recipe.master_bytes if recipe.master_bytes >= 0 else f.master_bytes
    return 0.0 if job.task == "forward_backward" else master + (recipe.moments_bytes or f.moments_bytes)


def _weight_bytes(job: TrainingJob) -> float:
    """Of one parameter with its narrow copies. Frozen ones are cast once: only what products read is kept."""
    recipe = job.recipe
    if job.task == "qlora":
        return NF4_BYTES
    if job.task in FROZEN:
        return recipe.weight_copy_bytes or 2.0
    return (recipe.weights_bytes or job.framework.weights_bytes) + recipe.weight_copy_bytes


def state_bytes(job: TrainingJob, x: Columns, stage: Stage) -> Floats:
    """Weights, gradients and optimizer state together, one copy of the parameters: the least that a device holds."""
    weights, gradients, optimizer = _state(job, x, stage, 1.0)
    return weights + gradients + optimizer

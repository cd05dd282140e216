"""Seconds of one layer and of the ends once a framework runs them: its ratios, its overlaps, its host."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.again import again_of
from orrery.execution.train.hidden import expert_exposed, tensor_exposed
from orrery.execution.train.modules import MODULES
from orrery.execution.train.units import End, Units
from orrery.training.launches import launch_s
from orrery.training.sync import fast_domain

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTimes:
    """One layer (or end) and micro-batch: work of the device, and what it waits for. Arrays of the choices."""

    forward_s: Floats
    input_gradient_s: Floats
    weight_gradient_s: Floats
    again_selective_s: Floats  # recomputation
    again_full_s: Floats
    tensor_forward_s: Floats  # exposed
    tensor_backward_s: Floats
    context_forward_s: Floats
    context_backward_s: Floats
    expert_forward_s: Floats
    expert_backward_s: Floats
    expert_beside_forward_s: Floats  # the part of the exchange of tokens that runs beside work
    expert_beside_backward_s: Floats
    host_forward_s: Floats  # what launching takes longer than the device
    host_backward_s: Floats


@lru_cache(maxsize=16)  # bounds and costs of many families ask for the same layers
def layer_pace(units: Units) -> StepTimes:
    """Times (s) of the average layer."""
    job, x, f = units.job, units.layer, units.job.framework
    core, core_back = x.core_forward_s(f), x.core_backward_s(f)
    device_forward = (
        f.matrix_ratio * (x.products.forward_s + x.experts.forward_s)
        + core
        + f.elementwise_ratio * (x.stream_forward_s + x.cast_forward_s)
    )
    device_inputs = (
        f.matrix_ratio * (x.products.input_gradient_s + x.experts.input_gradient_s)
        + core_back
        + f.elementwise_ratio * (x.stream_backward_s + x.cast_backward_s)
    )
    device_weights = f.matrix_ratio * (x.products.weight_gradient_s + x.experts.weight_gradient_s)
    tensor_forward, tensor_backward = tensor_exposed(units, network_ratio(units, units.choice.tp))
    span = network_ratio(units, units.choice.tp * units.choice.cp)
    context_forward = _ring(units, span * x.context_forward_s, core)
    context_backward = _ring(units, span * x.context_backward_s, core_back)
    routed = network_ratio(units, units.choice.ep * units.choice.etp)
    expert_forward, expert_backward = expert_exposed(units, routed)
    device_forward = device_forward + np.minimum(expert_forward, 0.0)  # loads that a technique evened out
    device_inputs = device_inputs + np.minimum(expert_backward, 0.0)
    expert_forward, expert_backward = np.maximum(expert_forward, 0.0), np.maximum(expert_backward, 0.0)
    busy = device_forward + tensor_forward + context_forward + expert_forward
    busy_back = device_inputs + device_weights + tensor_backward + context_backward + expert_backward
    again = core
    if f.selective == "operators":
        products_s = 0.5 * x.products.forward_s + x.experts.forward_s
        again = f.matrix_ratio * products_s + f.elementwise_ratio * x.stream_forward_s
    launch = launch_s(units)
    host = np.maximum(launch - busy, 0.0)
    unmade = f.matrix_ratio * x.unmade_s + x.unmade_tensor_frac * tensor_forward
    return StepTimes(
        forward_s=device_forward,
        input_gradient_s=device_inputs,
        weight_gradient_s=device_weights,
        again_selective_s=again,
        again_full_s=np.maximum(busy - unmade, launch),
        tensor_forward_s=tensor_forward,
        tensor_backward_s=tensor_backward,
        context_forward_s=context_forward,
        context_backward_s=context_backward,
        expert_forward_s=expert_forward,
        expert_backward_s=expert_backward,
        expert_beside_forward_s=np.maximum(routed * x.expert_forward_s - expert_forward, 0.0),
        expert_beside_backward_s=np.maximum(routed * x.expert_backward_s - expert_backward, 0.0),
        host_forward_s=host,
        host_backward_s=np.maximum(f.host_backward_ratio * launch * _learns(job.task) - busy_back, 0.0),
    )


def modules_again_s(units: Units, pace: StepTimes, bits: NDArray[np.bool_], which: NDArray[np.int64]) -> Floats:
    """Seconds in which each layout makes the modules of one layer again: ``bits`` are (modules, layouts)."""
    f, made = units.job.framework, again_of(units)
    each = f.matrix_ratio * made.products_s + f.attention_ratio * made.attention_s + f.elementwise_ratio * made.stream_s
    each[MODULES.index("moe")] += pace.expert_forward_s  # tokens travel to their experts again
    return (bits * each[:, which]).sum(axis=0)


def _learns(task: str) -> float:
    """Backward launches: of both gradients, or of those to the inputs alone."""
    return 1.0 if task in ("pretrain", "full_finetune", "forward_backward") else 0.7


def end_pace(units: Units, end: End) -> tuple[Floats, Floats, Floats]:
    """Forward, input-gradient and weight-gradient seconds of the embedding or the head."""
    f = units.job.framework
    return (
        f.matrix_ratio * end.products.forward_s + f.elementwise_ratio * end.stream_forward_s,
        f.matrix_ratio * end.products.input_gradient_s + f.elementwise_ratio * end.stream_backward_s,
        f.matrix_ratio * end.products.weight_gradient_s,
    )


def network_ratio(units: Units, span_devices: NDArray[np.int64]) -> Floats:
    """How much slower collectives run than measured alone: inside a node, or between nodes."""
    f = units.job.framework
    return np.where(span_devices <= fast_domain(units.job), f.network_ratio, f.scaleout_ratio)


def _ring(units: Units, collective_s: Floats, attention_s: Floats) -> Floats:
    """A ring hides each hop behind the block of attention before it, which slows that; dealt-out heads hide nothing."""
    cp = units.choice.cp
    hidden = np.where(units.choice.is_ring, attention_s * (cp - 1) / np.maximum(cp, 1), 0.0)
    slowed = (units.job.framework.contention_ratio - 1.0) * np.minimum(collective_s, hidden)
    return np.maximum(collective_s - hidden, 0.0) + slowed

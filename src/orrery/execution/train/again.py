"""Seconds that making the modules of a layer again takes, raw, by what the framework's ratios apply to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.attention import attention_times, score_times
from orrery.execution.train.cut import Choice, is_latent, product, tokens
from orrery.execution.train.experts import activation_s, expert_streams, expert_times
from orrery.execution.train.job import TrainingJob, jobs_by_block
from orrery.execution.train.modules import MODULES
from orrery.execution.train.passes import elementwise_s
from orrery.execution.train.products import product_times
from orrery.execution.train.units import Units
from orrery.models.model import Block

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecomputeWork:
    """One row a module, in their order; one column a choice."""

    products_s: Floats
    attention_s: Floats
    stream_s: Floats


def again_of(found: Units) -> RecomputeWork:
    """Recomputation work of the average layer; asked for only where a layout recomputes modules."""
    choice = found.choice
    total = np.zeros((3, len(MODULES), choice.tp.size))
    for job, block in jobs_by_block(found.job):
        total += block.count / found.num_layers * _of_block(job, block, choice)
    return RecomputeWork(products_s=total[0], attention_s=total[1], stream_s=total[2])


def _of_block(job: TrainingJob, block: Block, choice: Choice) -> Floats:
    """Products, attention and streams of each module; (3, modules, choices)."""
    out = np.zeros((3, len(MODULES), choice.tp.size))
    at = {name: i for i, name in enumerate(MODULES)}
    products = [product(x, block.mixer, choice.tp) for x in block.linears]
    for p, time in zip(products, product_times(job, products, choice), strict=True):
        if is_latent(job, p):
            out[0, at["mla_up_proj"]] += time.forward_s
        for name in _holders(p.linear.role, block):
            out[0, at[name]] += time.forward_s
    if block.mixer:
        scores = score_times(job, block.mixer, choice)
        out[:, at["core_attn"]] = (
            scores.products_s,
            attention_times(job, block.mixer, choice)[0],
            scores.stream_forward_s,
        )
    t = tokens(job, choice)
    rows, width = np.maximum(t // choice.norm_ways, 1), job.model.hidden_size
    out[2, at["layernorm"]] = elementwise_s(job, "norm", rows, width) * (block.normed_elements / width)
    if block.activation_elements:
        dense = elementwise_s(job, "gated_activation", t, np.maximum(-(-block.activation_elements // choice.tp), 1))
        for name in ("mlp", "moe", "shared_experts"):
            out[2, at[name]] = dense * (out[0, at[name]] > 0.0)
    if e := block.experts:
        out[0, at["moe"]] += expert_times(job, e, choice).forward_s
        out[2, at["moe_act"]] = activation_s(job, e, choice)
        out[2, at["moe"]] += expert_streams(job, e, choice).forward_s
    return out


def _holders(role: str, block: Block) -> tuple[str, ...]:
    """Modules that a product is part of."""
    if role == "shared_expert":
        return ("shared_experts", "moe")
    if role == "router":
        return ("moe",)
    return ("mlp",) if role == "mlp" and block.experts is None else ()

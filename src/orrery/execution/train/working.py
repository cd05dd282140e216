"""Transient memory of a layer's backward pass, and the saving of each module where it is recomputed.

In the gradient of a gated feed-forward part the gradients of what enters the activation (2 ffn) and of what leaves it
(ffn) live at once, when the saved input of the last product (ffn) is gone: as many bytes again as enter activations,
and the gradient of the residual stream. With sequence parallelism the whole input and its gradient are there when the
first product's gradient is, when half of the above is gone. Written out by hand in the tests.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.cut import Choice, Product, heads, tokens
from orrery.execution.train.experts import routed
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.modules import MODULES
from orrery.models.model import Block, LatentAttention

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Widths:
    """Elements of one micro-batch on one device; arrays of the choices."""

    stream_elements: Floats  # the residual stream
    dense_in_elements: Floats  # what enters the activation of dense feed-forward parts, shared experts included
    dense_out_elements: Floats  # and leaves it
    routed_in_elements: Floats  # of routed experts
    routed_out_elements: Floats
    received_elements: Floats  # tokens that come to routed experts
    returned_elements: Floats  # what comes back for the rank's own tokens, a copy from each of their experts


def widths(job: TrainingJob, block: Block, products: list[Product], choice: Choice, stream: Floats) -> Widths:
    """Element counts of one layer."""
    gated = 2.0 if any(p.linear.name.endswith("gate_up") for p in products) else 1.0
    out, zero = tokens(job, choice) * block.activation_elements / choice.tp, np.zeros(choice.tp.shape)
    routed_in = routed_out = received = returned = zero
    if e := block.experts:
        x = routed(job, e, choice)
        routed_out = x.rows * x.ffn_size
        routed_in = (2.0 if e.is_gated else 1.0) * routed_out
        received, returned = x.rows * e.hidden_size, x.sent_tokens * e.hidden_size
    return Widths(
        stream_elements=stream,
        dense_in_elements=gated * out,
        dense_out_elements=out,
        routed_in_elements=routed_in,
        routed_out_elements=routed_out,
        received_elements=received,
        returned_elements=returned,
    )


def working_bytes(job: TrainingJob, choice: Choice, w: Widths, element: float) -> Floats:
    """Gradients alive at once in the backward pass of a layer, less what it has let go of by then."""
    whole = 2.0 * tokens(job, choice) * job.model.hidden_size * choice.is_sequence_parallel - w.dense_out_elements
    return element * (np.maximum(np.maximum(w.dense_in_elements, w.routed_in_elements), whole) + w.stream_elements)


def module_bytes(
    job: TrainingJob,
    block: Block,
    products: list[Product],
    choice: Choice,
    w: Widths,
    *,
    saved: float,
    element: float,
    scores: Floats | float,
    core: Floats,
) -> Floats:
    """Bytes that a layer keeps less of where a module is recomputed; a row a module (in their order)."""
    t, mixer = tokens(job, choice).astype(np.float64), block.mixer
    zero = np.zeros(choice.tp.shape)
    gone = dict.fromkeys(MODULES, zero)
    sums = 4.0 * t * heads(mixer, choice.tp)[0] if mixer and job.framework.has_fused_attention else zero
    gone["core_attn"] = zero + scores + sums
    gone["layernorm"] = 2.0 * saved * w.stream_elements
    if isinstance(mixer, LatentAttention):
        gone["mla_up_proj"] = np.maximum(core - sums, 0.0)
    between = element * w.dense_in_elements + saved * w.dense_out_elements
    if any(p.linear.role == "mlp" for p in products):
        gone["mlp"] = between
    if any(p.linear.role == "shared_expert" for p in products):
        gone["shared_experts"] = between
    if block.experts:
        gone["moe_act"] = saved * w.routed_out_elements
        inside = element * (w.routed_in_elements + w.returned_elements) + saved * (
            w.routed_out_elements + w.received_elements
        )
        gone["moe"] = inside + gone["shared_experts"]
    return np.array([zero + gone[name] for name in MODULES])

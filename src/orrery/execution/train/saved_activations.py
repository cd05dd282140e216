"""Activations that a layer saves between its forward and its backward pass, per micro-batch, by recomputation.

Kept are the input of every linear layer, what attention's gradient reads (queries, keys, values, row sums; its output
is the next layer's input), the inputs of activations and norms, and masks of dropouts; without a fused kernel also the
scores. A layer of GPT so keeps 34 s b h + 5 a s^2 b bytes. [korthikanti-2022]

Pruned to what the gradients of low-rank adapters read, a layer keeps the inputs of its norms, what attention's gradient
reads and its output, both halves of what enters the activation, and the adapters' own narrow outputs. [flexllm-2026]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.cut import Choice, Product, adapted, heads, is_latent, tokens
from orrery.execution.train.experts import FLAT, MASKS_KEPT_BYTES, dispatcher_of, mask_elements, routed
from orrery.execution.train.job import FROZEN, LOW_RANK, TrainingJob
from orrery.execution.train.working import module_bytes, widths, working_bytes
from orrery.models.model import Block, CompressedAttention, LatentAttention, SoftmaxAttention

Floats = NDArray[np.float64]

WIDE_BYTES, MASK_BYTES, ROW_SUM_BYTES = 2.0, 1.0, 4.0
SCORES_BYTES = 2.0
"""Bytes per element of a softmax's output, without dropout; with it also a mask and what leaves it: five bytes
in all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedActivations:
    """Bytes that one micro-batch leaves in one layer of a device; arrays of the choices."""

    everything_bytes: Floats  # no recomputation
    selective_bytes: Floats  # without the core of attention, or what else the framework picks
    boundary_bytes: Floats  # the layer's input alone: full recomputation
    working_bytes: Floats  # gradients that its backward pass holds for a moment
    module_bytes: Floats  # what recomputing each module saves; (modules, choices)


def saved_activations(job: TrainingJob, block: Block, products: list[Product], choice: Choice) -> SavedActivations:
    """Activation bytes of one layer."""
    t, hidden = tokens(job, choice).astype(np.float64), job.model.hidden_size
    element = WIDE_BYTES if job.recipe.wide_format in ("bf16", "fp16") else 4.0
    stream = t * hidden / choice.norm_ways
    saved = job.recipe.saved_input_bytes if job.recipe.rounds else element
    inputs, wide = _inputs(job, block, _read_again(job, products), choice, stream, t)
    norms = t * block.normed_elements / choice.norm_ways * element
    masks = stream * block.num_reduces * MASK_BYTES if job.framework.has_dropout else 0.0
    activations = _activations(job, block, products, choice, t, element)
    cores, scores = _core(job, block, choice, t), 0.0
    if isinstance(block.mixer, SoftmaxAttention) and not job.framework.has_fused_attention:
        score = SCORES_BYTES + (SCORES_BYTES + MASK_BYTES if job.framework.has_dropout else 0.0)
        scores = score * t * heads(block.mixer, choice.tp)[0] * job.seq_len
    everything = saved * inputs + element * wide + norms + masks + activations + cores + scores
    everything = everything + _apart(job, block, products, choice, t, element)
    if block.experts and dispatcher_of(job) == FLAT:
        everything = everything + MASKS_KEPT_BYTES * mask_elements(job, block.experts, choice)
    everything = everything + _dropped_bytes(job, products, t, element)
    everything = everything + saved * sum((t * p.k for p in _read_again(job, products) if is_latent(job, p)), 0.0 * t)
    if job.prunes_activations:
        everything = norms + activations + cores + element * (_mixed(block, choice, t) + t * job.adapter_rank)
        scores = 0.0
    each = widths(job, block, products, choice, stream)
    selective = everything - scores
    if job.framework.selective == "operators":  # kept: every other product of dense parts, attention, what ranks sent
        sent = np.where(choice.ep > 1, each.received_elements + each.returned_elements, 0.0)
        selective = element * (stream + 0.5 * _outputs(products, t) + _mixed(block, choice, t) + sent)
    return SavedActivations(
        everything_bytes=everything,
        selective_bytes=selective,
        boundary_bytes=element * stream + np.zeros(choice.tp.shape),
        working_bytes=working_bytes(job, choice, each, element),
        module_bytes=module_bytes(
            job, block, products, choice, each, saved=saved, element=element, scores=scores, core=cores
        ),
    )


def _apart(
    job: TrainingJob, block: Block, products: list[Product], choice: Choice, t: Floats, element: float
) -> Floats:
    """Further activations of eager kernels: an RMS norm's input in FP32 (not 16 bits) and its normed output, and a
    gated activation's first half before it is multiplied. Layer norms are one kernel everywhere.
    """
    if job.framework.is_fused or not any(p.linear.name.endswith("gate_up") for p in products):
        return np.zeros(choice.tp.shape)
    norms = 4.0 * t * block.normed_elements / choice.norm_ways
    return norms + element * t * block.activation_elements / choice.tp


def _outputs(products: list[Product], t: Floats) -> Floats:
    """Elements that leave the products of dense parts."""
    return sum((t * p.n * p.groups for p in products if p.linear.role != "router"), 0.0 * t)


def _mixed(block: Block, choice: Choice, t: Floats) -> Floats:
    """Elements that leave attention."""
    mixer = block.mixer
    if isinstance(mixer, SoftmaxAttention | LatentAttention):
        return t * heads(mixer, choice.tp)[0] * mixer.value_head_size
    return 0.0 * t


def _read_again(job: TrainingJob, products: list[Product]) -> list[Product]:
    """Products that keep their inputs for the backward pass: all, or where weights are frozen those beside adapters and
    the one that reads what attention keeps, unless quantised products keep them for nothing."""
    if job.task not in FROZEN or (job.base_format and job.framework.keeps_frozen_inputs):
        return products
    if _drops(job):
        return [p for p in products if p.linear.role == "attention" and p.linear.shard == "row"]
    is_all = job.framework.adapter_targets == "all-linear"
    return products if is_all else [p for p in products if p.linear.role == "attention"]


def _drops(job: TrainingJob) -> bool:
    """Whether low-rank additions keep inputs of their own."""
    return job.task in LOW_RANK and job.framework.drops_adapted


def _dropped_bytes(job: TrainingJob, products: list[Product], t: Floats, element: float) -> Floats:
    """Bytes of dropouts before low-rank additions: their output and a mask, apart for gate and up."""
    total = 0.0 * t
    for p in adapted(job, products) if _drops(job) else ():
        ways = 2 if p.linear.name.endswith("gate_up") else 1
        total = total + ways * (element + MASK_BYTES) * t * p.k * p.groups
    return total


def _inputs(
    job: TrainingJob, block: Block, products: list[Product], choice: Choice, stream: Floats, t: Floats
) -> tuple[Floats, Floats]:
    """Elements of the distinct inputs of linear layers: those that narrow recipes save narrow, and the others."""
    narrow, wide = np.zeros(choice.tp.shape), np.zeros(choice.tp.shape)
    has_seen_stream: dict[bool, bool] = {}
    for p in products:
        is_column = p.linear.shard in ("column", "replicated", "vocab")
        if is_column:  # reads the (normed) residual stream; the mixer's and the feed-forward part's are two copies
            is_mixing = p.linear.role in ("attention", "mixer")
            if has_seen_stream.get(is_mixing) and not job.recipe.keeps_inputs_apart:
                continue
            has_seen_stream[is_mixing] = True
            narrow = narrow + stream
        else:
            narrow = narrow + t * p.k * p.groups
    if block.experts:
        e, x = block.experts, routed(job, block.experts, choice)
        narrow = narrow + x.rows * (e.hidden_size + x.ffn_size)
        wide = wide + x.sent_tokens * e.hidden_size
    return narrow, wide


def _activations(
    job: TrainingJob, block: Block, products: list[Product], choice: Choice, t: Floats, element: float
) -> Floats:
    """Inputs of activations: both halves of a gated one."""
    gated = 2.0 if any(p.linear.name.endswith("gate_up") for p in products) else 1.0
    out = element * gated * t * block.activation_elements / choice.tp
    if block.experts:
        x, ways = routed(job, block.experts, choice), 2.0 if block.experts.is_gated else 1.0
        out = out + element * ways * x.rows * x.ffn_size
    return out


def _core(job: TrainingJob, block: Block, choice: Choice, t: Floats) -> Floats:
    """Queries, keys and values, and a row sum for each query and head."""
    mixer = block.mixer
    if mixer is None:
        return np.zeros(choice.tp.shape)
    queries, keys = heads(mixer, choice.tp)
    if isinstance(mixer, SoftmaxAttention):
        elements = queries * mixer.head_size + keys * (mixer.head_size + mixer.value_head_size)
    elif isinstance(mixer, LatentAttention):
        elements = queries * (2 * (mixer.nope_head_size + mixer.rope_head_size) + mixer.value_head_size)
    elif isinstance(mixer, CompressedAttention):
        elements = (queries + 1) * mixer.head_size
    else:
        elements = queries * 0 + 4 * job.model.hidden_size // choice.tp
    sums = ROW_SUM_BYTES * queries if job.framework.has_fused_attention else 0.0
    return t * (WIDE_BYTES * elements + sums)

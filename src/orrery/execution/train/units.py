"""The average layer and both ends of a model on one device, for many choices at once: raw seconds, operations, bytes.

Raw: what kernels and collectives take as measured alone. The training floor applies the framework's ratios, hides what
can be hidden, and multiplies by layers and micro-batches, so its cost does not grow with either.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.adapters import adapter_times
from orrery.execution.train.attention import (
    PRODUCTS_BACKWARD_RATIO,
    attention_flops,
    attention_times,
    context_streams,
    score_times,
)
from orrery.execution.train.cut import Choice, Product, adapted, held, product, tokens
from orrery.execution.train.exchanges import layer_exchanges
from orrery.execution.train.expert_exchange import expert_s
from orrery.execution.train.experts import expert_casts, expert_streams, expert_times, mask_flops
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import FROZEN, TrainingJob, decoding, jobs_by_block
from orrery.execution.train.passes import Streams, cast_streams, ends_streams, layer_streams, widening_s
from orrery.execution.train.placement import by_ranks, is_in_order
from orrery.execution.train.products import (
    WIDE_BYTES,
    Passes,
    is_unmade,
    nothing,
    product_bytes,
    product_flops,
    product_times,
)
from orrery.execution.train.saved_activations import saved_activations
from orrery.models.model import Block

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """One layer (or the average of several kinds) and one micro-batch; arrays of the choices."""

    products: Passes
    experts: Passes
    attention_forward_s: Floats
    attention_backward_s: Floats
    score_products_s: Floats  # attention through scores in memory, forward
    score_forward_s: Floats
    score_backward_s: Floats
    stream_forward_s: Floats  # element-wise work
    stream_backward_s: Floats
    cast_forward_s: Floats
    cast_backward_s: Floats
    tensor_forward_s: Floats
    tensor_backward_s: Floats
    context_forward_s: Floats
    context_backward_s: Floats
    expert_forward_s: Floats
    expert_backward_s: Floats
    forward_flops: Floats  # on this device, as a model's operations are counted
    padded_flops: Floats  # of rows of experts that no token fills
    attention_flops: Floats
    forward_bytes: Floats  # through memory, by products
    dense_parameters: Floats
    expert_parameters: Floats
    trained_parameters: Floats
    unmade_s: Floats  # of products that full recomputation leaves out
    unmade_flops: Floats
    unmade_tensor_frac: Floats  # of the collectives of tensor parallelism in a forward pass, behind those products
    everything_bytes: Floats
    selective_bytes: Floats
    boundary_bytes: Floats
    working_bytes: Floats
    module_bytes: Floats  # what recomputing each module saves; (modules, choices)

    def core_forward_s(self, f: Framework) -> Floats:
        """Seconds of attention's core as the framework runs it."""
        scores = f.matrix_ratio * self.score_products_s + f.elementwise_ratio * self.score_forward_s
        return f.attention_ratio * self.attention_forward_s + scores

    def core_backward_s(self, f: Framework) -> Floats:
        """And of its gradients."""
        products = PRODUCTS_BACKWARD_RATIO * self.score_products_s
        scores = f.matrix_ratio * products + f.elementwise_ratio * self.score_backward_s
        return f.attention_ratio * self.attention_backward_s + scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class End:
    """The embedding, or the head with its loss; arrays of the choices."""

    products: Passes
    stream_forward_s: Floats
    stream_backward_s: Floats
    forward_flops: Floats
    parameters: Floats
    logit_elements: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightShape:
    """Size of one weight matrix of a device; arrays of the choices. 0 where its kind of layer has another one alike."""

    kind: int
    elements: Floats
    twins: tuple[tuple[int, NDArray[np.bool_]], ...]  # earlier kinds of layers, and where they have one of this size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """Parts that a layout's cost is put together from."""

    job: TrainingJob
    choice: Choice
    num_layers: int
    layer: Layer  # the average
    kinds: tuple[tuple[int, Layer], ...]  # how many layers there are of each kind, in the model's order
    shapes: tuple[WeightShape, ...]
    embedding: End
    head: End


def units(job: TrainingJob, choice: Choice) -> Units:
    """Ask the kernels and the network once for every choice."""
    blocks = (*job.model.encoder, *job.model.blocks)
    num_layers = sum(b.count for b in blocks)
    cut = [[product(x, b.mixer, choice.tp) for x in b.linears] for b in blocks]
    behind, before = decoding(job), len(job.model.encoder)
    top = [product(job.model.head, None, choice.tp)] if job.model.head else []
    if behind is job:  # one call for all
        times = product_times(job, [p for products in (*cut, top) for p in products], choice)
    else:
        times = product_times(job, [p for products in cut[:before] for p in products], choice)
        times = times + product_times(behind, [p for products in (*cut[before:], top) for p in products], choice)
    if top and job.loss_tokens:
        times[-1] = product_times(behind, top, choice, -(-tokens(behind, choice) // job.loss_tokens))[0]
    layers: list[Layer] = []
    for (seen, block), products in zip(jobs_by_block(job), cut, strict=True):
        mine, times = times[: len(products)], times[len(products) :]
        layers.append(_layer(seen, block, products, mine, choice))
    below, above = ends_streams(job, choice)
    if behind is not job:
        above = ends_streams(behind, choice)[1]
    kinds = tuple((block.count, layer) for block, layer in zip(blocks, layers, strict=True))
    return Units(
        job=job,
        choice=choice,
        num_layers=num_layers,
        layer=_average([(n / num_layers, x) for n, x in kinds]),
        kinds=kinds,
        shapes=_shapes(blocks, cut, choice),
        embedding=_embedding(job, below, choice),
        head=_head(behind, above, top, times, choice),
    )


def _shapes(blocks: tuple[Block, ...], cut: list[list[Product]], choice: Choice) -> tuple[WeightShape, ...]:
    """Weight shapes of all linear layers (routers apart) and routed experts, in 16 bits or narrower."""
    found: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
    for kind, (block, products) in enumerate(zip(blocks, cut, strict=True)):
        found += [(kind, p.n, p.k) for p in products if p.linear.role != "router"]
        if e := block.experts:
            width, hidden = -(-e.ffn_size // choice.etp), np.full_like(choice.tp, e.hidden_size)
            found += [(kind, (2 if e.is_gated else 1) * width, hidden), (kind, hidden, width)]
    out: list[WeightShape] = []
    for i, (kind, n, k) in enumerate(found):
        alike = [(other, (n == a) & (k == b)) for other, a, b in found[:i]]
        is_first = np.ones(n.shape, dtype=np.bool_)
        for other, same in alike:
            if other == kind:
                is_first = is_first & ~same
        twins = tuple((other, same) for other, same in alike if other != kind and same.any())
        out.append(WeightShape(kind=kind, elements=(n * k * is_first).astype(np.float64), twins=twins))
    return tuple(out)


def _layer(job: TrainingJob, block: Block, products: list[Product], times: list[Passes], choice: Choice) -> Layer:
    zero, total = np.zeros(choice.tp.shape), sum(times, nothing(choice))
    core = attention_times(job, block.mixer, choice) if block.mixer else (zero, zero)
    scores, context = score_times(job, block.mixer, choice), context_streams(job, block.mixer, choice)
    streams, casts = layer_streams(job, block, products, choice), cast_streams(job, products, choice)
    added, joined = adapter_times(job, products, choice)
    total, streams = total + added, streams + joined
    exchanges, kept_bytes = layer_exchanges(job, block, choice), saved_activations(job, block, products, choice)
    sent_s = expert_s(job, block, choice)
    parameters = held(block, products, choice)
    if block.experts and not is_in_order(job):
        slots = by_ranks(job, block.experts, choice.ep, "slots_each") * choice.ep / block.experts.num_experts
        parameters = replace(parameters, expert_parameters=slots * parameters.expert_parameters)
    widened = widening_s(job, parameters.dense_parameters + parameters.expert_parameters)
    flops, extra, moved = product_flops(job, products, choice), zero, product_bytes(job, products, choice)
    padded = zero
    if block.experts:
        extra = 2.0 * tokens(job, choice) * block.experts.experts_per_token * block.experts.num_parameters_each
        kept_frac = by_ranks(job, block.experts, choice.ep, "kept_frac")
        padded = extra / choice.tp * (by_ranks(job, block.experts, choice.ep, "sent_ratio") - kept_frac)
        extra = extra / choice.tp * kept_frac
        padded = padded + mask_flops(job, block.experts, choice)
        streams = streams + expert_streams(job, block.experts, choice)
        casts = casts + expert_casts(job, block.experts, choice) if job.recipe.rounds else casts
        moved = moved + WIDE_BYTES * parameters.expert_parameters
    seen = attention_flops(job, block.mixer, choice) if block.mixer else zero
    unread = [i for i, p in enumerate(products) if is_unmade(job.framework.unmade, block, p)]
    trained = parameters.dense_parameters + parameters.expert_parameters
    if job.task in FROZEN:
        beside = adapted(job, products)
        widths = sum((p.linear.in_features + p.n * p.groups for p in beside), np.zeros_like(choice.tp))
        trained = job.adapter_rank * widths.astype(np.float64)
    return Layer(
        products=total,
        experts=expert_times(job, block.experts, choice) if block.experts else nothing(choice),
        attention_forward_s=core[0],
        attention_backward_s=core[1],
        score_products_s=scores.products_s,
        score_forward_s=scores.stream_forward_s,
        score_backward_s=scores.stream_backward_s,
        stream_forward_s=streams.forward_s + context[0],
        stream_backward_s=streams.backward_s + context[1],
        cast_forward_s=casts.forward_s + widened,
        cast_backward_s=casts.backward_s + widened,
        tensor_forward_s=exchanges.tensor_forward_s,
        tensor_backward_s=exchanges.tensor_backward_s,
        context_forward_s=exchanges.context_forward_s,
        context_backward_s=exchanges.context_backward_s,
        expert_forward_s=sent_s,
        expert_backward_s=sent_s,
        forward_flops=flops + extra,
        padded_flops=padded,
        attention_flops=np.asarray(seen, dtype=np.float64),
        forward_bytes=moved,
        dense_parameters=parameters.dense_parameters,
        expert_parameters=parameters.expert_parameters,
        trained_parameters=trained,
        unmade_s=sum((times[i].forward_s for i in unread), zero),
        unmade_flops=product_flops(job, [products[i] for i in unread], choice),
        unmade_tensor_frac=len(unread) / max(block.num_reduces, 1) * np.where(choice.is_sequence_parallel, 0.5, 1.0),
        everything_bytes=kept_bytes.everything_bytes,
        selective_bytes=kept_bytes.selective_bytes,
        boundary_bytes=kept_bytes.boundary_bytes,
        working_bytes=kept_bytes.working_bytes,
        module_bytes=kept_bytes.module_bytes,
    )


def _average(layers: list[tuple[float, Layer]]) -> Layer:
    """Kinds of layers in the proportion in which the model has them."""
    if len(layers) == 1:
        return layers[0][1]
    mixed: dict[str, Any] = {}
    for name in Layer.__slots__:
        parts = [(share, getattr(layer, name)) for share, layer in layers]
        if isinstance(parts[0][1], Passes):
            total = parts[0][1].times(parts[0][0])
            for share, passes in parts[1:]:
                total = total + passes.times(share)
            mixed[name] = total
        else:
            mixed[name] = sum(share * value for share, value in parts)
    return Layer(**mixed)


def _embedding(job: TrainingJob, streams: Streams, choice: Choice) -> End:
    zero = np.zeros(choice.tp.shape)
    cut = job.model.embedding_parameters + job.model.resting_parameters
    parameters = cut / choice.tp + job.model.tower_parameters
    return End(
        products=nothing(choice),
        stream_forward_s=streams.forward_s,
        stream_backward_s=streams.backward_s,
        forward_flops=zero,
        parameters=np.asarray(parameters, dtype=np.float64),
        logit_elements=zero,
    )


def _head(job: TrainingJob, streams: Streams, top: list[Product], times: list[Passes], choice: Choice) -> End:
    zero = np.zeros(choice.tp.shape)
    other = float(job.model.other_parameters)
    if not top:
        return End(
            products=nothing(choice),
            stream_forward_s=streams.forward_s,
            stream_backward_s=streams.backward_s,
            forward_flops=zero,
            parameters=zero + other,
            logit_elements=zero,
        )
    return End(
        products=times[0],
        stream_forward_s=streams.forward_s,
        stream_backward_s=streams.backward_s,
        forward_flops=product_flops(job, top, choice),
        parameters=top[0].parameters + other,
        logit_elements=np.multiply(
            np.minimum(tokens(job, choice), job.loss_tokens or np.inf), top[0].n, dtype=np.float64
        ),
    )

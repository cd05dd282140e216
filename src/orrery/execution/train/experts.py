"""Routed experts of one layer in training: what a rank holds, the rows that reach it, and its grouped products.

The tp x cp x dp ranks of a stage hold t / tp different tokens each (t: of a micro-batch, cut by cp). The same ranks are
dealt out a second time for experts, as etp x ep x copies: a rank has E / ep experts, 1 / etp of each, and with k
experts a token

    rows = (t / tp) k etp,  rows of one expert = rows ep / E,  columns = ffn / etp

on the mean rank; with uneven loads the fullest rank is what counts, and techniques of placement change both it and the
experts that a rank holds. A capacity of the experts drops copies, or pads every expert's rows to it. Where
tensor-parallel ranks hold the same tokens (no sequence parallelism) each routes its share of them, so that none is
computed twice. Operations of a rank are those of its tokens, whatever etp and ep are: 2 (t / tp) k (parameters of an
expert). MoE Parallel Folding, arXiv 2504.14960.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.cut import Choice, Floats, Ints, tokens
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.passes import (
    GATED_BACKWARD_RATIO,
    PLAIN_ACTIVATION_RATIO,
    PLAIN_BACKWARD_RATIO,
    Streams,
    elementwise_s,
)
from orrery.execution.train.placement import by_ranks
from orrery.execution.train.products import Passes, grouped_times, nothing, wide_times
from orrery.models.model import Experts

GATHER, SEND, EINSUM, FLAT = "all-gather", "all-to-all", "einsum", "einsum-flat"
DEEPEP, HYBRIDEP = "deepep", "hybridep"
DISPATCHERS = (GATHER, SEND, EINSUM, FLAT, DEEPEP, HYBRIDEP)
"""Every token to all ranks; a copy to each of its experts; the same, where products with one-hot masks put rows into
the places of experts and back, sequence by sequence, or all tokens at once; a copy to each device, and across nodes to
each node."""

MASKED = (EINSUM, FLAT)
PLACED = (SEND, *MASKED)
"""Dispatchers that send a copy for every place of an expert, filled or empty."""

PERMUTE_RATIO = 2.0 / 3.0
"""Words moved over a sum's three: rows are read and written in another order."""

MASKS_RATIO, MASKS_BACKWARD_RATIO = 34.0 / 6.0, 14.0 / 6.0
"""Bytes of a mask's element over a sum's six, by eager kernels in FP32: one mask for each of two experts (4 written
twice), their sum (8 read, 4 written), which places are taken (4, 1), and both in 16 bits (4, 2; 1, 2). On the way back
the gradient is widened (2, 4) and read for each of the two (8). [deepspeed, moe/sharded_moe.py]"""

MASKS_KEPT_BYTES = 4.0
"""Both masks in 16 bits, which the products on the way back read."""

BIASED_EACH_RATIO, BIASED_ALL_RATIO = 14.0 / 6.0, 14.0 / 6.0
"""Bytes over a sum's six. Kernels of each expert: its bias times the 32-bit weight of each row (4 written), the sum
with the row (2 and 4 read, 4 written). Of all: their parts are put together (4, 4) and narrowed (4, 2)."""

BIAS_GRADIENT_EACH_RATIO, BIAS_GRADIENT_ALL_RATIO = 30.0 / 6.0, 10.0 / 6.0
"""And on the way back, of each expert: the row's gradient narrowed (4, 2), those of bias and weight multiplied and
summed (twice 4, 4, 4). Of all: widened (2, 4), the parts of rows put together (2, 2)."""

CLAMPED_RATIO, CLAMPED_BACKWARD_RATIO = 8.0 / 3.0, 10.0 / 3.0
"""Words moved over a sum's three, where the limits of a gated activation are passes before it: either half is read and
written (2, 2), and both put together (4); on the way back each gradient is masked (3, 3) and both are put together
(4)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routed:
    """Tokens and experts of one layer on one rank; arrays of the choices."""

    own_tokens: Floats  # that this rank routes
    sent_tokens: Floats  # copies of them that it sends out, one to each of their experts
    rows: Floats  # that the fullest rank computes
    local_experts: Ints
    ffn_size: Ints  # columns of one expert on this rank

    @property
    def expert_rows(self) -> Ints:
        """Rows of one local expert."""
        return np.maximum(np.rint(self.rows / self.local_experts), 1.0).astype(np.int64)


def routed(job: TrainingJob, experts: Experts, choice: Choice, cuts: int = 1) -> Routed:
    """Routing of one micro-batch, or of one of ``cuts`` pieces of it."""
    own = tokens(job, choice) / (choice.tp * cuts)
    assignments = own * experts.experts_per_token
    return Routed(
        own_tokens=own,
        sent_tokens=assignments * by_ranks(job, experts, choice.ep, "sent_ratio"),
        rows=assignments * choice.etp * by_ranks(job, experts, choice.ep, "fullest_ratio"),
        local_experts=np.maximum(by_ranks(job, experts, choice.ep, "slots_each").astype(np.int64), 1),
        ffn_size=np.maximum(-(-experts.ffn_size // choice.etp), 1),
    )


def expert_times(job: TrainingJob, experts: Experts, choice: Choice, cuts: int = 1) -> Passes:
    """Time (s) of the routed experts of a layer: a product in and one out per local expert, all of a kind at once."""
    x, hidden = routed(job, experts, choice, cuts), np.full_like(choice.tp, experts.hidden_size)
    ways = 2 if experts.is_gated else 1
    m, groups = np.stack([x.expert_rows] * 2), np.stack([x.local_experts] * 2)
    n, k = np.stack([ways * x.ffn_size, hidden]), np.stack([hidden, x.ffn_size])
    into, out_of = grouped_times(job, m, n, k, groups)
    masked = mask_times(job, experts, choice) if dispatcher_of(job) in MASKED else nothing(choice)
    return (into + out_of).times(float(cuts)) + masked


def mask_times(job: TrainingJob, experts: Experts, choice: Choice) -> Passes:
    """Time (s) of the products with masks that dispatch and combine a layer's tokens, each sequence on its own.

    DeepSpeed takes all tokens of the micro-batch as one sequence, in every tensor-parallel rank (*einsum-flat*).
    A mask has a column for each place of each expert: of a rank's s tokens of a sequence, s k (capacity factor). So
    (places x s) by (s x hidden) on the way in, (s x places) by (places x hidden) on the way out, once more each on the
    way back, and the gradient of the weights with which the outputs are summed, s x places. A token costs
    2 k s hidden (capacity factor) operations in each: their share grows with the sequence. [lepikhin-2020]
    """
    own, places, batch = _masks(job, experts, choice)
    hidden = np.full_like(choice.tp, experts.hidden_size)
    m, n, k = np.stack([places, own]), np.stack([hidden, hidden]), np.stack([own, places])
    out_of = wide_times(job, m, n, k, np.stack([batch] * 2))
    again = wide_times(job, own[None], places[None], hidden[None], batch[None])[0].forward_s
    both = sum((x.forward_s for x in out_of), np.zeros(choice.tp.shape))
    return Passes(forward_s=both, input_gradient_s=both, weight_gradient_s=again)


def mask_flops(job: TrainingJob, experts: Experts, choice: Choice) -> Floats:
    """Operations of the forward pass's two products with masks; 0 where tokens travel otherwise."""
    if dispatcher_of(job) not in MASKED:
        return np.zeros(choice.tp.shape)
    return 2.0 * 2.0 * experts.hidden_size * mask_elements(job, experts, choice)


def mask_elements(job: TrainingJob, experts: Experts, choice: Choice) -> Floats:
    """Tokens times places of a rank's masks in one layer."""
    own, places, batch = _masks(job, experts, choice)
    return (batch * own * places).astype(np.float64)


def _masks(job: TrainingJob, experts: Experts, choice: Choice) -> tuple[Ints, Ints, Ints]:
    """Rows and columns of a mask, and how many there are: a rank's tokens of each sequence, and the places for them."""
    is_flat = dispatcher_of(job) == FLAT
    shared, batch = (np.ones_like(choice.tp),) * 2 if is_flat else (choice.tp * choice.micro_batch, choice.micro_batch)
    own = np.maximum(tokens(job, choice) // shared, 1)
    ratio = experts.experts_per_token * by_ranks(job, experts, choice.ep, "sent_ratio")
    return own, np.maximum(np.rint(own * ratio).astype(np.int64), 1), batch


def expert_streams(job: TrainingJob, experts: Experts, choice: Choice) -> Streams:
    """Rows put into the order of the experts and back, and the activations between the products.

    Sending copies sorts twice on each way: by rank before the exchange, and by expert of a rank after it. Copies that
    arrive once for each device are spread over its experts, and summed there.
    """
    x, way = routed(job, experts, choice), dispatcher_of(job)
    sorts = (choice.ep > 1) & (x.local_experts > 1)
    moved = np.where(sorts, 2.0, 0.0) * x.rows if way in MASKED else 2.0 * x.rows
    if way == SEND:
        moved = 2.0 * x.sent_tokens + np.where(sorts, 2.0, 0.0) * x.rows
    moved_s = PERMUTE_RATIO * _add_s(job, moved, experts.hidden_size)
    made = Streams(forward_s=moved_s, backward_s=moved_s)
    if way == FLAT:
        own, places, _ = _masks(job, experts, choice)
        mask_s = _add_s(job, own.astype(np.float64), places)
        made = made + Streams(forward_s=MASKS_RATIO * mask_s, backward_s=MASKS_BACKWARD_RATIO * mask_s)
    if job.framework.fuses_experts:  # activated where the products leave them
        return made
    rows = np.maximum(np.rint(x.rows), 1.0).astype(np.int64)
    kind = "gated_activation" if experts.is_gated else "add"
    once = elementwise_s(job, kind, rows, x.ffn_size)
    ahead, back = (1.0, GATED_BACKWARD_RATIO) if experts.is_gated else (PLAIN_ACTIVATION_RATIO, PLAIN_BACKWARD_RATIO)
    forward_s, backward_s = made.forward_s + ahead * once, made.backward_s + back * once
    if experts.is_clamped:
        passed_s = _add_s(job, x.rows, x.ffn_size)
        forward_s, backward_s = forward_s + CLAMPED_RATIO * passed_s, backward_s + CLAMPED_BACKWARD_RATIO * passed_s
    if experts.has_bias:
        all_s = _add_s(job, x.rows, experts.hidden_size)
        each_s = x.local_experts * _add_s(job, x.rows / x.local_experts, experts.hidden_size)
        forward_s = forward_s + BIASED_EACH_RATIO * each_s + BIASED_ALL_RATIO * all_s
        backward_s = backward_s + BIAS_GRADIENT_EACH_RATIO * each_s + BIAS_GRADIENT_ALL_RATIO * all_s
    return Streams(forward_s=forward_s, backward_s=backward_s)


def expert_casts(job: TrainingJob, experts: Experts, choice: Choice) -> Streams:
    """A recipe's casts of what enters the experts' products, and of the gradients of what leaves them.

    Fused products cast what lies between them before it leaves, so that only rows from outside are left to cast.
    """
    x, ways = routed(job, experts, choice), 2 if experts.is_gated else 1
    between = 0 if job.framework.fuses_experts else x.ffn_size
    rows = np.maximum(np.rint(x.rows), 1.0).astype(np.int64)
    share = 1.0 - job.wide_layers_frac

    def cast_s(width: NDArray[np.int64] | int) -> Floats:
        return share * elementwise_s(job, "quantise", rows, width)

    recipe, come_s = job.recipe, cast_s(experts.hidden_size + between)
    leave_s = cast_s(ways * between + experts.hidden_size)
    return Streams(
        forward_s=recipe.input_casts * come_s,
        backward_s=recipe.gradient_casts * leave_s + recipe.input_gradient_casts * come_s,
    )


def dispatcher_of(job: TrainingJob) -> str:
    """Dispatcher of tokens: as set, else the framework's."""
    return job.dispatcher or job.framework.dispatcher


def activation_s(job: TrainingJob, experts: Experts, choice: Choice) -> Floats:
    """Time (s) of the routed experts' activation alone, forward."""
    x = routed(job, experts, choice)
    rows = np.maximum(np.rint(x.rows), 1.0).astype(np.int64)
    once = elementwise_s(job, "gated_activation" if experts.is_gated else "add", rows, x.ffn_size)
    return once + CLAMPED_RATIO * _add_s(job, x.rows, x.ffn_size) if experts.is_clamped else once


def _add_s(job: TrainingJob, rows: Floats, width: int | Ints) -> Floats:
    return elementwise_s(job, "add", np.maximum(np.rint(rows), 1.0).astype(np.int64), width)

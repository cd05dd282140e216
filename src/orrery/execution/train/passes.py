"""Element-wise work of a layer: norms, residual sums, dropouts, activations, rotations, and a recipe's casts.

Words moved, per element: a norm reads one and writes one, its gradient reads two and writes one; a sum reads two and
writes one; a gated activation reads two and writes one, its gradient reads three and writes two; a dropout also
moves its mask. Each pass is one kernel that streams; what frameworks do not fuse is a pass of its own, and an eager
framework takes norms without a mean, rotations and gates apart into single operators.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.train.cut import Choice, Ints, Product, heads, tokens
from orrery.execution.train.job import NF4_BYTES, TrainingJob
from orrery.kernels.ops import Elementwise
from orrery.models.model import Block, SoftmaxAttention

Floats = NDArray[np.float64]

NORM_BACKWARD_RATIO = 3.0 / 2.0
GATED_BACKWARD_RATIO = 5.0 / 3.0
PLAIN_ACTIVATION_RATIO, PLAIN_BACKWARD_RATIO = 2.0 / 3.0, 1.0
"""Words moved over a sum's three: in and out; in the gradient two in and one out."""

DROPOUT_RATIO = 2.5 / 3.0
"""Words moved over a sum's three: one in, one out, half a word of mask."""

EAGER_NORM_RATIO, EAGER_NORM_BACKWARD_RATIO = 18.0 / 3.0, 42.0 / 3.0
"""Words moved over a sum's three by a root-mean-square norm in single operators, as ``rms_norm`` and the models'
own classes spell it. Forward: widened to 32 bits (3), squared (4), averaged (2), times the inverse root (4), narrowed
(3), times the weight (2). Back: to the input of that product (2) and to the weight (4), widened (3), to what was
scaled (4) and to the scale (8), through the square (12), both summed (6), narrowed (3)."""

EAGER_GATED_RATIO, EAGER_GATED_BACKWARD_RATIO = 5.0 / 3.0, 9.0 / 3.0
"""Words moved over a sum's three by a gated activation in single operators: the activation (2) and the product (3);
back, the product to either side (3, 3) and the activation (3)."""

EAGER_TURNED_RATIO = 10.0 / 3.0
"""Words moved over a sum's three by a rotation in single operators, each way: widened (3), multiplied as complex
numbers (4), narrowed (3); in halves as much: both products (2, 2), a half negated (1), put before the other (2), the
sum (3)."""

TURNED_APART_RATIO, TURNED_APART_BACKWARD_RATIO = 12.0 / 2.0, 17.0 / 2.0
"""Words moved over a fused rotation's two. Half of a head is negated (1), put before the other half (2), both are
multiplied by tables (2, 2), added (3), and put beside what does not turn (2). Back: two products (4), the half negated
(1) and put behind the other (2), both added (3), laid into zeros (1, 2) and added to zeros for what does not turn
(1, 3)."""

BIAS_RATIO = 2.0 / 3.0
WIDENING_RATIO = (NF4_BYTES / 2.0 + 1.0) / 3.0
"""Words moved over a sum's three: a 4-bit weight in, a 16-bit one out."""

SCALED_RATIO = 2.0 / 3.0
"""Words moved over a sum's three: one in and one out."""

LOSS_FORWARD_PASSES, LOSS_BACKWARD_PASSES = 3.0, 2.0
"""Passes over the logits, each reading or writing 32 bits: cast, largest, sum of exponentials; gradient, cast."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Streams:
    """Seconds of streaming work, forward and backward; arrays of the choices."""

    forward_s: Floats
    backward_s: Floats

    def __add__(self, other: "Streams") -> "Streams":
        return Streams(forward_s=self.forward_s + other.forward_s, backward_s=self.backward_s + other.backward_s)


def elementwise_s(job: TrainingJob, kind: str, rows: Ints, width: int | Ints) -> Floats:
    """One element-wise kernel over so many rows, by the framework's kernels."""
    op = Elementwise(kind=kind, tokens=rows, width=width)
    return kernels.predict(op, job.cluster.device, job.framework.kernels).time_s


def layer_streams(job: TrainingJob, block: Block, products: list[Product], choice: Choice) -> Streams:
    """Streaming work (s) of one layer."""
    t, framework = tokens(job, choice), job.framework
    rows = np.maximum(t // choice.norm_ways, 1)
    total = elementwise_s(job, "add", rows, job.model.hidden_size) * block.num_reduces
    found = _norms(job, block, products, rows) + Streams(forward_s=total, backward_s=total)
    if framework.has_dropout:
        share = DROPOUT_RATIO if not framework.is_fused else 0.5 / 3.0  # fused: only the mask is more to move
        found = found + Streams(forward_s=share * total, backward_s=DROPOUT_RATIO * total)
    biased = [] if framework.is_fused else [p.n * p.groups for p in products if p.linear.has_bias]
    if biased:
        bias = BIAS_RATIO * elementwise_s(job, "add", t, sum(biased[1:], biased[0]))
        found = found + Streams(forward_s=bias, backward_s=bias)
    if block.activation_elements:
        found = found + _activation(job, block, products, choice)
    if isinstance(block.mixer, SoftmaxAttention) and block.mixer.rotary:
        queries, keys = heads(block.mixer, choice.tp)
        found = found + _rotation(job, t, (queries + keys) * block.mixer.head_size)
    if framework.copies_sequence_shards and not (job.tensor_overlap or framework.overlaps_tensor):
        once = SCALED_RATIO * elementwise_s(job, "add", t, job.model.hidden_size)
        copied = 2.0 * block.num_reduces * once * (choice.is_sequence_parallel & (choice.tp > 1))
        found = found + Streams(forward_s=copied, backward_s=copied)  # behind each gather, before each scatter
    again = found.forward_s if job.prunes_activations else 0.0  # outputs of norms, rotations and activations once more
    return Streams(forward_s=found.forward_s, backward_s=found.backward_s + again)


def _norms(job: TrainingJob, block: Block, products: list[Product], rows: Ints) -> Streams:
    """The norms of a layer. Layers with a gate are normed by the root mean square, which has no kernel of its own in an
    eager framework; the others by mean and variance, which has one.
    """
    hidden = job.model.hidden_size
    is_gated = _is_gated(products) or (block.experts is not None and block.experts.is_gated)
    is_apart = is_gated and not job.framework.is_fused
    once = elementwise_s(job, "add" if is_apart else "norm", rows, hidden) * (block.normed_elements / hidden)
    if is_apart:
        return Streams(forward_s=EAGER_NORM_RATIO * once, backward_s=EAGER_NORM_BACKWARD_RATIO * once)
    return Streams(forward_s=once, backward_s=NORM_BACKWARD_RATIO * once)


def _activation(job: TrainingJob, block: Block, products: list[Product], choice: Choice) -> Streams:
    """The activation between both products of a feed-forward part."""
    t, width = tokens(job, choice), np.maximum(-(-block.activation_elements // choice.tp), 1)
    if not _is_gated(products):
        once = elementwise_s(job, "add", t, width)
        return Streams(forward_s=PLAIN_ACTIVATION_RATIO * once, backward_s=PLAIN_BACKWARD_RATIO * once)
    if job.framework.is_fused:
        once = elementwise_s(job, "gated_activation", t, width)
        return Streams(forward_s=once, backward_s=GATED_BACKWARD_RATIO * once)
    once = elementwise_s(job, "add", t, width)
    return Streams(forward_s=EAGER_GATED_RATIO * once, backward_s=EAGER_GATED_BACKWARD_RATIO * once)


def _is_gated(products: list[Product]) -> bool:
    """Whether a layer's dense feed-forward part has a gate."""
    return any(p.linear.name.endswith("gate_up") for p in products)


def _rotation(job: TrainingJob, t: Ints, width: Ints) -> Streams:
    """The rotation of queries and keys."""
    if not job.framework.is_fused:
        once = EAGER_TURNED_RATIO * elementwise_s(job, "add", t, width)
        return Streams(forward_s=once, backward_s=once)
    once = elementwise_s(job, "rope", t, width)
    if _turns_apart(job):
        return Streams(forward_s=TURNED_APART_RATIO * once, backward_s=TURNED_APART_BACKWARD_RATIO * once)
    return Streams(forward_s=once, backward_s=once)


def _turns_apart(job: TrainingJob) -> bool:
    """Whether a rotation that makes vectors longer has no fused kernel in this framework."""
    rotation = job.model.rotation
    return job.framework.turns_stretched_apart and rotation is not None and rotation.magnitude_ratio != 1.0


def cast_streams(job: TrainingJob, products: list[Product], choice: Choice) -> Streams:
    """A recipe's casts of a layer's dense products: of what enters, and of the gradients of what leaves."""
    zero = np.zeros(choice.tp.shape)
    recipe = job.recipe
    if not recipe.rounds:
        return Streams(forward_s=zero, backward_s=zero)
    t, narrow = tokens(job, choice), [p for p in products if p.linear.role not in ("router", "head")]
    come = sum((p.k * p.groups for p in narrow), np.zeros_like(choice.tp))
    leave = sum((p.n * p.groups for p in narrow), np.zeros_like(choice.tp))
    share = 1.0 - job.wide_layers_frac
    come_s, leave_s = (elementwise_s(job, "quantise", t, np.maximum(width, 1)) for width in (come, leave))
    return Streams(
        forward_s=share * recipe.input_casts * come_s,
        backward_s=share * (recipe.gradient_casts * leave_s + recipe.input_gradient_casts * come_s),
    )


def widening_s(job: TrainingJob, parameters: Floats) -> Floats:
    """Seconds to make 16-bit weights of a layer's frozen 4-bit ones, as each pass does; 0 where they are wide."""
    if not job.base_format:
        return np.zeros(parameters.shape)
    rows = np.maximum(parameters // job.model.hidden_size, 1).astype(np.int64)
    return WIDENING_RATIO * elementwise_s(job, "add", rows, job.model.hidden_size)


def ends_streams(job: TrainingJob, choice: Choice) -> tuple[Streams, Streams]:
    """The embedding's look-up with its scattered gradient, and the final norm with the loss over all logits."""
    model, t = job.model, tokens(job, choice)
    rows = np.maximum(t // choice.norm_ways, 1)
    looked_up, norm = (
        elementwise_s(job, "embedding", rows, model.hidden_size),
        elementwise_s(job, "norm", rows, model.hidden_size),
    )
    lost = loss_streams(job, choice)
    return (
        Streams(forward_s=looked_up, backward_s=2.0 * looked_up),
        Streams(forward_s=norm, backward_s=NORM_BACKWARD_RATIO * norm) + lost,
    )


def loss_streams(job: TrainingJob, choice: Choice) -> Streams:
    """Cross entropy over a rank's share of the vocabulary.

    Fused: 16-bit logits are read twice and their gradient takes their place (a sum's three words); it is scaled on the
    way back (two of them). Otherwise every pass is a kernel of its own over 32-bit words.
    """
    if not job.model.head:
        zero = np.zeros(choice.tp.shape)
        return Streams(forward_s=zero, backward_s=zero)
    t, width = tokens(job, choice), np.maximum(-(-job.model.vocab_size // choice.tp), 1)
    if job.framework.fuses_loss:
        once = elementwise_s(job, "add", t, width)
        return Streams(forward_s=once, backward_s=SCALED_RATIO * once)
    loss = elementwise_s(job, "softmax", t, width)
    return Streams(forward_s=LOSS_FORWARD_PASSES * loss, backward_s=LOSS_BACKWARD_PASSES * loss)

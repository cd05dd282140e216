"""Element-wise work of a layer: norms, residual sums, dropouts, activations, rotations, and a recipe's casts.

Words moved, per element: a norm reads one and writes one, its gradient reads two and writes one; a sum reads two and
writes one; a gated activation reads two and writes one, its gradient reads three and writes two; a dropout also
moves its mask. Each pass is one kernel that streams; what frameworks do not fuse is a pass of its own.
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
    t, hidden, framework = tokens(job, choice), job.model.hidden_size, job.framework
    rows = np.maximum(t // choice.norm_ways, 1)
    norm = elementwise_s(job, "norm", rows, hidden) * (block.normed_elements / hidden)
    total = elementwise_s(job, "add", rows, hidden) * block.num_reduces
    forward, backward = norm + total, NORM_BACKWARD_RATIO * norm + total
    if framework.has_dropout:
        share = DROPOUT_RATIO if not framework.is_fused else 0.5 / 3.0  # fused: only the mask is more to move
        forward, backward = forward + share * total, backward + DROPOUT_RATIO * total
    if not framework.is_fused:
        biased = [p.n * p.groups for p in products if p.linear.has_bias]
        if biased:
            bias = elementwise_s(job, "add", t, sum(biased[1:], biased[0]))
            forward, backward = forward + BIAS_RATIO * bias, backward + BIAS_RATIO * bias
    if block.activation_elements:
        width = np.maximum(-(-block.activation_elements // choice.tp), 1)
        if any(p.linear.name.endswith("gate_up") for p in products):
            once = elementwise_s(job, "gated_activation", t, width)
            forward, backward = forward + once, backward + GATED_BACKWARD_RATIO * once
        else:
            once = elementwise_s(job, "add", t, width)
            forward, backward = forward + PLAIN_ACTIVATION_RATIO * once, backward + PLAIN_BACKWARD_RATIO * once
    if isinstance(block.mixer, SoftmaxAttention) and block.mixer.rotary:
        queries, keys = heads(block.mixer, choice.tp)
        turned = elementwise_s(job, "rope", t, (queries + keys) * block.mixer.head_size)
        ahead, back = (TURNED_APART_RATIO, TURNED_APART_BACKWARD_RATIO) if _turns_apart(job) else (1.0, 1.0)
        forward, backward = forward + ahead * turned, backward + back * turned
    again = forward if job.prunes_activations else 0.0  # outputs of norms, rotations and activations are made again
    return Streams(forward_s=forward, backward_s=backward + again)


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

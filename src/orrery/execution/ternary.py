"""Memory of a language model without matrix products: ternary layers, a gated recurrence, no cache.

A layer mixes tokens with a gated linear recurrence (forget, candidate, gate and output projections) and channels with a
gated unit (gate and up in one, down), all of them ternary; embedding and head stay in 16 bits. A sequence keeps one
vector a layer however long it is. Scalable MatMul-free Language Modeling, arXiv 2406.02528.

Training keeps what the backward pass reads. A ternary layer as written keeps its input in 32 bits, its normal form and
its rounded form; fused, only the input is kept and the rest is computed again.
"""

from dataclasses import dataclass
from math import ceil

HALF_BYTES, WORD_BYTES = 2.0, 4.0

TWO_BITS, TRITS_BITS = 2.0, 1.6
"""A ternary weight by itself, and as one of five in a byte."""

PROJECTIONS = 4
FFN_RATIO, FFN_MULTIPLE = 8 / 3, 256
"""Width of the gated unit over the model's, rounded up to a multiple: as in the authors' code."""

KEPT_UNFUSED = 4
"""16-bit tensors of a ternary layer's input: a 32-bit copy for normalising (two), the normal form for its weight, and
the rounded input of the product. Rounding itself lies outside the graph and keeps nothing."""

KEPT_FUSED = 1

RECURRENCE_TENSORS = 7
"""Forget gate before and after the sigmoid, candidate before and after the SiLU, states, output gate, their product."""

GATED_TENSORS = 3
"""Tensors as wide as the gated unit: gate, up, and their product."""

STATE_BYTES = 16.0
"""Bytes of one parameter in training: 32-bit weight, gradient and two moments (Adam)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TernaryModel:
    """Sizes of one model."""

    num_layers: int
    num_hidden: int
    num_vocabulary: int

    @property
    def num_ffn(self) -> int:
        """Width of the gated unit."""
        return FFN_MULTIPLE * ceil(FFN_RATIO * self.num_hidden / FFN_MULTIPLE)

    @property
    def num_ternary(self) -> int:
        """Parameters of ternary layers."""
        return self.num_layers * (PROJECTIONS * self.num_hidden**2 + 3 * self.num_hidden * self.num_ffn)

    @property
    def num_embedding(self) -> int:
        """Parameters of embedding and head."""
        return 2 * self.num_vocabulary * self.num_hidden

    @property
    def num_parameters(self) -> int:
        """All but the norms."""
        return self.num_ternary + self.num_embedding


def weight_bytes(model: TernaryModel, ternary_bits: float = TWO_BITS) -> float:
    """Packed ternary layers, and embedding and head in 16 bits."""
    return model.num_ternary * ternary_bits / 8 + model.num_embedding * HALF_BYTES


def state_bytes(model: TernaryModel, sequences: int) -> float:
    """The recurrence's vectors in 32 bits: all that stands for a cache."""
    return sequences * model.num_layers * model.num_hidden * WORD_BYTES


def inference_bytes(model: TernaryModel, sequences: int, tokens: int, ternary_bits: float = TWO_BITS) -> float:
    """Weights, states, and the largest activations of a prompt: logits of the last token, one layer's gated unit."""
    layer = sequences * tokens * (2 * model.num_hidden + GATED_TENSORS * model.num_ffn) * HALF_BYTES
    logits = sequences * model.num_vocabulary * WORD_BYTES
    return weight_bytes(model, ternary_bits) + state_bytes(model, sequences) + max(layer, logits)


def activation_bytes(model: TernaryModel, tokens: int, *, is_fused: bool) -> float:
    """Activations of ``tokens`` tokens saved for the backward pass, logits included; all in 16 bits.

    Unfused, each projection of the recurrence and the gated unit rounds its input for itself; fused, likewise, but only
    the input is kept, which projections of the same input share.
    """
    d, f = model.num_hidden, model.num_ffn
    inputs = KEPT_FUSED * (3 * d + f) if is_fused else KEPT_UNFUSED * ((PROJECTIONS + 1) * d + f)
    layer = inputs + RECURRENCE_TENSORS * d + GATED_TENSORS * f
    return tokens * (model.num_layers * layer * HALF_BYTES + model.num_vocabulary * (HALF_BYTES + WORD_BYTES))


def training_bytes(model: TernaryModel, tokens: int, *, is_fused: bool) -> float:
    """Weights, gradients and moments, rounded weights of the layers, and what is kept of the tokens."""
    rounded = 0.0 if is_fused else model.num_ternary * HALF_BYTES
    return model.num_parameters * STATE_BYTES + rounded + activation_bytes(model, tokens, is_fused=is_fused)

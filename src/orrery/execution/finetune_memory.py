"""Activations that low-rank finetuning saves: those of every operator, or only those that the adapter needs.

A gradient that reaches an adapter on the down projection passes every layer above it, so some activations stay: the
residual stream before each norm, queries, keys and values, attention's output and row sums (attention's matrices are
computed again), and both factors of the gated product. Outputs of norms, rotations and activations follow from these
by elementwise work; inputs of frozen weights are needed by nobody. [flexllm-2026]
"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.models.model import Block, Model, SoftmaxAttention

ELEMENT_BYTES, ROW_SUM_BYTES = 2.0, 4.0
OPTIMIZER_BYTES = 16.0
"""Bytes of a trained parameter: 16-bit weight and gradient, 32-bit copy and two moments of Adam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """Bytes that one token leaves in all layers, for a sequence of a given length."""

    all_bytes: float  # the output of every operator
    needed_bytes: float  # what the backward pass to the adapters reads and cannot cheaply make again

    @property
    def ratio(self) -> float:
        """How many times less is kept."""
        return self.all_bytes / self.needed_bytes


def activations(model: Model, sequence_tokens: int, *, rank: int = 16, is_attention_fused: bool = True) -> Activations:
    """Activation bytes of one token of a sequence. Without a fused kernel, attention also leaves its scores and its
    weights."""
    retained = [_layer(model, b, sequence_tokens, rank, is_attention_fused) for b in model.blocks]
    return Activations(
        all_bytes=sum(b.count * k[0] for b, k in zip(model.blocks, retained, strict=True)),
        needed_bytes=sum(b.count * k[1] for b, k in zip(model.blocks, retained, strict=True)),
    )


def _layer(model: Model, block: Block, tokens: int, rank: int, is_fused: bool) -> tuple[float, float]:
    mixer = block.mixer
    if not isinstance(mixer, SoftmaxAttention) or block.experts is not None:
        raise ScenarioError(f"{model.name}: finetuning memory is known for dense layers with plain attention only.")
    hidden, ffn = float(model.hidden_size), float(block.activation_elements)
    query, key = float(mixer.num_heads * mixer.head_size), float(mixer.num_kv_heads * mixer.head_size)
    value = float(mixer.num_kv_heads * mixer.value_head_size)
    sums = ROW_SUM_BYTES * mixer.num_heads
    needed = 2 * hidden + query + key + value + query + 2 * ffn + rank
    recomputed = 2 * hidden + query + key + 2 * ffn  # norms; rotated queries and keys; activation and product
    unread = 2 * hidden + 2 * hidden  # outputs of both output projections, of the adapter, and the sum with it
    matrices = 0.0 if is_fused else 2.0 * mixer.num_heads * tokens
    every = needed + recomputed + unread + matrices
    return ELEMENT_BYTES * every + sums, ELEMENT_BYTES * needed + sums


def adapter_bytes(model: Model, rank: int = 16) -> float:
    """Adapters on every down projection, with gradients and the optimizer's state."""
    parameters = sum(b.count * rank * (b.activation_elements + model.hidden_size) for b in model.blocks)
    return OPTIMIZER_BYTES * parameters

"""From a model and a device to the work of a training step: kernels forward, and backward for inputs and weights.

A linear layer of n x k costs m x n x k forward, and the same again for the gradient of its input and of its weight.
Fused attention's backward pass takes 2.5 times the flops of the forward pass: five products for two
[dao-2022]; without fusion the matrix of scores goes through memory for scaling, softmax and dropout.
"""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.offload.work import Work
from orrery.hardware.device import Device
from orrery.kernels import predict
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, Op
from orrery.models.model import Block, Linear, Model, SoftmaxAttention

BACKWARD_ATTENTION_RATIO = 2.5
SCORE_PASSES = 3  # scale and mask, softmax, dropout, each read and written
ELEMENTWISE_BACKWARD_RATIO = 1.5  # a read more: what came in, the gradient in, the gradient out
FP32_BYTES = 4.0
LOSS_BYTES = 3 * FP32_BYTES  # of a logit beside itself: widened, log-softmax, gradient, as PyTorch keeps them


def layer_work(
    model: Model,
    device: Device,
    *,
    sequences: int,
    sequence_tokens: int,
    precision: str = "fp16",
    tp: int = 1,
    num_micro_batches: int = 1,
    is_attention_fused: bool = True,
    loss_tokens: int = 0,
) -> Work:
    """The work of one device of ``tp`` that cut every layer; dense decoders whose layers are all alike in size.

    ``sequences`` of ``sequence_tokens`` make one micro-batch; the loss takes ``loss_tokens`` at a time (0: all).
    Collectives of tensor parallelism are not in it.
    """
    block = _block(model)
    tokens, count = sequences * sequence_tokens, model.num_layers
    part = _Part(device=device, precision=precision, tokens=tokens, tp=tp)
    products = [part.product(x) for x in block.linears]
    attention_s, attention_flops = part.attention(block.mixer, sequences, sequence_tokens, is_attention_fused)
    light_s = part.elementwise(block, model.hidden_size)
    head = part.product(model.head) if model.head else (0.0, 0.0, 0.0)
    wide = 4.0 if precision == "fp32" else 2.0
    heads = block.mixer.num_heads if isinstance(block.mixer, SoftmaxAttention) else 0
    matrices = 0.0 if is_attention_fused else 2.0 * wide * heads / tp * sequence_tokens
    read = sum(x.in_features / _cut(x, tp, "row") for x in block.linears) + block.normed_elements
    made = sum(x.out_features / _cut(x, tp, "column") for x in block.linears if x.shard == "column")
    mixed = sum(x.in_features / _cut(x, tp, "row") for x in block.linears if x.name == "out")
    boundary = tokens * model.hidden_size * wide
    linear = sum(x.num_parameters for x in block.linears)
    step_tokens = num_micro_batches * tokens
    return Work(
        num_layers=count,
        num_layer_parameters=_parameters(model) / count / tp,
        num_outer_parameters=(model.num_parameters - _parameters(model)) / tp,
        forward_s=sum(p[0] for p in products) + attention_s + light_s,
        backward_s=sum(p[1] + p[2] for p in products)
        + BACKWARD_ATTENTION_RATIO * attention_s
        + ELEMENTWISE_BACKWARD_RATIO * light_s,
        weight_gradient_s=sum(p[2] for p in products),
        recompute_s=sum(p[0] for p in products[:-1]) + attention_s,
        outer_forward_s=head[0],
        outer_backward_s=head[1] + head[2],
        activation_bytes=tokens * (wide * (read + made) + FP32_BYTES * heads / tp + matrices),
        kept_bytes=tokens * wide * (made + mixed + model.hidden_size),
        boundary_bytes=boundary,
        logits_bytes=(loss_tokens or tokens) * model.vocab_size * (wide + LOSS_BYTES) / tp,
        flops=step_tokens * 6.0 * (linear * count + (model.head.num_parameters if model.head else 0)) / tp
        + 3.0 * num_micro_batches * count * attention_flops,
        num_largest_parameters=max(x.num_parameters for x in block.linears) / tp,
        num_adapter_parameters=count * sum(x.in_features + x.out_features for x in block.linears) / tp,
        num_micro_batches=num_micro_batches,
        parameter_bytes=wide,
        gradient_bytes=wide,
        state_bytes=8.0 if precision == "fp32" else 12.0,
    )


class _Part:
    """Kernels of one device's share of a layer, in seconds."""

    __slots__ = ("_device", "_format", "_tokens", "_tp")

    def __init__(self, *, device: Device, precision: str, tokens: int, tp: int) -> None:
        self._device, self._format, self._tokens, self._tp = device, precision, tokens, tp

    def _s(self, op: Op) -> tuple[float, float]:
        found = predict(op, self._device)
        return float(np.asarray(found.time_s)), float(np.asarray(found.flops))

    def _gemm_s(self, m: int, n: int, k: int, batch: int = 1) -> float:
        return self._s(Gemm(m=m, n=n, k=k, batch=batch, format=self._format, quantises_input=False))[0]

    def product(self, linear: Linear) -> tuple[float, float, float]:
        """Forward, gradient of the input, gradient of the weight."""
        n = linear.out_features // _cut(linear, self._tp, "column")
        k = linear.in_features // _cut(linear, self._tp, "row")
        m = self._tokens
        return self._gemm_s(m, n, k), self._gemm_s(m, k, n), self._gemm_s(n, k, m)

    def attention(self, mixer: object, sequences: int, tokens: int, is_fused: bool) -> tuple[float, float]:
        """Seconds and flops forward."""
        if not isinstance(mixer, SoftmaxAttention):
            return 0.0, 0.0
        heads = max(1, mixer.num_heads // self._tp)
        fused = AttentionPrefill(
            batch=sequences,
            query_tokens=tokens,
            context_tokens=tokens,
            num_heads=heads,
            num_kv_heads=max(1, mixer.num_kv_heads // self._tp),
            head_size=mixer.head_size,
            format=self._format,
            kv_format=self._format,
            is_causal=mixer.is_causal,
        )
        fused_s, flops = self._s(fused) if is_fused else (0.0, 0.0)
        if is_fused:
            return fused_s, flops
        batch = sequences * heads
        products_s = self._gemm_s(tokens, tokens, mixer.head_size, batch)
        products_s += self._gemm_s(tokens, mixer.value_head_size, tokens, batch)
        scores_s = self._s(Elementwise(kind="softmax", tokens=self._tokens, width=heads * tokens))[0]
        each = 2.0 * batch * tokens * tokens * (mixer.head_size + mixer.value_head_size)
        return products_s + SCORE_PASSES * scores_s, each

    def elementwise(self, block: Block, hidden_size: int) -> float:
        """Norms, the activation and two residual additions."""
        width = max(1, block.activation_elements // self._tp)
        up = next((x for x in block.linears if x.name.endswith("up")), None)
        kind = "gated_activation" if up is not None and up.name.endswith("gate_up") else "norm"
        return (
            self._s(Elementwise(kind="norm", tokens=self._tokens, width=block.normed_elements))[0]
            + self._s(Elementwise(kind=kind, tokens=self._tokens, width=width))[0]
            + 2.0 * self._s(Elementwise(kind="add", tokens=self._tokens, width=hidden_size))[0]
        )


def _cut(linear: Linear, tp: int, side: str) -> int:
    """How many devices share this side of a linear layer."""
    return tp if linear.shard == side or (side == "column" and linear.shard == "vocab") else 1


def _parameters(model: Model) -> float:
    """Number of parameters in all layers."""
    return float(sum(b.num_parameters for b in model.blocks))


def _block(model: Model) -> Block:
    """The layer that stands for all; refuses models whose layers differ."""
    block = model.blocks[0]
    if len(model.blocks) != 1 or block.experts is not None or not isinstance(block.mixer, SoftmaxAttention):
        raise ScenarioError(
            f"{model.name}: offloaded training is known for dense decoders of equal layers; write such a model."
        )
    return block

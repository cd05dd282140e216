"""The kernels of a decoder-only transformer in PyTorch: what is timed, and what the reference model runs.

Each is the same op as its namesake in ``numpy_kernels``, for tensors on any device. PyTorch is never imported here
before somebody has it: ``load`` does.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

Tensor = Any
"""``torch.Tensor``, which type checkers cannot see where PyTorch is not installed."""

EPSILON = 1e-6


@cache
def load() -> Any | None:
    """The ``torch`` module, or None where it is not installed."""
    try:
        return import_module("torch")
    except ImportError:
        return None


def product(x: Tensor, weight: Tensor) -> Tensor:
    """``Gemm``: tokens x k by k x n."""
    return x @ weight


def add(x: Tensor, y: Tensor) -> Tensor:
    """``Elementwise`` "add"."""
    return x + y


def softmax(x: Tensor) -> Tensor:
    """``Elementwise`` "softmax" of each row."""
    return x.softmax(dim=-1)


def product_tf32(x: Tensor, weight: Tensor) -> Tensor:
    """``product`` of FP32 numbers, rounded to TF32 on their way in."""
    torch: Any = load()
    torch.set_float32_matmul_precision("high")
    result = x @ weight
    torch.set_float32_matmul_precision("highest")
    return result


def product_fp8(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """``product`` of FP8 numbers with one scale a matrix; BF16 leaves."""
    torch: Any = load()
    return torch._scaled_mm(x, weight, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)


def product_int8(x: Tensor, weight: Tensor) -> Tensor:
    """``product`` of INT8 numbers; INT32 leaves."""
    torch: Any = load()
    return torch._int_mm(x, weight)


def norm(x: Tensor, residual: Tensor, gain: Tensor) -> Tensor:
    """``Elementwise`` "norm": adds ``x`` to the residual stream in place; its root-mean-square norm, scaled."""
    torch: Any = load()
    residual += x
    return torch.nn.functional.rms_norm(residual, residual.shape[-1:], gain, EPSILON)


def gated_activation(gate_and_up: Tensor) -> Tensor:
    """``Elementwise`` "gated_activation": SiLU of the first half of the columns times the second."""
    torch: Any = load()
    gate, up = gate_and_up.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def sample(logits: Tensor) -> Tensor:
    """``Elementwise`` "sample": the likeliest token of each row, by its probability."""
    return logits.float().softmax(dim=-1).argmax(dim=-1)


def quantise_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """``Elementwise`` "quantise": each row to INT8 by its largest magnitude, and its scale."""
    torch: Any = load()
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=EPSILON) / 127.0
    return (x / scale).round().to(torch.int8), scale


def quantise_fp8(x: Tensor) -> tuple[Tensor, Tensor]:
    """``Elementwise`` "quantise": each row to FP8 by its largest magnitude, and its scale."""
    torch: Any = load()
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=EPSILON) / 448.0
    return (x / scale).to(torch.float8_e4m3fn), scale


def turns(size: int, capacity: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary embedding, capacity x 1 x size / 2: engines keep them, and so do we."""
    torch: Any = load()
    half = size // 2
    rate = 10_000.0 ** (-torch.arange(half, dtype=torch.float32, device=like.device) / half)
    angle = torch.arange(capacity, dtype=torch.float32, device=like.device)[:, None, None] * rate
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of … x tokens x heads x size by the rows of ``turns`` that its tokens stand at."""
    torch: Any = load()
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    keys: Tensor,
    values: Tensor,
    table: tuple[Tensor, Tensor],
    past_tokens: int,
) -> Tensor:
    """Causal attention of a batch of sequences that are equally long: prompts, chunks, or one token each.

    ``query`` is batch x tokens x heads x size, ``key`` and ``value`` batch x tokens x kv_heads x size; ``keys`` and
    ``values`` are the cache, batch x kv_heads x capacity x size, which takes the new tokens in. Rotary embedding by
    ``table`` (``turns``) included.
    """
    tokens = query.shape[1]
    context = past_tokens + tokens
    cos, sin = table[0][past_tokens:context], table[1][past_tokens:context]
    keys[:, :, past_tokens:context] = rotate(key, cos, sin).transpose(1, 2)
    values[:, :, past_tokens:context] = value.transpose(1, 2)
    mixed = attention(rotate(query, cos, sin).transpose(1, 2), keys[:, :, :context], values[:, :, :context])
    return mixed.transpose(1, 2).flatten(2)


def attention(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Scaled dot product attention of the last tokens of each sequence, all batch x heads x tokens x size.

    One new token needs no mask, so that the query heads of a group share one read of their keys.
    """
    torch: Any = load()
    attend_to: Callable[..., Tensor] = torch.nn.functional.scaled_dot_product_attention
    batch, heads, tokens, size = query.shape
    kv_heads, context = keys.shape[1], keys.shape[2]
    if tokens == 1:
        grouped = query.reshape(batch, kv_heads, heads // kv_heads, size)
        return attend_to(grouped, keys, values).reshape(batch, heads, 1, size)
    shared = kv_heads != heads
    if tokens == context:
        return attend_to(query, keys, values, is_causal=True, enable_gqa=shared)
    mask = import_module("torch.nn.attention.bias").causal_lower_right(tokens, context)
    return attend_to(query, keys, values, attn_mask=mask, enable_gqa=shared)

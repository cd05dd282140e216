"""One op object of every class, each of many random sizes."""

import numpy as np

from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, LatentDecode, LatentPrefill, MoE

SIZES = 200


def draw(rng, low, high):
    """Whole numbers spread evenly over the powers between two sizes."""
    return np.rint(np.exp(rng.uniform(np.log(low), np.log(high), SIZES))).astype(np.int64)


def heads(rng):
    kv = rng.choice([1, 2, 4, 8, 16], SIZES)
    return {"num_heads": kv * rng.choice([1, 2, 4, 8], SIZES), "num_kv_heads": kv}


def ops(rng, format):
    """One op object of every class, each of many random sizes."""
    tokens, context = draw(rng, 1, 16384), draw(rng, 16, 131072)
    yield Gemm(m=tokens, n=draw(rng, 64, 32768), k=draw(rng, 64, 32768), format=format, quantises_input=False)
    yield AttentionPrefill(
        batch=draw(rng, 1, 16),
        query_tokens=tokens,
        context_tokens=tokens,
        head_size=128,
        format="bf16",
        kv_format="bf16",
        **heads(rng),
    )
    yield AttentionDecode(
        batch=draw(rng, 1, 512), context_tokens=context, head_size=128, format="bf16", kv_format="bf16", **heads(rng)
    )
    yield LatentPrefill(
        batch=draw(rng, 1, 8), query_tokens=tokens, context_tokens=tokens, num_heads=16, format="bf16", kv_format="bf16"
    )
    yield LatentDecode(batch=draw(rng, 1, 256), context_tokens=context, num_heads=16, format="bf16", kv_format="bf16")
    yield MoE(tokens=tokens, hidden_size=4096, ffn_size=1536, num_experts=128, experts_per_token=8, format=format)
    for kind in ("norm", "gated_activation", "add"):
        yield Elementwise(kind=kind, tokens=tokens, width=8192)

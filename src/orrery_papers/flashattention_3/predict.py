"""FlashAttention-3: attention in turns or overlapped on Hopper, and the error of eight bits with outliers."""

from collections.abc import Iterator

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.arithmetic.attention import AttentionFormat, attention, rounded_attention
from orrery.numerics.rotations.hadamard import matrix, signs
from orrery_papers.flashattention_3.outliers import with_outliers
from orrery_papers.shared.kernel_rows import kernel_rows

ROOF = "a roof of the design: loads, addresses, and clocks under the power limit are left out"
NUM_HEADS, NUM_QUERIES, SEED = 2, 256, 0
"""Queries of each length: errors are those of rows, so a few hundred stand for all."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates by head width, then errors."""
    setup = paper.setups["fp16"]
    peak = get_device(setup.word("device")).dense_flops_per_s["fp16"]
    sizes = [int(size) for size in setup.numbers("head_features_swept")]
    before, after = ([flops_per_s(setup, size, variant) for size in sizes] for variant in ("serial", "ping-pong"))
    rates = zip(sizes, before, after, strict=True)
    wide = ", ".join(f"{size}: {old / 1e12:.0f} and {new / 1e12:.0f} TFLOP/s" for size, old, new in rates)
    turns = "products at the older instructions' share of the peak, then exponentials, then vector instructions"
    yield Prediction(
        claim="utilization-before",
        predicted=float(np.mean(before)) / peak,
        because=f"{turns}; by width {wide}",
        differs="loads and addresses that warps of the older kernel compute in between are not counted",
    )
    ours = f"the slower of products and of exponentials with vector instructions, in whole waves; by width {wide}"
    yield Prediction(claim="utilization", predicted=max(after) / peak, because=ours, differs=ROOF)
    yield Prediction(claim="throughput-fp16", predicted=max(after), because=ours, differs=ROOF)
    yield Prediction(
        claim="speedup",
        predicted=float(np.mean([new / old for old, new in zip(before, after, strict=True)])),
        because=f"mean over widths; {wide}",
    )
    eight = [flops_per_s(paper.setups["fp8"], size, "ping-pong") for size in sizes]
    yield Prediction(
        claim="throughput-fp8",
        predicted=max(eight),
        because="the same kernel with products at the eight-bit rate and exponentials as before: "
        + ", ".join(f"{size}: {rate / 1e12:.0f}" for size, rate in zip(sizes, eight, strict=True)),
        differs="values are transposed and probabilities shuffled in eight bits, and power lowers the clock",
    )
    plain, turned, both, block = errors(paper.setups["error"])
    yield Prediction(
        claim="error-reduction",
        predicted=plain / both,
        because=f"RMSE {plain:.2e} per tensor, {block:.2e} per block, {turned:.2e} rotated, {both:.2e} with both",
        differs="tokens and width of the experiment are not stated; a query's outlier costs more in long sequences",
    )


def flops_per_s(setup: Setup, size: int, variant: str) -> float:
    """Rate of a whole attention, by the rates of instructions: ``orrery kernel attention``."""
    length, heads = int(setup.number("sequence_tokens")), int(setup.number("num_hidden")) // size
    rows = kernel_rows(
        "attention",
        device=setup.word("device"),
        format=setup.word("weights_format"),
        batch=int(setup.number("step_tokens")) // length,
        query_tokens=length,
        num_heads=heads,
        head_size=size,
        not_causal=True,
    )
    return rows[variant].flops / rows[variant].time_s


def errors(setup: Setup) -> tuple[float, float, float, float]:
    """RMSE over all lengths: a scale a tensor; rotated; rotated with a scale a block; a scale a block alone."""
    size, rng = int(setup.number("num_head_features")), np.random.default_rng(SEED)
    rotation = signs(size, SEED)[:, None] * matrix(size)
    tensor, block = AttentionFormat(), AttentionFormat(block_rows=int(setup.number("num_block_rows")))
    cases = ((tensor, None), (tensor, rotation), (block, rotation), (block, None))
    squares = np.zeros(len(cases))
    lengths = [int(n) for n in setup.numbers("input_tokens_swept")]
    for length in lengths:
        q, k, v = (
            with_outliers(
                (NUM_HEADS, rows, size),
                rng,
                outlier_frac=setup.number("outlier_frac"),
                outlier_std_ratio=setup.number("outlier_std_ratio"),
            )
            for rows in (NUM_QUERIES, length, length)
        )
        exact = attention(q, k, v)
        squares += [np.mean((rounded_attention(q, k, v, form, turn) - exact) ** 2) for form, turn in cases]
    plain, turned, both, blocks = np.sqrt(squares / len(lengths))
    return float(plain), float(turned), float(both), float(blocks)

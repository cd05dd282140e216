"""A model from its sizes alone, as tables of training runs and sweeps state it; and a known one with other sizes.

Two lineages cover what people train under names that no hub knows. A plain feed-forward part means the GPT line
[radford-2019]: biases, LayerNorms with a scale and a shift, learned positions, a head that shares the embedding. A
gated one means the Llama line [touvron-2023]: no biases, RMS norms, rotary positions, a head of its own.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.models.config import parse
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import attention, layer, mlp, moe, stack

GPT_CONTEXT_TOKENS = 2048

PADDED_VOCABULARY = 51200
"""GPT-2's 50,257 words padded to a multiple of 1,024: what Megatron's runs have at eight-way tensor parallelism."""


def model_of_shape(
    *,
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    name: str = "",
    num_kv_heads: int = 0,
    head_size: int = 0,
    ffn_size: int = 0,
    vocab_size: int = PADDED_VOCABULARY,
    gated_ffn: bool = False,
    num_experts: int = 0,
    experts_per_token: int = 0,
    moe_ffn_size: int = 0,
    num_shared_experts: int = 0,
    num_dense_layers: int = 0,
    has_biases: bool | None = None,
    is_tied: bool | None = None,
    is_causal: bool = True,
    context_tokens: int = GPT_CONTEXT_TOKENS,
) -> Model:
    """A decoder (or, not causal, a BERT-like encoder) of equal layers.

    Zeros take what is usual: as many key/value heads as heads, ``hidden_size / num_heads`` wide; a feed-forward part
    four times the width; experts as wide as it. The first ``num_dense_layers`` of a mixture have no experts, and a
    shared expert is as wide as a routed one. ``has_biases`` and ``is_tied`` blank: yes for the GPT line.
    """
    _check(num_layers=num_layers, hidden_size=hidden_size, num_heads=num_heads, vocab_size=vocab_size)
    if not head_size and hidden_size % num_heads:
        raise ScenarioError(f"hidden_size = {hidden_size} does not divide by num_heads = {num_heads}; write head_size.")
    ffn = ffn_size or 4 * hidden_size
    biases = (not gated_ffn) if has_biases is None else has_biases
    norm = 1 if gated_ffn else 2

    def build(is_moe: bool) -> Block:
        mixer = attention(
            hidden_size,
            num_heads,
            num_kv_heads or num_heads,
            head_size or hidden_size // num_heads,
            qkv_bias=biases,
            out_bias=biases,
            is_causal=is_causal,
            rotary=gated_ffn,
        )
        width = moe_ffn_size or ffn
        feed = (
            moe(
                hidden_size,
                width,
                num_experts,
                experts_per_token or 1,
                shared_ffn_size=num_shared_experts * width,
                is_gated=gated_ffn,
                bias=biases,
            )
            if is_moe
            else mlp(hidden_size, ffn, is_gated=gated_ffn, bias=biases)
        )
        return layer("moe" if is_moe else "dense", mixer, feed, hidden_size=hidden_size, norm_parameters=norm)

    tied = not gated_ffn if is_tied is None else is_tied
    return Model(
        name=name or f"{num_layers} layers, {hidden_size} wide",
        family="moe" if num_experts else "llama" if gated_ffn else "gpt2" if is_causal else "bert",
        hidden_size=hidden_size,
        vocab_size=vocab_size,
        max_context_tokens=context_tokens,
        blocks=stack([bool(num_experts) and i >= num_dense_layers for i in range(num_layers)], build),
        embedding_parameters=hidden_size * (vocab_size + (0 if gated_ffn else context_tokens)),
        head=_head(hidden_size, vocab_size),
        is_head_tied=tied,
        other_parameters=norm * hidden_size,
    )


def encoder_decoder_of_shape(
    *,
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    name: str = "",
    head_size: int = 0,
    ffn_size: int = 0,
    vocab_size: int = PADDED_VOCABULARY,
    gated_ffn: bool = False,
) -> Model:
    """A T5 of ``num_layers`` layers on either side. [raffel-2020]"""
    _check(num_layers=num_layers, hidden_size=hidden_size, num_heads=num_heads, vocab_size=vocab_size)
    config: dict[str, Any] = {
        "model_type": "t5",
        "d_model": hidden_size,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "d_kv": head_size or hidden_size // num_heads,
        "d_ff": ffn_size or 4 * hidden_size,
        "vocab_size": vocab_size,
        "feed_forward_proj": "gated-gelu" if gated_ffn else "relu",
    }
    return parse(config, name=name or f"t5, {num_layers} layers, {hidden_size} wide")


def resized(model: Model, *, num_layers: int = 0, vocab_size: int = 0, num_dense_layers: int | None = None) -> Model:
    """``model`` with its first ``num_layers`` layers and another vocabulary; zeros leave it as it is.

    Kinds of layers keep their shares, except that the first dense ones of a mixture stay, or as many of them as
    ``num_dense_layers`` says; an encoder is cut alike.
    """
    out = model
    if num_dense_layers is not None and _leading_dense(model.blocks):
        out = replace(out, blocks=_led_by(model.blocks, num_dense_layers, num_layers or model.num_layers))
    elif num_layers and num_layers != model.num_layers:
        out = replace(out, blocks=_cut(model.blocks, num_layers))
    if num_layers and num_layers != model.num_layers and model.encoder:
        out = replace(out, encoder=_cut(model.encoder, num_layers))
    if vocab_size and vocab_size != model.vocab_size:
        words = vocab_size - model.vocab_size
        width = model.head.in_features if model.head else model.hidden_size
        out = replace(
            out,
            vocab_size=vocab_size,
            embedding_parameters=model.embedding_parameters + words * width,
            head=replace(model.head, out_features=vocab_size) if model.head else None,
        )
    return out


def _leading_dense(blocks: tuple[Block, ...]) -> bool:
    """Whether a mixture begins with layers that have no experts."""
    return len(blocks) > 1 and blocks[0].experts is None and blocks[1].experts is not None


def _led_by(blocks: tuple[Block, ...], num_dense_layers: int, num_layers: int) -> tuple[Block, ...]:
    """Layers with ``num_dense_layers`` leading dense ones, and the other kinds in their proportion behind them."""
    dense = min(num_dense_layers, num_layers)
    first = (replace(blocks[0], count=dense),) if dense else ()
    return (*first, *_cut(blocks[1:], num_layers - dense)) if num_layers > dense else first


def _cut(blocks: tuple[Block, ...], num_layers: int) -> tuple[Block, ...]:
    """Fixed first layers (a run shorter than a tenth of the model) stay; the rest shrinks or grows in proportion."""
    total = sum(b.count for b in blocks)
    if len(blocks) > 1 and 10 * blocks[0].count <= total and blocks[0].count < num_layers:
        return (blocks[0], *_cut(blocks[1:], num_layers - blocks[0].count))
    counts = _shares([b.count for b in blocks], num_layers)
    return tuple(replace(b, count=n) for b, n in zip(blocks, counts, strict=True) if n)


def _shares(counts: Iterable[int], total: int) -> list[int]:
    """Whole numbers in the proportion of ``counts`` that add up to ``total``: largest remainders first."""
    given = list(counts)
    exact = [total * n / sum(given) for n in given]
    out = [int(x) for x in exact]
    for i in sorted(range(len(out)), key=lambda i: out[i] - exact[i])[: total - sum(out)]:
        out[i] += 1
    return out


def _head(hidden_size: int, vocab_size: int) -> Linear:
    return Linear(name="head", in_features=hidden_size, out_features=vocab_size, shard="vocab", role="head")


def _check(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise ScenarioError(f"{name} is {value}; write a whole number above zero.")

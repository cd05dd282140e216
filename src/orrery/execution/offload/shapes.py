"""GPT-like models of any size: plain attention, feed-forward part four times the width, learned positions."""

from dataclasses import replace

from orrery.models.model import Linear, Model
from orrery.models.parts import attention, layer, mlp

VOCAB_SIZE = 50257
HEAD_SIZE = 128
MAX_TOKENS = 1024
WIDTH_PER_LAYER = 128
"""Hidden size over layers, as in the largest GPT-3 (12288 over 96)."""


def gpt(num_layers: int, hidden_size: int, *, num_heads: int = 0, max_tokens: int = MAX_TOKENS) -> Model:
    """About 12 x layers x hidden size squared parameters."""
    heads = num_heads or max(1, hidden_size // HEAD_SIZE)
    block = layer(
        "dense",
        attention(hidden_size, heads, heads, hidden_size // heads, qkv_bias=True, out_bias=True, rotary=False),
        mlp(hidden_size, 4 * hidden_size, is_gated=False, bias=True),
        hidden_size=hidden_size,
        norm_parameters=2,
    )
    head = Linear(name="head", in_features=hidden_size, out_features=VOCAB_SIZE, shard="vocab", role="head")
    return Model(
        name=f"gpt {num_layers} x {hidden_size}",
        family="gpt2",
        hidden_size=hidden_size,
        vocab_size=VOCAB_SIZE,
        max_context_tokens=max_tokens,
        blocks=(replace(block, count=num_layers),),
        embedding_parameters=(VOCAB_SIZE + max_tokens) * hidden_size,
        head=head,
        is_head_tied=True,
        other_parameters=2 * hidden_size,
    )


def gpt_of(num_parameters: float, *, hidden_size: int = 0) -> Model:
    """The GPT nearest to a size: of one width where that is given, else of GPT-3's proportions."""
    width = hidden_size or HEAD_SIZE * max(1, round((WIDTH_PER_LAYER * num_parameters / 12.0) ** (1 / 3) / HEAD_SIZE))
    around = (VOCAB_SIZE + MAX_TOKENS) * width
    return gpt(max(1, round((num_parameters - around) / (12.0 * width * width))), width)

"""Qwen3-Next and Qwen3.5: three gated-delta-net layers, then one of gated attention; dense or with experts.

OLMo Hybrid is such a model, dense, with OLMo's norms; Lara Mini has windows besides, and gates neither attention nor
its shared expert.
"""

from orrery.models.decoder import Sizes, assemble, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import Part, attention, layer, mlp, moe, stack
from orrery.models.recurrent import gated_delta_net

FULL_EVERY = 4
NEXT = {
    "vocab_size": 151936,
    "linear_num_value_heads": 32,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "head_dim": 256,
    "num_key_value_heads": 2,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
_SHARED = {k: v for k, v in NEXT.items() if "expert" not in k and "moe" not in k}
DENSE = _SHARED | {"vocab_size": 248320, "num_key_value_heads": 4, "linear_num_value_heads": 48}
SPARSE = NEXT | {"vocab_size": 248320, "num_experts": 256, "num_experts_per_tok": 8}
OLMO = {
    "vocab_size": 100352,
    "intermediate_size": 11008,
    "linear_conv_kernel_dim": 4,
}
LARA = {
    "vocab_size": 151936,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "linear_num_value_heads": 16,
    "linear_num_key_heads": 8,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "num_experts": 128,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "sliding_window": 512,
}
LARA_TYPES = ("linear_attention", "sliding_attention", "linear_attention", "full_attention", "sliding_attention")
DEFAULTS = {
    "qwen3_next": NEXT,
    "qwen3_5_text": DENSE,
    "qwen3_5_moe_text": SPARSE,
    "olmo_hybrid": OLMO,
    "lara_mini": LARA,
}
KINDS = ("linear_attention", "full_attention", "sliding_attention")


def gated_full(c: Fields, s: Sizes, kind: str = "full_attention") -> Part:
    """Attention in full or over a window, with normed queries and keys, and the gate that most of these have."""
    family = c.word("model_type")
    return attention(
        s.hidden,
        s.heads,
        s.kv_heads,
        s.head,
        qkv_bias=c.flag("attention_bias"),
        out_bias=c.flag("attention_bias"),
        qk_norm="whole" if family == "olmo_hybrid" else "head",
        gate_features=0 if family in ("olmo_hybrid", "lara_mini") else s.heads * s.head,
        window=c.size("sliding_window") if kind == "sliding_attention" else 0,
    )


def _types(c: Fields, layers: int) -> tuple[str, ...]:
    """Kind of each layer: listed, or the family's pattern."""
    if types := c.kinds(layers, KINDS):
        return types
    if c.word("model_type") == "lara_mini":
        return tuple(LARA_TYPES[i % len(LARA_TYPES)] for i in range(layers))
    every = c.size("full_attention_interval", default=FULL_EVERY)
    return tuple("linear_attention" if (i + 1) % every else "full_attention" for i in range(layers))


def delta_net(c: Fields, s: Sizes) -> Part:
    """The linear attention that the config describes."""
    return gated_delta_net(
        s.hidden,
        c.size("linear_num_key_heads", default=s.heads),
        c.size("linear_num_value_heads", default=s.heads),
        c.size("linear_key_head_dim", default=3 * s.hidden // s.heads // 4),
        c.size("linear_value_head_dim", default=2 * (3 * s.hidden // s.heads // 4)),
        c.size("linear_conv_kernel_dim"),
    )


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS[c.word("model_type")])
    s = sizes(c)
    types = _types(c, s.layers)
    dense, step = set(c.sizes("mlp_only_layers")), c.size("decoder_sparse_step", default=1)

    def build(kind: tuple[str, bool]) -> Block:
        mixer, is_moe = kind
        feed = gated_experts(c, s.hidden) if is_moe else mlp(s.hidden, c.size("intermediate_size"))
        label = f"{mixer.removesuffix('_attention')} {'moe' if is_moe else 'dense'}"
        part = delta_net(c, s) if mixer == "linear_attention" else gated_full(c, s, mixer)
        return layer(label, part, feed, hidden_size=s.hidden)

    has_experts = "num_experts" in c
    kinds = [(t, has_experts and i not in dense and (i + 1) % step == 0) for i, t in enumerate(types)]
    blocks = stack(kinds, build)
    # A multi-token-prediction layer: gated full attention, the model's feed-forward part, a projection of two inputs.
    count = c.count("mtp_num_hidden_layers")
    mtp = build(("full_attention", kinds[-1][1])).num_parameters + 2 * s.hidden * s.hidden + 3 * s.hidden
    return assemble(
        c,
        name,
        blocks,
        s.hidden,
        is_tied=c.word("model_type") == "lara_mini",
        default_context=32768,
        draft_parameters=count * mtp,
    )


def gated_experts(c: Fields, hidden: int) -> Part:
    """Routed experts, and a shared one that most of these gate."""
    return moe(
        hidden,
        c.size("moe_intermediate_size"),
        c.size("num_experts"),
        c.size("num_experts_per_tok"),
        shared_ffn_size=c.size("shared_expert_intermediate_size"),
        has_shared_gate=c.word("model_type") != "lara_mini",
    )


FAMILY = Family(model_types=tuple(DEFAULTS), build=_build)

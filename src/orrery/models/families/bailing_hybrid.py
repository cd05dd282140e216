"""Ling 2.5 and 3 (Bailing): the last of every ``layer_group_size`` layers attends in full, by latent attention.

The others are lightning attention in 2.5 (known by ``group_norm_size`` and no convolution), delta attention in 3, whose
latent attention is gated head by head. Layers of a last group that is not complete attend in full too.
"""

from orrery.models.decoder import HYBRID, assemble
from orrery.models.families.deepseek import draft, is_sparse, routed
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.latent import latent_attention
from orrery.models.model import Block, Model
from orrery.models.parts import Part, layer, mlp, stack
from orrery.models.recurrent import kimi_delta, lightning

DEFAULTS = {
    "vocab_size": 157184,
    "q_lora_rank": 0,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 512,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
}


def _full_layers(c: Fields, layers: int) -> list[bool]:
    if types := c.kinds(layers, HYBRID):
        return [t == HYBRID[0] for t in types]
    group = c.size("layer_group_size", default=6)
    return [(i + 1) % group == 0 or i >= layers // group * group for i in range(layers)]


def _is_lightning(c: Fields) -> bool:
    """Whether a config is of 2.5: some of 3 keep ``group_norm_size`` too, beside the convolutions that 2.5 lacks."""
    return "group_norm_size" in c and "short_conv_kernel_size" not in c


def _linear(c: Fields, hidden: int, heads: int) -> Part:
    heads, size = c.size("linear_num_heads", default=heads), c.size("linear_head_dim", "head_dim", default=128)
    if _is_lightning(c):
        return lightning(hidden, heads, size)
    kernel = c.size("short_conv_kernel_size", default=4)
    return kimi_delta(hidden, heads, size, kernel, has_full_gate=True, has_full_decay=True)


def _build(c: Fields, name: str) -> Model:
    names = {
        "num_experts": "num_local_experts",
        "num_shared_experts": "n_shared_experts",
        "num_experts_per_tok": "num_experts_per_token",
        "short_conv_kernel_size": "linear_conv_kernel_dim",
        "max_position_embeddings": "model_max_length",
    }
    c = c.with_defaults(**{new: c.data[old] for new, old in names.items() if old in c})
    c = c.with_defaults(**DEFAULTS, first_k_dense_replace=1 if _is_lightning(c) else 2)
    hidden, heads, layers = c.size("hidden_size"), c.size("num_attention_heads"), c.size("num_hidden_layers")
    gate = 0 if _is_lightning(c) else heads

    def build(kind: tuple[bool, bool]) -> Block:
        is_full, is_moe = kind
        mixer = latent_attention(c, hidden, heads, gate=gate) if is_full else _linear(c, hidden, heads)
        feed = routed(c, hidden) if is_moe else mlp(hidden, c.size("intermediate_size"))
        label = ("full " if is_full else "linear ") + ("moe" if is_moe else "dense")
        return layer(label, mixer, feed, hidden_size=hidden)

    kinds = list(zip(_full_layers(c, layers), is_sparse(c, layers), strict=True))
    drafts = draft(build((True, True)), hidden, c.count("num_nextn_predict_layers", "num_mtp_layers"))
    return assemble(c, name, stack(kinds, build), hidden, default_context=262144, draft_parameters=drafts)


FAMILY = Family(model_types=("bailing_hybrid",), build=_build)

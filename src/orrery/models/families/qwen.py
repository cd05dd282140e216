"""Qwen 1 to 3, dense and with experts: biased q, k and v up to Qwen2.5; head-wise query and key norms from Qwen3."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe

QWEN2_MOE = {"num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632}
QWEN3_MOE = {"num_experts_per_tok": 8, "moe_intermediate_size": 768}


def _kinds(c: Fields, num_layers: int, *, has_experts: bool) -> list[Kind]:
    """Windows only where use_sliding_window says so (from max_window_layers on); experts every sparse step."""
    window = c.count("sliding_window") if c.flag("use_sliding_window") else 0
    full = c.count("max_window_layers", default=num_layers)
    types = c.kinds(num_layers, ("sliding_attention", "full_attention"))
    dense, step = set(c.sizes("mlp_only_layers")), c.size("decoder_sparse_step", default=1)

    def windowed(i: int) -> bool:
        return types[i] == "sliding_attention" if types else i >= full

    return [
        Kind(
            window=window if windowed(i) else 0,
            is_moe=has_experts and i not in dense and (i + 1) % step == 0,
        )
        for i in range(num_layers)
    ]


def _build(c: Fields, name: str) -> Model:
    family = c.word("model_type")
    is_third, has_experts = "qwen3" in family, "moe" in family
    if has_experts:
        c = c.with_defaults(**(QWEN3_MOE if is_third else QWEN2_MOE))
    if is_third and not has_experts:
        c = c.with_defaults(head_dim=128)
    s = sizes(c)
    experts = None
    if has_experts:
        shared = c.count("shared_expert_intermediate_size")
        experts = moe(
            s.hidden,
            c.size("moe_intermediate_size"),
            c.size("num_experts", "num_local_experts", default=128 if is_third else 60),
            c.size("num_experts_per_tok"),
            shared_ffn_size=shared,
            has_shared_gate=shared > 0,
        )
    bias = c.flag("attention_bias")
    recipe = Recipe(
        qkv_bias=bias if is_third else c.flag("qkv_bias", default=True),
        out_bias=bias if is_third else False,
        qk_norm="head" if is_third else "",
        default_context=32768,
    )
    return decoder(c, name, recipe, kinds=_kinds(c, s.layers, has_experts=has_experts), experts=experts)


def _build_first(c: Fields, name: str) -> Model:
    """Qwen 1 states twice the width of its feed-forward part."""
    width = c.divide(c.size("intermediate_size", default=22016), "intermediate_size", 2, "2")
    return decoder(c, name, Recipe(qkv_bias=True, default_context=8192), ffn=width)


def _any(c: Fields, name: str) -> Model:
    return _build_first(c, name) if c.word("model_type") == "qwen" else _build(c, name)


FAMILY = Family(
    model_types=(
        "qwen",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "qwen3_vl_text",
        "qwen3_vl_moe_text",
        "qwen2_vl_text",
        "qwen2_5_vl_text",
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen2_5_omni_text",
        "qwen3_omni_moe_text",
    ),
    build=_any,
)

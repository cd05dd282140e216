"""Step 3.x: windowed layers with their own number of heads, a gate on every head, experts beside a shared one."""

from orrery.models.decoder import assemble, sizes, windows
from orrery.models.families.deepseek import with_drafts
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import attention, layer, mlp, moe, stack

DENSE_LAYERS = 3
"""Layers before the first experts when the config does not say."""


def sparse_layers(c: Fields, layers: int) -> set[int]:
    """Numbers of the layers with experts: as listed, or all of ``layers`` after the dense ones."""
    if types := c.words("mlp_layer_types"):
        return {i for i, t in enumerate(types) if t == "sparse"}
    if "moe_layers_enum" in c:
        raw = c.data["moe_layers_enum"]
        words = raw.split(",") if isinstance(raw, str) else [str(x) for x in c.items("moe_layers_enum")]
        return {int(w) for w in words if w.strip().isdigit()}
    return set(range(c.count("first_k_dense_replace", default=DENSE_LAYERS), layers))


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=128815,
        num_key_value_heads=c.data.get("num_attention_groups") or 8,
        head_dim=128,
        moe_intermediate_size=1280,
        share_expert_dim=1280,
        num_experts_per_tok=c.data.get("moe_top_k") or 8,
    )
    s = sizes(c)
    other = c.table("attention_other_setting")
    few = other.size("num_attention_heads", default=s.heads) if other else s.heads
    window_heads = c.size("num_sliding_attention_heads", default=few)
    sparse = sparse_layers(c, s.layers)
    bias = c.flag("attention_bias")

    def build(kind: tuple[int, bool]) -> Block:
        window, is_moe = kind
        heads = window_heads if window else s.heads
        mixer = attention(
            s.hidden,
            heads,
            s.kv_heads,
            s.head,
            qkv_bias=bias,
            out_bias=bias,
            qk_norm="head",
            window=window,
            gate_features=heads,
        )
        feed = (
            moe(
                s.hidden,
                c.size("moe_intermediate_size"),
                c.size("n_routed_experts", "moe_num_experts", "num_experts", default=288),
                c.size("num_experts_per_tok"),
                shared_ffn_size=c.count("share_expert_dim", "share_expert_dims"),
            )
            if is_moe
            else mlp(s.hidden, c.size("intermediate_size", default=11264), bias=c.flag("mlp_bias"))
        )
        label = ("sliding " if window else "full ") + ("moe" if is_moe else "dense")
        return layer(label, mixer, feed, hidden_size=s.hidden)

    seen = windows(c, s.layers, c.count("sliding_window"), default=["full_attention"] * s.layers)
    blocks = stack([(w, i in sparse) for i, w in enumerate(seen)], build)
    model = assemble(c, name, blocks, s.hidden, default_context=128000)
    return with_drafts(model, build((c.count("sliding_window"), False)), c.count("num_nextn_predict_layers"))


FAMILY = Family(model_types=("step3p7_text", "step3p7", "step3p5", "step3p5_text", "step3p7_flash"), build=_build)

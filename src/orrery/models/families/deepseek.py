"""DeepSeek V1 to V3.2 and those built like V3 (Kimi-K2, GLM-5, Mistral Small 4, A.X K1 and K2, Sarvam 105B), also
without experts (Youtu, MiniCPM3).

Dense layers come first, then layers with shared and routed experts.
"""

from dataclasses import replace

from orrery.models import decoder as ordinary
from orrery.models.decoder import Recipe, assemble, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import MOST, Fields
from orrery.models.latent import latent_attention
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, layer, mlp, moe, stack

V2 = {
    "vocab_size": 32000,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 64,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1407,
    "n_shared_experts": 2,
}
V3 = V2 | {
    "vocab_size": 129280,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
}
V32 = V3 | {"index_topk": 2048, "index_n_heads": 64, "index_head_dim": 128}
GLM = V3 | {"vocab_size": 154880, "qk_nope_head_dim": 192, "v_head_dim": 256}
MISTRAL = V3 | {
    "vocab_size": 131072,
    "q_lora_rank": 1024,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "n_routed_experts": 128,
    "num_experts_per_tok": 4,
    "first_k_dense_replace": 0,
}
DENSE = {"first_k_dense_replace": MOST["num_layers"], "tie_word_embeddings": True}
"""No layer has experts."""
DEFAULTS = {
    "deepseek_v2": V2,
    "mistral4": MISTRAL,
    "deepseek_v32": V32,
    "axk1": V3 | {"vocab_size": 163840, "n_routed_experts": 192, "first_k_dense_replace": 1},
    "axk2": V32
    | {
        "vocab_size": 163840,
        "kv_lora_rank": 128,
        "q_lora_rank": 384,
        "qk_rope_head_dim": 32,
        "qk_nope_head_dim": 64,
        "v_head_dim": 64,
        "index_n_heads": 16,
        "n_routed_experts": 128,
        "moe_intermediate_size": 512,
        "first_k_dense_replace": 1,
        "gated_norm_rank": 16,
    },
    "sarvam_mla": V3 | {"vocab_size": 262144, "q_lora_rank": 0, "n_routed_experts": 128, "first_k_dense_replace": 1},
    "youtu": V3 | DENSE | {"vocab_size": 128256},
    "minicpm3": V3
    | DENSE
    | {
        "vocab_size": 73448,
        "q_lora_rank": 768,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
    },
    "glm_moe_dsa": V32 | GLM | {"q_lora_rank": 2048, "index_n_heads": 32},
    "glm4_moe_lite": GLM
    | {
        "q_lora_rank": 768,
        "n_routed_experts": 64,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1536,
        "first_k_dense_replace": 1,
    },
}
"""Defaults of missing keys, by ``model_type``; V3's values for the others."""


def is_sparse(c: Fields, num_layers: int) -> list[bool]:
    """Which layers have experts: after the first dense ones, every ``moe_layer_freq``-th (a number, or a list)."""
    if isinstance(c.data.get("moe_layer_freq"), list):
        return [bool(x) for x in c.per_layer(c.sizes("moe_layer_freq"), "moe_layer_freq", num_layers)]
    if types := c.words("mlp_layer_types"):
        return [t == "sparse" for t in c.per_layer(types, "mlp_layer_types", num_layers)]
    first, step = c.count("first_k_dense_replace"), c.size("moe_layer_freq", default=1)
    return [i >= first and i % step == 0 for i in range(num_layers)]


def routed(c: Fields, hidden: int) -> Part:
    """The routed and shared experts that the config describes."""
    width = c.size("moe_intermediate_size")
    return moe(
        hidden,
        width,
        c.size("n_routed_experts", "num_experts"),
        c.size("num_experts_per_tok", "num_experts_per_token"),
        shared_ffn_size=width * c.count("n_shared_experts", "num_shared_experts"),
    )


def draft(block: Block, hidden: int, count: int) -> int:
    """Multi-token-prediction layers: an ordinary layer, two norms in, one out, and a projection of both inputs."""
    return count * (replace(block, count=1).num_parameters + 2 * hidden * hidden + 3 * hidden)


def with_drafts(model: Model, block: Block, count: int) -> Model:
    """The model with ``count`` multi-token-prediction layers that are like ``block``, not like its last layer."""
    if not count:
        return model
    parameters = draft(block, model.hidden_size, count)
    return replace(model, draft_parameters=parameters, draft_block=replace(block, count=1))


def _gated(c: Fields, part: Part, hidden: int, heads: int, *, norms: int) -> Part:
    """A.X K2: gates of what attention returns are projected with the queries, from their latent before and after its
    norm; what ``norms`` of a layer's norms return passes a gate of low rank."""
    rank, gates = c.size("gated_norm_rank"), heads * c.size("v_head_dim")
    linears = tuple(
        replace(x, in_features=2 * x.in_features, out_features=x.out_features + gates) if x.name == "q_b" else x
        for x in part.linears
    )
    ends = {"a": (hidden, rank), "b": (rank, hidden)}
    gated = tuple(
        Linear(name=f"norm_{i}_gate_{end}", in_features=n, out_features=m, shard="replicated", role="other")
        for i in range(norms)
        for end, (n, m) in ends.items()
    )
    return replace(part, linears=(*linears, *gated))


def _build(c: Fields, name: str) -> Model:
    model_type = c.word("model_type")
    # null says that queries are projected directly; only a config that leaves the key out means the default rank.
    if "q_lora_rank" in c.data and c.data["q_lora_rank"] is None:
        c = c.with_defaults(q_lora_rank=0)
    if model_type == "minicpm3":
        c = c.with_defaults(v_head_dim=c.size("hidden_size") // c.size("num_attention_heads"))
    c = c.with_defaults(**DEFAULTS.get(model_type, V3))
    hidden, heads, layers = c.size("hidden_size"), c.size("num_attention_heads"), c.size("num_hidden_layers")
    c.kinds(layers, ("full_attention", "indexed_attention", "deepseek_sparse_attention"))
    owners = c.words("indexer_types")
    has_indexer = [t == "full" for t in owners] if owners else [c.count("index_topk") > 0] * layers
    c.per_layer(tuple(has_indexer), "indexer_types", layers)

    def build(kind: tuple[bool, bool]) -> Block:
        sparse, indexed = kind
        feed = routed(c, hidden) if sparse else mlp(hidden, c.size("intermediate_size"), bias=c.flag("mlp_bias"))
        part = latent_attention(c, hidden, heads, indexer=indexed)
        if model_type == "axk2":
            part = _gated(c, part, hidden, heads, norms=2 if sparse else 1)
        norms = 3 if sparse and model_type == "axk1" else 2  # A.X K1 norms what its experts return
        return layer("moe" if sparse else "dense", part, feed, hidden_size=hidden, num_norms=norms)

    blocks = stack(zip(is_sparse(c, layers), has_indexer, strict=False), build)
    extra = draft(blocks[-1], hidden, c.count("num_nextn_predict_layers"))
    return assemble(c, name, blocks, hidden, default_context=4096, draft_parameters=extra)


def _build_first(c: Fields, name: str) -> Model:
    """DeepSeek V1 (MoE 16B) and the language model of DeepSeek-OCR: ordinary attention, experts of V2's kind."""
    c = c.with_defaults(
        vocab_size=32000 if c.word("model_type") == "deepseek_ocr2_text" else 102400,
        first_k_dense_replace=0,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        moe_intermediate_size=1407,
    )
    s = sizes(c)
    kinds = [ordinary.Kind(is_moe=x) for x in is_sparse(c, s.layers)]
    bias = c.flag("attention_bias")
    return decoder(c, name, Recipe(qkv_bias=bias, out_bias=bias), kinds=kinds, experts=routed(c, s.hidden))


FIRST = ("deepseek", "deepseek_ocr2_text")
"""Words for models without latent attention."""


def _any(c: Fields, name: str) -> Model:
    is_ordinary = c.word("model_type") in FIRST or not c.flag("use_mla", default=True)
    return _build_first(c, name) if is_ordinary else _build(c, name)


FAMILY = Family(
    model_types=(
        *FIRST,
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "kimi_k2",
        "glm_moe_dsa",
        "glm4_moe_lite",
        "mistral4",
        "axk1",
        "axk2",
        "sarvam_mla",
        "youtu",
        "minicpm3",
    ),
    build=_any,
)

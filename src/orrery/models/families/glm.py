"""Zhipu's GLM: ChatGLM2/3, GLM-4 (biased q, k and v), GLM-4-0414, 4.1V (sandwich norms), GLM-4.5 to 4.7 (experts)."""

from dataclasses import replace

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.families.deepseek import draft, is_sparse, routed
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model

SARVAM = {"head_dim": 64, "intermediate_size": 8192, "num_experts_per_tok": 6}


def _dense(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=151552, head_dim=128, num_key_value_heads=2, intermediate_size=13696, num_attention_heads=32
    )
    recipe = Recipe(
        qkv_bias=c.flag("attention_bias", default=True),
        num_norms=2 if c.word("model_type") == "glm" else 4,
        default_context=131072,
    )
    return decoder(c, name, recipe)


def _ocr(c: Fields, name: str) -> Model:
    """GLM-OCR: GLM-4-0414 without biases."""
    c = c.with_defaults(vocab_size=59392, num_key_value_heads=8, intermediate_size=4096, attention_bias=False)
    c = c.with_defaults(num_attention_heads=16)
    return _dense(c.with_defaults(head_dim=sizes(c).head), name)


def _sarvam(c: Fields, name: str) -> Model:
    """Sarvam 30B: GLM-4.5's structure under Bailing's names."""
    names = {
        "n_routed_experts": "num_experts",
        "n_shared_experts": "num_shared_experts",
        "attention_bias": "use_qkv_bias",
        "use_qk_norm": None,
    }
    c = c.with_defaults(**{new: True if old is None else c.data.get(old) for new, old in names.items()})
    return _moe(c.with_defaults(vocab_size=262144, num_key_value_heads=4, moe_intermediate_size=1024, **SARVAM), name)


def _moe(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=151552,
        num_key_value_heads=8,
        n_routed_experts=128,
        n_shared_experts=1,
        num_experts_per_tok=8,
        moe_intermediate_size=1408,
        first_k_dense_replace=1,
        intermediate_size=10944,
    )
    s = sizes(c)
    recipe = Recipe(
        qkv_bias=c.flag("attention_bias"), qk_norm="head" if c.flag("use_qk_norm") else "", default_context=131072
    )
    kinds = [Kind(is_moe=x) for x in is_sparse(c, s.layers)]
    model = decoder(c, name, recipe, kinds=kinds, experts=routed(c, s.hidden))
    drafts = draft(model.blocks[-1], s.hidden, c.count("num_nextn_predict_layers"))
    return replace(model, draft_parameters=drafts)


def _chat(c: Fields, name: str) -> Model:
    """ChatGLM2 and 3 and the first GLM-4: Hugging Face code of their own, other key names."""
    grouped = c.flag("multi_query_attention")
    heads = c.size("num_attention_heads")
    c = c.with_defaults(
        vocab_size=c.data.get("padded_vocab_size"),
        head_dim=c.data.get("kv_channels"),
        num_key_value_heads=c.data.get("multi_query_group_num") if grouped else heads,
    )
    recipe = Recipe(
        qkv_bias=c.flag("add_qkv_bias", "add_bias_linear"),
        out_bias=c.flag("add_bias_linear"),
        mlp_bias=c.flag("add_bias_linear"),
        norm_parameters=1 if c.flag("rmsnorm", default=True) else 2,
        default_context=32768,
    )
    return decoder(c, name, recipe, ffn=c.size("ffn_hidden_size"))


BUILD = {
    "glm": _dense,
    "glm4": _dense,
    "glm4_moe": _moe,
    "glm4v_text": _dense,
    "glm4v_moe_text": _moe,
    "glm_ocr_text": _ocr,
    "sarvam_moe": _sarvam,
    "chatglm": _chat,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))

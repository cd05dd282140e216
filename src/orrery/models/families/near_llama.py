"""Families that differ from Llama in a bias, a norm or the names of their keys."""

from dataclasses import replace

from orrery.models.decoder import Kind, Recipe, decoder, sizes, windows
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _stablelm(c: Fields, name: str) -> Model:
    """StableLM: LayerNorms; StableLM 2 12B norms queries and keys by head and runs both halves side by side."""
    c = c.with_defaults(vocab_size=50304, intermediate_size=6912)
    s = sizes(c)
    parallel = c.flag("use_parallel_residual")
    recipe = Recipe(
        qkv_bias=c.flag("use_qkv_bias"),
        norm_parameters=2,
        num_norms=1 if parallel else 2,
        num_reduces=1 if parallel else 2,
        qk_norm="heads" if c.flag("qk_layernorm") else "",
        default_context=4096,
    )
    return decoder(c.with_defaults(num_key_value_heads=s.heads), name, recipe)


def _starcoder2(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=49152, num_key_value_heads=2, intermediate_size=12288)
    s = sizes(c)
    bias = c.flag("use_bias", default=True)
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        is_gated=False,
        norm_parameters=2,
        is_tied=True,
        default_context=4096,
    )
    return decoder(c, name, recipe, kinds=[Kind(window=c.count("sliding_window"))] * s.layers)


def _mpt(c: Fields, name: str) -> Model:
    """MPT: ALiBi, no biases anywhere, not even in its LayerNorms."""
    c = c.with_defaults(vocab_size=50368)
    table = c.table("attn_config")
    if table and "kv_n_heads" in table:
        c = c.with_defaults(num_key_value_heads=table.size("kv_n_heads"))
    ratio = c.size("expansion_ratio", default=4)
    recipe = Recipe(is_gated=False, is_tied=True, rotary=False)
    return decoder(c, name, recipe, ffn=ratio * sizes(c).hidden)


def _baichuan(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=64000, intermediate_size=11008)
    return decoder(c, name, Recipe(default_context=4096))


def _internlm(c: Fields, name: str) -> Model:
    """InternLM: biased projections in the first; 2 and 3 are Llama with fused or grouped projections."""
    kind = c.word("model_type")
    bias = c.flag("bias", default=kind == "internlm")
    recipe = Recipe(
        qkv_bias=c.flag("qkv_bias", default=bias),
        out_bias=bias,
        mlp_bias=bias and kind == "internlm3",
        default_context=32768 if kind != "internlm" else 2048,
    )
    return decoder(c.with_defaults(vocab_size=103168), name, recipe)


def _exaone(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=102400, intermediate_size=c.data.get("intermediate_size") or 16384)
    if c.word("model_type") == "exaone":
        return decoder(c, name, Recipe())
    s = sizes(c)
    pattern = c.data.get("sliding_window_pattern")
    every = pattern.find("G") + 1 or 4 if isinstance(pattern, str) else c.size("sliding_window_pattern", default=4)
    window = c.count("sliding_window")
    default = [
        "sliding_attention" if window and (i + 1) % every and i != s.layers - 1 else "full_attention"
        for i in range(s.layers)
    ]
    kinds = [Kind(window=w) for w in windows(c, s.layers, window, default)]
    return decoder(c, name, Recipe(qk_norm="head"), kinds=kinds)


def _hunyuan(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=290943, intermediate_size=11008)
    bias = c.flag("attention_bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=c.flag("mlp_bias"),
        qk_norm="head" if c.flag("use_qk_norm", default=True) else "",
        is_tied=c.word("model_type") != "hunyuan_v1_dense",  # HunyuanOCR
    )
    return decoder(c, name, recipe)


def _smollm3(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=128256, num_key_value_heads=4, intermediate_size=11008)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias, mlp_bias=c.flag("mlp_bias"), is_tied=True, default_context=32768)
    window = c.count("sliding_window") if c.flag("use_sliding_window") else 0
    kinds = [Kind(window=w) for w in windows(c, sizes(c).layers, window)] if window else []
    return decoder(c, name, recipe, kinds=kinds)


def _seed_oss(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=155136, num_key_value_heads=8, head_dim=128, intermediate_size=27648)
    recipe = Recipe(
        qkv_bias=c.flag("attention_bias", default=True),
        out_bias=c.flag("attention_out_bias"),
        mlp_bias=c.flag("mlp_bias"),
        default_context=524288,
    )
    return decoder(c, name, recipe)


def _apertus(c: Fields, name: str) -> Model:
    """Apertus: no gate; its activation, xIELU, learns two numbers a layer."""
    c = c.with_defaults(vocab_size=131072, intermediate_size=14336)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias, is_gated=False, qk_norm="head", default_context=65536)
    model = decoder(c, name, recipe)
    return replace(model, other_parameters=model.other_parameters + 2 * sizes(c).layers)


def _arcee(c: Fields, name: str) -> Model:
    """Arcee: Llama with a squared ReLU instead of a gate."""
    c = c.with_defaults(vocab_size=32000, intermediate_size=18432)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias, mlp_bias=c.flag("mlp_bias"), is_gated=False, default_context=4096)
    return decoder(c, name, recipe)


BUILD = {
    "apertus": _apertus,
    "arcee": _arcee,
    "stablelm": _stablelm,
    "stablelm_epoch": _stablelm,
    "starcoder2": _starcoder2,
    "mpt": _mpt,
    "baichuan": _baichuan,
    "internlm": _internlm,
    "internlm2": _internlm,
    "internlm3": _internlm,
    "exaone": _exaone,
    "exaone4": _exaone,
    "hunyuan_v1_dense": _hunyuan,
    "hunyuan_vl": _hunyuan,
    "hunyuan_vl_text": _hunyuan,
    "smollm3": _smollm3,
    "seed_oss": _seed_oss,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))

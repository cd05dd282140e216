"""What a checkpoint's weights are stored in, from the words of ``quantization_config`` and its relatives.

Sources: the keys that DeepSeek (``quant_method = "fp8"`` with ``weight_block_size``), AutoAWQ, GPTQ, bitsandbytes,
OpenAI (``mxfp4``), compressed-tensors (``config_groups``) and NVIDIA ModelOpt (``quant_algo``) write.
"""

from typing import cast

from orrery.models.fields import Fields
from orrery.models.model import Role

ALWAYS: frozenset[Role] = frozenset({"router", "head"})

MODELOPT = {
    "FP8": "fp8", "FP8_PB_WO": "fp8_block", "FP8_PB_REAL": "fp8_block", "NVFP4": "nvfp4", "NVFP4_AWQ": "nvfp4",
    "W4A16_AWQ": "int4_weight_only", "W4A8_AWQ": "int4_int8", "INT4_AWQ": "int4_weight_only", "W8A16":
    "int8_weight_only", "INT8_SQ": "int8", "MXFP8": "mxfp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8", "MXFP4": "mxfp4",
}  # fmt: skip
"""``quant_algo`` -> format."""

METHODS = {
    "awq": "int4_weight_only", "gptq": "int4_weight_only", "gptq_marlin": "int4_weight_only", "mxfp4":
    "mxfp4_weight_only", "auto-round": "int4_weight_only", "fbgemm_fp8": "fp8", "mxfp8": "mxfp8", "nvfp4": "nvfp4",
    "ptpc_fp8": "fp8",
}  # fmt: skip
"""``quant_method`` -> format, where the method alone says it."""

DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}

ROLE_WORDS: dict[Role, tuple[str, ...]] = {
    "attention": ("self_attn", "attention", "q_proj", "attn", "mixer.q"),
    "shared_expert": ("shared_expert",),
    "mixer": ("linear_attn", "in_proj", "mamba", "mixer.in"),
}
"""Fragments of module names that an ignore list uses for a role."""


def stored_as(c: Fields) -> tuple[str, frozenset[Role]]:
    """The format of the quantised weights, and the roles that stay in 16 bits."""
    table = c.table("quantization_config") or c.table("compression_config")
    if table is None:
        plain = DTYPES.get(c.word("torch_dtype", "dtype").removeprefix("torch."), "bf16")
        return ("bf16" if plain == "fp32" else plain), ALWAYS
    return _format(table), ALWAYS | _kept(table)


def _format(q: Fields) -> str:
    method = q.word("quant_method").lower()
    algorithm = q.word("quant_algo").upper()
    if algorithm in MODELOPT:
        return MODELOPT[algorithm]
    if method == "fp8" or "weight_block_size" in q:
        return "fp8_block" if "weight_block_size" in q else "fp8"
    if method == "bitsandbytes":
        return "nf4" if q.flag("load_in_4bit", "_load_in_4bit") else "int8_weight_only"
    if method in ("awq", "gptq", "gptq_marlin", "auto-round") and q.count("bits", "w_bit", default=4) == 8:
        return "int8_weight_only"
    if method in METHODS:
        return METHODS[method]
    return _from_groups(q)


def _from_groups(q: Fields) -> str:
    """compressed-tensors and ModelOpt describe weights and inputs of each group of layers."""
    groups = q.table("config_groups")
    found = [groups.table(key) for key in groups.data] if groups else []
    mixed = [f for f in (_group(g) for g in found if g) if f]
    if mixed:
        return min(mixed, key=_bits)
    layers = q.table("quantized_layers")
    algorithms = [layers.table(k) for k in layers.data] if layers else []
    named = [MODELOPT[a] for t in algorithms if t and (a := t.word("quant_algo").upper()) in MODELOPT]
    return max(set(named), key=named.count) if named else "bf16"


def _group(g: Fields) -> str:
    weights, inputs = g.table("weights"), g.table("input_activations")
    if weights is None:
        return ""
    bits, kind = weights.count("num_bits", default=16), weights.word("type", default="int")
    if kind == "float" and bits == 4:
        return "mxfp4" if weights.count("group_size", default=16) == 32 else "nvfp4"
    if kind == "float" and bits == 8:
        return "fp8_block" if weights.word("strategy") == "block" else "fp8"
    return {4: "int4_int8" if inputs else "int4_weight_only", 8: "int8" if inputs else "int8_weight_only"}.get(bits, "")


def _bits(name: str) -> int:
    """Formats of four bits before those of eight."""
    return 4 if "4" in name else 8


def _kept(q: Fields) -> frozenset[Role]:
    """Roles that the ignore list names in every layer (a pattern), or that it names at all when it is cut short."""
    raw = [q.data.get(k) for k in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules")]
    lists = [cast("list[object]", r) for r in raw if isinstance(r, list)]
    names = [str(n).lower() for r in lists for n in r]
    kept: set[Role] = {role for role, words in ROLE_WORDS.items() if any(w in n for n in names for w in words)}
    return frozenset(kept)

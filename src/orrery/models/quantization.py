"""Storage formats of a checkpoint's weights, from ``quantization_config`` and its relatives.

Sources: the keys that DeepSeek (``quant_method = "fp8"`` with ``weight_block_size``), AutoAWQ, GPTQ, bitsandbytes,
OpenAI (``mxfp4``), compressed-tensors (``config_groups``) and NVIDIA ModelOpt (``quant_algo``) write.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from orrery.models.fields import Fields
from orrery.models.model import Role

ALWAYS: frozenset[Role] = frozenset({"router", "head"})
"""Roles that every quantiser seen so far leaves alone."""

MODELOPT = {
    "FP8": "fp8",
    "FP8_PB_WO": "fp8_block",
    "FP8_PB_REAL": "fp8_block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4_weight_only",
    "W4A16_AWQ": "int4_weight_only",
    "W4A8_AWQ": "int4_int8",
    "INT4_AWQ": "int4_weight_only",
    "W8A16": "int8_weight_only",
    "INT8_SQ": "int8",
    "MXFP8": "mxfp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "MXFP4": "mxfp4",
}
"""``quant_algo`` -> format."""

WHOLE_NUMBERS = (2, 3, 4, 8)
"""Bits that methods of whole numbers store a weight in."""

METHODS = {
    "mxfp4": "mxfp4_weight_only",
    "fbgemm_fp8": "fp8",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "ptpc_fp8": "fp8",
    "eetq": "int8_weight_only",
}
"""``quant_method`` -> format, where the method alone says it."""

IN_NAMES = {
    "fp8": "fp8",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "awq": "int4_weight_only",
    "gptq": "int4_weight_only",
    "int4": "int4_weight_only",
    "w4a16": "int4_weight_only",
    "4bit": "int4_weight_only",
    "int8": "int8",
    "w8a8": "int8",
    "8bit": "int8_weight_only",
    "w8a16": "int8_weight_only",
    "mxfp4": "mxfp4",
    "mxfp8": "mxfp8",
    "bf16": "bf16",
    "fp16": "fp16",
    "dynamic": "",
    "static": "",
    "pertensor": "",
    "marlin": "",
    "quantized": "",
    "gguf": "",
    "bnb": "",
    "mlx": "",
    "qat": "",
    "ct": "",  # compressed-tensors
    "unsloth": "",
    "autoround": "int4_weight_only",
}
"""Words in checkpoint names that say a format; the empty ones only qualify another."""

GGUF = re.compile(r"[-_.:/](q(?:[4568]_[01]|[26]_k|[345]_k_[sm]))(?=$|[-_.:])")
"""llama.cpp's names of its block formats, at the end of a name or before another suffix."""

DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}

PROJECTIONS: dict[str, Role] = {
    "self_attn": "attention",
    "attn": "attention",
    "attention": "attention",
    "q_proj": "attention",
    "qkv_proj": "attention",
    "o_proj": "attention",
    "q_b_proj": "attention",
    "shared_expert": "shared_expert",
    "shared_experts": "shared_expert",
    "lm_head": "head",
    "linear_attn": "mixer",
    "mamba": "mixer",
    "in_proj": "mixer",
    "in_proj_qkv": "mixer",
    "in_proj_qkvz": "mixer",
    "mlp": "mlp",
}
"""Word of a module's name -> the role of its products, as ignore lists and lists of mixed formats name them."""

EXPERTS = "experts"
"""The word of modules that hold routed experts."""


MAX_QUOTED = 64
"""Letters of an unknown method that a note repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The format of the weights, of the routed experts and of roles where it differs, and the roles left in 16 bits."""

    weights: str
    experts: str = ""
    by_role: tuple[tuple[Role, str], ...] = ()
    in_16_bits: frozenset[Role] = ALWAYS
    cache: str = ""  # what the checkpoint brings scales of the cache for
    note: str = ""


def stored_as(c: Fields, name: str) -> Stored:
    """Formats by ``quantization_config``; without one, by the checkpoint's name (noted), else its plain type."""
    table = c.table("quantization_config") or c.table("compression_config")
    if table is not None:
        return _stored(table)
    if (text := format_in_name(name)) not in ("", "bf16", "fp16"):
        return Stored(
            weights=text,
            note=f"{text}: from the name; the config has no quantization_config (ModelOpt keeps it in a file beside)",
        )
    return Stored(weights=DTYPES.get(c.word("torch_dtype", "dtype").removeprefix("torch."), "bf16"))


def format_in_name(name: str) -> str:
    """The format that words of a checkpoint's name say ("Qwen3-8B-AWQ", "…Q4_K_M-GGUF"), or nothing."""
    if found := GGUF.search(name.casefold()):
        return found[1]
    words = re.split(r"[\s_./:-]+", name.casefold())
    if "bnb" in words:  # bitsandbytes
        return "int8_weight_only" if "8bit" in words else "nf4"
    return next((IN_NAMES[w] for w in words if IN_NAMES.get(w)), "")


def _stored(q: Fields) -> Stored:
    experts = MODELOPT.get(q.word("moe_quant_algo").upper(), "")
    if experts:  # the ignore list speaks of what moe_quant_algo leaves in the format underneath
        return Stored(weights="fp8_block" if "weight_block_size" in q else "fp8", experts=experts)
    found = _format(q)
    if found in ("bf16", "fp16"):
        return Stored(weights=found, note=_not_known(q))
    roles = _by_role(q)
    experts = roles.pop(EXPERTS, found)
    named = tuple((role, format) for role, format in roles.items() if format != found)
    return Stored(
        weights=found,
        experts="" if experts == found else experts,
        by_role=cast("tuple[tuple[Role, str], ...]", named),
        in_16_bits=(ALWAYS | _retained(q)) - frozenset(roles),
        cache=_cache(q),
    )


def _cache(q: Fields) -> str:
    """FP8 where the checkpoint holds scales of an FP8 cache, in ModelOpt's words or in those of compressed-tensors."""
    scheme = q.data.get("kv_cache_scheme")
    if isinstance(scheme, dict) and (table := q.table("kv_cache_scheme")) is not None:
        return "fp8" if table.count("num_bits", default=16) == 8 and table.word("type") == "float" else ""
    return "fp8" if q.word("kv_cache_scheme", "kv_cache_quant_algo").upper() == "FP8" else ""


def _not_known(q: Fields) -> str:
    """The note on a quantization whose format was not found out."""
    if not (named := q.word("quant_method", "quant_algo")):
        return ""
    return f"quantized by {named[:MAX_QUOTED]!r}, whose format is not known here: taken as 16 bits unless you state it"


def _format(q: Fields) -> str:
    method, algorithm = q.word("quant_method").lower(), q.word("quant_algo").upper()
    if algorithm in MODELOPT:
        return MODELOPT[algorithm]
    if method == "bitsandbytes":
        return "nf4" if q.flag("load_in_4bit", "_load_in_4bit") else "int8_weight_only"
    if method in ("awq", "gptq", "gptq_marlin", "auto-round"):
        bits = q.count("bits", "w_bit", default=4)
        if bits not in WHOLE_NUMBERS:
            raise q.wrong("bits", bits, "one of " + ", ".join(map(str, WHOLE_NUMBERS)))
        return f"int{bits}_weight_only"
    if method in METHODS:
        return METHODS[method]
    if method == "fp8" or "weight_block_size" in q:
        return "fp8_block" if "weight_block_size" in q else "fp8"
    return _from_groups(q)


def _tables(q: Fields, key: str) -> Iterator[Fields]:
    return (table for _, table in _named_tables(q, key))


def _named_tables(q: Fields, key: str) -> Iterator[tuple[str, Fields]]:
    """The tables inside table ``key``; other entries (a count of what was cut from a long list) are passed over."""
    if (outer := q.table(key)) is not None:
        for name in outer.data:
            if isinstance(outer.data[name], dict) and (inner := outer.table(name)) is not None:
                yield name, inner


def _from_groups(q: Fields) -> str:
    """compressed-tensors and ModelOpt describe each group of layers; the one with the fewest bits holds most."""
    mixed = [f for g in _tables(q, "config_groups") if (f := _group(g))]
    if mixed:
        return min(mixed, key=lambda f: 4 if "4" in f else 8)
    named = [format for _, format in _named_layers(q)]
    return max(sorted(set(named)), key=named.count) if named else "bf16"


def _named_layers(q: Fields) -> Iterator[tuple[str, str]]:
    """ModelOpt's list of layers in mixed precision: name and format of each."""
    for name, layer in _named_tables(q, "quantized_layers"):
        if (algorithm := layer.word("quant_algo").upper()) in MODELOPT:
            yield name, MODELOPT[algorithm]


def _by_role(q: Fields) -> dict[str, str]:
    """Roles (and ``EXPERTS``) whose format the config states by itself: most of the layers that it names for them."""
    named = list(_named_layers(q))
    for group in _tables(q, "config_groups"):
        targets = group.data.get("targets")
        if isinstance(targets, list) and (format := _group(group)):
            named += [(str(target), format) for target in cast("list[object]", targets)]
    found: dict[str, list[str]] = {}
    for name, format in named:
        if role := _role_of(name):
            found.setdefault(role, []).append(format)
    return {role: max(sorted(set(formats)), key=formats.count) for role, formats in found.items()}


def _role_of(name: str) -> str:
    """The role of the products of a module, or ``EXPERTS``; nothing for names of classes ("Linear")."""
    words = re.split(r"[^a-z0-9_]+", name.casefold().removeprefix("re:"))
    if EXPERTS in words:
        return EXPERTS
    return next((PROJECTIONS[w] for w in reversed(words) if w in PROJECTIONS), "")


def _group(g: Fields) -> str:
    weights, inputs = g.table("weights"), g.table("input_activations")
    if weights is None:
        return ""
    bits, kind = weights.count("num_bits", default=16), weights.word("type", default="int")
    if kind == "float" and bits == 4:
        if weights.count("group_size", default=16) != 32:
            return "nvfp4" if inputs else "nvfp4_weight_only"
        return "mxfp4" if inputs else "mxfp4_weight_only"
    if kind == "float" and bits == 8:
        return "fp8_block" if weights.word("strategy") == "block" else "fp8"
    return {4: "int4_int8" if inputs else "int4_weight_only", 8: "int8" if inputs else "int8_weight_only"}.get(bits, "")


def _retained(q: Fields) -> frozenset[Role]:
    """Roles whose projections (or whole modules) an ignore list names."""
    raw = [q.data.get(k) for k in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules")]
    lists = [cast("list[object]", r) for r in raw if isinstance(r, list)]
    found: set[Role] = set()
    for name in (str(n).lower() for r in lists for n in r):
        plain = name.removeprefix("re:")
        if "mlp\\.(" in plain:  # a pattern over the projections of dense layers
            found.add("mlp")
        last = re.sub(r"[*\\$^]|\.weight$", "", plain).strip(".").rsplit(".", 1)[-1]
        if last in PROJECTIONS:
            found.add(PROJECTIONS[last])
    return frozenset(found)

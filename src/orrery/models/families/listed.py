"""Families of ordinary attention whose configs list what each layer is: windowed or full, dense or with experts.

CWM, Laguna, Mellum, Kolibri, Flint, Beam, Aria, Muse, Granite and Command with windows and experts, FlexOlmo, Jais 2,
HyperCLOVA X, Cosmos 3 Edge, nanochat, VaultGemma, Persimmon, BitNet, DiffLlama. They differ in norms, gates, sinks and
in what a missing list means. Source of each: its configuration and modelling files in transformers 5.24.0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orrery.models.decoder import Gate, Kind, Recipe, decoder, sizes, windows
from orrery.models.families.deepseek import draft, is_sparse
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.generic import EXPERTS, experts_of
from orrery.models.model import Model

GATES: dict[object, Gate] = {True: "head", "per-head": "head", "per-element": "element"}
"""Laguna's words for the gate on what attention returns."""


def _everywhere(layer: int, layers: int) -> bool:
    return True


def _first_of_four(layer: int, layers: int) -> bool:
    return layer % 4 == 0


def _last_of(every: int) -> Callable[[int, int], bool]:
    return lambda layer, layers: (layer + 1) % every == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Facts of one family; ``is_full`` says which of so many layers attend to everything where no list does."""

    defaults: Mapping[str, Any]
    recipe: Recipe = field(default_factory=Recipe)
    is_full: Callable[[int, int], bool] = _everywhere
    has_biases: bool = False  # of attention and feed-forward part, where the config is silent
    num_dense: int = 0  # layers before the first experts, where the config is silent
    counts_correction: bool = False  # the router's correction bias is a parameter


LLAMA = {"vocab_size": 32000, "intermediate_size": 11008}
STYLES = {
    "cwm": Style(
        defaults={
            "vocab_size": 128256,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 21504,
            "sliding_window": 8192,
        },
        recipe=Recipe(default_context=131072),
        is_full=_first_of_four,
    ),
    "laguna": Style(
        defaults={
            "vocab_size": 100352,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 8192,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "sliding_window": 512,
            "gating": True,
        },
        recipe=Recipe(qk_norm="head", default_context=131072),
        num_dense=1,
        counts_correction=True,
    ),
    "mellum": Style(
        defaults={
            "vocab_size": 98304,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "intermediate_size": 7168,
            "moe_intermediate_size": 896,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "sliding_window": 1024,
        },
        recipe=Recipe(qk_norm="head", default_context=131072),
    ),
    "kolibri1": Style(
        defaults={
            "vocab_size": 128000,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
            "num_experts": 384,
            "num_experts_per_tok": 6,
            "sliding_window": 513,
        },
        recipe=Recipe(qk_norm="head", num_norms=4, default_context=262144),
        is_full=_last_of(5),
    ),
    "flint": Style(
        defaults={
            "vocab_size": 150144,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "intermediate_size": 6144,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 1024,
            "num_experts": 256,
            "num_experts_per_tok": 6,
            "sliding_window": 513,
            "mlp_only_layers": (0, 1),
        },
        recipe=Recipe(qk_norm="head", has_sinks=True, default_context=262144),
        is_full=lambda layer, layers: layer == 0 or layer % 4 == 1 or layer == layers - 1,
    ),
    "beam": Style(
        defaults={
            "vocab_size": 151936,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 20480,
            "moe_intermediate_size": 2560,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "sliding_window": 512,
        },
        recipe=Recipe(qk_norm="head", num_norms=4, gate="element", has_gate_bias=True, default_context=8192),
        is_full=lambda layer, layers: (layer + 1) % 6 == 0 or layer == layers - 1,
        num_dense=3,
    ),
    "cohere2_moe": Style(
        defaults={
            "vocab_size": 256000,
            "head_dim": 128,
            "intermediate_size": 22528,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "sliding_window": 4096,
        },
        recipe=Recipe(num_norms=1, num_reduces=1, is_tied=True, default_context=8192),
    ),
    "granite_swa": Style(
        defaults={
            "vocab_size": 100352,
            "num_key_value_heads": 4,
            "intermediate_size": 8192,
            "sliding_window": 128,
        },
        recipe=Recipe(has_sinks=True, is_tied=True, default_context=8192),
        is_full=_first_of_four,
    ),
    "granitemoe_swa": Style(
        defaults=LLAMA | {"sliding_window": 128, "num_local_experts": 8, "num_experts_per_tok": 2},
        recipe=Recipe(has_sinks=True),
        is_full=_first_of_four,
    ),
    "flex_olmo": Style(
        defaults={"vocab_size": 100352, "intermediate_size": 11008, "num_experts": 7, "num_experts_per_tok": 5},
        recipe=Recipe(qk_norm="whole", default_context=4096),
    ),
    "aria_text": Style(
        defaults={
            "vocab_size": 32000,
            "intermediate_size": 4096,
            "moe_num_experts": 8,
            "moe_topk": 2,
            "moe_num_shared_experts": 2,
        },
    ),
    "muse_glimmer_text": Style(
        defaults={
            "vocab_size": 202048,
            "num_key_value_heads": 2,
            "head_dim": 128,
            "intermediate_size": 19968,
            "sliding_window": 2048,
        },
        recipe=Recipe(num_norms=4, gate="element", default_context=131072),
        is_full=lambda layer, layers: (layers - 1 - layer) % 4 == 0,
    ),
    "muse_spark_text": Style(
        defaults={
            "vocab_size": 202048,
            "num_key_value_heads": 16,
            "head_dim": 64,
            "intermediate_size": 16384,
            "moe_intermediate_size": 4096,
            "moe_hidden_size": 4096,
            "num_local_experts": 256,
            "num_experts_per_tok": 8,
            "sliding_window": 2048,
        },
        recipe=Recipe(num_norms=3, gate="element", default_context=1048576),
        is_full=lambda layer, layers: (layers - 1 - layer) % 4 == 0,
    ),
    "iquestcoder": Style(defaults={"vocab_size": 76800, "num_key_value_heads": 8, "head_dim": 128}),
    "helium": Style(
        defaults={"vocab_size": 48000, "num_key_value_heads": 20, "head_dim": 128, "intermediate_size": 7040}
    ),
    "hyperclovax": Style(defaults=LLAMA | {"use_post_norm": True}),
    "jais2": Style(
        defaults={"vocab_size": 150272, "intermediate_size": 26624},
        recipe=Recipe(is_gated=False, norm_parameters=2, default_context=8192),
        has_biases=True,
    ),
    "cosmos3_edge_text": Style(
        defaults={
            "vocab_size": 131072,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 9216,
        },
        recipe=Recipe(is_gated=False, default_context=131072),
    ),
    "nanochat": Style(
        defaults={"vocab_size": 50304, "intermediate_size": 8192}, recipe=Recipe(is_gated=False, norm_parameters=0)
    ),
    "vaultgemma": Style(
        defaults={
            "vocab_size": 256000,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "intermediate_size": 9216,
            "sliding_window": 4096,
        },
        recipe=Recipe(is_tied=True, default_context=8192),
        is_full=_last_of(2),
    ),
    "persimmon": Style(
        defaults={"vocab_size": 262144, "intermediate_size": 16384},
        recipe=Recipe(is_gated=False, norm_parameters=2, default_context=16384),
        has_biases=True,
    ),
    "bitnet": Style(defaults={"vocab_size": 128256, "num_key_value_heads": 5, "intermediate_size": 6912}),
    "diffllama": Style(defaults={"vocab_size": 32000, "intermediate_size": 8192}),
}


def _norms(c: Fields, recipe: Recipe) -> Recipe:
    """Norms and small tensors that depend on the config's sizes."""
    s = sizes(c)
    match c.word("model_type"):
        case "hyperclovax":
            return replace(recipe, num_norms=4 if c.flag("use_post_norm") else 2)
        case "bitnet":  # norms of what attention and the feed-forward part return, before their last products
            return replace(recipe, other_parameters=s.heads * s.head + c.size("intermediate_size"))
        case "diffllama":  # four vectors that weigh one half of the heads against the other
            return replace(recipe, other_parameters=4 * s.head)
        case "muse_spark_text":  # a gate on each half of the residual
            return replace(recipe, other_parameters=2 * s.hidden)
        case "persimmon" if c.flag("qk_layernorm", default=True):
            return replace(recipe, other_parameters=4 * s.head)
        case "laguna":
            return replace(recipe, gate=GATES.get(c.data.get("gating"), ""))
        case _:
            return recipe


def _full_layers(c: Fields, style: Style, sparse: list[bool]) -> list[bool]:
    """Layers that attend to everything where no list says so; Command counts its dense first layers by themselves."""
    layers = len(sparse)
    if c.word("model_type") != "cohere2_moe":
        return [style.is_full(i, layers) for i in range(layers)]
    first = sparse.index(True) if True in sparse else layers
    early = c.size("prefix_dense_sliding_window_pattern", default=1)
    every = c.size("sliding_window_pattern", default=4)
    return [(i + 1) % early == 0 if i < first else (i - first + 1) % every == 0 for i in range(layers)]


def _kinds(c: Fields, style: Style, layers: int) -> list[Kind]:
    dense = set(c.sizes("mlp_only_layers"))
    sparse = is_sparse(c.with_defaults(first_k_dense_replace=style.num_dense), layers)
    default = ["full_attention" if full else "sliding_attention" for full in _full_layers(c, style, sparse)]
    seen = windows(c, layers, c.count("sliding_window"), default)
    heads = c.sizes("num_attention_heads_per_layer")
    heads = c.per_layer(heads, "num_attention_heads_per_layer", layers) if heads else (0,) * layers
    return [
        Kind(window=w, is_moe=s and i not in dense, heads=h)
        for i, (w, s, h) in enumerate(zip(seen, sparse, heads, strict=True))
    ]


def _build(c: Fields, name: str) -> Model:
    style = STYLES[c.word("model_type")]
    renamed = {key: c.data.get(other) for key, other in (("num_experts", "num_local_experts"),)}
    c = c.with_defaults(**{**style.defaults, **{k: v for k, v in renamed.items() if v is not None}})
    s = sizes(c)
    bias = c.flag("attention_bias", default=style.has_biases)
    recipe = _norms(c, replace(style.recipe, qkv_bias=bias, out_bias=bias))
    recipe = replace(recipe, mlp_bias=c.flag("mlp_bias", default=style.has_biases))
    ffn = c.size("prefix_dense_intermediate_size", "intermediate_size", default=1)
    if not any(key in c for key in EXPERTS):
        kinds = [replace(kind, is_moe=False) for kind in _kinds(c, style, s.layers)]
        return decoder(c, name, recipe, kinds=kinds)
    experts = experts_of(c, s.hidden, c.size("moe_intermediate_size", "intermediate_size"), c.count("moe_hidden_size"))
    if style.counts_correction:
        experts = replace(experts, other_parameters=experts.other_parameters + c.count(*EXPERTS))
    model = decoder(c, name, recipe, kinds=_kinds(c, style, s.layers), experts=experts, ffn=ffn)
    drafts = draft(model.blocks[-1], s.hidden, c.count("num_nextn_predict_layers", "num_mtp_layers"))
    return replace(model, draft_parameters=drafts)


FAMILY = Family(model_types=tuple(STYLES), build=_build)

"""Which model a row of a training table trained: a known one, a shortened one, or one that only its sizes describe."""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.models import get_model
from orrery.evidence.row import Row
from orrery.models.model import LatentAttention, Model, SoftmaxAttention
from orrery.models.shape import GPT_CONTEXT_TOKENS, PADDED_VOCABULARY, encoder_decoder_of_shape, model_of_shape, resized

IMAGES = ("text-to-image", "vision-language")
"""Words in notes on models that are no language models."""

FAR_FRAC = 0.1
NEAR_FRAC = 0.03
"""A stated parameter count this far off doubts sizes that a note calls defaults; this near confirms others."""


T5_LAYERS = {512: 6, 768: 12, 1024: 24, 2048: 24, 4096: 24}
"""Layers on either side of the published T5 models and of their versions 1.1 (XL, XXL), by width. [raffel-2020]"""


def _is_t5(name: str) -> bool:
    return name.casefold().startswith("t5-")


@lru_cache(maxsize=256)
def _known(name: str) -> Model | None:
    try:
        return get_model(name)
    except UnknownName:
        return None


def model_of(row: Row) -> Model:
    """The known model where its sizes are those of the row, cut to its layers and vocabulary; else one of its sizes."""
    note, name = row.word("note").casefold(), row.word("model") or row.word("base_model")
    if any(words in note for words in IMAGES):
        raise ScenarioError("not a transformer language model")
    found = (_known(name) if name else None) or (_known(row.word("base_model")) if row.word("base_model") else None)
    if found and _has_sizes(found, row):
        dense = row.count("num_dense_layers") if row.word("num_dense_layers") else None
        return _resized(found, row.count("num_layers"), row.count("vocab_size"), dense)
    if not found and name.casefold().startswith("gpt") and _states_a_count_alone(row):
        return _of_count(row, name)
    if not row.word("num_layers") and not found and not (_is_t5(name) and row.count("hidden_size") in T5_LAYERS):
        raise ScenarioError("num_layers is blank and the model is not known" if name else "num_layers is blank")
    return _of_shape(row, name, found)


GPTS = (
    (125e6, 12),
    (350e6, 24),
    (760e6, 24),
    (1.3e9, 24),
    (2.7e9, 32),
    (6.7e9, 32),
    (13e9, 40),
    (175e9, 96),
)
"""Parameters and layers of the published GPT-3 models (arXiv:2005.14165, table 2.1)."""

HEAD_SIZE, WIDTH_STEP, GPT2_TOKENS = 128, 128, 1024


def _states_a_count_alone(row: Row) -> bool:
    return bool(row.number("num_parameters")) and not any(row.word(c) for c in ("num_layers", "hidden_size"))


def _of_count(row: Row, name: str) -> Model:
    """A GPT of a number of parameters: as deep as those of its size, and as wide as 12 layers width^2 asks for."""
    count = row.number("num_parameters")
    known = np.log(np.array(GPTS))
    layers = round(float(np.exp(np.interp(math.log(count), known[:, 0], known[:, 1]))))
    hidden = max(1, round((count / 12.0 / layers) ** 0.5 / WIDTH_STEP)) * WIDTH_STEP
    row.default("num_layers and hidden_size", f"{layers} and {hidden} (a GPT of {count:.3g} parameters)")
    vocab = row.count("vocab_size") or int(row.default("vocab_size", str(PADDED_VOCABULARY)))
    sizes = {"num_layers": layers, "hidden_size": hidden, "num_heads": hidden // HEAD_SIZE, "vocab_size": vocab}
    usual = GPT2_TOKENS if name.casefold().startswith("gpt2") else GPT_CONTEXT_TOKENS
    return _shaped(name, False, True, None, None, **sizes, context_tokens=row.count("seq_len") or usual)


@lru_cache(maxsize=256)
def _resized(model: Model, num_layers: int, vocab_size: int, num_dense_layers: int | None) -> Model:
    return resized(model, num_layers=num_layers, vocab_size=vocab_size, num_dense_layers=num_dense_layers)


def _has_sizes(model: Model, row: Row) -> bool:
    """Whether the row's widths (blank ones agree with anything) are the model's."""
    hidden, heads = row.count("hidden_size"), row.count("num_heads")
    kv_heads, head = row.count("num_kv_heads"), row.count("head_size")
    ffn, num_experts = row.count("ffn_size"), row.count("num_experts")
    block = max(model.blocks, key=lambda b: b.count)
    if hidden not in (0, model.hidden_size) or bool(num_experts) > (block.experts is not None):
        return False
    if isinstance(mixer := block.mixer, SoftmaxAttention):
        stated = (heads, kv_heads, head)
        real = (mixer.num_heads, mixer.num_kv_heads, mixer.head_size)
        if any(s not in (0, r) for s, r in zip(stated, real, strict=True)):
            return False
    elif isinstance(mixer, LatentAttention) and heads not in (0, mixer.num_heads):
        return False
    widths = {x.in_features for b in model.blocks for x in b.linears if x.name == "down"}
    widths |= {b.experts.ffn_size for b in model.blocks if b.experts}
    return not ffn or ffn in widths


def _of_shape(row: Row, name: str, found: Model | None) -> Model:
    """A model of the row's sizes; what they leave out comes from the known model of that name, or is usual."""
    mixer = max(found.blocks, key=lambda b: b.count).mixer if found else None
    hidden = row.count("hidden_size") or (found.hidden_size if found else 0)
    heads = row.count("num_heads") or (mixer.num_heads if mixer else 0)
    for column, value in (("hidden_size", hidden), ("num_heads", heads)):
        if not value:
            raise ScenarioError(f"{column} is blank")
    vocab = row.count("vocab_size") or int(
        row.default("vocab_size", str(found.vocab_size if found else PADDED_VOCABULARY))
    )
    gated = _flag(row, "gated_ffn")
    options = row.word("framework_options").casefold()
    shape = {
        "num_layers": row.count("num_layers") or (found.num_layers if found else 0),
        "hidden_size": hidden,
        "num_heads": heads,
        "num_kv_heads": row.count("num_kv_heads"),
        "head_size": row.count("head_size"),
        "ffn_size": row.count("ffn_size"),
        "vocab_size": vocab,
        "num_experts": row.count("num_experts"),
        "experts_per_token": row.count("experts_per_token"),
        "moe_ffn_size": row.count("moe_ffn_size"),
        "num_shared_experts": row.count("num_shared_experts"),
        "num_dense_layers": row.count("num_dense_layers"),
        "context_tokens": row.count("seq_len") or 2048,
    }
    kind = name.casefold().split("-")[0]
    if _is_t5(name) and not shape["num_layers"]:
        shape["num_layers"] = int(row.default("num_layers", f"{T5_LAYERS[hidden]} (T5 of that width)").split()[0])
    if "encoder + " in row.word("note"):
        raise ScenarioError("an encoder-decoder with experts is not modelled")
    if _is_t5(name):
        row.default("decoder", "a quarter of the encoder's tokens (512 and 128 in the recipes)")
        return _t5(
            name,
            gated,
            **{k: shape[k] for k in ("num_layers", "hidden_size", "num_heads", "head_size", "ffn_size", "vocab_size")},
        )
    if "multi-latent-attention" in options:
        row.default("attention", "ordinary heads (the sizes of latent attention are not stated)")
    biases = False if "disable-bias-linear" in options or "mpt" in kind else None
    tied = False if "untie-embeddings" in options else None
    model = _shaped(name, gated, kind != "bert", biases, tied, **shape)
    return _confirmed(row, model, name, gated, shape)


def _confirmed(row: Row, model: Model, name: str, gated: bool, shape: dict[str, int]) -> Model:
    """Where a note calls sizes defaults and the count is far off, other usual ones that match the stated count."""
    stated = row.number("num_parameters")
    if not stated or "defaults" not in row.word("note") or abs(model.num_parameters / stated - 1) < FAR_FRAC:
        return model
    for head, is_gated in _usual(gated):
        other = _shaped(name, is_gated, True, False, False, **{**shape, "head_size": head})
        if abs(other.num_parameters / stated - 1) < NEAR_FRAC:
            row.default("head_size and gated_ffn", f"{head} and {str(is_gated).casefold()} (from num_parameters)")
            return other
    return model


def _usual(gated: bool) -> Iterator[tuple[int, bool]]:
    for head in (128, 256, 64):
        yield head, gated
        yield head, not gated


@lru_cache(maxsize=512)
def _shaped(
    name: str, gated: bool, is_causal: bool, has_biases: bool | None, is_tied: bool | None, **shape: int
) -> Model:
    return model_of_shape(
        name=name, gated_ffn=gated, is_causal=is_causal, has_biases=has_biases, is_tied=is_tied, **shape
    )


@lru_cache(maxsize=64)
def _t5(name: str, gated: bool, **shape: int) -> Model:
    return encoder_decoder_of_shape(name=name, gated_ffn=gated, **shape)


def _flag(row: Row, column: str) -> bool:
    return row.word(column).casefold() in ("true", "yes", "1")

"""Any published config.json of a known family, as a ``Model``."""

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from orrery.base.errors import ScenarioError, nearest
from orrery.models import families
from orrery.models.decoder import HEADS, HIDDEN, LAYERS
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.generic import generic
from orrery.models.model import Model
from orrery.models.quantization import ALWAYS, stored_as
from orrery.models.towers import tower_parameters
from orrery.models.unread import unread
from orrery.models.vision import vision_tower

WRAPPED = ("text_config", "language_config", "llm_config", "thinker_config")
"""Where multi-modal configs keep their language model."""

SHARED = ("model_type", "torch_dtype", "dtype", "mtp_config")
"""Keys that a wrapper may state for the language model inside it."""

OF_THE_WHOLE = ("tie_word_embeddings",)
"""Keys of the wrapper that count more than those of the language model inside: the head is the wrapper's."""


def _load(module: str) -> Family:
    return import_module(f"{families.__name__}.{module}").FAMILY


@cache
def _modules() -> tuple[str, ...]:
    """Every file in the ``families`` folder."""
    return tuple(m.name for m in pkgutil.iter_modules(families.__path__))


@cache
def families_by_type() -> dict[str, Family]:
    """``model_type`` -> family, from every file in the ``families`` folder."""
    return {word: family for family in map(_load, _modules()) for word in family.model_types}


@cache
def _family(kind: str) -> Family | None:
    """The family of one ``model_type``: a file named like its beginning is tried before all are opened."""
    for module in sorted((m for m in _modules() if kind.startswith(m)), key=len, reverse=True):
        if kind in (family := _load(module)).model_types:
            return family
    return families_by_type().get(kind)


MAX_QUOTED = 64
"""Letters of an unknown word that an error repeats."""

ORDINARY = "decoder"
"""The family to assume for a decoder of no known one: Llama's structure, and experts where the config counts them."""


def parse(config: Mapping[str, Any], *, name: str, where: str = "", assume: str = "") -> Model:
    """The model that ``config`` describes; ``where`` names the file in error messages.

    ``assume`` names the family that a config of an unknown ``model_type`` is read as; without it such one is refused.
    """
    outer = Fields(config, where or name)
    try:
        return _parse(outer, name, assume)
    except ScenarioError as error:
        text = str(error)
        raise (error if text.startswith(outer.where) else ScenarioError(f"{outer.where}: {text}")) from None
    except (OverflowError, RecursionError) as error:
        raise ScenarioError(f"{outer.where}: sizes too large to mean anything ({error}).") from None


def _parse(outer: Fields, name: str, assume: str) -> Model:
    c = _language(outer)
    kind = c.word("model_type")
    family = _family(kind)
    model = family.build(c, name) if family else _assumed(c, name, kind, assume)
    stored = stored_as(outer if "quantization_config" in outer else c, name)
    tower, left_out = tower_parameters(outer, model.hidden_size)
    notes = (("weights_format", stored.note), ("tower_parameters", left_out), ("fields", unread(c)))
    return replace(
        model,
        weights_format=stored.weights,
        experts_format=stored.experts or model.experts_format,
        role_formats=stored.by_role,
        cache_format=stored.cache,
        kept_16bit_roles=stored.in_16_bits - (ALWAYS - model.kept_16bit_roles),  # a family may round its head too
        tower_parameters=tower,
        tower=vision_tower(outer, model.hidden_size),
        published=(*model.published, *((key, text) for key, text in notes if text)),
    )


def _language(outer: Fields) -> Fields:
    """The part of the config that describes the language model; what it leaves out is the wrapper's."""
    for key in WRAPPED:
        if (inner := outer.table(key)) is not None:
            shared = {k: outer.data[k] for k in SHARED if k in outer}
            stated = {k: v for k, v in inner.data.items() if v is not None}
            whole = {k: outer.data[k] for k in OF_THE_WHOLE if k in outer}
            return _language(Fields({**shared, **stated, **whole}, inner.where))
    return outer


def _assumed(c: Fields, name: str, kind: str, assume: str) -> Model:
    """A config of an unknown ``model_type``, read as the family that the user names, and said so."""
    if not assume:
        raise ScenarioError(_unknown(c, kind))
    family = _family(assume)
    if assume != ORDINARY and family is None:
        near = nearest(assume, (ORDINARY, *families_by_type()))
        hint = f"did you mean {' or '.join(near)}?" if near else f"write {ORDINARY}, or a model_type that is known."
        raise ScenarioError(f"assume: there is no family {assume!r}; {hint}")
    model = family.build(c, name) if family else _ordinary(c, name, kind)
    text = f"model_type {kind[:MAX_QUOTED]!r} is not a known family: read as {assume}, as asked"
    return replace(model, published=(*model.published, ("model_type", text)))


def _unknown(c: Fields, kind: str) -> str:
    """Suggestion for a config of an unknown family."""
    kind = kind[:MAX_QUOTED]
    near = nearest(kind, families_by_type()) if kind else ()
    hint = f" (the nearest known: {', '.join(near)})" if near else ""
    got = f"got {kind!r}, which is no known family{hint}" if kind else "is missing"
    return (
        f"{c.where}: model_type: {got}; nothing is guessed. Say what to read it as, where a "
        f"model's flags are taken: --assume {ORDINARY} for Llama's structure, or --assume "
        f"{near[0] if near else 'qwen3'} or another known model_type."
    )


def _ordinary(c: Fields, name: str, kind: str) -> Model:
    """The ordinary decoder, from a config that states what one needs."""
    needed = (HIDDEN, LAYERS, HEADS, ("intermediate_size", "ffn_hidden_size"), ("vocab_size",))
    missing = [" or ".join(keys) for keys in needed if not any(k in c for k in keys)]
    if missing:
        raise ScenarioError(
            f"{c.where}: model_type: {kind[:MAX_QUOTED]!r} read as an ordinary decoder needs {', '.join(missing)}: "
            f"write {'it' if len(missing) == 1 else 'them'}, or assume another family."
        )
    return generic(c, name)

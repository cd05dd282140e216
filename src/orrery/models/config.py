"""Any published config.json of a known family, as a ``Model``."""

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.models import families
from orrery.models.decoder import HEADS, HIDDEN, LAYERS
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.generic import generic
from orrery.models.model import Model
from orrery.models.quantization import stored_as
from orrery.models.towers import tower_parameters

WRAPPED = ("text_config", "language_config", "llm_config", "thinker_config")
"""Where multi-modal configs keep their language model."""

SHARED = ("model_type", "tie_word_embeddings", "torch_dtype", "dtype")
"""Keys that a wrapper may state for the language model inside it."""


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


def parse(config: Mapping[str, Any], *, name: str, where: str = "") -> Model:
    """The model that ``config`` describes; ``where`` names the file in error messages."""
    outer = Fields(config, where or name)
    try:
        return _parse(outer, name)
    except ScenarioError as error:
        text = str(error)
        raise (error if text.startswith(outer.where) else ScenarioError(f"{outer.where}: {text}")) from None
    except (OverflowError, RecursionError) as error:
        raise ScenarioError(f"{outer.where}: sizes too large to mean anything ({error}).") from None


def _parse(outer: Fields, name: str) -> Model:
    c = _language(outer)
    kind = c.word("model_type")
    family = _family(kind)
    model = family.build(c, name) if family else _generic(c, name, kind)
    stored = stored_as(outer if "quantization_config" in outer else c, name)
    tower, left_out = tower_parameters(outer, model.hidden_size)
    notes = (("weights_format", stored.note), ("tower_parameters", left_out))
    return replace(
        model,
        weights_format=stored.weights,
        experts_format=stored.experts or model.experts_format,
        kept_16bit_roles=stored.kept,
        tower_parameters=tower,
        published=(*model.published, *((key, text) for key, text in notes if text)),
    )


def _language(outer: Fields) -> Fields:
    """The part of the config that describes the language model; what it leaves out is the wrapper's."""
    for key in WRAPPED:
        if (inner := outer.table(key)) is not None:
            shared = {k: outer.data[k] for k in SHARED if k in outer}
            return _language(Fields({**shared, **{k: v for k, v in inner.data.items() if v is not None}}, inner.where))
    return outer


def _generic(c: Fields, name: str, kind: str) -> Model:
    """An unknown ``model_type`` that states what an ordinary decoder needs is read as one, and says so."""
    needed = (HIDDEN, LAYERS, HEADS, ("intermediate_size", "ffn_hidden_size"), ("vocab_size",))
    missing = [" or ".join(keys) for keys in needed if not any(k in c for k in keys)]
    if missing:
        known = ", ".join(sorted(families_by_type()))
        raise ScenarioError(
            f"{c.where}: model_type: got {kind!r}, which is none of {known}; an unknown type is read as an ordinary "
            f"decoder if it states {', '.join(missing)}: write {'it' if len(missing) == 1 else 'them'}."
        )
    model = generic(c, name)
    text = f"model_type {kind!r} is not a known family: read as an ordinary decoder with Llama's structure"
    return replace(model, published=(("model_type", text),))

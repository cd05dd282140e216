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
from orrery.models.model import Model
from orrery.models.quantization import stored_as

WRAPPED = ("text_config", "language_config", "llm_config", "thinker_config")
"""Where multi-modal configs keep their language model."""


@cache
def families_by_type() -> dict[str, Family]:
    """``model_type`` -> family, from every file in the ``families`` folder."""
    found = [import_module(f"{families.__name__}.{m.name}").FAMILY for m in pkgutil.iter_modules(families.__path__)]
    return {word: family for family in found for word in family.model_types}


def parse(config: Mapping[str, Any], *, name: str, where: str = "") -> Model:
    """The model that ``config`` describes; ``where`` names the file in error messages."""
    outer = Fields(config, where or name)
    try:
        return _parse(outer, name)
    except ScenarioError as error:
        text = str(error)
        raise (error if outer.where in text else ScenarioError(f"{outer.where}: {text}")) from None
    except (OverflowError, RecursionError) as error:
        raise ScenarioError(f"{outer.where}: sizes too large to mean anything ({error}).") from None


def _parse(outer: Fields, name: str) -> Model:
    c = _language(outer)
    kind = c.word("model_type", default=outer.word("model_type"))
    if (family := families_by_type().get(kind)) is not None:
        model, note = family.build(c, name), ()
    else:
        model, note = _generic(c, name, kind)
    weights, kept = stored_as(outer if "quantization_config" in outer else c)
    return replace(model, weights_format=weights, kept_16bit_roles=kept, published=model.published + note)


def _language(outer: Fields) -> Fields:
    """The part of the config that describes the language model; its own keys go before the wrapper's."""
    for key in WRAPPED:
        if (inner := outer.table(key)) is not None:
            shared = {k: outer.data[k] for k in ("tie_word_embeddings", "torch_dtype", "dtype") if k in outer}
            inner = Fields({**shared, **{k: v for k, v in inner.data.items() if v is not None}}, inner.where)
            return _language(inner)
    return outer


def _generic(c: Fields, name: str, kind: str) -> tuple[Model, tuple[tuple[str, str], ...]]:
    """An unknown ``model_type`` that states what an ordinary decoder needs is read as one, and says so."""
    needed = (HIDDEN, LAYERS, HEADS, ("intermediate_size",), ("vocab_size",))
    missing = [" or ".join(keys) for keys in needed if not any(k in c for k in keys)]
    if missing:
        known = ", ".join(sorted(families_by_type()))
        raise ScenarioError(
            f"{c.where}: model_type: got {kind!r}, which is none of {known}; an unknown type is read as an ordinary "
            f"decoder if it states {', '.join(missing)}: write {'it' if len(missing) == 1 else 'them'}."
        )
    text = f"model_type {kind!r} is not a known family: read as an ordinary decoder with Llama's structure"
    return families_by_type()["llama"].build(c, name), (("model_type", text),)

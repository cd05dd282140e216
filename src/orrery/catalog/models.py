"""Well-known models by name: the fields of their published configs, one file a model in ``facts/models``.

A name may be spelled in any way people do (``llama3.1-70b``, ``Meta-Llama-3.1-70B-Instruct``); words that say how a
checkpoint was trained further (instruct, chat) do not change the architecture, words that say how it was quantised
(FP8, AWQ, NVFP4) change the weights format only. A path to a config.json works wherever a name does.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import FactError, NotModelled, OtherKind, UnknownName
from orrery.base.sources import Fact, Source, parse_fact, read_toml
from orrery.catalog.diffusion import diffusion_names
from orrery.catalog.recommendation import recommendation_names
from orrery.catalog.speech import speech_names
from orrery.models.config import parse
from orrery.models.image_networks import BUILDERS
from orrery.models.model import Model
from orrery.models.quantization import ALWAYS, GGUF, IN_NAMES, format_in_name
from orrery.models.read import read_model

FOLDER = Path(__file__).parent / "facts" / "models"
ALIASES = FOLDER / "aliases.toml"
CHECKPOINTS = FOLDER.parent / "checkpoints.toml"
NOT_MODELLED = FOLDER.parent / "not_modelled.toml"

TUNED = frozenset(
    {
        "instruct",
        "chat",
        "base",
        "hf",
        "it",
        "meta",
        "pt",
        "sft",
        "dpo",
        "rl",
        "preview",
        "latest",
        "turbo",
        "lite",
        "text",
        "generation",
        "thinking",
    }
)
"""Words that do not change the architecture."""


def model_names() -> tuple[str, ...]:
    """Every catalogued model, as model hubs name it."""
    return tuple(_files())


def other_models() -> dict[str, tuple[str, ...]]:
    """Return models of other kinds than text, which ``orrery estimate`` answers for, by kind."""
    return {
        "pictures and videos that it makes": diffusion_names(),
        "pictures that it reads": tuple(BUILDERS),
        "speech": speech_names(),
        "items that it ranks": recommendation_names(),
    }


@cache
def _files() -> dict[str, Path]:
    """Name -> file; the file's name is the model's, so that none need be opened."""
    found = (p for p in FOLDER.glob("*.toml") if p != ALIASES)
    return {p.stem.replace("--", "/", 1): p for p in sorted(found, key=lambda p: p.name.casefold())}


_SEPARATORS = re.compile(r"[\s:_-]+|(?<!\d)\.|\.(?!\d)")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)_(?=\d)")


def _squeeze(name: str) -> str:
    """Without separators, except the dot between two digits: 1.3b is not 13b."""
    return _SEPARATORS.sub("", name.casefold())


def _readings(name: str) -> tuple[str, ...]:
    """An underscore between digits is a dot (phi-1_5), or else a separator (Qwen3_235B)."""
    dotted = _BETWEEN_DIGITS.sub(".", name)
    return (name,) if dotted == name else (dotted, name)


def _without_organisation(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _words(name: str) -> list[str]:
    return re.split(r"[\s:_-]+|(?<=quantized)\.", GGUF.sub("", _without_organisation(name).casefold()))


def _is_suffix(word: str) -> bool:
    return word in TUNED or word in IN_NAMES


def _stripped(name: str) -> str:
    """The name without any words that leave the architecture alone."""
    return _squeeze("".join(w for w in _words(name) if not _is_suffix(w)))


def _peeled(name: str) -> Iterator[str]:
    """The name without its last such word, without its last two, and so on."""
    words = _words(name)
    if GGUF.search(name.casefold()):
        yield _squeeze("".join(words))
    while len(words) > 1 and _is_suffix(words[-1]):
        words.pop()
        yield _squeeze("".join(words))


@cache
def _exact() -> dict[str, str]:
    """Spellings with and without the organisation, and aliases, to names."""
    found: dict[str, str] = {}
    aliases: dict[str, str] = read_toml(ALIASES).get("aliases", {})
    spelled = [(name, name) for name in _files()]
    spelled += [(_without_organisation(name), name) for name in _files()]
    spelled += aliases.items()
    spelled += [(_without_organisation(alias), name) for alias, name in aliases.items()]
    for text, name in spelled:
        for reading in _readings(text):
            found.setdefault(_squeeze(reading), name)
    return found


@cache
def _loose() -> dict[str, str]:
    """Spellings without the words that do not change the architecture, to names; plain checkpoints go first."""
    found: dict[str, str] = {}
    aliases: dict[str, str] = read_toml(ALIASES).get("aliases", {})
    for text, name in (*aliases.items(), *((n, n) for n in sorted(_files(), key=lambda n: bool(format_in_name(n))))):
        for reading in _readings(text):
            found.setdefault(_stripped(reading), name)
    return found


@cache
def _dotless() -> dict[str, str]:
    """Spellings without the dots in their numbers (llama31-8b), where that leaves one model only."""
    found: dict[str, set[str]] = {}
    for spelled, name in (*_exact().items(), *_loose().items()):
        found.setdefault(spelled.replace(".", ""), set()).add(name)
    return {spelled: min(names) for spelled, names in found.items() if len(names) == 1}


@lru_cache(maxsize=4096)
def find(name: str) -> tuple[str, str] | None:
    """The catalogued name behind any spelling, and the weights format that the spelling asks for ("" = its own); None
    where there is none."""
    if name in _files():
        return name, ""
    for reading in _readings(name):
        for spelled in (reading, _without_organisation(reading)):
            if found := _exact().get(_squeeze(spelled)):
                return found, ""
    for reading in _readings(name):
        for spelled in _peeled(reading):
            if found := _exact().get(spelled):
                return found, format_in_name(name)
    for reading in _readings(name):
        key = _stripped(reading)
        if key and (found := _exact().get(key) or _loose().get(key) or _dotless().get(key.replace(".", ""))):
            return found, format_in_name(name)
    return None


def resolve(name: str) -> tuple[str, str]:
    """The name and format of ``find``; refuses a name without one, with the nearest or with what else it is."""
    if found := find(name):
        return found
    others = tuple(chain(*other_models().values()))
    if _squeeze(name) in {_squeeze(spelled) for other in others for spelled in (other, _without_organisation(other))}:
        raise OtherKind(name)
    for reading in _readings(name):
        if words := _not_modelled().get(_stripped(reading)):
            raise NotModelled(name, *words)
    raise UnknownName("model", name, (*model_names(), *others))


@cache
def _not_modelled() -> dict[str, tuple[str, str]]:
    """Models that are refused, without the words that leave the architecture alone, to (why, what to take instead)."""
    entries = read_toml(NOT_MODELLED)["mechanism"]
    return {_stripped(name): (e["why"]["value"], e["instead"]) for e in entries for name in e["models"]}


@typed
def get_model(name_or_path: str | Path, assume: str = "") -> Model:
    """The model of that name in any spelling, or the one that a config.json (or a folder with one) describes.

    ``assume`` names the family that a config of an unknown ``model_type`` is read as.
    """
    if isinstance(name_or_path, Path) or _looks_like_path(name_or_path):
        return read_model(Path(name_or_path), assume)
    return _by_name(name_or_path)


def _looks_like_path(text: str) -> bool:
    if text.endswith(".json") or text.startswith((".", "/", "~")):
        return True
    path = Path(text)
    try:
        return path.is_file() or (path / "config.json").is_file()
    except (OSError, ValueError):  # too long for a path, or not one at all
        return False


@lru_cache(maxsize=4096)
def _by_name(name: str) -> Model:
    found, weights = resolve(name)
    model = _load(found)
    if not weights or (model.weights_format.startswith(weights) and not model.experts_format):
        return model  # published as such already: "fp8" in a name may mean blocks
    if weights == "fp8" and model.weights_format.startswith("fp8"):
        weights = model.weights_format
    else:
        weights = _published_format((name if "/" in name else found).split("/")[0], weights)
    return replace(
        model, weights_format=weights, experts_format="", role_formats=(), cache_format="", kept_16bit_roles=ALWAYS
    )


@cache
def _published_format(organisation: str, word: str) -> str:
    """The format that a publisher means by a word in the names of its checkpoints."""
    entries = read_toml(CHECKPOINTS)["checkpoint"]
    return next((e["format"]["value"] for e in entries if (e["organisation"], e["word"]) == (organisation, word)), word)


@cache
def _load(name: str) -> Model:
    model = _parsed(name)
    roles = {m.weights_format: m.kept_16bit_roles for m in map(_parsed, _in_other_formats(name))}
    other = {f: r for f, r in roles.items() if f != model.weights_format and r != model.kept_16bit_roles}
    return replace(model, kept_elsewhere=tuple(other.items()))


def _in_other_formats(name: str) -> tuple[str, ...]:
    """Catalogued checkpoints of the same model whose names say their format."""
    return tuple(n for n in _of_one_model()[_stripped(name)] if n != name and format_in_name(n))


@cache
def _of_one_model() -> dict[str, list[str]]:
    """Names of one model's checkpoints, by what they have in common."""
    found: dict[str, list[str]] = {}
    for name in _files():
        found.setdefault(_stripped(name), []).append(name)
    return found


@cache
def _parsed(name: str) -> Model:
    raw = _tables(name)
    config = published_config(name)
    where = "; ".join(f"{s['title']}" for s in raw["sources"].values())
    model = parse(config, name=name, where=f"facts/models/{_files()[name].name}", assume=raw.get("assume", ""))
    return replace(model, published=(*model.published, ("config", where)))


def _tables(name: str) -> dict[str, Any]:
    path = _files()[name]
    raw = read_toml(path)
    if not raw.get("sources") or not ("published" in raw or "same_as" in raw):
        raise FactError(f"{path.name}: needs a [sources.…] table, and [published] config fields or same_as = a name.")
    return raw


def published_config(name: str) -> dict[str, Any]:
    """The published config fields of a catalogued model.

    ``same_as`` takes another's and changes what it states; ``null`` lists keys that the config states as null, where
    that differs from leaving them out.
    """
    raw = _tables(name)
    config = published_config(raw["same_as"]) if "same_as" in raw else {}
    if "same_as" in raw:
        config.pop("quantization_config", None)
    return {**config, **dict.fromkeys(raw.get("null", ())), **raw.get("published", {})}


def published_parameters(name: str) -> Fact | None:
    """The parameter count that the model's publisher states, where the catalogue has it."""
    raw = _tables(name)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    entry = raw.get("facts", {}).get("num_parameters")
    return parse_fact(_files()[name].name, "num_parameters", entry, sources) if entry else None

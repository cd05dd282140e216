"""Back ends of experts, attention and dense products: their names, and the dated rules by which engines choose them.

``facts/backends/<kind>.toml`` holds both; an engine gets the rules of its name and version, in the order of the file.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError, UnknownName
from orrery.base.sources import Basis, Fact, Source, cited, read_toml
from orrery.catalog.releases import is_before, is_past
from orrery.execution.engine import ENDLESS, KINDS, BackendRule, Kind, Situation
from orrery.execution.layout import Backends

FOLDER = Path(__file__).parent / "facts" / "backends"

DEGREES = ("tp", "dp", "ep")
KEYS = frozenset(
    {
        "engine",
        "from",
        "until",
        "on",
        "formats",
        "mixers",
        "modes",
        "families",
        "tokens",
        "activations",
        "backend",
        "tuned_by",
        "source",
        "at",
        *DEGREES,
    }
)


@cache
def _file(kind: Kind) -> Mapping[str, Any]:
    return read_toml(FOLDER / f"{kind}.toml")


@cache
def backend_names(kind: Kind) -> tuple[str, ...]:
    """Every back end of a kind that is known by name."""
    return tuple(entry["name"] for entry in _file(kind)["backend"])


@cache
def _spellings(kind: Kind) -> Mapping[str, str]:
    return {word: e["name"] for e in _file(kind)["backend"] for word in (e["name"], *e.get("aliases", ()))}


def get_backend(kind: Kind, word: str) -> str:
    """The back end that a user's word means; UnknownName with the known ones where there is none."""
    found = _spellings(kind).get(word.strip().casefold().replace("_", "-").replace(" ", "-"))
    if found is None:
        raise UnknownName(f"{kind}_backend", word, backend_names(kind), "docs/models/moe.md")
    return found


def backends_called(words: Mapping[Kind, str]) -> Backends:
    """The kernels that a user's words mean, and what is known of them."""
    names = {kind: get_backend(kind, word) for kind, word in words.items() if word}
    found = names.get("attention")
    turns = [g for e in _file("attention")["backend"] if e["name"] == found for g in e.get("in_turns_on", ())]
    return Backends(**names, attention_in_turns_on=tuple(turns))


@cache
def backend_of_kernel(kind: Kind, kernel: str, format: str) -> str:
    """The back end that a measured kernel's name stands for; empty where nothing says so."""
    for entry in _file(kind).get("kernel", ()):
        if entry["has"] in kernel.casefold() and format in entry.get("formats", (format,)):
            return entry["backend"]
    return ""


@cache
def rules_of(engine: str, version: str) -> tuple[BackendRule, ...]:
    """Default kernel choices of an engine's release; a blank version is the newest."""
    return tuple(rule for kind in KINDS for rule in _rules(kind, engine, version))


def experts_by_default(engine: str, version: str, generation: str, format: str) -> str:
    """The kernels of experts that an engine chooses on a generation, as it calls them (``triton@vllm``); the engine's
    own name where no rule says."""
    stored = "mxfp4" if format.startswith("mxfp4") else format
    at = Situation(generation=generation, format=stored)
    backend = next((r.backend for r in rules_of(engine, version) if r.kind == "moe" and r.accepts(at)), "")
    return f"{backend}@{engine}" if backend else engine


def _rules(kind: Kind, engine: str, version: str) -> list[BackendRule]:
    raw = _file(kind)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    return [
        _rule(kind, entry, sources)
        for entry in raw["rule"]
        if entry["engine"] == engine
        and is_past(entry.get("from", "0"), version)
        and is_before(entry.get("until", ""), version)
    ]


def _rule(kind: Kind, entry: Mapping[str, Any], sources: Mapping[str, Source]) -> BackendRule:
    label = f"{kind}.toml: the rule of {entry['engine']} for {entry.get('backend')}"
    source = cited(label, entry, KEYS, sources)
    if entry.get("backend") not in backend_names(kind):
        raise FactError(f"{label}: there is no such back end; known: {', '.join(backend_names(kind))}.")
    return BackendRule(
        kind=kind,
        backend=entry["backend"],
        activations=entry.get("activations", ""),
        tuned_by=entry.get("tuned_by", ""),
        generations=tuple(entry.get("on", ())),
        formats=tuple(entry.get("formats", ())),
        mixers=tuple(entry.get("mixers", ())),
        modes=tuple(entry.get("modes", ())),
        families=tuple(entry.get("families", ())),
        spans={d: _span(entry[d]) for d in DEGREES if d in entry},
        tokens=_span(entry.get("tokens", (0.0, ENDLESS))),
        fact=Fact(name=f"{kind}_backend", value=entry["backend"], basis=Basis.STATED, source=source, at=entry["at"]),
    )


def _span(ends: Sequence[float]) -> tuple[float, float]:
    least, most = ends
    return float(least), float(most)

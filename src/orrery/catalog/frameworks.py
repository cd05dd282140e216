"""Training frameworks by name: documented defaults, and what measured runs say their layers and steps cost.

``facts/frameworks/<name>.toml`` holds the defaults; ``like`` names the framework whose facts hold where a file says
nothing, and ``[[setting]]`` what a release changed or a recipe sets for some runs::

    [[setting]]
    since = "26.06"  # blank: always; ``until`` = the first release that does not any more
    generation = "blackwell"  # of the device
    precision = "mxfp8"
    model = "openai/gpt-oss-120b"
    models = ["microsoft/phi-2"]  # or one of several
    devices = ["gb200"]
    tasks = ["lora", "adapter"]
    is_alone = true  # one device
    facts.fuses_experts = { value = true, from = "releases", at = "0.5.0" }

``facts/training.toml`` holds what measured runs taught, one table for each kind of run::

    [sources.runs]
    title = "Published training runs, tables of docs/scorecard.md"
    retrieved = "2026-11"

    [[framework]]
    name = "megatron-lm"  # "" = any
    generation = "hopper"  # of the device; "" = any
    precision = "fp8"  # the format of a recipe's products; "" = any
    source = "runs"
    at = "31 rows to fit, 33 for the intervals"

    [framework.constants]  # those of ASSUMED, or some of them
    matrix_ratio = 1.12

    [framework.spread."pretrain.step_time_s"]  # truth / prediction at four quantiles
    low_80 = 0.92
    high_80 = 1.11
    low_95 = 0.8
    high_95 = 1.3

A name that ends in ``.toml`` is a correction by a user's own runs; see ``corrected``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError
from orrery.base.sources import Basis, Fact, Source, parse_fact, read_toml
from orrery.catalog.corrected import Corrected, read_corrected
from orrery.catalog.named_files import file_called, file_names, is_own_file, read_file
from orrery.catalog.releases import is_before, is_past
from orrery.execution.train.framework import Framework
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.device import Device

FOLDER = Path(__file__).parent / "facts" / "frameworks"
FITTED = Path(__file__).parent / "facts" / "training.toml"

DEFAULT_FRAMEWORK = "pytorch"
"""The framework of a run that names none."""

ASSUMED = {
    "host_layer_s": 1.5e-4,
    "host_backward_ratio": 1.5,
    "host_expert_s": 5e-4,
    "host_collective_s": 3e-5,
    "step_s": 5e-3,
    "matrix_ratio": 1.1,
    "elementwise_ratio": 1.3,
    "attention_ratio": 1.2,
    "network_ratio": 1.2,
    "scaleout_ratio": 1.2,
    "contention_ratio": 1.1,
    "fragmentation_ratio": 1.05,
    "fixed_bytes": 5e8,
    "update_bytes": 1.0,
}
"""Where no measured run says anything: some fifteen launches of 10 microseconds a layer, and a little of the rest."""


OWN = frozenset({"step_s"})
"""Seconds that long steps hide errors in: what a framework's runs say of them is nobody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Purpose of a framework: its settings may depend on it. A blank version is the newest release."""

    version: str = ""
    model: str = ""
    task: str = ""
    is_alone: bool = False  # one device


USE = Use()


def framework_names() -> tuple[str, ...]:
    """Every framework with a fact file."""
    return file_names(FOLDER)


def framework_called(name: str) -> str:
    """The name of the fact file of a framework, by any of its names."""
    return file_called(FOLDER, "framework", name or DEFAULT_FRAMEWORK)


def get_framework(name: str = "", device: Device | None = None, precision: str = "", use: Use = USE) -> Framework:
    """The framework called ``name`` (blank = plain PyTorch) with what is known of it on ``device`` with a recipe."""
    if is_own_file(name):
        own = read_corrected(name, "framework", ASSUMED)
        base = get_framework(own.base, device, precision, use)
        return _with_own(base, own) if own.holds_on(device) and own.precision in ("", precision) else base
    return _framework(
        framework_called(name), *((device.generation, device.name) if device else ("", "")), precision, use
    )


@cache
def _with_own(base: Framework, own: Corrected) -> Framework:
    """The base with the constants and spreads of a user's runs on top."""
    values: dict[str, Any] = {key: fact.value for key, fact in own.facts.items()}
    return replace(base, facts={**base.facts, **own.facts}, spreads={**base.spreads, **own.spreads}, **values)


def framework_notes(name: str, device: Device) -> tuple[str, ...]:
    """Notes beside an answer where the framework is a file of the user's."""
    return (read_corrected(name, "framework", ASSUMED).note(device),) if is_own_file(name) else ()


@cache
def _documented(name: str) -> tuple[str, Mapping[str, Fact]]:
    """Engine with the nearest kernels, and the facts on top of those of the framework that this one is ``like``."""
    raw = read_file(FOLDER, name)
    sources = {key: Source(**table) for key, table in raw.get("sources", {}).items()}
    own = {key: parse_fact(f"{name}.toml", key, entry, sources) for key, entry in raw.get("facts", {}).items()}
    if "like" not in raw:
        return raw["kernels"], own
    kernels, facts = _documented(raw["like"])
    return raw.get("kernels", kernels), {**facts, **own}


@cache
def lineage(name: str) -> tuple[str, ...]:
    """A framework and those that it is like, from the nearest to the farthest."""
    if name not in framework_names():
        return (name,)
    raw = read_file(FOLDER, name)
    return (name, *lineage(raw["like"])) if "like" in raw else (name,)


SETTING_KEYS = frozenset(
    {
        "since",
        "until",
        "generation",
        "devices",
        "precision",
        "model",
        "models",
        "tasks",
        "is_alone",
        "facts",
    }
)


@cache
def _settings(name: str, generation: str, device: str, precision: str, use: Use) -> Mapping[str, Fact]:
    """Settings of releases and recipes, later entries over earlier ones."""
    raw = read_file(FOLDER, name)
    sources = {key: Source(**table) for key, table in raw.get("sources", {}).items()}
    known = {"generation": generation, "precision": precision, "model": use.model, "is_alone": use.is_alone}
    out: dict[str, Fact] = {}
    for entry in raw.get("setting", []):
        if unknown := entry.keys() - SETTING_KEYS:
            raise FactError(f"{name}.toml: a setting has no {', '.join(sorted(unknown))}.")
        is_for = all(entry.get(key, value) == value for key, value in known.items())
        is_for = is_for and use.task in entry.get("tasks", (use.task,)) and device in entry.get("devices", (device,))
        is_for = is_for and use.model in entry.get("models", (use.model,))
        if is_for and is_past(entry.get("since", "0"), use.version) and is_before(entry.get("until", ""), use.version):
            out |= {key: parse_fact(f"{name}.toml", key, fact, sources) for key, fact in entry["facts"].items()}
    return out


@cache
def _framework(name: str, generation: str, device: str, precision: str, use: Use) -> Framework:
    kernels, facts = _documented(name)
    constants, spreads = _fitted(name, generation, get_recipe(precision).forward_format if precision else "")
    facts = {**facts, **_settings(name, generation, device, precision, use), **constants}
    known = {f.name for f in fields(Framework)}
    if unknown := facts.keys() - known:
        raise FactError(f"{name}.toml: Framework has no {', '.join(sorted(unknown))}.")
    values: dict[str, Any] = {key: fact.value for key, fact in facts.items()}
    try:
        return Framework(name=name, kernels=kernels, spreads=spreads, facts=facts, **values)
    except TypeError as error:
        raise FactError(f"{name}.toml: {error}") from None


@cache
def _fitted_entries() -> tuple[list[dict[str, Any]], dict[str, Source]]:
    if not FITTED.exists():
        return [], {}
    raw = read_toml(FITTED)
    return raw["framework"], {key: Source(**table) for key, table in raw["sources"].items()}


def _fitted(name: str, generation: str, precision: str) -> tuple[dict[str, Fact], Mapping[str, Mapping[str, float]]]:
    """Constants and spreads; each from the nearest entry that states it.

    Where none speaks of a framework, constants are those of the one that it is like.
    """
    facts = {key: Fact(name=key, value=value, basis=Basis.ASSUMED) for key, value in ASSUMED.items()}
    spreads: dict[str, Mapping[str, float]] = {}
    entries, sources = _fitted_entries()
    line = lineage(name)
    elders = [e for elder in line[:0:-1] for e in sorted(entries, key=nearness) if e["name"] == elder]
    mine = sorted((e for e in entries if _serves(e, name, generation, precision)), key=nearness)
    of_any, own = ([e for e in mine if bool(e["name"]) == is_own] for is_own in (False, True))
    inherited = [e for e in elders if _serves(e, e["name"], generation, precision)]
    for entry in (*of_any, *inherited, *own):
        if unknown := entry.get("constants", {}).keys() - ASSUMED.keys():
            raise FactError(f"{FITTED.name}: no such constant: {', '.join(sorted(unknown))}.")
        source, at = sources[entry["source"]], entry["at"]
        facts |= {
            key: Fact(name=key, value=float(value), basis=Basis.MEASURED, source=source, at=at)
            for key, value in entry.get("constants", {}).items()
            if key not in OWN or entry["name"] in ("", name)
        }
        spreads |= entry.get("spread", {}) if entry["name"] in ("", name) else {}
    return facts, spreads


def _serves(entry: Mapping[str, Any], name: str, generation: str, precision: str) -> bool:
    """Whether an entry speaks of such runs: every word that it states is theirs."""
    required = {"name": name, "generation": generation, "precision": precision}
    return all(entry.get(key, "") in ("", word) for key, word in required.items())


def nearness(entry: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """Sorts entries from far to near: the framework counts most, then the device's generation, then the precision.

    So: framework, generation and precision; framework and generation; framework and precision; framework; generation
    and precision; generation; precision; any.
    """
    return bool(entry.get("name")), bool(entry.get("generation")), bool(entry.get("precision"))

"""Serving engines by name and version: documented defaults, and what measured runs say their host costs.

``facts/engines/<name>.toml`` holds the defaults, one ``[[version]]`` table for each release that changed them, oldest
first; a later table only says what it changes; ``[[since]]`` tables change defaults within an era, whose fitted
constants stay; ``[[by_memory]]`` tables, of all releases or of one and those after it, say what goes by the memory of
the device, of some ``vendors`` only where they are named; ``vendors`` above all tables says whose devices it runs on,
where not on everybody's; ``runs_on`` names the engine whose library it starts, and so whose host constants it has.
``facts/calibrations/engines.toml`` holds the fitted host constants and the error of each kind of run. A name that ends
in ``.toml`` is a correction by a user's own runs; see ``corrected``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache, lru_cache
from math import log
from pathlib import Path
from typing import Any

from orrery.base.cost import Spread
from orrery.base.errors import FactError, ScenarioError
from orrery.base.sources import Basis, Fact, Source, parse_fact, read_toml
from orrery.catalog.backends import rules_of
from orrery.catalog.calibrations import ENGINES as FITTED
from orrery.catalog.calibrations import is_measured
from orrery.catalog.corrected import Corrected, read_corrected
from orrery.catalog.named_files import file_called, file_names, is_own_file, read_file
from orrery.catalog.releases import UNVERSIONED, is_past, newest_at, numbers, release_day
from orrery.execution.engine import Engine
from orrery.hardware.device import Device

FOLDER = Path(__file__).parent / "facts" / "engines"

GIB = 2.0**30

SATURATION = 4
"""Sharpness of the turn from reading as fast as compute units ask to as fast as the memory gives."""

POOLED = ""
"""The version of an entry that pools over all eras of an engine."""

ASSUMED_HOST = {
    "step_s": 1e-3,
    "per_sequence_s": 1e-5,
    "per_layer_s": 8e-6,
    "sampling_s": 1e-6,
    "launch_s": 8e-6,
    "request_s": 1e-2,
    "per_prompt_token_s": 2e-6,
    "memory_ratio": 1.0,
    "compute_ratio": 1.0,
}
"""Where no measured run says anything: a millisecond a step, and what published profiles of engines suggest."""


def engine_names() -> tuple[str, ...]:
    """Every engine with a fact file."""
    return file_names(FOLDER)


def get_engine(name: str, version: str = "", device: Device | None = None) -> Engine:
    """The engine called ``name`` at ``version`` (blank = newest known), with the defaults it takes on ``device``."""
    if is_own_file(name):
        own = read_corrected(name, "engine", ASSUMED_HOST)
        if version and own.version and era_of(own.base, version) != era_of(own.base, own.version):
            raise ScenarioError(
                f"engine_version: {name} was measured with {own.version}, and defaults have changed since or until "
                f"{version}; leave it out, or calibrate with runs of {version}."
            )
        base = get_engine(own.base, version or own.version, device)
        return _with_own(base, own) if own.holds_on(device) else base
    devices = (device.generation, device.vendor, device.memory_capacity_bytes / GIB) if device else ()
    found = _engine(file_called(FOLDER, "engine", name), version, *devices)
    if device is None:
        return found
    ratio = bandwidth_ratio(found.unit_bytes_per_s, device)
    return _on_device(found, device.host_time_ratio, ratio) if (device.host_time_ratio, ratio) != (1.0, 1.0) else found


HOST_WORK = ("step_s", "per_sequence_s", "launch_s", "request_s", "per_prompt_token_s")
"""Constants that are one host thread's work: fitted as seconds of a usual x86 server."""


RATIOS = ("memory_ratio", "compute_ratio")
DEVICE_WORK = ("per_layer_s", *RATIOS)
"""Constants of an engine's kernels, which any engine's runs on some devices say something about."""


def bandwidth_ratio(unit_bytes_per_s: float, device: Device) -> float:
    """How much longer reading takes because compute units, each of so many bytes/s at most, do not fill the memory's
    bandwidth: 1 where they are many, the ratio of both where they are few, smooth between."""
    ratio = device.memory_bandwidth_bytes_per_s / (device.num_compute_units * unit_bytes_per_s)
    return float((1.0 + ratio**SATURATION) ** (1.0 / SATURATION))


def on_device(constants: Mapping[str, float], device: Device) -> dict[str, float]:
    """Fitted constants on a device whose host is slower or faster, and whose units may not fill its bandwidth."""
    ratio = device.host_time_ratio
    found = {name: value * ratio if name in HOST_WORK else value for name, value in constants.items()}
    if "unit_bytes_per_s" in found:
        found["memory_ratio"] *= bandwidth_ratio(found["unit_bytes_per_s"], device)
    return found


@lru_cache(maxsize=1024)
def _on_device(engine: Engine, host_ratio: float, reading_ratio: float) -> Engine:
    """The engine where a host's work and memory-bound kernels take so many times as long."""
    values: dict[str, Any] = {name: getattr(engine, name) * host_ratio for name in HOST_WORK}
    values["memory_ratio"] = engine.memory_ratio * reading_ratio
    facts = {k: replace(engine.facts[k], value=v) for k, v in values.items() if k in engine.facts}
    return replace(engine, facts={**engine.facts, **facts}, **values)


@cache
def _with_own(base: Engine, own: Corrected) -> Engine:
    """The base with the constants and spreads of a user's runs on top."""
    values: dict[str, Any] = {key: fact.value for key, fact in own.facts.items()}
    spreads = {key: _spread(table, own.at) for key, table in own.spreads.items()}
    spreads = {**_paces(spreads), **spreads}
    spreads |= {f"{mode} experts.{metric}": s for (mode, _, metric), s in _split(spreads)}  # the runs know the model
    return replace(base, facts={**base.facts, **own.facts}, spreads={**base.spreads, **spreads}, **values)


def _split(spreads: Mapping[str, Spread]) -> list[tuple[tuple[str, str, str], Spread]]:
    return [(key.partition("."), spread) for key, spread in spreads.items()]


def _paces(spreads: Mapping[str, Spread]) -> dict[str, Spread]:
    """By mode, the spread of the time a token where runs state only the times or rates of whole requests."""
    found: dict[str, Spread] = {}
    for (mode, _, metric), spread in _split(spreads):
        if metric == "latency_s":
            found[f"{mode}.tpot_s"] = spread
        elif metric in ("output_tokens_per_s", "requests_per_s", "total_tokens_per_s"):
            found.setdefault(f"{mode}.tpot_s", spread.inverse())
    return found


def _spread(table: Mapping[str, float], because: str) -> Spread:
    return Spread(**{f"{k}_ratio": v for k, v in table.items()}, because=because)


def engine_notes(name: str, device: Device) -> tuple[str, ...]:
    """Notes beside an answer: a user file's constants, what a preset leaves out, devices that it does not run on."""
    if is_own_file(name):
        return (read_corrected(name, "engine", ASSUMED_HOST).note(device),)
    if not name:
        return ()
    called = file_called(FOLDER, "engine", name)
    raw = read_file(FOLDER, called)
    vendors = raw.get("vendors", (device.vendor,))
    if device.vendor in vendors:
        return tuple(raw.get("notes", ()))
    return (
        *raw.get("notes", ()),
        f"engine: {called} runs on devices of {', '.join(vendors)} alone; on {device.name} this is what it would do",
    )


@lru_cache(maxsize=256)
def newest_release(name: str) -> str:
    """The newest release, which a blank version stands for, or the newest that changed defaults; "" where none is
    dated."""
    if is_own_file(name):
        return ""
    if version := newest_at(file_called(FOLDER, "engine", name)):
        return f"{version} ({release_day(file_called(FOLDER, 'engine', name), version)})"
    last = read_file(FOLDER, file_called(FOLDER, "engine", name))["version"][-1]
    return f"{last['from']} ({last['released']}) or later" if "released" in last else ""


def _by_memory(tables: Iterable[Mapping[str, Any]], vendor: str, memory_gib: float) -> dict[str, Any]:
    """Entries of the first ``[[by_memory]]`` table that a device of the vendor stays below; none without a device."""
    mine = (t for t in tables if memory_gib and memory_gib < t["below_gib"] and vendor in t.get("vendors", [vendor]))
    nothing: Mapping[str, Any] = {}
    return {key: entry for key, entry in next(mine, nothing).items() if key not in ("below_gib", "vendors")}


@lru_cache(maxsize=4096)
def _engine(name: str, version: str, generation: str = "", vendor: str = "", memory_gib: float = 0.0) -> Engine:
    raw = read_file(FOLDER, name)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    facts: dict[str, Fact] = {}
    for table in (*raw["version"], *raw.get("since", ())):
        if is_past(table["from"], version):
            everywhere = {k: v for k, v in table.items() if k not in ("from", "released", "library", "on", "by_memory")}
            sized = _by_memory(table.get("by_memory", ()), vendor, memory_gib)
            on = table.get("on", {})  # what is so on a vendor's devices, then on one generation's
            for key, entry in (everywhere | sized | on.get(vendor, {}) | on.get(generation, {})).items():
                facts[key] = parse_fact(f"{name}.toml", key, entry, sources)
    for key, entry in _by_memory(raw.get("by_memory", ()), vendor, memory_gib).items():
        facts[key] = parse_fact(f"{name}.toml", key, entry, sources)
    fitted, fact = _fitted(*host_release(name, version), generation, vendor)
    host = ASSUMED_HOST | fitted["constants"]
    if raw["kernels"] == name and is_measured(generation):
        host["memory_ratio"] = 1.0  # its own kernels were timed there; an era's runs may all be on others
    facts |= {
        k: Fact(name=k, value=host[k], basis=fact.basis, source=fact.source, at=fact.at) for k in host if k not in facts
    }
    known = {f.name: f.type for f in fields(Engine)}
    if unknown := facts.keys() - known.keys():
        raise FactError(f"{name}.toml: Engine has no {', '.join(sorted(unknown))}.")
    values = {key: _typed(fact.value, known[key]) for key, fact in facts.items()}
    limits = {
        entry["family"]: parse_fact(f"{name}.toml", "max_num_seqs", entry["max_num_seqs"], sources)
        for entry in raw.get("limit", ())
    }
    rooms = {
        family: parse_fact(f"{name}.toml", "window_room_frac", entry["room"], sources)
        for entry in raw.get("windows", ())
        if is_past(entry.get("from", "0"), version)
        for family in entry["families"]
    }
    spreads = {
        k: _spread(table, fitted["at"])
        for k, table in (_pooled_spreads() | fitted.get("spread", {}) | raw.get("spread", {})).items()
    }
    try:
        return Engine(
            name=name,
            version=version,
            kernels=raw["kernels"],
            scales_measured=is_measured(generation) if generation else True,
            has_eras=_has_eras(name),
            backends=rules_of(name, version),
            spreads=spreads,
            facts=facts
            | {f"max_num_seqs of {family}": fact for family, fact in limits.items()}
            | {f"window_room_frac of {family}": fact for family, fact in rooms.items()},
            window_room_fracs={family: float(fact.value) for family, fact in rooms.items()},
            max_num_server_seqs={family: int(fact.value) for family, fact in limits.items()},
            **values,
        )
    except TypeError as error:
        raise FactError(f"{name}.toml: {error}") from None


def _typed(value: float | str | bool, kind: Any) -> Any:
    return int(value) if kind is int else bool(value) if kind is bool else value


def host_of(name: str) -> str:
    """The engine whose host constants an engine takes: its own name, or that of the engine that it wraps."""
    return str(read_file(FOLDER, file_called(FOLDER, "engine", name)).get("runs_on", name))


def host_release(name: str, version: str) -> tuple[str, str]:
    """The engine whose host constants an engine takes, and the release of it that a ``version`` of this one has; where
    nobody wrote that down, of its first era."""
    host = host_of(name)
    if host == name or version in ("", UNVERSIONED):
        return host, version
    tables = read_file(FOLDER, file_called(FOLDER, "engine", name))["version"]
    return host, [str(table.get("library", "0")) for table in tables if is_past(table["from"], version)][-1]


def era_of(name: str, version: str) -> str:
    """The release that last changed the engine's defaults before ``version``."""
    if version == UNVERSIONED:
        return UNVERSIONED
    return [table["from"] for table in read_file(FOLDER, name)["version"] if is_past(table["from"], version)][-1]


def version_at(name: str, date: str) -> str:
    """The release that was current on a date (ISO, as far as it goes), which a run of that day is taken to have used;
    where no releases are dated, the era."""
    if is_own_file(name):
        return read_corrected(name, "engine", ASSUMED_HOST).version
    if version := newest_at(file_called(FOLDER, "engine", name), date):
        return version
    past = [
        table["from"]
        for table in read_file(FOLDER, file_called(FOLDER, "engine", name))["version"]
        if table.get("released", "") <= date
    ]
    return past[-1]


@cache
def _fitted_entries() -> tuple[list[dict[str, Any]], dict[str, Source]]:
    if not FITTED.exists():
        return [], {}
    raw = read_toml(FITTED)
    return raw["engine"], {key: Source(**table) for key, table in raw["sources"].items()}


def _pooled_spreads() -> dict[str, Any]:
    """The error of every kind of run over all engines: what an engine shows that was never measured in it."""
    entries, _ = _fitted_entries()
    return entries[0]["spread"] if entries else {}


def _fitted(name: str, version: str, generation: str, vendor: str = "") -> tuple[Mapping[str, Any], Fact]:
    """The nearest entry: this era of the engine, else the newest older one, else all of the engine, else any engine;
    of an era what was fitted on this generation, else on all, and then times what any engine shows on such devices."""
    entries, sources = _fitted_entries()
    own = [e for e in entries if e["name"] == name and e["generation"] in ("", generation)]
    mine = [e for e in own if _covers(e, version)] if _has_eras(name) else own
    for entry in sorted(mine, key=lambda e: (-_age(e), not e["generation"])) or entries[:1]:
        fact = Fact(
            name="host constants",
            value=entry["name"] or "any engine",
            basis=Basis.MEASURED,
            source=sources[entry["source"]],
            at=entry["at"],
        )
        return entry if entry["generation"] else _on_devices(entry, generation, vendor), fact
    assumed: dict[str, Any] = {"constants": ASSUMED_HOST, "at": "assumed"}
    return assumed, Fact(name="host constants", value="assumed", basis=Basis.ASSUMED)


def _on_devices(entry: Mapping[str, Any], generation: str, vendor: str) -> Mapping[str, Any]:
    """An entry over all generations, times what entries of any engine say of this generation, else of this vendor."""
    entries, _ = _fitted_entries()
    of_any = [e for e in entries if not e["name"] and e["generation"] in (vendor, generation) and e["generation"]]
    if not of_any:
        return entry
    nearest = max(of_any, key=lambda e: e["generation"] == generation)
    base, found = entries[0]["constants"], nearest["constants"]
    constants = {k: v * found[k] / base[k] if k in DEVICE_WORK else v for k, v in entry["constants"].items()}
    spread = {k: _as_far(table, entries[0]["spread"], nearest["spread"], k) for k, table in entry["spread"].items()}
    at = f"{entry['at']}; any engine on {nearest['generation']}"
    return {**entry, "constants": constants, "spread": spread, "at": at}


def _as_far(
    table: Mapping[str, float], anywhere: Mapping[str, Any], there: Mapping[str, Any], key: str
) -> Mapping[str, float]:
    """An interval whose ends lie as much further out as any engine's do on some devices over those anywhere."""
    if key not in anywhere or key not in there:
        return table
    return {end: v ** (log(there[key][end]) / log(anywhere[key][end])) for end, v in table.items()}


def _has_eras(name: str) -> bool:
    """Whether releases of the engine are told apart; else what was fitted on runs of any release holds for all."""
    return not name or len(read_file(FOLDER, file_called(FOLDER, "engine", name))["version"]) > 1


def _age(entry: Mapping[str, Any]) -> float:
    """The era as a number that grows with time; what pools over eras comes after all of them."""
    if entry["version"] == POOLED:
        return -1.0
    if entry["version"] == UNVERSIONED:
        return 0.0
    return sum(x / 1000.0**i for i, x in enumerate(numbers(entry["version"])))


def _covers(entry: Mapping[str, Any], version: str) -> bool:
    """Whether a fitted entry's era is at or before ``version``; runs without a version have an entry of their own."""
    if entry["version"] == POOLED:
        return True
    if UNVERSIONED in (entry["version"], version):
        return entry["version"] == version
    return is_past(entry["version"], version)

"""Runtimes of speech models, by name: counted operators with their sources, and fitted seconds of the host."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.cost import Spread
from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, Source, parse_fact, read_toml
from orrery.catalog.engines import get_engine
from orrery.execution.speech_runtime import KERNELS_ALONE, SpeechRuntime
from orrery.hardware.device import Device

FILE = Path(__file__).parent / "facts" / "speech_runtimes.toml"
FITTED = FILE.with_name("speech_host.toml")
DEFAULTS = ("faster-whisper", "whisper.cpp")
"""Runtimes that are meant where none is named: the first that has kernels for the device."""

KINDS = {
    "eager": {"operator_s": "eager_operator_s", "step_s": "eager_step_s"},
    "native": {"operator_s": "native_operator_s", "step_s": "native_step_s"},
    "graph": {"node_s": "graph_node_s", "step_s": "native_step_s"},
}
"""By kind of runtime: its seconds of the host, and the fitted constants that they are."""

WORDS = frozenset({"title", "aliases", "kind", "served_by", "gpu_vendors"})
COUNTED = frozenset(f.name for f in fields(SpeechRuntime)) - {"name", "title", "facts", "spread"}


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return read_toml(FILE)["runtimes"]


@cache
def _sources() -> Mapping[str, Source]:
    return {key: Source(**table) for key, table in read_toml(FILE)["sources"].items()}


def fitted_constants() -> Mapping[str, float]:
    """Return the fitted seconds of hosts."""
    return read_toml(FITTED)["constants"]


@cache
def fitted_spread() -> Spread:
    """Return the spread of measured over predicted times on campaigns that had no part in the fit."""
    found = read_toml(FITTED)["spread"]
    return Spread(
        **{f"{k}_ratio": found[k] for k in ("low_80", "high_80", "low_95", "high_95")}, because=found["because"]
    )


def runtime_names() -> tuple[str, ...]:
    """Return every runtime, and the kernels alone."""
    return (*_tables(), KERNELS_ALONE.name)


@cache
def _spellings() -> Mapping[str, str]:
    named = {name: (name, *table["aliases"]) for name, table in _tables().items()}
    return {spelled: name for name, all_of_it in named.items() for spelled in all_of_it} | {
        KERNELS_ALONE.name: KERNELS_ALONE.name
    }


def runs_on(runtime: str, device: Device) -> bool:
    """Whether a runtime has kernels for a device: for its vendor's GPUs, or for any processor that is none."""
    vendors = _tables().get(runtime, {}).get("gpu_vendors")
    return vendors is None or device.kind != "gpu" or device.vendor in vendors


def default_runtime(device: Device) -> str:
    """Return the runtime that is meant where none is named."""
    return next(name for name in DEFAULTS if runs_on(name, device))


def get_runtime(name: str, device: Device, constants: Mapping[str, float] | None = None) -> SpeechRuntime:
    """Return the runtime of that name on a device, with other constants than the fitted ones where they are given."""
    found = _spellings().get(name.casefold().strip())
    if found is None:
        raise UnknownName("runtime of speech", name, runtime_names())
    if found == KERNELS_ALONE.name:
        return KERNELS_ALONE
    seconds = fitted_constants() if constants is None else constants
    return replace(_runtime(found), spread=fitted_spread(), **_host(_tables()[found], device, seconds))


@cache
def _runtime(name: str) -> SpeechRuntime:
    table = _tables()[name]
    raw = {key: cell for key, cell in table.items() if key not in WORDS}
    facts: dict[str, Fact] = {key: parse_fact(FILE.name, key, cell, _sources()) for key, cell in raw.items()}
    values = {key: fact.value for key, fact in facts.items()}
    values["num_beams"] = int(float(values["num_beams"]))
    return SpeechRuntime(name=name, title=table["title"], facts=facts, **values)  # pyright: ignore[reportArgumentType]


def _host(table: Mapping[str, Any], device: Device, seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of the host: a serving engine's own where it serves language models too, else those of its kind."""
    if "served_by" in table:
        engine = get_engine(table["served_by"], device=device)
        return {
            "operator_s": engine.launch_s,
            "layer_s": engine.per_layer_s,
            "sequence_s": engine.sampling_s + engine.per_sequence_s,
            "step_s": (1.0 - engine.overlap_frac) * engine.step_s,
        }
    return {name: device.host_time_ratio * seconds[fitted] for name, fitted in KINDS[table["kind"]].items()}

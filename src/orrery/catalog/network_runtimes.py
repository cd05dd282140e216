"""Runtimes of image networks and of recommendation, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, Source, parse_fact, read_toml
from orrery.catalog.speech_runtimes import fitted_constants
from orrery.hardware.device import Device

FILE = Path(__file__).parent / "facts" / "network_runtimes.toml"
DEFAULT = "tensorrt"
FLAGS = ("fuses", "passes_codes", "is_eager")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRuntime:
    """One runtime: what it fuses, what lies between its products, and the host's seconds of an operator."""

    name: str
    title: str
    fuses: bool
    passes_codes: bool
    is_eager: bool
    operator_s: float
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact], compare=False)


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return read_toml(FILE)["runtimes"]


@cache
def _facts(name: str) -> Mapping[str, Fact]:
    sources = {key: Source(**table) for key, table in read_toml(FILE)["sources"].items()}
    return {flag: parse_fact(FILE.name, flag, _tables()[name][flag], sources) for flag in FLAGS}


def network_runtime_names() -> tuple[str, ...]:
    """Return every runtime."""
    return tuple(_tables())


def get_network_runtime(name: str, device: Device) -> NetworkRuntime:
    """Return the runtime of that name on a device; an eager operator takes its host what it takes in speech."""
    spelled = {word: key for key, table in _tables().items() for word in (key, *table["aliases"])}
    found = spelled.get(name.casefold().strip())
    if found is None:
        raise UnknownName("runtime of such a network", name, network_runtime_names())
    facts = _facts(found)
    operator_s = fitted_constants()["eager_operator_s"] * device.host_time_ratio
    return NetworkRuntime(
        name=found,
        title=_tables()[found]["title"],
        fuses=bool(facts["fuses"].value),
        passes_codes=bool(facts["passes_codes"].value),
        is_eager=bool(facts["is_eager"].value),
        operator_s=operator_s if facts["is_eager"].value else 0.0,
        facts=facts,
    )

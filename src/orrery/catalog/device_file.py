"""One device file: which facts it must hold, what values are plausible, and the Device it makes.

A device file names the device (``title``, ``vendor``, ``kind``, ``generation``, perhaps ``measured_as``), lists its
sources, and gives one fact a line. One by ``orrery calibrate device`` adds ``[conditions]`` and the constants
that it measured as ``[[calibration]]``. The same reader serves the catalogue's own files and a user's.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import FactError, nearest
from orrery.base.sources import Basis, Fact, Source, parse_fact, read_toml
from orrery.base.user_text import table_in
from orrery.hardware.device import Device, Link
from orrery.hardware.roofs import Roofs

IDENTITY = ("title", "vendor", "kind", "generation")
KINDS = ("gpu", "tpu", "npu", "cpu", "dataflow", "pim")
TOPOLOGIES = ("switch", "mesh", "ring", "torus-2d", "torus-3d", "bus")
RATES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4", "nvfp4", "int4")
"""Formats that a peak rate may be stated for: ``dense_<format>_flops_per_s``."""

LINKS = ("scaleup", "scaleout", "host")

PLAUSIBLE: dict[str, tuple[float, float]] = {
    "memory_capacity_bytes": (1e8, 1e13),
    "memory_bandwidth_bytes_per_s": (1e9, 1e17),
    "vector_flops_per_s": (1e9, 1e17),
    "num_compute_units": (1, 1e6),
    "compute_clock_hz": (1e8, 1e10),
    "last_level_cache_bytes": (1e4, 1e11),
    "power_limit_w": (1, 1e5),
    "idle_power_w": (0.01, 1e4),
    "num_devices_per_node": (1, 1e4),
    "num_scaleup_devices": (1, 1e6),
    **{f"{link}_each_way_bytes_per_s": (1e6, 1e14) for link in LINKS},
    **{f"{link}_latency_s": (1e-9, 1e-1) for link in LINKS},
}
"""Least and greatest value that any machine we can imagine has: beyond them somebody slipped a unit."""

OPTIONAL: dict[str, tuple[float, float]] = {
    "host_power_w": (0.0, 1e4),
    "host_time_ratio": (0.1, 100.0),
    "battery_j": (1.0, 1e9),
    "sustained_power_w": (0.01, 1e5),
    "thermal_time_constant_s": (0.1, 1e5),
    "num_lookup_tables": (1e3, 1e9),
    "num_multiplier_blocks": (1, 1e7),
    "near_memory_flops_per_s": (1e9, 1e19),
    "near_memory_bandwidth_bytes_per_s": (1e9, 1e17),
}
"""The same of facts that a file may leave out."""

HOST_POWER_FRAC = 0.5
"""Host power as a share of a device's power limit, where no maker states the machine's. Assumed: 0.4 to at most 1 in
large servers."""

IS_THE_MACHINE = ("unified memory", "own memory")
"""Ways to the host of devices that hold their host themselves."""

PLAUSIBLE_PEAK = (1e8, 1e19)
WORDS = (*(f"{link}_name" for link in LINKS), "scaleup_topology", "scaleout_topology")
FLAGS = ("scaleup_has_reduction", "scaleout_has_reduction")
REQUIRED = (*PLAUSIBLE, *WORDS, *FLAGS)

_RATE = re.compile(r"dense_(.+)_flops_per_s")


@lru_cache(maxsize=4096)
def read_device(path: Path, modified_ns: int = 0) -> Device:
    """The device of one file, without calibrations. Refuses, in one sentence, whatever cannot be trusted.

    ``modified_ns`` only tells an edited file from the one read before.
    """
    raw, file = device_tables(path, modified_ns), path.name
    speed_drift_ratio(file, raw)
    _refuse_unknown(
        file, "", raw, (*IDENTITY, "measured_as", "sources", "facts", "power_mode", "conditions", "calibration")
    )
    for key in (*IDENTITY, *(["measured_as"] if "measured_as" in raw else [])):
        if not isinstance(raw.get(key), str) or not raw[key]:
            raise FactError(f'{file}: say {key} = "…" at the top of the file; got {raw.get(key)!r}.')
    if raw["kind"] not in KINDS:
        raise FactError(f"{file}: kind {raw['kind']!r} is none of {', '.join(KINDS)}.")
    facts = _facts(file, raw)
    return _device(path.stem, raw, facts)


def measured_as(path: Path, modified_ns: int = 0) -> str:
    """The sibling of the same silicon whose measurements serve this device too, or nothing."""
    return str(device_tables(path, modified_ns).get("measured_as", ""))


def speed_drift_ratio(file: str, raw: Mapping[str, Any]) -> float:
    """Drift of the machine's speed while it was measured, from its file's tables; 1 where none is stated."""
    ratio = table_in(raw, "conditions", file, error=FactError).get("widen_ratio", 1.0)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 1.0 <= ratio < math.inf:
        raise FactError(f"{file}: [conditions] widen_ratio: {ratio!r} is not a ratio of 1 or more.")
    return float(ratio)


@lru_cache(maxsize=4096)
def device_tables(path: Path, modified_ns: int) -> dict[str, Any]:
    """The file as it stood then; readers leave it as it is."""
    return read_toml(path)


def _facts(file: str, raw: Mapping[str, Any]) -> dict[str, Fact]:
    sources = _sources(file, table_in(raw, "sources", file, error=FactError))
    entries = table_in(raw, "facts", file, error=FactError)
    rates = [name for name in entries if (m := _RATE.fullmatch(name)) and m[1] in RATES]
    _refuse_unknown(
        file, "[facts] ", entries, (*REQUIRED, *OPTIONAL, *rates), hint=f"dense_<{'|'.join(RATES)}>_flops_per_s"
    )
    facts: dict[str, Fact] = {}
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise FactError(f'{file}: {name}: write {{ value = …, from = "…", at = "…" }}; got {entry!r}.')
        facts[name] = _plausible(file, parse_fact(file, name, cast("dict[str, Any]", entry), sources))
    if missing := [name for name in REQUIRED if name not in facts]:
        raise FactError(f'{file}: [facts] lacks {", ".join(missing)}; where nobody states it, use basis = "assumed".')
    facts.setdefault("host_power_w", _assumed_host(facts))
    if not rates:
        raise FactError(f"{file}: [facts] states no peak rate; add at least one dense_<format>_flops_per_s.")
    return facts


def _assumed_host(facts: Mapping[str, Fact]) -> Fact:
    """The power of the machine around a device whose file does not state it."""
    if facts["host_name"].value in IS_THE_MACHINE:
        return Fact(name="host_power_w", value=0.0, basis=Basis.ASSUMED, note="the device holds its host itself")
    watts = HOST_POWER_FRAC * float(facts["power_limit_w"].value)
    note = f"{HOST_POWER_FRAC:g} of the device's limit, as nobody states the machine's"
    return Fact(name="host_power_w", value=watts, basis=Basis.ASSUMED, note=note)


def _sources(file: str, tables: Mapping[str, Any]) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for key, table in tables.items():
        if not isinstance(table, dict) or not cast("dict[str, Any]", table).get("title"):
            raise FactError(f'{file}: [sources.{key}] needs title = "…" (and url, retrieved).')
        words = cast("dict[str, Any]", table)
        _refuse_unknown(file, f"[sources.{key}] ", words, ("title", "url", "retrieved"))
        if wrong := [word for word in words if not isinstance(words[word], str)]:
            raise FactError(f"{file}: [sources.{key}] {wrong[0]}: write it in quotes; got {words[wrong[0]]!r}.")
        sources[key] = Source(**words)
    return sources


def _plausible(file: str, fact: Fact) -> Fact:
    """The fact itself, if its value is one that a device can have."""
    name, value = fact.name, fact.value
    if name in FLAGS:
        if not isinstance(value, bool):
            raise FactError(f"{file}: {name}: write value = true or false; got {value!r}.")
    elif name in WORDS:
        if not isinstance(value, str) or not value:
            raise FactError(f"{file}: {name}: write a word in quotes; got {value!r}.")
        if name.endswith("_topology") and value not in TOPOLOGIES:
            raise FactError(f"{file}: {name}: {value!r} is none of {', '.join(TOPOLOGIES)}.")
    else:
        low, high = (PLAUSIBLE | OPTIONAL).get(name, PLAUSIBLE_PEAK)
        if not isinstance(value, float) or not math.isfinite(value) or not low <= value <= high:
            raise FactError(f"{file}: {name}: {value!r} is not a number between {low:g} and {high:g} in base units.")
        if name.startswith("num_") and not value.is_integer():
            raise FactError(f"{file}: {name}: {value:g} is a count; write a whole number.")
    return fact


def _refuse_unknown(file: str, where: str, got: Mapping[str, Any], known: tuple[str, ...], hint: str = "") -> None:
    for key in got:
        if key not in known:
            near = nearest(key, known)
            text = (
                f"did you mean {' or '.join(near)}?"
                if near
                else f"known: {', '.join((*known, hint) if hint else known)}."
            )
            raise FactError(f"{file}: {where}unknown key {key}; {text}")


def _device(name: str, raw: Mapping[str, Any], facts: dict[str, Fact]) -> Device:
    def number(fact: str) -> float:
        return float(facts[fact].value)

    def optional(fact: str, without: float = 0.0) -> float:
        return number(fact) if fact in facts else without

    near = [optional(f"near_memory_{what}") for what in ("flops_per_s", "bandwidth_bytes_per_s")]
    if any(near) and not all(near):
        raise FactError(
            f"{name}: a processor near the memory has a rate and a bandwidth; write both near_memory facts."
        )
    if raw["kind"] == "pim" and not all(near):
        raise FactError(f"{name}: kind pim multiplies at the memory's banks; write both near_memory facts.")
    peaks = {m[1]: number(n) for n in facts if (m := _RATE.fullmatch(n))}
    return Device(
        name=name,
        title=raw["title"],
        vendor=raw["vendor"],
        kind=raw["kind"],
        generation=raw["generation"],
        memory_capacity_bytes=number("memory_capacity_bytes"),
        memory_bandwidth_bytes_per_s=number("memory_bandwidth_bytes_per_s"),
        dense_flops_per_s={rate: peaks[rate] for rate in RATES if rate in peaks},
        vector_flops_per_s=number("vector_flops_per_s"),
        num_compute_units=int(number("num_compute_units")),
        compute_clock_hz=number("compute_clock_hz"),
        last_level_cache_bytes=number("last_level_cache_bytes"),
        power_limit_w=number("power_limit_w"),
        idle_power_w=number("idle_power_w"),
        host_power_w=number("host_power_w"),
        host_time_ratio=optional("host_time_ratio", 1.0),
        battery_j=optional("battery_j"),
        sustained_power_w=optional("sustained_power_w"),
        thermal_time_constant_s=optional("thermal_time_constant_s"),
        num_lookup_tables=int(optional("num_lookup_tables")),
        num_multiplier_blocks=int(optional("num_multiplier_blocks")),
        near_memory=Roofs(flops_per_s=near[0], bytes_per_s=near[1]) if all(near) else None,
        scaleup=_link(facts, "scaleup", num_devices=int(number("num_scaleup_devices"))),
        scaleout=_link(facts, "scaleout"),
        host=_link(facts, "host"),
        devices_per_node=int(number("num_devices_per_node")),
        facts=facts,
    )


def _link(facts: Mapping[str, Fact], which: str, num_devices: int = 0) -> Link:
    """One of the three ways out; the way to the host is a bus by nature."""
    topology, flag = facts.get(f"{which}_topology"), facts.get(f"{which}_has_reduction")
    return Link(
        name=str(facts[f"{which}_name"].value),
        each_way_bytes_per_s=float(facts[f"{which}_each_way_bytes_per_s"].value),
        latency_s=float(facts[f"{which}_latency_s"].value),
        topology=str(topology.value) if topology else "bus",
        num_devices=num_devices,
        has_reduction=bool(flag.value) if flag else False,
    )

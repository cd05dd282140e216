"""Power modes of a device: clocks and a power limit that its owner can set, as ``jetson-nano@5w``.

A device file lists them below its facts, each with a name and the facts that are other than the device's own::

    [[power_mode]]
    name = "5w"
    compute_clock_hz = { value = "640 MHz", from = "modes", at = "table of power modes" }
    power_limit_w = { value = "5 W", from = "modes", at = "table of power modes" }

Arithmetic slows with its clock; the memory does where the mode states its bandwidth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from orrery.base.errors import FactError, UnknownName
from orrery.base.sources import Source, parse_fact
from orrery.hardware.device import Device
from orrery.hardware.power_mode import PowerMode

NEEDED = ("compute_clock_hz", "power_limit_w")
OPTIONAL = ("memory_bandwidth_bytes_per_s", "idle_power_w")


def read_modes(file: str, tables: Mapping[str, Any], device: Device) -> tuple[PowerMode, ...]:
    """The modes that a device file lists; each is slower than the device, and draws less."""
    raw = tables.get("power_mode", [])
    if not isinstance(raw, list) or not all(isinstance(table, dict) for table in cast("list[Any]", raw)):
        raise FactError(f'{file}: power_mode: write [[power_mode]] tables with name = "…" and facts.')
    listed = cast("Mapping[str, dict[str, str]]", tables.get("sources", {}))
    sources = {key: Source(**words) for key, words in listed.items()}
    found = tuple(_mode(file, table, sources, device) for table in cast("list[dict[str, Any]]", raw))
    if len({mode.name for mode in found}) < len(found):
        raise FactError(f"{file}: power_mode: two have one name; write each once.")
    return found


def _mode(file: str, table: Mapping[str, Any], sources: Mapping[str, Source], device: Device) -> PowerMode:
    name = table.get("name")
    if not isinstance(name, str) or not name.isalnum() or name != name.lower():
        raise FactError(f'{file}: power_mode: name {name!r}; write a small word in quotes, such as "5w".')
    if unknown := [key for key in table if key not in ("name", *NEEDED, *OPTIONAL)]:
        raise FactError(f"{file}: power_mode {name}: unknown key {unknown[0]}; known: {', '.join(NEEDED + OPTIONAL)}.")
    if missing := [key for key in NEEDED if key not in table]:
        raise FactError(f"{file}: power_mode {name}: lacks {', '.join(missing)}.")
    facts = {key: parse_fact(file, key, value, dict(sources)) for key, value in table.items() if key != "name"}
    for key, fact in facts.items():
        most = getattr(device, key)
        if not isinstance(fact.value, float) or not 0.0 < fact.value <= most:
            raise FactError(f"{file}: power_mode {name}: {key}: {fact.value!r}; write up to the device's own {most:g}.")
    return PowerMode(name=name, facts=facts)


def in_mode(device: Device, modes: Sequence[PowerMode], name: str) -> Device:
    """The device in the mode of that name."""
    if not modes:
        raise FactError(f"device: {device.name} has no power modes; leave @{name} out.")
    known = {mode.name: mode for mode in modes}
    if (mode := known.get(name.lower())) is None:
        raise UnknownName(f"power mode of {device.name}", name, known)
    clock_hz = mode.number("compute_clock_hz", device.compute_clock_hz)
    bandwidth = mode.number("memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s)
    ratio, power_w = clock_hz / device.compute_clock_hz, mode.number("power_limit_w", device.power_limit_w)
    return replace(
        device,
        name=f"{device.name}@{mode.name}",
        title=f"{device.title}, {mode.name}",
        dense_flops_per_s={rate: ratio * peak for rate, peak in device.dense_flops_per_s.items()},
        vector_flops_per_s=ratio * device.vector_flops_per_s,
        compute_clock_hz=clock_hz,
        memory_bandwidth_bytes_per_s=bandwidth,
        host=replace(device.host, each_way_bytes_per_s=min(device.host.each_way_bytes_per_s, bandwidth)),
        power_limit_w=power_w,
        idle_power_w=mode.number("idle_power_w", device.idle_power_w),
        sustained_power_w=min(device.sustained_power_w, power_w),
        facts={**device.facts, **mode.facts},
    )

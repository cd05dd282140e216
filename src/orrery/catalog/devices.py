"""Named devices: one TOML file each in ``facts/devices``, every fact with its source.

A device of your own is a file of the same layout; ``template()`` writes one to start from::

    title = "My accelerator"          # how to call it
    vendor = "Me"
    kind = "gpu"                      # gpu, tpu, npu, cpu or dataflow
    generation = "hopper"             # whose measurements to inherit; any word of your own inherits everybody's
    measured_as = "h100-sxm"          # optional: the same silicon under another name

    [sources.sheet]
    title = "My accelerator, data sheet"

    [facts]
    memory_capacity_bytes = { value = "80 GB", from = "sheet", at = "page 2" }
    idle_power_w = { value = "70 W", basis = "assumed", note = "a tenth of the limit" }
    …
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from orrery.base.arguments import typed
from orrery.base.errors import FactError, UnknownName
from orrery.base.sources import Basis, Fact
from orrery.base.user_file import is_user_file
from orrery.catalog.calibrations import calibrations_for, own_calibrations
from orrery.catalog.device_file import device_tables, measured_as, read_device, speed_drift_ratio
from orrery.catalog.device_names import plain, spellings
from orrery.catalog.gpu_cycles import facts_of
from orrery.catalog.neighbours import from_neighbours, known_generations
from orrery.catalog.power_modes import in_mode, read_modes
from orrery.hardware.device import Device

FOLDER = Path(__file__).parent / "facts" / "devices"


@cache
def device_names() -> tuple[str, ...]:
    """The canonical names of all devices in the catalogue, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@typed
def get_device(name_or_path: str | Path) -> Device:
    """The device of that name in any usual spelling, or of that TOML file; reads no other file.

    The same name gives the same object. A family name ("a100") gives its usual variant, with a note in ``notes``;
    ``jetson-nano@5w`` is the device in one of its power modes.
    """
    if isinstance(name_or_path, Path):
        return _from_user(name_or_path)
    name, at, mode = name_or_path.rpartition("@")
    if at and not is_user_file(Path(name_or_path)):
        return _in_mode(get_device(name), mode)
    if name_or_path.endswith(".toml"):
        return _from_user(Path(name_or_path))
    return _from_catalogue(name_or_path)


@cache
def _in_mode(device: Device, mode: str) -> Device:
    return in_mode(device, device.power_modes, mode)


@lru_cache(maxsize=4096)
def _from_catalogue(name: str) -> Device:
    if (path := FOLDER / f"{name}.toml").parent == FOLDER and is_user_file(path):
        return _with_calibrations(path)
    known = spellings(frozenset(device_names()))
    if (spelled := known.get(plain(name))) is None:
        raise UnknownName("device", name, device_names())
    device = _from_catalogue(spelled.name)
    return replace(device, notes=(f"{name!r} taken as {device.name}: {spelled.note}",)) if spelled.note else device


def _from_user(path: Path) -> Device:
    if not is_user_file(path):
        raise FactError(f"{path}: there is no such file; give a device's name or a TOML file in the template's layout.")
    return _with_calibrations(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _with_calibrations(path: Path, modified_ns: int = 0) -> Device:
    device = read_device(path, modified_ns)
    tables = device_tables(path, modified_ns)
    known = calibrations_for(device.name, device.generation, measured_as(path, modified_ns))
    if path.parent != FOLDER and device.generation not in known_generations():
        known |= from_neighbours(device)
    unrest = speed_drift_ratio(path.name, tables)
    modes = read_modes(path.name, tables, device)
    return replace(device, calibrations=known | own_calibrations(path, tables), unrest_ratio=unrest, power_modes=modes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of what is known about a device."""

    fact: str
    value: float | str | bool
    basis: str
    source: str
    note: str


def describe(device: Device) -> tuple[Row, ...]:
    """Every fact of a device, then what other sources say, line by line; those of its power modes; and cycles."""
    own = tuple(row for fact in device.facts.values() for row in _rows(fact))
    modes = (
        row for mode in device.power_modes for fact in mode.facts.values() for row in _rows(fact, f"@{mode.name} ")
    )
    inside = (
        row
        for name, fact in facts_of(device.generation).items()
        for row in _rows(replace(fact, name=f"inside: {name}"))
    )
    return (*own, *modes, *inside)


def _rows(fact: Fact, prefix: str = "") -> Iterator[Row]:
    where = ", ".join(word for word in (fact.source.title if fact.source else "", fact.at) if word)
    yield Row(fact=prefix + fact.name, value=fact.value, basis=str(fact.basis), source=where, note=fact.note)
    for other in fact.also:
        yield from _rows(other, prefix="also ")


def template() -> str:
    """A device file to start from: every fact that is needed, as it stands for one catalogue device, to be replaced."""
    device = get_device("h100-sxm")
    lines = [
        'title = "My accelerator"',
        'vendor = "Me"',
        'kind = "gpu"  # gpu, tpu, npu, cpu or dataflow',
        'generation = "hopper"  # whose measurements to inherit; a word of your own inherits everybody\'s',
        '# measured_as = "h100-sxm"  # only for the same silicon under another name',
        "",
        "[sources.sheet]",
        'title = "Where the figures come from"',
        'url = "https://…"',
        'retrieved = "2026-11"',
        "",
        "[facts]  # one a line; peaks are dense, a multiply-add is two; links are each way, per device",
    ]
    return "\n".join([*lines, *(_template_line(fact) for fact in device.facts.values())]) + "\n"


_SYMBOL = {"bytes_per_s": "B/s", "flops_per_s": "FLOP/s", "bytes": "B", "hz": "Hz", "w": "W", "s": "s"}


def _template_line(fact: Fact) -> str:
    if fact.basis is Basis.ASSUMED:
        return f'{fact.name} = {{ value = {written(fact)}, basis = "assumed", note = "say why" }}'
    return f'{fact.name} = {{ value = {written(fact)}, from = "sheet", at = "page …" }}'


def toml_text(text: str) -> str:
    """A text in quotes, as TOML takes it: JSON escapes the same letters but one."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def written(fact: Fact) -> str:
    """The value of a fact as a device file has it: ``"3.36e+12 B/s"``, ``132``, ``true``."""
    symbol = next((s for word, s in _SYMBOL.items() if fact.name.endswith(f"_{word}")), "")
    value = fact.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return toml_text(value)
    return f'"{value:.6g} {symbol}"' if symbol else f"{value:g}"

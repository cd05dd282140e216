"""Fitted constants: what ``tools/fit`` learned from measured tables, read from ``facts/calibrations``.

Every entry names what it was measured on. ``device`` entries serve that device; ``generation`` entries (pooled over
the measured devices of an architecture) serve its unmeasured siblings; entries with neither serve everybody else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from orrery.base.cost import Spread
from orrery.base.errors import FactError
from orrery.base.sources import Basis, Fact, Source, read_toml
from orrery.base.user_text import table_in, tables_in
from orrery.catalog.residuals import generation_key, residual_of, row_spread_of
from orrery.hardware.calibration import Calibration

FOLDER = Path(__file__).parent / "facts" / "calibrations"

ENGINES = FOLDER / "engines.toml"
"""Constants of engines, which are none of kernels and lie beside these."""

QUANTILES = frozenset({"low_80", "high_80", "low_95", "high_95"})
MOST = 1e30
"""Largest magnitude of any constant: beyond it arithmetic overflows."""

Key = tuple[str, str, str]  # op, format, engine


@cache
def _entries() -> tuple[dict[str, dict[Key, Calibration]], dict[str, dict[Key, Calibration]]]:
    by_device: dict[str, dict[Key, Calibration]] = {}
    by_generation: dict[str, dict[Key, Calibration]] = {}
    for path in sorted(set(FOLDER.glob("*.toml")) - {ENGINES}):
        for owner, name, calibration in _read(path):
            home = by_device if owner == "device" else by_generation
            key = (calibration.op, calibration.format, calibration.engine)
            home.setdefault(name, {})[key] = calibration
    return by_device, by_generation


def _read(path: Path) -> Iterator[tuple[str, str, Calibration]]:
    raw = read_toml(path)
    sources = {key: Source(**table) for key, table in raw.get("sources", {}).items()}
    for entry in raw.get("calibration", ()):
        owner = "device" if "device" in entry else "generation"
        yield owner, entry.get("device", entry.get("generation", "")), calibration_of(path, entry, sources)


def calibration_of(path: Path, entry: dict[str, Any], sources: Mapping[str, Source]) -> Calibration:
    """One ``[[calibration]]`` table; refuses what names no source, no constants or no interval."""
    label = f"{entry.get('op')}/{entry.get('format')}/{entry.get('engine')}"
    if (source := sources.get(entry.get("from", ""))) is None or "at" not in entry:
        raise FactError(
            f"{path.name}: {label}: say from = … (a [sources] key) and at = … (which tables, how many rows)."
        )
    if missing := [word for word in ("op", "format", "engine", "constants", "spread") if word not in entry]:
        raise FactError(f"{path.name}: calibration {label}: lacks {', '.join(missing)}.")
    origin = "device" if "device" in entry else "generation" if entry.get("generation") else "any"
    return Calibration(
        op=entry["op"],
        format=entry["format"],
        engine=entry["engine"],
        origin=origin,
        constants=entry["constants"],
        spread=Spread(**{f"{k}_ratio": v for k, v in entry["spread"].items()}, because=entry["at"]),
        range={k: (float(v[0]), float(v[1])) for k, v in entry.get("range", {}).items()},
        fact=Fact(name=f"constants of {label}", value=origin, basis=Basis.MEASURED, source=source, at=entry["at"]),
        law=entry.get("law", ""),
    )


def measured() -> Mapping[str, Mapping[Key, Calibration]]:
    """Constants that were measured on the very device, by device."""
    return _entries()[0]


def is_measured(generation: str) -> bool:
    """Whether attention, the telling kernel of an engine, was measured on any device of a generation."""
    return any(op.startswith("attention") for op, _, _ in _entries()[1].get(generation, {}))


def own_calibrations(path: Path, raw: Mapping[str, Any]) -> dict[Key, Calibration]:
    """Calibrations of a user's device file, measured on that very device: its ``[[calibration]]`` tables."""
    sources = {key: Source(**table) for key, table in raw.get("sources", {}).items()}
    entries = tables_in(raw, "calibration", path.name, error=FactError)
    for entry in entries:
        _check_own(path.name, entry)
    found = [calibration_of(path, {**entry, "device": path.stem}, sources) for entry in entries]
    return {(c.op, c.format, c.engine): c for c in found}


def _check_own(file: str, entry: Mapping[str, Any]) -> None:
    """Refuse what a rule could not use: words and numbers that are none."""
    for key in ("op", "format", "engine", "from", "at", "law"):
        if not isinstance(entry.get(key, ""), str):
            raise FactError(f"{file}: calibration {key}: got {repr(entry[key])[:40]}; write it in quotes.")
    for key in ("constants", "spread"):
        for name, value in table_in(entry, key, file, error=FactError).items():
            if not _is_number(value):
                raise FactError(f"{file}: calibration {key}.{name}: got {repr(value)[:40]}; write a number.")
    if (spread := entry.get("spread")) is not None and frozenset(spread) != QUANTILES:
        raise FactError(f"{file}: calibration spread: write {', '.join(sorted(QUANTILES))}.")
    for name, ends in table_in(entry, "range", file, error=FactError).items():
        if not isinstance(ends, list) or list(map(_is_number, cast("list[Any]", ends))) != [True, True]:
            raise FactError(f"{file}: calibration range.{name}: got {repr(cast(Any, ends))[:40]}; write two numbers.")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -MOST < value < MOST


def calibrations_for(device: str, generation: str, measured_as: str = "") -> dict[Key, Calibration]:
    """All calibrations known for a device, nearest origin first: its own, its generation's, anybody's.

    ``measured_as`` names a sibling whose measurements serve this device too (an A800 is an A100 with less NVLink).
    """
    by_device, by_generation = _entries()
    found = dict(by_generation.get("", {}))
    found |= {
        k: replace(c, residual=residual_of(generation_key(generation), *k))
        for k, c in by_generation.get(generation, {}).items()
    }
    if measured_as:
        sibling = by_device.get(measured_as, {})
        found |= {k: replace(c, origin="generation") for k, c in sibling.items()}
    own = by_device.get(device, {})
    return found | {
        k: replace(c, residual=residual_of(device, *k), row_spread=partial(row_spread_of, device, *k))
        for k, c in own.items()
    }

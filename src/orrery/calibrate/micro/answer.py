"""Results of microbenchmarks beside what the catalogue says of the same device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.units import percent, si
from orrery.calibrate.micro.reading import Failed, Reading
from orrery.catalog.devices import describe, get_device
from orrery.hardware.device import Device
from orrery.scenario.answer import to_json
from orrery.scenario.show import Table

COUNTED = {"cycles": "cycles", "bytes_per_cycle": "B/cycle", "per_s": "/s"}
"""Units that are not of the SI, as people read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroRow:
    """One line: a result, or the error of what could not be measured."""

    group: str
    name: str
    value: float | None
    unit: str
    spread_frac: float | None
    condition: str
    fact: str  # the catalogue's, blank where it has none
    known_value: float | None
    known_ratio: float | None  # measured over known
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroAnswer:
    """Every row, and the catalogue's device that they are compared with."""

    device: str
    known: str  # blank: no device of that name is known
    rows: tuple[MicroRow, ...]
    took_s: float
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Every field by its name."""
        return {name: to_json(getattr(self, name)) for name in self.__slots__}

    def table(self) -> Table:
        """The rows, for people."""
        missed = sum(bool(row.error) for row in self.rows)
        known = f"Compared with {self.known} of the catalogue." if self.known else "No device of this name is known."
        took = f"{len(self.rows) - missed} results, {missed} that could not be measured, {self.took_s:.0f} s."
        return Table(
            kind="microbenchmarks",
            title=f"{self.device}: microbenchmarks",
            rows=tuple(_shown(row) for row in self.rows),
            notes=(took, known, *self.notes),
        )


def known_device(title: str) -> Device | None:
    """The catalogue's device of that name."""
    try:
        return get_device(title)
    except UnknownName:
        return None


def rows_of(group: str, results: Sequence[Reading | Failed], known: Mapping[str, float]) -> tuple[MicroRow, ...]:
    """Rows of a group's results; ``known``: the catalogue's numbers by their names."""
    return tuple(_row(group, result, known) for result in results)


def numbers_of(device: Device | None) -> Mapping[str, float]:
    """Every number that the catalogue has of a device; bytes a cycle of all processors also of each."""
    if device is None:
        return {}
    found = {row.fact: float(row.value) for row in describe(device) if isinstance(row.value, int | float)}
    together = {name: value for name, value in found.items() if name.endswith("_cycle_bytes")}
    each = {f"{name} / processors": value / found["inside: processors"] for name, value in together.items()}
    return found | each


def _row(group: str, result: Reading | Failed, known: Mapping[str, float]) -> MicroRow:
    if isinstance(result, Failed):
        return MicroRow(
            group=group, name=result.name, value=None, unit="", spread_frac=None, condition="", fact="",
            known_value=None, known_ratio=None, error=result.error,
        )  # fmt: skip
    there = known.get(result.fact)
    return MicroRow(
        group=group,
        name=result.name,
        value=result.value,
        unit=result.unit,
        spread_frac=result.spread_frac,
        condition=result.condition,
        fact=result.fact if there is not None else "",
        known_value=there,
        known_ratio=result.value / there if there else None,
        error="",
    )


def _shown(row: MicroRow) -> dict[str, Any]:
    return {
        "group": row.group,
        "name": row.name,
        "value": "" if row.value is None else _text(row.value, row.unit),
        "spread": "" if row.spread_frac is None else percent(row.spread_frac, 1),
        "catalogue": "" if row.known_value is None else _text(row.known_value, row.unit),
        "ratio": "" if row.known_ratio is None else f"{row.known_ratio:.2f}",
        "condition": row.condition or row.error,
    }


def _text(value: float, unit: str) -> str:
    return f"{value:.4g} {COUNTED[unit]}" if unit in COUNTED else si(value, unit)

"""Facts and where they come from.

A fact file is TOML: one ``[sources.<key>]`` table per source, then one line per fact::

    memory_capacity_bytes = { value = "80 GB", from = "datasheet", at = "table 1" }

The loader returns plain numbers for arithmetic and keeps the provenance beside them. Sources that disagree stay
in the file: ``also`` lists the others, ``note`` says why this one was chosen.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import FactError
from orrery.base.units import quantity
from orrery.base.user_file import read_user_text
from orrery.base.user_text import toml_tables


class Basis(StrEnum):
    """Kind of evidence for a fact."""

    STATED = "stated"  # somebody published this number
    MEASURED = "measured"  # somebody published the measurement
    DERIVED = "derived"  # follows from other facts; ``at`` says how
    ASSUMED = "assumed"  # ours, for want of better


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document somebody can look up."""

    title: str
    url: str = ""
    retrieved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One number or word, how we know it, and where it stands."""

    name: str
    value: float | str | bool
    basis: Basis
    source: Source | None = None
    at: str = ""
    note: str = ""
    also: tuple["Fact", ...] = ()

    def cite(self) -> str:
        """One line: value, basis, and where it stands."""
        where = f"{self.source.title}, {self.at}" if self.source else self.note or "our own assumption"
        return (
            f"{self.name} = {self.value:g} ({self.basis}: {where})"
            if isinstance(self.value, float)
            else (f"{self.name} = {self.value} ({self.basis}: {where})")
        )


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; a syntax error names the file."""
    text = read_user_text(path, "fact file (TOML)", error=FactError)
    return toml_tables(text, path.name, 'write lines such as title = "…"', error=FactError)


def read_facts(path: Path) -> tuple[dict[str, Fact], dict[str, Any]]:
    """The ``[facts]`` of one file by name, and the file's other tables. Refuses what has no source."""
    raw = read_toml(path)
    sources = {key: Source(**table) for key, table in raw.pop("sources", {}).items()}
    entries = raw.pop("facts", {})
    facts = {name: parse_fact(path.name, name, entry, sources) for name, entry in entries.items()}
    return facts, raw


def parse_fact(file: str, name: str, entry: Mapping[str, Any], sources: Mapping[str, Source]) -> Fact:
    """One entry of a fact file, with its dimension checked against its name."""
    if extra := entry.keys() - {"value", "from", "at", "basis", "note", "also"}:
        raise FactError(
            f"{file}: {name}: unknown key {', '.join(sorted(extra))}; known: value, from, at, basis, note, also."
        )
    if "value" not in entry:
        raise FactError(f'{file}: {name}: has no value; write value = "…".')
    if (word := entry.get("basis", "stated")) not in tuple(Basis):
        raise FactError(f"{file}: {name}: basis {word!r} is none of {', '.join(Basis)}.")
    basis = Basis(word)
    for key in ("from", "at", "note"):
        if not isinstance(entry.get(key, ""), str):
            raise FactError(f"{file}: {name}: {key}: got {repr(entry[key])[:40]}; write it in quotes.")
    others: Any = entry.get("also", ())
    if not isinstance(others, list | tuple) or any(not isinstance(o, Mapping) for o in cast("Sequence[Any]", others)):
        raise FactError(
            f"{file}: {name}: also: got {repr(cast(Any, others))[:40]}; write a list of facts like this one."
        )
    source = sources.get(entry.get("from", ""))
    if source is None and basis is not Basis.ASSUMED:
        raise FactError(f'{file}: {name} names no source; add from = "…", or say basis = "assumed".')
    if not entry.get("at") and basis is not Basis.ASSUMED:
        raise FactError(f'{file}: {name} does not say where in {entry["from"]!r} it stands; add at = "…".')
    return Fact(
        name=name,
        value=_value(file, name, entry["value"]),
        basis=basis,
        source=source,
        at=entry.get("at", ""),
        note=entry.get("note", ""),
        also=tuple(parse_fact(file, name, other, sources) for other in cast("Sequence[Mapping[str, Any]]", others)),
    )


def _value(file: str, name: str, value: Any) -> float | str | bool:
    """Numbers stand alone only for counts and ratios; anything with a unit is text with that unit."""
    if not isinstance(value, bool | int | float | str):
        raise FactError(f"{file}: {name}: value: got {repr(value)[:40]}; write a number, a text, true or false.")
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if not (name.startswith(("num_", "max_num_")) or name.endswith(("_frac", "_ratio", "_tokens"))):
            raise FactError(f"{file}: {name}: write the unit too, such as '3.35 TB/s'; got {str(value)[:40]} alone.")
        try:
            return float(value)
        except OverflowError:
            raise FactError(f"{file}: {name}: a number of {len(str(value)):,} digits; write a smaller one.") from None
    try:
        return quantity(value, name=name)
    except ValueError as error:
        if name.rsplit("_", 1)[-1] in ("bytes", "s", "flops", "w", "hz", "j", "usd"):
            raise FactError(f"{file}: {error}") from None
        return value


def cited(label: str, entry: Mapping[str, Any], known: Collection[str], sources: Mapping[str, Source]) -> Source:
    """The source of a rule in a fact file; FactError where the rule has a key that is not known, or cites nothing."""
    if unknown := set(entry) - set(known):
        raise FactError(f"{label}: unknown key {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}.")
    if (source := sources.get(entry.get("source", ""))) is None or not entry.get("at"):
        raise FactError(f"{label}: say source = … (a [sources] key) and at = … (where it stands).")
    return source

"""Engines and frameworks corrected by a user's own runs: small files that `orrery calibrate runs` writes.

::

    kind = "engine"            # or "framework"
    base = "vllm"              # whose documented facts, and whose constants where this file has none
    version = "0.11.0"         # of an engine
    precision = ""             # of a framework: the recipe that the runs had
    device = "h100-sxm"        # the correction holds there alone; elsewhere the base answers
    at = "12 runs, 2026-11-21" # what stands behind it

    [sources.runs]
    title = "My runs"

    [constants]
    step_s = 0.0021

    [spread."closed.tpot_s"]
    low_80 = 0.95
    …

    [conditions]               # for people
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError
from orrery.base.sources import Basis, Fact, Source, read_toml
from orrery.base.user_file import is_user_file
from orrery.base.user_text import table_in
from orrery.hardware.device import Device

QUANTILES = frozenset({"low_80", "high_80", "low_95", "high_95"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrected:
    """A file of corrections. The same file, unchanged, gives the same object."""

    name: str
    base: str
    version: str
    precision: str
    device: str
    at: str
    facts: Mapping[str, Fact]
    spreads: Mapping[str, Mapping[str, float]]

    def holds_on(self, device: Device | None) -> bool:
        """Whether this is the device that it was measured on."""
        return device is not None and device.name == self.device

    def note(self, device: Device) -> str:
        """The note beside an answer for ``device``."""
        if self.holds_on(device):
            return f"{self.name}: {self.base} corrected by own runs ({self.at})"
        return f"{self.name}: was measured on {self.device}; {self.base} as shipped answers for {device.name}"


def read_corrected(name: str, kind: str, known: Iterable[str]) -> Corrected:
    """The file at ``name``; FactError where it is no correction of that kind. ``known`` are the constants there are."""
    path = Path(name)
    if not is_user_file(path):
        raise FactError(f"{name}: there is no such file; give a name, or a file that `orrery calibrate runs` wrote.")
    return _read(path, path.stat().st_mtime_ns, kind, frozenset(known))


@lru_cache(maxsize=256)
def _read(path: Path, modified_ns: int, kind: str, known: frozenset[str]) -> Corrected:
    raw = read_toml(path)
    if raw.get("kind") != kind:
        raise FactError(
            f'{path.name}: says kind = {raw.get("kind")!r}; a file for --{kind} says kind = "{kind}" '
            "(`orrery calibrate runs` writes one)."
        )
    if missing := [key for key in ("base", "device", "at", "constants") if not raw.get(key)]:
        raise FactError(f"{path.name}: has no {', '.join(missing)}; `orrery calibrate runs` writes them all.")
    for key in ("base", "device", "at", "version", "precision"):
        if not isinstance(raw.get(key, ""), str):
            raise FactError(f"{path.name}: {key}: got {repr(raw[key])[:40]}; write it in quotes.")
    run_source = table_in(table_in(raw, "sources", path.name, error=FactError), "runs", path.name, error=FactError)
    cited = {key: str(run_source[key]) for key in ("title", "url", "retrieved") if key in run_source}
    source = Source(**{"title": path.stem} | cited)
    return Corrected(
        name=path.stem,
        base=raw["base"],
        version=raw.get("version", ""),
        precision=raw.get("precision", ""),
        device=raw["device"],
        at=raw["at"],
        spreads=_spreads(path, table_in(raw, "spread", path.name, error=FactError)),
        facts={
            key: Fact(
                name=key, value=_positive(path, key, value, known), basis=Basis.MEASURED, source=source, at=raw["at"]
            )
            for key, value in table_in(raw, "constants", path.name, error=FactError).items()
        },
    )


def _positive(path: Path, key: str, value: Any, known: frozenset[str]) -> float:
    if key not in known:
        raise FactError(f"{path.name}: constants.{key}: there is no such constant; known: {', '.join(sorted(known))}.")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise FactError(f"{path.name}: constants.{key}: got {value!r}; write a number above zero.")
    return float(value)


def _spreads(path: Path, raw: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    for key in raw:
        table = table_in(raw, key, path.name, error=FactError)
        if (
            frozenset(table) != QUANTILES
            or any(isinstance(end, bool) or not isinstance(end, int | float) for end in table.values())
            or not 0 < table["low_95"] <= table["low_80"] <= table["high_80"] <= table["high_95"] < inf
        ):
            raise FactError(f"{path.name}: spread.{key}: write low_95, low_80, high_80 and high_95, in rising order.")
    return raw

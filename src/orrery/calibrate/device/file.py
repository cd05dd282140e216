"""A measured device as a device file: facts with their basis, the conditions they hold under, and its constants."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.base.sources import Basis, Fact, Source
from orrery.catalog.device_file import FLAGS, IDENTITY, REQUIRED, WORDS
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device

RUN = "run"
"""Name of the calibration itself among the file's sources."""

SYMBOLS = {"bytes_per_s": "B/s", "flops_per_s": "FLOP/s", "bytes": "B", "hz": "Hz", "w": "W", "s": "s"}


def refuse_existing(path: Path, *, is_replaced: bool) -> None:
    """Say before anything is measured that the file is there already."""
    if path.suffix != ".toml":
        raise ScenarioError(f"{path}: a device file ends in .toml; write --out {path.stem or 'my-device'}.toml.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ScenarioError(f"{path}: there is no folder to write it to; make the folder, or name another file.")
    if path.exists() and not is_replaced:
        raise ScenarioError(f"{path} exists; write --replace to measure anew and replace it, or name another file.")


def refuse_table(path: Path, *, is_replaced: bool) -> None:
    """The same of a table of measurements."""
    if path.suffix != ".csv" or path.is_dir() or not path.absolute().parent.is_dir():
        raise ScenarioError(f"{path}: a table of measurements is a .csv file in a folder that is there.")
    if path.exists() and not is_replaced:
        raise ScenarioError(f"{path} exists; write --replace to replace it, or name another file.")


def write_device(
    path: Path,
    device: Device,
    facts: Mapping[str, Fact],
    conditions: Mapping[str, Any],
    run: Source,
    measured_as: str = "",
) -> None:
    """Write the device file whole or not at all; the catalogue's reader takes it as it takes its own.

    ``measured_as`` names the catalogue's device of the same silicon, whose other measurements serve here too.
    """
    if missing := [name for name in REQUIRED if name not in facts]:
        raise ScenarioError(f"{device.name}: nothing is known of {', '.join(missing)}.")
    sources: dict[str, Source] = {RUN: run}
    lines = [
        f"{name} = {_entry(fact, _cited(sources, fact.source or run))}"
        for name, fact in facts.items()
        if name not in IDENTITY
    ]
    head = {"title": device.title, "vendor": device.vendor, "kind": device.kind, "generation": device.generation}
    head |= {"measured_as": measured_as} if measured_as else {}
    own = [_calibration(c) for _, c in sorted(device.calibrations.items())]
    text = "\n".join(
        [
            "# made by: orrery calibrate device",
            tomli_w.dumps(head),
            "[facts]",
            *lines,
            "",
            tomli_w.dumps(
                {
                    "sources": {
                        key: {k: v for k, v in (("title", s.title), ("url", s.url), ("retrieved", s.retrieved)) if v}
                        for key, s in sources.items()
                    },
                    "conditions": _describe(conditions),
                    **({"calibration": own} if own else {}),
                }
            ),
        ]
    )
    write_atomically(path, text)


def _cited(sources: dict[str, Source], source: Source) -> str:
    """The key of a source in the file, entered where it is new."""
    for key, known in sources.items():
        if known == source:
            return key
    key = f"source_{len(sources)}"
    sources[key] = source
    return key


def _entry(fact: Fact, source: str) -> str:
    """The inline table of one fact."""
    symbol = next((s for word, s in SYMBOLS.items() if fact.name.endswith(f"_{word}")), "")
    value: Any = fact.value
    if fact.name not in (*WORDS, *FLAGS):
        value = f"{float(value):.6g} {symbol}" if symbol else int(value)
    words: dict[str, Any] = {"value": value, "basis": str(fact.basis)}
    if fact.basis is Basis.ASSUMED:
        words["note"] = fact.note or fact.at or "not measured"
    else:
        words |= {"from": source, "at": fact.at or "measured"}
    return "{ " + ", ".join(tomli_w.dumps({key: word}).strip() for key, word in words.items()) + " }"


def _describe(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not known, which TOML has no word for."""
    out: dict[str, Any] = {}
    for key, value in conditions.items():
        if isinstance(value, Mapping):
            out[key] = _describe(value)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, tuple | list):
            out[key] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        elif value is not None:
            out[key] = value
    return out


def _calibration(found: Calibration) -> dict[str, Any]:
    """One ``[[calibration]]`` table."""
    spread = found.spread
    return {
        "op": found.op,
        "format": found.format,
        "engine": found.engine,
        **({"law": found.law} if found.law else {}),
        "from": RUN,
        "at": spread.because or "measured",
        "constants": {name: float(f"{value:.6g}") for name, value in found.constants.items()},
        "spread": {
            word: float(f"{getattr(spread, f'{word}_ratio'):.4g}")
            for word in ("low_80", "high_80", "low_95", "high_95")
        },
        "range": {name: [float(low), float(high)] for name, (low, high) in found.range.items()},
    }

"""Lists of layers and of sensitivities that a user brings, CSV, TOML or JSON, checked line by line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_table, json_value, tables_in, toml_tables
from orrery.planner.bits.layer import Layer, product

MAX_BYTES = 50_000_000
WRITE = 'write an object such as {"layer": 0.2}'

BY_FORMAT = ("error", "sensitivity", "time_s")
"""Columns that end in a format: error_int8, sensitivity_int8, time_s_int8."""


class LayerRow(BaseModel):
    """One line of a list of layers: y (m, n) = x (m, k) times k by n weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    name: str = Field(min_length=1)
    m: int = Field(ge=1)
    n: int = Field(ge=1)
    k: int = Field(ge=1)
    count: int = Field(default=1, ge=1)
    group: str = ""
    tied: str = ""
    weight_ratio: float = Field(default=1.0, ge=0.0, allow_inf_nan=False, alias="trace")
    by_format: dict[str, dict[str, float]] = Field(default_factory=dict)


def read_layers(path: Path, formats: Sequence[str]) -> tuple[Layer, ...]:
    """The layers of a CSV (a header line) or TOML (``[[layer]]``) file."""
    rows = [_layer(row, f"{path}: layer {i}", formats) for i, row in enumerate(_rows(path), start=1)]
    if not rows:
        raise ScenarioError(f"{path}: lists no layer; write lines with name, m, n and k.")
    counts = Counter(row.name for row in rows)
    if twice := next((name for name, count in counts.items() if count > 1), ""):
        raise ScenarioError(f"{path}: two layers are called {twice!r}; name each once.")
    return tuple(rows)


def _layer(row: Mapping[str, Any], where: str, formats: Sequence[str]) -> Layer:
    plain: dict[str, Any] = {"by_format": {kind: {} for kind in BY_FORMAT}}
    for key, value in row.items():
        kind = next((kind for kind in BY_FORMAT if key.startswith(f"{kind}_")), "")
        if value in (None, ""):
            continue
        if key == "by_format":
            raise ScenarioError(f"{where}: by_format: is no column; write such as error_int8.")
        if kind:
            plain["by_format"][kind][key.removeprefix(f"{kind}_")] = value
        else:
            plain[key] = value
    try:
        read = LayerRow.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])).removeprefix("by_format.")
        columns = [field.alias or name for name, field in LayerRow.model_fields.items() if name != "by_format"]
        raise ScenarioError(
            f"{where}: {field}: got {first['input']!r}; {first['msg']}. Known: {', '.join(columns)}, "
            f"and {', '.join(f'{kind}_FORMAT' for kind in BY_FORMAT)}."
        ) from None
    known = {kind: {f: v for f, v in values.items() if f in formats} for kind, values in read.by_format.items()}
    for kind, values in known.items():
        if bad := [f for f, v in values.items() if not 0.0 <= v < inf]:
            raise ScenarioError(f"{where}: {kind}_{bad[0]}: got {values[bad[0]]!r}; write a number from 0.")
        if values and (missing := [f for f in formats if f not in values]):
            raise ScenarioError(f"{where}: {kind}_{missing[0]}: is missing; write it for every format, or for none.")
    return Layer(
        name=read.name,
        group=read.group or read.name,
        work=product(read.m, read.n, read.k),
        count=read.count,
        num_parameters=read.n * read.k,
        tied=read.tied,
        weight_ratio=read.weight_ratio,
        errors=known["error"],
        perturbations=known["sensitivity"],
        times_s=known["time_s"],
    )


def read_sensitivity(path: Path, formats: Sequence[str]) -> dict[str, float | dict[str, float]]:
    """By layer: one weight, or a perturbation for each format.

    JSON: ``{"layer": 0.2}`` or ``{"layer": {"fp8": 0.1, "nvfp4": 0.9}}``; CSV: columns name and weight, or name and
    the formats.
    """
    is_json = path.suffix == ".json"
    found = _object(path) if is_json else {str(row.get("name")): _of_row(row) for row in _rows(path)}
    out: dict[str, float | dict[str, float]] = {}
    for name, value in found.items():
        try:
            values = {k: float(v) for k, v in value.items()} if isinstance(value, dict) else {"weight": float(value)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        except (TypeError, ValueError, OverflowError):
            raise ScenarioError(f"{path}: {name}: got {value!r}; write a number, or one for each format.") from None
        if any(not 0.0 <= v < inf for v in values.values()):
            raise ScenarioError(f"{path}: {name}: got {value!r}; write numbers from 0.")
        if "weight" in values:
            out[name] = values["weight"]
        elif missing := [f for f in formats if f not in values]:
            raise ScenarioError(f"{path}: {name}: says nothing of {missing[0]}; write a number for each format.")
        else:
            out[name] = values
    return out


def _of_row(row: Mapping[str, Any]) -> Any:
    return row["weight"] if "weight" in row else {k: v for k, v in row.items() if k != "name"}


def _object(path: Path) -> dict[str, Any]:
    found = json_value(_text(path), path, WRITE)
    if not isinstance(found, dict):
        raise ScenarioError(f"{path}: holds a {type(found).__name__}; {WRITE}.")
    return cast("dict[str, Any]", found)


def _rows(path: Path) -> list[Mapping[str, Any]]:
    text = _text(path)
    if path.suffix != ".toml":
        header, rows = csv_table(text, path)
        return [dict(zip(header, cells, strict=True)) for cells in rows]
    return [*tables_in(toml_tables(text, path, "write a table [[layer]] for each layer"), "layer", path)]


def _text(path: Path) -> str:
    return read_user_text(path, "CSV, TOML or JSON file", MAX_BYTES)

"""Lists of layers and of sensitivities that a user brings, CSV, TOML or JSON, checked line by line."""

import csv
import json
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, cast

import tomli
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orrery.base.errors import ScenarioError
from orrery.planner.bits.layer import Layer, product

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
    names = [row.name for row in rows]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ScenarioError(f"{path}: two layers are called {twice!r}; name each once.")
    return tuple(rows)


def _layer(row: Mapping[str, Any], where: str, formats: Sequence[str]) -> Layer:
    plain: dict[str, Any] = {"by_format": {kind: {} for kind in BY_FORMAT}}
    for key, value in row.items():
        kind = next((kind for kind in BY_FORMAT if key.startswith(f"{kind}_")), "")
        if value in (None, ""):
            continue
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
        name=read.name, group=read.group or read.name, work=product(read.m, read.n, read.k), count=read.count,
        num_parameters=read.n * read.k, tied=read.tied, weight_ratio=read.weight_ratio, errors=known["error"],
        perturbations=known["sensitivity"], times_s=known["time_s"],
    )  # fmt: skip


def read_sensitivity(path: Path, formats: Sequence[str]) -> dict[str, float | dict[str, float]]:
    """By layer: one weight, or a perturbation for each format.

    JSON: ``{"layer": 0.2}`` or ``{"layer": {"fp8": 0.1, "nvfp4": 0.9}}``; CSV: columns name and weight, or name and
    the formats.
    """
    if path.suffix == ".json":
        found = _parsed(path, json.loads)
    else:
        found = {str(row.get("name")): _of_row(row) for row in _rows(path)}
    out: dict[str, float | dict[str, float]] = {}
    for name, value in found.items():
        try:
            values = {k: float(v) for k, v in value.items()} if isinstance(value, dict) else {"weight": float(value)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        except (TypeError, ValueError):
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


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".toml":
        table = _parsed(path, tomli.loads)
        return cast("list[dict[str, Any]]", table.get("layer", []))
    return list(csv.DictReader(_text(path).splitlines()))


def _parsed(path: Path, read: Any) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", read(_text(path)))
    except ValueError as error:
        raise ScenarioError(f"{path}: cannot be read: {error}.") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not text; write CSV, TOML or JSON.") from None

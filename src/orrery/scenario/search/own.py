"""A space of the user's own as a TOML file: its choices, and what their alternatives cost.

[[choices]]
name = "stage 1"
times = 2                                  # layers of it, all alike (default 1)

[[choices.alternatives]]
name = "wide"
products = [[3136, 128, 576]]              # m, n, k of matrix products, timed and weighed on each device
moved_bytes = 1e6                          # of whatever is no product
score = 0.0                                # what it adds to the quality

[[choices.alternatives]]
name = "measured"
latency_s = { h100-sxm = 4e-5 }            # in place of products, by device, or one number for all
energy_j = 0.01
parameters = 4096
score = -0.3

The first alternative of every choice is the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, cast

import numpy as np

from orrery import kernels
from orrery.base.errors import ScenarioError, shown
from orrery.base.user_file import read_user_text
from orrery.base.user_tables import check_keys, check_names_differ, checked_list, checked_table
from orrery.base.user_text import toml_tables
from orrery.hardware.device import Device
from orrery.kernels.energy import energy_j
from orrery.kernels.ops import Gemm
from orrery.numerics.registry import get_format
from orrery.planner.architecture.problem import Choice, Metric
from orrery.planner.architecture.toys import twin_of
from orrery.scenario.search.costs import Costs, shares, squared_shares

MAX_CHOICES, MAX_ALTERNATIVES, MAX_FILE_BYTES = 1_000, 100, 4_000_000
NUMBERS = ("moved_bytes", "parameters", "energy_j", "memory_bytes")
KEYS = frozenset({"name", "products", "latency_s", "score", *NUMBERS})
FORMAT = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One alternative as it was written."""

    name: str
    products: tuple[tuple[int, int, int], ...]
    latency_s: Mapping[str, float] | float | None
    score: float | None
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSpace:
    """Choices with their alternatives."""

    name: str
    choices: tuple[tuple[str, tuple[Alternative, ...]], ...]


def read_space(path: Path) -> OwnSpace:
    """The space of that file; ScenarioError where it describes none."""
    tables = toml_tables(read_user_text(path, "space file", MAX_FILE_BYTES), path, "write [[choices]]")
    check_keys(tables, frozenset({"choices"}), str(path))
    found: list[tuple[str, tuple[Alternative, ...]]] = []
    for i, raw in enumerate(checked_list(tables, "choices", MAX_CHOICES, str(path))):
        where = f"{path}: choices[{i}]"
        table = checked_table(raw, where, ' with name = "wide"')
        check_keys(table, frozenset({"name", "times", "alternatives"}), where)
        name, times = _name(table, where), table.get("times", 1)
        if type(times) is not int or not 1 <= times <= MAX_CHOICES:
            raise ScenarioError(f"{where}: times: got {shown(times)}; write a whole number from 1 to {MAX_CHOICES:,}.")
        listed = checked_list(table, "alternatives", MAX_ALTERNATIVES, where)
        read = tuple(_alternative(one, f"{where}: alternatives[{j}]") for j, one in enumerate(listed))
        found += [(name if times == 1 else f"{name} {n + 1}", read) for n in range(times)]
    names = [name for name, _ in found]
    check_names_differ(names, f"{path}: choices")
    return OwnSpace(name=path.stem, choices=tuple(found))


def costs_of(space: OwnSpace, device: Device) -> Costs:
    """The alternatives on a device: as written, or as the kernel rules time their products."""
    count = max(len(listed) for _, listed in space.choices)
    names = ("latency", "energy", "memory", "parameters", "work", "score")
    tables = {name: np.full((len(space.choices), count), np.nan) for name in names}
    known: dict[int, dict[str, float]] = {}  # a choice that is there several times shares its alternatives
    for row, (_, listed) in enumerate(space.choices):
        for column, one in enumerate(listed):
            values = known.get(id(one)) or _priced(one, device)
            known[id(one)] = values
            for metric in names:
                tables[metric][row, column] = values[metric]
    parent = np.zeros((1, len(space.choices)), np.int64)
    has_scores = all(one.score is not None for _, listed in space.choices for one in listed)
    capacity = shares(tables["work"])
    metrics = {name: Metric(table=tables[name]) for name in names[:-1]}
    scored = Metric(table=tables["score"] if has_scores else squared_shares(capacity))
    return Costs(
        choices=tuple(
            Choice(name=name, alternatives=tuple(one.name for one in listed)) for name, listed in space.choices
        ),
        metrics=metrics,
        stand_in=scored,
        likened="score: as the space's file has it"
        if has_scores
        else "score: a stand-in, less the squared share of multiply-adds that each choice leaves out",
        reference_name="first alternatives",
        reference={name: float(found.of(parent)[0]) for name, found in metrics.items()},
        parent=parent,
        toy=twin_of(capacity),
        notes=(f"latency and energy: products in {FORMAT}, where the file gives no latency",),
    )


def _priced(one: Alternative, device: Device) -> dict[str, float]:
    """Every metric of one alternative."""
    weights = float(sum(n * k for _, n, k in one.products))
    work = float(sum(m * n * k for m, n, k in one.products))
    time_s, joules = _timed(one, device)
    stated = one.latency_s.get(device.name) if isinstance(one.latency_s, Mapping) else one.latency_s
    if stated is None and isinstance(one.latency_s, Mapping) and not one.products:
        raise ScenarioError(f"latency_s of {one.name}: has none for {device.name}; write one, or products.")
    parameters = one.numbers.get("parameters", weights)
    return {
        "latency": time_s if stated is None else stated,
        "energy": one.numbers.get("energy_j", joules),
        "memory": one.numbers.get("memory_bytes", parameters * get_format(FORMAT).bytes_per_element),
        "parameters": parameters,
        "work": work,
        "score": np.nan if one.score is None else one.score,
    }


def _timed(one: Alternative, device: Device) -> tuple[float, float]:
    """Seconds and joules of the products and of the bytes moved beside them."""
    moved = one.numbers.get("moved_bytes", 0.0)
    time_s = moved / device.memory_bandwidth_bytes_per_s
    joules = float(energy_j(device, FORMAT, time_s, 0.0, moved)) if moved else 0.0
    for m, n, k in one.products:
        found = kernels.predict(Gemm(m=m, n=n, k=k, format=FORMAT, quantises_input=False), device)
        time_s += float(found.time_s)
        joules += float(energy_j(device, FORMAT, float(found.time_s), float(found.flops), float(found.bytes)))
    return time_s, joules


def _alternative(raw: Any, where: str) -> Alternative:
    table = checked_table(raw, where, ' with name = "wide"')
    check_keys(table, KEYS, where)
    score = table.get("score")
    return Alternative(
        name=_name(table, where),
        products=tuple(_product(one, f"{where}: products") for one in table.get("products", ())),
        latency_s=_latency(table.get("latency_s"), f"{where}: latency_s"),
        score=None if score is None else _number(score, f"{where}: score", -1e30),
        numbers={key: _number(table[key], f"{where}: {key}") for key in NUMBERS if key in table},
    )


def _latency(raw: Any, where: str) -> Mapping[str, float] | float | None:
    if isinstance(raw, dict):
        return {str(name): _number(value, where) for name, value in cast("dict[Any, Any]", raw).items()}
    return None if raw is None else _number(raw, where)


def _product(raw: Any, where: str) -> tuple[int, int, int]:
    sizes = cast("list[Any]", raw) if isinstance(raw, list) else []
    if len(sizes) != 3 or any(type(size) is not int or not 1 <= size <= 10**9 for size in sizes):
        raise ScenarioError(
            f"{where}: got {shown(cast(Any, raw))}; write [m, n, k], whole numbers from 1 to 1,000,000,000."
        )
    return sizes[0], sizes[1], sizes[2]


def _number(raw: Any, where: str, least: float = 0.0) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not (isfinite(raw) and least <= raw <= 1e30):
        raise ScenarioError(f"{where}: got {shown(raw)}; write a number{' from 0' if least == 0.0 else ''}.")
    return float(raw)


def _name(table: Mapping[str, Any], where: str) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 80 or "," in name:
        raise ScenarioError(f"{where}: name: got {shown(name)}; write up to 80 letters without comma.")
    return name

"""The plans as rows, sortable, with intervals where they are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from orrery.reports.words import BOUND_BY, format_value
from orrery.web.export import Cell
from orrery.web.plans.candidate import Plain, design, named


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A figure of every plan."""

    key: str
    name: str
    unit: str


COLUMNS = (
    Column(key="num_devices", name="Devices", unit=""),
    Column(key="usd_per_hour", name="$/hour", unit="usd"),
    Column(key="usd_per_million_tokens", name="$/M output tokens", unit="usd"),
    Column(key="ttft_s", name="TTFT", unit="s"),
    Column(key="tpot_s", name="TPOT", unit="s"),
    Column(key="output_tokens_per_s", name="Output tokens/s", unit=""),
    Column(key="output_tokens_per_s_per_device", name="Tokens/s per device", unit=""),
    Column(key="highest_requests_per_s", name="Max requests/s", unit=""),
    Column(key="energy_j_per_token", name="Energy per token", unit="j"),
)


KEY_FIGURES = (
    "usd_per_million_tokens",
    "num_devices",
    "usd_per_hour",
    "ttft_s",
    "tpot_s",
    "output_tokens_per_s",
    "highest_requests_per_s",
)
"""Keys of the columns that stand first, for the best plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A plan: its place among the best, its name, and (figure, 80 % interval) of each column."""

    number: int
    id: str
    name: str
    href: str
    limit: str
    cells: tuple[tuple[str, str], ...]


def rows(answer: Plain, sort: str) -> tuple[Row, ...]:
    """In the planner's order, or by a column: ``ttft_s`` upwards, ``-ttft_s`` downwards; what is unknown comes last."""
    numbered: list[tuple[int, Plain]] = list(enumerate(cast("list[Plain]", answer["plans"]), 1))
    key = sort.removeprefix("-")
    if any(c.key == key for c in COLUMNS):
        known = [n for n in numbered if n[1][key] is not None]
        known.sort(key=lambda n: n[1][key], reverse=sort.startswith("-"))
        numbered = known + [n for n in numbered if n[1][key] is None]
    return tuple(_row(answer, number, plan) for number, plan in numbered)


def _row(answer: Plain, number: int, plan: Plain) -> Row:
    times = f"{plan['replicas']} x " if plan["replicas"] > 1 else ""
    around = dict(plan["intervals"])
    if answer["goal"]["traffic"]["request_rate_per_s"]:
        around.pop("output_tokens_per_s", None)  # as many as are asked for: what is unsure is how many it carries
    return Row(
        number=number,
        id=f"p{number}",
        name=times + named(plan),
        href=design(answer, plan),
        limit=BOUND_BY.get(plan["bound_by"]) or str(plan["bound_by"]),
        cells=tuple((format_value(plan[c.key], c.unit), between(around.get(c.key), c.unit)) for c in COLUMNS),
    )


def figures(plan: Row) -> tuple[tuple[str, str, str], ...]:
    """Name, value and 80 % interval of the key figures of a plan; the cost of a token first, where it is known."""
    by_key = {column.key: (column.name, *cell) for column, cell in zip(COLUMNS, plan.cells, strict=True)}
    return tuple(by_key[key] for key in KEY_FIGURES)


def between(interval: Plain | None, unit: str) -> str:
    """``47 ms to 76 ms``; empty where no interval is known."""
    return f"{format_value(interval['low_80'], unit)} to {format_value(interval['high_80'], unit)}" if interval else ""


def next_sort(sort: str, key: str) -> str:
    """Sort order after a click on a column: up first, then down, then the planner's order."""
    return {key: f"-{key}", f"-{key}": ""}.get(sort, key)


HEADER = (
    "number",
    "plan",
    "device",
    "tp",
    "pp",
    "dp",
    "ep",
    "weights",
    "kv",
    "replicas",
    "bound_by",
    *(c.key for c in COLUMNS),
)


def cells(answer: Plain) -> Sequence[Sequence[Cell]]:
    """The plans as a plain table, in SI units."""
    found: list[list[Any]] = []
    for number, p in enumerate(answer["plans"], 1):
        layout, formats = p["layout"], p["formats"]
        where = [p["device"], *(layout[way] for way in ("tp", "pp", "dp", "ep")), formats["weights"], formats["kv"]]
        found.append([number, named(p), *where, p["replicas"], p["bound_by"], *(p[c.key] for c in COLUMNS)])
    return found

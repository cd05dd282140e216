"""The best point of each accelerator within an SLO, and its Pareto front; the page's script does the same."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orrery.web.landing.choices import Accelerator
from orrery.web.landing.points import COLUMNS, Rows

Row = Mapping[str, float]
LAYOUT = ("tp", "pp", "dp", "ep")
MS, S_PER_HOUR = 1e3, 3600.0
MIXED = ("ttft_ms", "tpot_ms", "rate", "watts")
"""Columns that are interpolated between two computed points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The SLO: mean latencies, at most."""

    ttft_s: float
    tpot_s: float

    def has(self, row: Row) -> bool:
        """Whether a point is within the SLO."""
        return row["ttft_ms"] <= self.ttft_s * MS and row["tpot_ms"] <= self.tpot_s * MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best point of one accelerator that meets an SLO."""

    device: Accelerator
    row: Row
    usd_per_million: float | None


def named_rows(rows: Rows) -> list[Row]:
    """Rows with the names of their columns."""
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def front_of(rows: Sequence[Row]) -> list[Row]:
    """The Pareto front over all sizes, fastest for one user first."""
    found: list[Row] = []
    for row in sorted(rows, key=lambda r: (r["tpot_ms"], -r["rate"])):
        if not found or row["rate"] > found[-1]["rate"]:
            found.append(row)
    return found


def best_row(rows: Sequence[Row], within: Limits) -> Row | None:
    """The most tokens/s per device within the SLO; between two points of one layout it is interpolated."""
    return max(_candidates(rows, within), key=lambda r: r["rate"], default=None)


def usd_per_million(usd_per_hour: float, tokens_per_s: float) -> float:
    """Dollars for a million output tokens at a device's price and rate."""
    return usd_per_hour / S_PER_HOUR / tokens_per_s * 1e6


def layout_of(row: Row) -> str:
    """``tp 4 ep 4``: degrees above one, and the tensor-parallel one."""
    return " ".join(f"{way} {row[way]:g}" for way in LAYOUT if row[way] > 1 or way == "tp")


def _candidates(rows: Sequence[Row], within: Limits) -> Iterator[Row]:
    yield from (row for row in rows if within.has(row))
    for one, after in pairwise(rows):
        if within.has(one) and not within.has(after) and all(one[way] == after[way] for way in LAYOUT):
            yield _between(one, after, within)


def _between(one: Row, after: Row, within: Limits) -> Row:
    """The point between two of one layout at which the SLO is just met, on logarithms."""
    limits = {"ttft_ms": within.ttft_s * MS, "tpot_ms": within.tpot_s * MS}
    share = min(
        math.log(limit / one[name]) / math.log(after[name] / one[name])
        for name, limit in limits.items()
        if after[name] > limit
    )
    mixed = {name: math.exp(math.log(one[name]) * (1 - share) + math.log(after[name]) * share) for name in MIXED}
    held = {name: min(mixed[name], limit) for name, limit in limits.items()}
    count = math.exp(math.log(one["concurrency"]) * (1 - share) + math.log(after["concurrency"]) * share)
    return {**one, **mixed, **held, "concurrency": max(1, math.floor(count))}

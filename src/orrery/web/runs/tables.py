"""The results that are tables: runs of a sweep, plans held against a simulation, layouts to train with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.drawing import Axis, Point, Series, lines, scatter
from orrery.reports.words import format_value
from orrery.scenario.fields import BY_NAME
from orrery.web.plans.candidate import design, named

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Heads and rows of words; the first of a row is its name, with an address where it has one."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hrefs: tuple[str, ...] = ()


COLUMNS = (
    ("capacity_requests_per_s", "Capacity", "requests_per_s"),
    ("request_throughput", "Requests", "requests_per_s"),
    ("output_throughput", "Output throughput", "tokens_per_s"),
    ("output_tokens_per_s_per_device", "Per device", "tokens_per_s"),
    ("mean_ttft_ms", "TTFT", "ms"),
    ("p99_ttft_ms", "P99", "ms"),
    ("mean_tpot_ms", "TPOT", "ms"),
    ("p99_tpot_ms", "P99", "ms"),
    ("slo_attainment", "SLO attainment", "frac"),
    ("request_goodput", "Goodput", "requests_per_s"),
    ("usd_per_million_tokens", "$/1M output tokens", "usd"),
    ("saturated_first", "First limit reached", "text"),
)
"""Key, head and unit of a sweep's figures; those that no run has are left out."""

CURVES = {
    "throughput": ("output_throughput", "Output throughput", "tokens/s", 1.0),
    "ttft": ("p99_ttft_ms", "Time to first token, P99", "s", 1e-3),
    "tpot": ("p99_tpot_ms", "Time per output token, P99", "s", 1e-3),
    "usd": ("usd_per_million_tokens", "Cost ($/1M output tokens)", "usd", 1.0),
    "capacity": ("capacity_requests_per_s", "Capacity", "requests/s", 1.0),
}
"""Charts of a sweep: key, title, unit, and what brings the value into it."""


def swept(found: Plain) -> Table:
    """The runs in the order of the grid, with what came to nothing."""
    rows: Sequence[Plain] = found["rows"]
    shown = [c for c in COLUMNS if any(row.get(c[0]) is not None for row in rows)]
    cells = [
        (label, *(_cell(row.get(key), unit) for key, _, unit in shown), row["why"] or "done")
        for label, row in zip(found["labels"], rows, strict=True)
    ]
    return Table(
        caption=f"{len(rows)} runs in the order of the grid",
        heads=("Run", *(name for _, name, _ in shown), "Outcome"),
        rows=tuple(cells),
    )


def swept_chart(found: Plain, name: str) -> str:
    """A figure over the first setting that is a number, a curve for each combination of the others; empty without."""
    key, title, unit, scale = CURVES[name]
    rows: Sequence[Plain] = [row for row in found["rows"] if row.get(key) is not None]
    axes = [str(axis).partition("=")[0].replace("-", "_") for axis in found["over"]]
    along = next((a for a in axes if len({row[a] for row in rows}) > 1 and all(_is_number(row[a]) for row in rows)), "")
    if not along:
        return ""
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        name_of = ", ".join(f"{a}={row[a]}" for a in axes if a != along) or " "
        curves.setdefault(name_of, []).append((float(row[along]), float(row[key]) * scale))
    series = [Series(n, [x for x, _ in sorted(c)], [y for _, y in sorted(c)]) for n, c in curves.items()]
    label = BY_NAME[along].help.rstrip(".") if along in BY_NAME else along
    return lines(series, Axis(label), Axis("", unit), title=title)


def held(answer: Plain) -> Table:
    """Plans with what the closed form and the simulation say."""
    rows: list[tuple[str, ...]] = []
    for plan in answer["plans"]:
        s: Plain = plan["simulated"]
        added = f" with {s['num_added_replicas']} more replicas" if s["num_added_replicas"] else ""
        verdict = f"holds{added}" if s["is_met"] else "the queue grows" if not s["is_sustained"] else "misses"
        share = s["slo_attainment"]
        rows.append(
            (
                f"{plan['replicas']} x {named(plan)}",
                str(plan["num_devices"]),
                verdict,
                format_value(plan["ttft_s"], "s"),
                _cell(s["mean_ttft_ms"], "ms"),
                _cell(s["p99_ttft_ms"], "ms"),
                format_value(plan["tpot_s"], "s"),
                _cell(s["mean_tpot_ms"], "ms"),
                _cell(s["p99_tpot_ms"], "ms"),
                format_value(share, "frac"),
                format_value(s["output_throughput"], "tokens_per_s"),
                format_value(plan["usd_per_hour"], "usd"),
                format_value(s["usd_per_million_tokens"], "usd"),
            )
        )
    heads = (
        "Plan",
        "Devices",
        "Simulated",
        "TTFT, estimate",
        "TTFT",
        "P99",
        "TPOT, estimate",
        "TPOT",
        "P99",
        "SLO attainment",
        "Output throughput",
        "$/hour",
        "$/1M output tokens",
    )
    return Table(
        caption=f"{len(rows)} plans, the best first, each served its traffic step by step",
        heads=heads,
        rows=tuple(rows),
        hrefs=tuple(design(answer, plan) for plan in answer["plans"]),
    )


def layouts(answer: Plain) -> Table:
    """The fastest layouts to train with."""
    rows: list[tuple[str, ...]] = []
    for plan in answer["plans"]:
        around = plan["intervals"].get("step_time_s")
        between = (
            f" ({format_value(around['low_80'], 's')} to {format_value(around['high_80'], 's')})" if around else ""
        )
        rows.append(
            (
                laid(plan["layout"]),
                format_value(plan["step_time_s"], "s") + between,
                format_value(plan["mfu_frac"], "frac"),
                format_value(plan["tokens_per_s_per_device"], "tokens_per_s"),
                format_value(plan["peak_memory_bytes"], "bytes"),
                format_value(plan["usd_per_million_tokens"], "usd"),
                str(plan["bound_by"]),
            )
        )
    heads = ("Layout", "Step (80 %)", "MFU", "Tokens per device", "Peak memory", "$/1M tokens", "Bottleneck")
    return Table(caption=f"The {len(rows)} fastest of {answer['num_layouts']:,} layouts", heads=heads, rows=tuple(rows))


def layout_front(answer: Plain) -> str:
    """Time against memory."""
    points = [
        Point(p["peak_memory_bytes"], p["step_time_s"], laid(p["layout"]), is_front=True) for p in answer["front"]
    ]
    return scatter(
        points,
        Axis("Peak memory of a device", "bytes"),
        Axis("Step", "s"),
        title="Time against memory",
        says="Layouts that no other beats in both, nor in energy.",
    )


def laid(layout: Plain) -> str:
    """``tp 2, dp 4, zero2, micro-batch 8, 1f1b``."""
    ways = [f"{way} {layout[way]}" for way in ("tp", "pp", "vp", "cp", "ep", "dp") if layout[way] > 1]
    more = [
        layout["sharding"] if layout["sharding"] != "none" else "",
        f"micro-batch {layout['micro_batch']}",
        f"recompute {layout['recompute']}" if layout["recompute"] != "none" else "",
        layout["schedule"] if layout["pp"] > 1 else "",
    ]
    return ", ".join([*ways, *filter(None, more)])


def probes(answer: Plain) -> Table:
    """The rates that were tried in a search for the capacity."""
    rows = tuple(
        (
            format_value(p["requests_per_s"], "requests_per_s"),
            "holds" if p["is_met"] else str(p["limited_by"]),
            "stays bounded" if p["is_sustained"] else "grows",
            format_value(p["attained_frac"], "frac"),
            format_value(p["p99_ttft_s"], "s"),
            format_value(p["p99_tpot_s"], "s"),
        )
        for p in answer["capacity"]["probes"]
    )
    heads = ("Rate", "Objectives", "Queue", "SLO attainment", "TTFT, P99", "TPOT, P99")
    return Table(caption="The rates that were tried", heads=heads, rows=rows)


def _cell(value: Any, unit: str) -> str:
    if unit == "text":
        return "-" if value is None else str(value)
    if unit == "ms":
        return format_value(None if value is None else value / 1e3, "s")
    return format_value(value, unit)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

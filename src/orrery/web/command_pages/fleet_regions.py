"""Regions and origins on the page of a fleet."""

from functools import partial
from typing import Any

from orrery.base.units import percent
from orrery.drawing import Axis, Series, lines
from orrery.reports.words import format_value
from orrery.web.both_widths import at_both_widths
from orrery.web.command_pages.command_page import Plain, Section, Table

S_PER_HOUR = 3600.0


def region_sections(plain: Plain) -> tuple[Section, ...]:
    """Tables of regions and origins, and requests by region over the run; nothing without regions."""
    if "regions" not in plain:
        return ()
    share = plain["elsewhere_frac"]
    return (
        Section(
            title="Regions",
            verdict=f"{percent(share, 1)} of the requests were not served in their nearest region "
            f"({plain['region_router']})",
            table=_regions(plain["regions"]),
            svg=at_both_widths(partial(_picture, plain)),
        ),
        Section(title="Origins", table=_origins(plain["origins"])),
        *_moves(plain.get("cache_moves")),
    )


def _moves(found: Plain | None) -> tuple[Section, ...]:
    """Caches that moved between regions, and where moving begins to pay; nothing where none may move."""
    if not found:
        return ()
    figures = (
        ("Requests with their history in another region", f"{found['num_elsewhere']:,}"),
        ("Caches that move", f"{found['num_moved']:,}"),
        ("Bytes over the links", format_value(found["moved_bytes"], "bytes")),
        ("A move takes", _time(found["mean_move_s"])),
        ("of it in the queue of a link", _time(found["mean_wait_s"])),
        ("Computing it again takes", _time(found["mean_again_s"])),
        ("Saved a request, mean", _time(found["mean_saved_s"])),
        ("Busiest link", percent(found["busiest_link_frac"], 1)),
        ("p99 TTFT, computed again", _time(found["p99_ttft_s"])),
        ("p99 TTFT with moves", _time(found["p99_ttft_moved_s"])),
    )
    columns = ("From", "To", "Requests", "Mean tokens", "Computed in", "Link from", "Tokens from, on this link")
    turns = tuple(
        (
            row["holder"],
            row["region"],
            f"{row['num_requests']:,}",
            f"{row['cache_tokens']:,.0f}",
            _time(row["again_s"]),
            "-" if row["above_bytes_per_s"] is None else f"{format_value(row['above_bytes_per_s'], 'bytes')}/s",
            "-" if row["above_tokens"] is None else f"{row['above_tokens']:,.0f}",
        )
        for row in found["break_even"]
    )
    caption = f"cache_moves = {found['way']} at {format_value(found['link_bytes_per_s'], 'bytes')}/s"
    return (
        Section(title="Caches between regions", table=Table(caption=caption, columns=("", "Value"), rows=figures)),
        Section(title="Where moving is sooner", table=Table(caption="Idle links", columns=columns, rows=turns)),
    )


def _regions(rows: list[dict[str, Any]]) -> Table:
    columns = ("Region", "Requests", "Guests", "In time", "p99 TTFT", "Replicas", "Cost", "Energy", "CO2")
    cells = tuple(
        (
            r["name"],
            f"{r['num_requests']:,}",
            percent(r["guests_frac"], 1),
            _share(r["attained_frac"]),
            _time(r["ttft_s"]["p99"]),
            f"{r['num_replicas']:.3g}",
            format_value(r["cost_usd"], "usd"),
            format_value(r["energy_j"], "j"),
            "-" if r["carbon_g"] is None else f"{r['carbon_g'] / 1e3:.3g} kg",
        )
        for r in rows
    )
    return Table(caption="What each region served", columns=columns, rows=cells)


def _origins(rows: list[dict[str, Any]]) -> Table:
    columns = ("Origin", "Requests", "In time", "p50 TTFT", "p99 TTFT", "Elsewhere", "Served in")
    cells = tuple(
        (
            o["name"],
            f"{o['num_requests']:,}",
            _share(o["attained_frac"]),
            _time(o["ttft_s"]["p50"]),
            _time(o["ttft_s"]["p99"]),
            percent(o["elsewhere_frac"], 1),
            ", ".join(f"{name} {n:,}" for name, n in o["served_in"].items() if n),
        )
        for o in rows
    )
    return Table(caption="As users see it, with the way there and back", columns=columns, rows=cells)


def _picture(plain: Plain) -> str:
    hours = [s / S_PER_HOUR for s in plain["series"]["start_s"]]
    curves = [Series(r["name"], hours, plain["series"][f"{r['name']}_requests_per_s"]) for r in plain["regions"]]
    return lines(curves, Axis("Time (hours)"), Axis("Requests/s", low=0.0), title="Requests/s by region over the run")


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value, 2)


def _time(value: float | None) -> str:
    return "-" if value is None else format_value(value, "s")

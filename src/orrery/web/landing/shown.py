"""All that the landing page's template shows of a choice, before any script runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orrery.web.landing.best import Best, Row, front_of, layout_of
from orrery.web.landing.chart import HEIGHT_PX, WIDTH_PX, chart
from orrery.web.landing.choices import BITS, DEVICES
from orrery.web.landing.view import MS, Choice, best_of, chart_data, menus, rows_by_device, summary, usual_bits

THIN = 50
"""Percent of borrowed time above which evidence is thin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One of the answers above the chart: what it is best at, where, its figure with the interval, and its layout."""

    title: str
    device: str
    value: str
    unit: str
    interval: str
    detail: str
    is_thin: bool  # most of its time rests on constants of related devices


def shown(choice: Choice, is_usd: bool = False) -> dict[str, Any]:
    """The template's content; of a model that is not computed ahead, its frame."""
    usual = usual_bits(choice)
    return {
        "choice": choice,
        "bits": choice.bits or usual,
        "bits_choices": BITS,
        "data": chart_data(choice) | {"usualBits": usual},
        "ranked": ranked(choice, is_usd),
        "is_usd": is_usd,
        "cells": cells(choice),
        "summary": summary(choice),
        "chart": chart(choice, is_usd),
        "chart_size": (WIDTH_PX, HEIGHT_PX),
        "layout_of": layout_of,
        "short": short,
        "dollars": dollars,
        **menus(),
    }


def ranked(choice: Choice, is_usd: bool) -> Sequence[Best]:
    """The best points in the order of the y axis."""
    found = best_of(choice)
    return found if is_usd else sorted(found, key=lambda b: -b.row["rate"])


def cells(choice: Choice) -> tuple[Cell, ...]:
    """Cheapest, most tokens per device, fastest for one user; none where nothing is within the SLO."""
    found = best_of(choice)
    if not found:
        return ()
    most, first = max(found, key=lambda b: b.row["rate"]), found[0]
    cheapest = (_cheapest(first, first.usd_per_million),) if first.usd_per_million else ()
    rate = _cell("Most per device", most.device.title, most.row, ("rate", "tokens/s/device"), most.row["rate"])
    return (*cheapest, rate, *_fastest(choice))


def _cheapest(best: Best, usd: float) -> Cell:
    low, high = (usd * 100 / best.row[f"rate_{end}"] for end in ("high", "low"))
    return Cell(
        title="Cheapest at this SLO",
        device=best.device.title,
        value=dollars(usd),
        unit="per M output tokens",
        interval=f"{dollars(low)} to {dollars(high)}",
        detail=_detail(best.row),
        is_thin=best.row["borrowed"] > THIN,
    )


def _fastest(choice: Choice) -> tuple[Cell, ...]:
    """The point of the least TPOT within the SLO, over all accelerators; an interval of TPOT turns around."""
    rows = rows_by_device(choice)
    met = [(r, d) for d in DEVICES for r in front_of(rows.get(d.key, [])) if choice.limits.has(r)]
    if not met:
        return ()
    row, device = min(met, key=lambda one: one[0]["tpot_ms"])
    turned = {**row, "user_low": 1e4 / row["tpot_high"], "user_high": 1e4 / row["tpot_low"]}
    return (_cell("Fastest for one user", device.title, turned, ("user", "tokens/s/user"), MS / row["tpot_ms"]),)


def _cell(title: str, device: str, row: Row, figure: tuple[str, str], value: float) -> Cell:
    name, unit = figure
    low, high = (short(value * row[f"{name}_{end}"] / 100) for end in ("low", "high"))
    return Cell(
        title=title,
        device=device,
        value=short(value),
        unit=unit,
        interval=f"{low} to {high}",
        detail=_detail(row),
        is_thin=row["borrowed"] > THIN,
    )


def _detail(row: Row) -> str:
    return f"{layout_of(row)} · TPOT {short(row['tpot_ms'])} ms"


def short(value: float) -> str:
    """Three digits; thousands in full."""
    return f"{value:,.0f}" if value >= 100 else f"{float(f'{value:.3g}'):g}"


def dollars(value: float) -> str:
    """Three digits, also where the last are zeros."""
    return f"${value:.0f}" if value >= 100 else f"${value:#.3g}"

"""The chart as the page opens with it, drawn before any script runs: fronts, the best points, the SLO.

The page's script draws it anew at the width that it is given, with bands and published runs, and lets it be used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from orrery.catalog.prices import price_of
from orrery.drawing.axis import Axis, Scale
from orrery.drawing.words import px, safe
from orrery.web.landing import shipped
from orrery.web.landing.best import Best, Row, front_of, usd_per_million
from orrery.web.landing.choices import DEVICES, Accelerator
from orrery.web.landing.view import MS, Choice, best_of, rows_by_device, usual_bits

WIDTH_PX, HEIGHT_PX = 904, 500
LOG = Axis("", is_log=True)
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 116, WIDTH_PX - 52, 26, HEIGHT_PX - 44
NAME_STEP_PX = 16
TICKS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The front of one accelerator: tokens/s per user and the value of the y axis, fastest for one user first."""

    device: Accelerator
    points: Sequence[tuple[float, float]]


@lru_cache(maxsize=64)
def chart(choice: Choice, is_usd: bool = False) -> str:
    """The content of the page's ``<svg>``; a sentence where nothing was computed ahead."""
    curves = [c for d, rows in _rows(choice) if (c := Curve(device=d, points=_points(d, rows, is_usd))).points]
    if not curves:
        return '<text class="t" x="12" y="40">Computing …</text>'
    x, y = _axes([p for c in curves for p in c.points] + _runs(choice, is_usd), is_usd)
    best = best_of(choice)
    first = _first(best, is_usd)
    return "".join(
        (
            f'<clipPath id="inside"><rect x="{LEFT_PX}" y="{TOP_PX}" width="{RIGHT_PX - LEFT_PX}" '
            f'height="{BOTTOM_PX - TOP_PX}"/></clipPath>',
            _frame(x, y, choice, is_usd),
            *(_curve(c, x, y, c.device.key == first) for c in curves),
            *(_disc(b, x, y, is_usd) for b in best),
            *_names(curves, x, y, first),
        )
    )


def _rows(choice: Choice) -> list[tuple[Accelerator, Sequence[Row]]]:
    rows = rows_by_device(choice)
    return [(d, rows.get(d.key, [])) for d in DEVICES]


def _points(device: Accelerator, rows: Sequence[Row], is_usd: bool) -> list[tuple[float, float]]:
    every = [(MS / r["tpot_ms"], _value(device.key, r["rate"], is_usd)) for r in front_of(rows)]
    return [(x, y) for x, y in every if y is not None]


def _value(device: str, tokens_per_s: float, is_usd: bool) -> float | None:
    """A rate as the y axis counts it; None where dollars are asked for and no price is known."""
    if not is_usd:
        return tokens_per_s
    price = price_of(device)
    return usd_per_million(price.usd_per_device_hour, tokens_per_s) if price else None


def _runs(choice: Choice, is_usd: bool) -> list[tuple[float, float]]:
    """Published runs, which the script draws as dots: the axes leave room for them."""
    bits = choice.bits or usual_bits(choice)
    runs = [r for r in shipped.published(choice.model, choice.engine, choice.traffic) if r["bits"] == bits]
    return [(MS / r["tpot_ms"], y) for r in runs if (y := _value(r["device"], r["rate"], is_usd)) is not None]


def _axes(points: Sequence[tuple[float, float]], is_usd: bool) -> tuple[Scale, Scale]:
    """Ends of the axes: what is drawn, a little more on each side."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    top, least = max(ys) * 1.3, min(ys)
    low, high = (least * 0.7, min(top, least * 300)) if is_usd else (max(least * 0.8, top / 600), top)
    return (
        Scale(LOG, min(10, *xs) * 0.95, max(xs) * 1.15, LEFT_PX, RIGHT_PX),
        Scale(LOG, low, high, BOTTOM_PX, TOP_PX),
    )


def _first(best: Sequence[Best], is_usd: bool) -> str:
    """The accelerator that the page opens with: the first of its ranking."""
    if is_usd:
        return next((b.device.key for b in best if b.usd_per_million is not None), "")
    return max(best, key=lambda b: b.row["rate"]).device.key if best else ""


def _frame(x: Scale, y: Scale, choice: Choice, is_usd: bool) -> str:
    slo_px = _inside(x, 1 / choice.limits.tpot_s)
    out = [
        f'<rect x="{LEFT_PX}" y="{TOP_PX}" width="{slo_px - LEFT_PX:.1f}" height="{BOTTOM_PX - TOP_PX}" '
        f'fill="var(--zone)"/>'
    ]
    for v in _ticks(y):
        at, words = y.at(v), f"${v:g}" if is_usd else f"{v / 1e3:g}k" if v >= 1e3 else f"{v:g}"
        out.append(f'<path d="M{LEFT_PX} {px(at)}H{RIGHT_PX}" stroke="var(--grid)"/>')
        out.append(_text(RIGHT_PX + 6, at + 4, words))
    for v in _ticks(x):
        at = x.at(v)
        out.append(f'<path d="M{px(at)} {BOTTOM_PX}v4" stroke="var(--dim)"/>')
        out.append(_text(at, BOTTOM_PX + 18, f"{v:g}", "middle") + _text(at, BOTTOM_PX + 34, f"{MS / v:.3g}", "middle"))
    out.append(f'<path d="M{LEFT_PX} {BOTTOM_PX}H{RIGHT_PX}" stroke="var(--dim)"/>')
    out.append(_text(LEFT_PX - 8, BOTTOM_PX + 18, "tokens/s/user", "end"))
    out.append(_text(LEFT_PX - 8, BOTTOM_PX + 34, "TPOT, ms", "end"))
    out.append(_text(WIDTH_PX - 2, 12, "$ per M output tokens" if is_usd else "output tokens/s/device", "end"))
    out.append(f'<path d="M{px(slo_px)} {TOP_PX - 6}V{BOTTOM_PX}" stroke="var(--ink)" stroke-dasharray="2 3"/>')
    slo = f"SLO: TPOT {choice.limits.tpot_s * MS:g} ms, TTFT {choice.limits.ttft_s * MS:g} ms"
    return "".join(out) + _text(slo_px + 5, 12, slo)


def _inside(scale: Scale, value: float) -> float:
    """A place, kept between the ends of its axis (px)."""
    return scale.at(min(scale.high, max(scale.low, value)))


def _ticks(scale: Scale) -> list[float]:
    """Values at 1, 2 and 5 times a power of ten."""
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    every = (float(f"{one}e{power}") for power in powers for one in TICKS)
    return [v for v in every if scale.low <= v <= scale.high]


def _curve(c: Curve, x: Scale, y: Scale, is_on: bool) -> str:
    line = "L".join(f"{px(x.at(a))},{px(y.at(b))}" for a, b in c.points)
    dash = ' stroke-dasharray="6 4"' if c.device.is_card else ""
    return (
        f'<path clip-path="url(#inside)" d="M{line}" fill="none" stroke="var(--{c.device.hue})" '
        f'stroke-width="{3.25 if is_on else 1.6}"{dash}/>'
    )


def _disc(best: Best, x: Scale, y: Scale, is_usd: bool) -> str:
    value = best.usd_per_million if is_usd else best.row["rate"]
    if value is None:
        return ""
    return (
        f'<circle clip-path="url(#inside)" cx="{px(x.at(MS / best.row["tpot_ms"]))}" cy="{px(y.at(value))}" r="4" '
        f'fill="var(--{best.device.hue})"/>'
    )


def _names(curves: Sequence[Curve], x: Scale, y: Scale, first: str) -> list[str]:
    """Names in one column at the left ends, moved apart."""
    ends = sorted(((_inside(y, c.points[-1][1]), x.at(c.points[-1][0]), c.device) for c in curves), key=lambda e: e[:2])
    places = apart([at for at, _, _ in ends], min(NAME_STEP_PX, (BOTTOM_PX - TOP_PX) / len(ends)))
    return [
        f'<path d="M{LEFT_PX - 12} {px(place)}L{LEFT_PX - 3} {px(place)}L{px(x_px)} {px(at)}" fill="none" '
        f'stroke="var(--{device.hue})" opacity=".45" stroke-dasharray="1 3"/>'
        f'<text class="name{" on" if device.key == first else ""}" x="{LEFT_PX - 16}" y="{px(place + 4)}" '
        f'text-anchor="end">{safe(device.title)}</text>'
        for place, (at, x_px, device) in zip(places, ends, strict=True)
    ]


def apart(ats_px: Sequence[float], step_px: float) -> list[float]:
    """Places in ascending order, moved so that two are at least a step apart and none is below the plot."""
    found = list(ats_px)
    for before, n in pairwise(range(len(found))):
        found[n] = max(found[n], found[before] + step_px)
    limit = float(BOTTOM_PX)
    for n in reversed(range(len(found))):
        found[n] = limit = min(found[n], limit)
        limit -= step_px
    return found


def _text(x_px: float, y_px: float, words: str, anchor: str = "start") -> str:
    return f'<text class="t" x="{px(x_px)}" y="{px(y_px)}" text-anchor="{anchor}">{safe(words)}</text>'

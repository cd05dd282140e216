"""Curves over two axes, each with a band where its interval is known."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.drawing.axis import Axis
from orrery.drawing.captions import left_out, span
from orrery.drawing.marks import mark as marker
from orrery.drawing.paper import SIDE_PX, finish, heading, hue, is_narrow, label, legend, nothing, path, sheet_px
from orrery.drawing.plane import Plane, plane
from orrery.drawing.words import clean, px, safe, width_px

MAX_SAMPLES = 320
"""Samples of a curve that are drawn; of more, the lowest and highest of each stretch."""

_NAMES_BESIDE = 8
"""Curves that are named at their ends; more are named in a legend."""

_MARKED = 24
"""Samples up to which each is marked; of a longer curve a few are."""

_LINE_PX = 15.0


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: its samples, and the ends of its interval at each of them."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class _Curve:
    """The drawable part of a series: (x, y) in order of x, its band, its number among all series."""

    number: int
    of: Series
    samples: list[tuple[float, float]]
    band: list[tuple[float, float, float]]


def lines(
    series: Sequence[Series], x: Axis, y: Axis, *, title: str, says: str = "", mark: tuple[float, str] | None = None
) -> str:
    """Curves over ``x``; ``mark`` is a place on ``x`` and what it is."""
    every = [_curve(n, s, x, y) for n, s in enumerate(series)]
    missing = sum(min(len(c.of.x), len(c.of.y)) - len(c.samples) for c in every)
    curves = [c for c in every if c.samples]
    if not curves:
        return nothing(title, says, [left_out(missing)])
    body, top = heading(title, says)
    is_beside = len(curves) <= _NAMES_BESIDE and not is_narrow()
    if is_beside:
        room = 20.0 + min(150.0, max(width_px(clean(c.of.name)) for c in curves))
    else:
        keys, top = legend([(_key(c), c.of.name) for c in curves], top)
        body, room = body + keys, SIDE_PX
    mark = mark if mark and x.takes(mark[0]) else None
    xs = [at for c in curves for at, _ in c.samples] + ([mark[0]] if mark else [])
    p = plane((x, y), xs, _heights(curves), top, room)
    body += p.drawn
    for c in curves:
        body.append(_drawn(p, c))
    if mark and p.x.has(mark[0]):
        body.append(_mark(p, mark))
    if is_beside:
        body += _names(p, curves)
    return finish(body, p.foot_px, title, [says, *_describe(x, y, curves, mark), left_out(missing)])


def _curve(number: int, s: Series, x: Axis, y: Axis) -> _Curve:
    pairs = zip(s.x, s.y, strict=False)
    samples = sorted((float(a), float(b)) for a, b in pairs if x.takes(a) and y.takes(b))
    bands = zip(s.x, s.low, s.high, strict=False)
    band = sorted((float(a), float(b), float(c)) for a, b, c in bands if x.takes(a) and y.takes(b) and y.takes(c))
    return _Curve(number, s, samples, band)


def _heights(curves: Sequence[_Curve]) -> Iterator[float]:
    for c in curves:
        yield from (y for _, y in c.samples)
        yield from (end for _, *ends in c.band for end in ends)


def _drawn(p: Plane, c: _Curve) -> str:
    samples = [s for s in thinned(c.samples) if p.has(*s)]
    out: list[str] = []
    if len(c.band) > 1:
        band = c.band[:: -(-len(c.band) // MAX_SAMPLES)]
        there = [(x, high) for x, _, high in band]
        back = [(x, low) for x, low, _ in reversed(band)]
        out.append(path(_through(p, there + back) + "z", "b"))
    if len(samples) > 1:
        out.append(path(_through(p, samples), "l d" if c.of.is_dashed else "l"))
    step = 1 if len(samples) <= _MARKED else len(samples) // 6
    marked = samples[::step] if step == 1 else samples[(c.number % 3 + 1) * step // 4 :: step]
    out += [marker(c.number, p.x.at(x), p.y.at(y), 3.4, "r") for x, y in marked]
    return f'<g class="orr-{hue(c.number)}"><title>{safe(c.of.name)}</title>{"".join(out)}</g>'


def thinned(samples: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lowest and the highest of every stretch, and both ends."""
    if len(samples) <= MAX_SAMPLES:
        return samples
    size = -(-2 * len(samples) // MAX_SAMPLES)
    retained: list[tuple[float, float]] = [samples[0]]
    for start in range(0, len(samples), size):
        stretch = samples[start : start + size]
        retained += sorted({min(stretch, key=lambda s: s[1]), max(stretch, key=lambda s: s[1])})
    return [*retained, samples[-1]]


def _through(p: Plane, samples: Sequence[tuple[float, float]]) -> str:
    top, foot = p.y.end_px, p.y.start_px
    places = [f"{px(p.x.at(x))} {px(min(max(p.y.at(y), top), foot))}" for x, y in samples]
    return "M" + "L".join(places)


def _key(c: _Curve) -> str:
    dash = "l d" if c.of.is_dashed else "l"
    return f'<g class="orr-{hue(c.number)}">{path("M-8 0H8", dash)}{marker(c.number, 0, 0, 3.4, "r")}</g>'


def _mark(p: Plane, mark: tuple[float, str]) -> str:
    """A line across; the group carries the scale, so that a script can move it."""
    x, turn = p.x.at(mark[0]), 0.6 * sheet_px()
    is_left = x > turn
    line = path(f"M{px(x)} {px(p.y.start_px)}V{px(p.y.end_px - 4)}", "a d")
    caption = label(x - 5 if is_left else x + 5, p.y.end_px + 4, mark[1], "o e" if is_left else "o", 220.0)
    scale = {"start": p.x.start_px, "end": p.x.end_px, "low": p.x.low, "high": p.x.high, "log": p.x.axis.is_log}
    scale["turn"] = turn
    return f'<g data-at="{px(x)}" data-scale="{safe(json.dumps(scale))}">{line}{caption}</g>'


def _names(p: Plane, curves: Sequence[_Curve]) -> list[str]:
    """Names at the right ends, moved apart where they would overlap."""
    label_places = sorted((min(max(p.y.at(c.samples[-1][1]), p.y.end_px), p.y.start_px), c.number, c) for c in curves)
    places: list[float] = []
    for y, _, _ in label_places:
        places.append(max(y, places[-1] + _LINE_PX) if places else y)
    excess = max(0.0, places[-1] - p.y.start_px)
    below = p.y.start_px - excess + _LINE_PX
    for i in range(len(places) - 1, -1, -1):
        places[i] = below = min(places[i], p.y.start_px, below - _LINE_PX if i < len(places) - 1 else places[i])
    out: list[str] = []
    for place, (_, number, c) in zip(places, label_places, strict=True):
        key = f'<g class="orr-{hue(number)}">{marker(number, p.x.end_px + 8, place, 3.4, "r")}</g>'
        out += [key, label(p.x.end_px + 15, place + 4, c.of.name, "", sheet_px() - p.x.end_px - 19)]
    return out


def _describe(x: Axis, y: Axis, curves: Sequence[_Curve], mark: tuple[float, str] | None) -> Iterator[str]:
    yield f"{y.label or 'Values'} over {x.label or 'x'} {span(x, (at for c in curves for at, _ in c.samples))}"
    for c in curves[:_NAMES_BESIDE]:
        yield f"{c.of.name or 'Curve'} {_course(x, y, c.samples)}"
    if len(curves) > _NAMES_BESIDE:
        yield f"{len(curves) - _NAMES_BESIDE} more curves"
    if mark:
        yield f"Marked at {x.describe(mark[0])}: {mark[1]}"


def _course(x: Axis, y: Axis, samples: list[tuple[float, float]]) -> str:
    """Course of a curve: its first and last value, and its minimum and maximum where they differ."""
    first, last = samples[0], samples[-1]
    lowest, highest = min(samples, key=lambda s: s[1]), max(samples, key=lambda s: s[1])
    begin, end = y.describe(first[1]), y.describe(last[1])
    if lowest[1] == highest[1]:
        return f"is {begin}"
    verb = "rises" if last[1] > first[1] else "falls"
    out = f"{verb} from {begin} to {end}" if begin != end else f"begins and ends at {end}"
    for word, extreme in (("lowest", lowest), ("highest", highest)):
        if extreme[1] not in (first[1], last[1]):
            out += f", {word} {y.describe(extreme[1])} at {x.describe(extreme[0])}"
    return out

"""Timelines: a track for each device or request, a rectangle for each span of work."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from orrery.base.units import percent, si
from orrery.drawing.axis import Axis, Scale, scale
from orrery.drawing.captions import left_out, not_shown
from orrery.drawing.hatch import fill, hatches, key
from orrery.drawing.paper import SIDE_PX, finish, heading, kinds_of, legend, nothing, path, rect, sheet_px
from orrery.drawing.plane import foot_ticks
from orrery.drawing.rows import RowNames, row_names
from orrery.drawing.words import counted, listed, px

MAX_TRACKS, MAX_RECTS, MAX_TOLD = 64, 1500, 250
"""Tracks and rectangles that are drawn, and rectangles up to which each tells what it is."""

_TIME = Axis("Time", "s")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Span:
    """Work of a kind from start to end."""

    start_s: float
    end_s: float
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """Spans one after the other."""

    name: str
    spans: Sequence[Span]


def timeline(tracks: Sequence[Track], *, title: str, says: str = "") -> str:
    """Tracks one below the other over common time; where spans are too many, what takes most of each moment."""
    retained = [Track(t.name, sorted(filter(_has_place, t.spans), key=lambda s: (s.start_s, s.end_s))) for t in tracks]
    missing = left_out(sum(len(t.spans) for t in tracks) - sum(len(t.spans) for t in retained))
    shown = retained[:MAX_TRACKS]
    spans = [s for t in shown for s in t.spans]
    if not spans:
        return nothing(title, says, [missing])
    kinds = kinds_of(s.kind for s in spans)
    body, top = heading(title, says)
    keys, top = legend([(key(n), kind or "busy") for kind, n in list(kinds.items())[:16]], top)
    names = row_names((t.name for t in shown), 150.0, 8.0)
    ends = [s.start_s for s in spans] + [s.end_s for s in spans]
    axis = Axis(_TIME.label, _TIME.unit, low=min(ends), high=max(ends))
    along = scale(axis, ends, names.left_px, sheet_px() - SIDE_PX - 8, zero_below=0.0)
    row_px = min(26.0, max(9.0, 560.0 / len(shown)))
    step_px = row_px + names.above_px
    foot = top + step_px * len(shown) + 4.0
    lines = "".join(f"M{px(along.at(v))} {px(top)}V{px(foot)}" for v, _ in along.ticks(72.0))
    merged = [_merged(t.spans, along, MAX_RECTS // len(shown)) for t in shown]
    is_told = sum(map(len, merged)) <= MAX_TOLD
    body += [hatches(kinds.values()), *keys, path(lines, "g")]
    for row, (t, rects) in enumerate(zip(shown, merged, strict=True)):
        body += _track(t, rects, along, kinds, names, (top + row * step_px + names.above_px + 1, row_px), is_told)
    ticks, end = foot_ticks(along, foot)
    num_spans = sum(len(t.spans) for t in shown)
    joined = f"{num_spans:,} spans are drawn as {sum(map(len, merged)):,}" if sum(map(len, merged)) < num_spans else ""
    caption = [says, *_describe(shown, kinds, min(ends), max(ends)), joined]
    return finish(
        [*body, *ticks], end, title, [*caption, not_shown(len(tracks) - len(shown), len(tracks), "tracks"), missing]
    )


def _has_place(s: Span) -> bool:
    return _TIME.takes(s.start_s) and _TIME.takes(s.end_s) and s.end_s >= s.start_s


def _merged(spans: Sequence[Span], along: Scale, most: int) -> list[Span]:
    """Return the spans unchanged while they are few; else each column of the drawing shows one kind."""
    if len(spans) <= most:
        return list(spans)
    columns = min(most, int(along.end_px - along.start_px))
    step_s = (along.high - along.low) / columns
    edges_s: Floats = along.low + step_s * np.arange(columns + 1, dtype=np.float64)
    busy: dict[str, Floats] = {}
    for kind in dict.fromkeys(s.kind for s in spans):
        starts_s = np.sort(np.array([s.start_s for s in spans if s.kind == kind], dtype=np.float64))
        ends_s = np.sort(np.array([s.end_s for s in spans if s.kind == kind], dtype=np.float64))
        busy[kind] = np.diff(_passed_s(edges_s, starts_s) - _passed_s(edges_s, ends_s)) / step_s
    out: list[Span] = []
    for kind, run in groupby(enumerate(_in_turn(busy, columns)), key=lambda pair: pair[1]):
        columns_of = [column for column, _ in run]
        if kind is not None:
            start_s, end_s = along.low + columns_of[0] * step_s, along.low + (columns_of[-1] + 1) * step_s
            out.append(Span(start_s, end_s, kind))
    return out


def _passed_s(at_s: Floats, since_s: Floats) -> Floats:
    """How long ago all the moments ``since_s`` were at each of the times, those in the future not counted, summed."""
    counts = np.searchsorted(since_s, at_s)
    return counts * at_s - np.concatenate(([0.0], np.cumsum(since_s)))[counts]


def _in_turn(busy: dict[str, Floats], columns: int) -> Iterator[str | None]:
    """The kind of each column, or none where it idles: what is most behind its share so far, so that shares hold."""
    due: dict[str | None, float] = dict.fromkeys((None, *busy), 0.0)
    for column in range(columns):
        shares = {kind: float(held[column]) for kind, held in busy.items()}
        due[None] += max(0.0, 1.0 - sum(shares.values()))
        for kind, share in shares.items():
            due[kind] += share
        chosen = max(due, key=lambda kind: (due[kind], kind or ""))
        due[chosen] -= 1.0
        yield chosen


def _track(
    t: Track,
    spans: list[Span],
    along: Scale,
    kinds: dict[str, int],
    names: RowNames,
    place: tuple[float, float],
    is_told: bool,
) -> Iterator[str]:
    y, row_px = place
    yield names.label(t.name, y, y + row_px / 2 + 3, "n")
    for kind, number in kinds.items():
        drawn = [_rect(s, along, y, row_px - 3, is_told) for s in spans if s.kind == kind]
        if drawn:
            inside = "".join(drawn) if is_told else path("".join(drawn), "")
            yield f"<g {fill(number)}>{inside}</g>"


def _rect(s: Span, along: Scale, y: float, height: float, is_told: bool) -> str:
    """A rectangle that tells what it is, or its outline as a piece of a path."""
    start, end = along.at(s.start_s), along.at(s.end_s)
    width = max(end - start - (0.6 if end - start > 3 and is_told else 0.0), 0.5)
    if not is_told:
        return f"M{px(start)} {px(y)}h{px(width)}v{px(height)}H{px(start)}z"
    caption = f"{s.name or s.kind or 'busy'}: {si(s.end_s - s.start_s, 's')} from {si(s.start_s, 's')}"
    return rect(start, y, width, height, "", caption)


def _describe(tracks: Sequence[Track], kinds: dict[str, int], start_s: float, end_s: float) -> Iterator[str]:
    whole_s = math.fsum(s.end_s - s.start_s for t in tracks for s in t.spans)
    yield f"{counted(len(tracks), 'track')} from {si(start_s, 's')} to {si(end_s, 's')}"
    busy = {k: math.fsum(s.end_s - s.start_s for t in tracks for s in t.spans if s.kind == k) for k in kinds}
    if whole_s > 0:
        yield "Of the busy time: " + listed(
            f"{kind or 'busy'} {percent(held_s / whole_s)}" for kind, held_s in busy.items()
        )

"""Predicted against measured, one square a class of work: the nearer to the diagonal, the better."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.drawing.axis import Axis, Scale, scale
from orrery.drawing.captions import left_out
from orrery.drawing.marks import mark
from orrery.drawing.paper import SIDE_PX, finish, heading, hue, is_narrow, label, legend, nothing, path, rect, sheet_px
from orrery.drawing.words import counted, px, safe

_SQUARE_PX, _GAP_PX, _NUM_CELLS, _NUM_SHADES = 210.0, 52.0, 42, 5
_RADIUS_PX, _FEW, _RADIUS_OF_FEW_PX = 2.4, 60, 3.6
_TAIL = 0.001
"""Share of the pairs at each end that does not stretch the axes where pairs are drawn as cells."""

_MAX_DOTS = 1200

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A class of work: what was found and what is predicted, and, of each pair, what it tells and whether it misses.

    Pairs that tell nothing, or are very many, are drawn as cells, darker where more of them fall.
    """

    name: str
    found: Sequence[float] | Floats
    predicted: Sequence[float] | Floats
    unit: str = ""
    description: Sequence[str] = ()
    misses: Sequence[bool] = ()


def parity(
    panels: Sequence[Pairs],
    *,
    title: str,
    says: str = "",
    num_columns: int = 3,
    names: tuple[str, str] = ("measured", "predicted"),
    tolerance_ratio: float = 1.2,
) -> str:
    """Squares with equal axes, the diagonal, and the band within ``tolerance_ratio`` of it."""
    placed = [(p, *_placed(p)) for p in panels]
    missing = left_out(sum(len(p.found) - len(found) for p, found, _, _ in placed))
    if not any(len(found) for _, found, _, _ in placed):
        return nothing(title, says, [missing])
    body, top = heading(title, says)
    keys, top = legend(_keys(panels, tolerance_ratio), top)
    body += keys
    step = _SQUARE_PX + _GAP_PX
    num_columns = 1 if is_narrow() else num_columns
    for n, (p, found, predicted, index) in enumerate(placed):
        corner = (SIDE_PX + 36 + n % num_columns * step, top + 24 + n // num_columns * (step + 22))
        body += _panel(p, (found, predicted, index), corner, names, tolerance_ratio)
    height = top + 14 - -len(panels) // num_columns * (step + 22)
    caption = (_describe(p, found, predicted) for p, found, predicted, _ in placed)
    width = sheet_px() if is_narrow() else 2 * SIDE_PX + num_columns * step
    return finish(body, height, title, [says, *caption, missing], width_px=width)


def _placed(p: Pairs) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The pairs that have a place, and their numbers."""
    found, predicted = np.asarray(p.found, dtype=float), np.asarray(p.predicted, dtype=float)
    axis = Axis("", is_log=True)
    index = np.array(
        [n for n, (f, q) in enumerate(zip(found, predicted, strict=True)) if axis.takes(f) and axis.takes(q)], int
    )
    return found[index], predicted[index], index


def _keys(panels: Sequence[Pairs], tolerance_ratio: float) -> list[tuple[str, str]]:
    band = f'<g class="orr-k8">{rect(-8, -5, 16, 10, "b")}</g>'
    keys = [(band, f"within a factor of {tolerance_ratio:g}")]
    if any(any(p.misses) for p in panels):
        keys = [(_dot(0, 0, False), "any other verdict"), (_dot(0, 0, True), "not reproduced"), *keys]
    return keys


def _dot(x: float, y: float, is_miss: bool) -> str:
    number, shape = (5, 3) if is_miss else (0, 0)
    return f'<g class="orr-{hue(number)} orr-f">{mark(shape, x, y, 3.4, "")}</g>'


def _panel(
    p: Pairs,
    pairs: tuple[Floats, Floats, NDArray[np.int64]],
    corner: tuple[float, float],
    names: tuple[str, str],
    tolerance_ratio: float,
) -> Iterator[str]:
    (x, y), (found, predicted, index) = corner, pairs
    foot, right = y + _SQUARE_PX, x + _SQUARE_PX
    yield label(x, y - 8, f"{p.name} ({len(found):,})", "", _SQUARE_PX + _GAP_PX - 6)
    if not len(found):
        yield label(x + _SQUARE_PX / 2, y + _SQUARE_PX / 2, "nothing to draw", "s m")
        return
    has_dots = bool(p.description) and len(found) <= _MAX_DOTS
    ends = np.concatenate((found, predicted)) if has_dots else np.quantile(found, (_TAIL, 1 - _TAIL))
    along = scale(Axis("", p.unit, is_log=True), ends.tolist(), x, right)
    y_axis = Scale(along.axis, along.low, along.high, foot, y)
    yield _band(along, y_axis, tolerance_ratio)
    if has_dots:
        yield from _dots(p, (found, predicted, index), along, y_axis)
    else:
        yield _cells(found, predicted, along, y_axis)
    yield path(f"M{px(x)} {px(foot)}L{px(right)} {px(y)}", "a")
    for value, text in along.ticks(46.0):
        yield label(along.at(value), foot + 15, text, "n m")
    for value, text in y_axis.ticks(34.0):
        yield label(x - 4, y_axis.at(value) + 4, text, "n e")
    yield label(x + _SQUARE_PX / 2, foot + 30, f"{names[0]} across, {names[1]} upwards", "n m")


def _band(along: Scale, y_axis: Scale, tolerance_ratio: float) -> str:
    """The band about the diagonal, cut off at the square's corners, and the square."""
    x, right, foot, y = along.start_px, along.end_px, y_axis.start_px, y_axis.end_px
    wide = min(along.at(along.low * tolerance_ratio) - x, right - x)
    band = (
        f"M{px(x)} {px(foot)}V{px(foot - wide)}L{px(right - wide)} {px(y)}H{px(right)}V{px(y + wide)}"
        f"L{px(x + wide)} {px(foot)}z"
    )
    square = f"M{px(x)} {px(y)}H{px(right)}V{px(foot)}H{px(x)}z"
    return f'<g class="orr-k8">{path(band, "b")}{path(square, "g")}</g>'


def _dots(p: Pairs, pairs: tuple[Floats, Floats, NDArray[np.int64]], along: Scale, y_axis: Scale) -> Iterator[str]:
    drawn: tuple[list[str], list[str]] = ([], [])
    radius_px = _RADIUS_OF_FEW_PX if len(pairs[0]) <= _FEW else _RADIUS_PX
    for n, f, q in zip(map(int, pairs[2]), map(float, pairs[0]), map(float, pairs[1]), strict=True):
        is_miss = bool(p.misses) and bool(p.misses[n])
        dot = mark(3 if is_miss else 0, along.at(f), y_axis.at(q), radius_px, "")
        drawn[is_miss].append(f"<g>{dot}<title>{safe(p.description[n])}</title></g>")
    for number, dots in zip((0, 5), drawn, strict=True):
        if dots:
            yield f'<g class="orr-{hue(number)} orr-f orr-z">{"".join(dots)}</g>'


def _cells(found: Floats, predicted: Floats, along: Scale, y_axis: Scale) -> str:
    """One path for each shade; the darkest is where most pairs fall."""
    ends = (np.log10(along.low), np.log10(along.high))
    counts, _, _ = np.histogram2d(np.log10(found), np.log10(predicted), bins=_NUM_CELLS, range=[ends, ends])
    shades = np.ceil(_NUM_SHADES * np.log1p(counts) / np.log1p(max(counts.max(), 1.0))).astype(int)
    side = _SQUARE_PX / _NUM_CELLS
    square = f"h{px(side)}v{px(side)}h{px(-side)}z"
    out: list[str] = []
    for shade in range(1, _NUM_SHADES + 1):
        cells = "".join(
            f"M{px(along.start_px + i * side)} {px(y_axis.start_px - (j + 1) * side)}{square}"
            for i, j in np.argwhere(shades == shade).tolist()
        )
        if cells:
            out.append(f'<path opacity="{shade / _NUM_SHADES:g}" d="{cells}"/>')
    return f'<g class="orr-k1 orr-f">{"".join(out)}</g>'


def _describe(p: Pairs, found: Floats, predicted: Floats) -> str:
    if not len(found):
        return f"{p.name}: nothing"
    factor = float(np.exp(np.median(np.abs(np.log(predicted) - np.log(found)))))
    return f"{p.name}: {counted(len(found), 'pair')}, half of them within a factor of {factor:.3g}"

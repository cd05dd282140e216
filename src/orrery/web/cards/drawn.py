"""A card as a picture: services that show links take no SVG."""

from collections.abc import Sequence

from orrery.web.cards.card import CardBar, CardCurve, ShareCard
from orrery.web.cards.pen import (
    ACCENT,
    BAND,
    DIM,
    HEIGHT_PX,
    INK,
    LINE,
    WIDTH_PX,
    Pen,
    fitted,
    width_px,
    wrapped,
)

LEFT_PX, RIGHT_PX = 72, WIDTH_PX - 72
WIDE_PX = RIGHT_PX - LEFT_PX
BARS_PX, FIGURE_PX = 340, 150
TOP_PX, STEP_PX, MAX_ROWS = 336, 44, 5
FOOT_PX, GAP_PX = 604, 32
TITLE_PX, NUMBER_PX, TEXT_PX, ROW_PX, HEAD_PX = (58, 50, 42), (76, 60, 46), 30, 26, 20
CURVE_PX = (700, 300, RIGHT_PX, 520)
"""Place of a curve: left, top, right, bottom."""


def picture(card: ShareCard) -> bytes:
    """The card as PNG, 1200 by 630."""
    pen = Pen()
    pen.box(0, 0, 12, HEIGHT_PX, ACCENT)
    pen.words(LEFT_PX, 92, *fitted(card.kicker, WIDE_PX, (34, 28)), DIM)
    y_px = _title(pen, card.title) + 56
    if card.number:
        y_px = _number(pen, y_px + 50, card)
    if card.text:
        y_px = _text(pen, y_px, card)
    _rows(pen, card, y_px + 24)
    for number, bar in enumerate(card.bars[:MAX_ROWS]):
        _bar(pen, TOP_PX + number * STEP_PX, bar)
    if card.curve:
        _curve(pen, card.curve)
    right, size_px = (
        fitted(card.foot[1], WIDE_PX - width_px(card.foot[0], 22) - 40, (22,)) if card.foot[1] else ("", 22)
    )
    pen.words(LEFT_PX, FOOT_PX, card.foot[0], 22, DIM)
    pen.words(RIGHT_PX, FOOT_PX, right, size_px, DIM, is_end=True)
    return pen.png()


def _title(pen: Pen, title: str) -> float:
    """In one line where it fits, else in two; the last baseline."""
    if width_px(title, TITLE_PX[-1]) <= WIDE_PX:
        words, size_px = fitted(title, WIDE_PX, TITLE_PX)
        pen.words(LEFT_PX, 152, words, size_px, INK, is_bold=True)
        return 152
    for number, line in enumerate(wrapped(title, WIDE_PX, TITLE_PX[-1], 2)):
        pen.words(LEFT_PX, 148 + number * 50, line, TITLE_PX[-1], INK, is_bold=True)
    return 198


def _number(pen: Pen, y_px: float, card: ShareCard) -> float:
    """The one number, with two lines beside it; where the next line may stand."""
    words, size_px = fitted(card.number, WIDE_PX * 0.55, NUMBER_PX)
    pen.words(LEFT_PX, y_px, words, size_px, ACCENT, is_bold=True)
    x_px = LEFT_PX + width_px(words, size_px) + 32
    for line, fill, dy_px in zip(card.beside, (DIM, INK), (-28, 8), strict=True):
        if line:
            pen.words(x_px, y_px + dy_px, *fitted(line, RIGHT_PX - x_px, (TEXT_PX, 26, 22)), fill)
    return y_px + 50


def _text(pen: Pen, y_px: float, card: ShareCard) -> float:
    """Sentences, beside a curve or across; where the next line may stand."""
    wide_px = WIDE_PX if card.curve is None else CURVE_PX[0] - LEFT_PX - 40
    num_lines = 2 if card.rows or card.bars else 5
    for line in wrapped(card.text, wide_px, TEXT_PX, num_lines):
        pen.words(LEFT_PX, y_px, line, TEXT_PX, INK)
        y_px += 40
    return y_px


def _rows(pen: Pen, card: ShareCard, y_px: float) -> None:
    """A small table: its first column from the left, the others up to their right edges."""
    rows = card.rows[: min(MAX_ROWS, int((FOOT_PX - 34 - y_px) // STEP_PX) + 1)]
    if not rows:
        return
    size_px, wide_px = _columns(card.columns, rows)
    for number, row in enumerate((card.columns, *rows)):
        at_px = y_px + 12 + (number - 1) * STEP_PX if number else y_px - 26
        this_px, fill = (size_px, INK) if number else (HEAD_PX, DIM)
        if number:
            pen.line(((LEFT_PX, at_px - 32), (RIGHT_PX, at_px - 32)), LINE, 2)
            pen.words(LEFT_PX, at_px, *fitted(row[0], wide_px[0], (size_px,)), fill)
        edge_px = float(RIGHT_PX)
        for cell, most_px in reversed(list(zip(row, wide_px, strict=False))[1:]):
            if cell:
                pen.words(edge_px, at_px, *fitted(cell, most_px, (this_px,)), fill, is_end=True)
            edge_px -= most_px + GAP_PX


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[int, list[float]]:
    """The largest size in which a table's columns fit, and their widths; in the smallest the first one is cut."""
    num = max(map(len, rows))
    least_px = [width_px(head, HEAD_PX) for head in heads] + [0.0] * (num - len(heads))
    widths: list[float] = []
    for size_px in (ROW_PX, 22, 19):
        cells = [max(width_px(row[c], size_px) for row in rows if c < len(row)) for c in range(num)]
        widths = list(map(max, cells, least_px))
        if sum(widths) + (num - 1) * GAP_PX <= WIDE_PX:
            return size_px, widths
    first_px = max(WIDE_PX * 0.25, WIDE_PX - sum(widths[1:]) - (num - 1) * GAP_PX)
    each_px = (WIDE_PX - first_px) / max(1, num - 1) - GAP_PX
    others = widths[1:] if sum(widths[1:]) + (num - 1) * GAP_PX + first_px <= WIDE_PX else [each_px] * (num - 1)
    return 19, [first_px, *others]


def _bar(pen: Pen, y_px: float, bar: CardBar) -> None:
    """One row: its name, its value with the 80 % interval, and the figure."""
    end_px = RIGHT_PX - FIGURE_PX
    wide_px = end_px - BARS_PX - 20
    at = [BARS_PX + min(frac, 1.0) * wide_px for frac in (bar.low_frac, bar.value_frac, bar.high_frac)]
    pen.line(((BARS_PX, y_px), (end_px, y_px)), LINE, 2)
    pen.box(at[0], y_px - 8, at[2], y_px + 8, BAND)
    pen.box(at[1] - 2, y_px - 14, at[1] + 2, y_px + 14, ACCENT)
    pen.words(LEFT_PX, y_px + 8, *fitted(bar.name, BARS_PX - LEFT_PX - 16, (ROW_PX, 22)), INK)
    pen.words(RIGHT_PX, y_px + 8, bar.text, ROW_PX, INK, is_end=True)


def _curve(pen: Pen, curve: CardCurve) -> None:
    """The line with its area, the dashed line of no gain, the best value and the ends of the input."""
    left, top, right, bottom = CURVE_PX
    at = [(left + x * (right - left), top + y * (bottom - top)) for x, y in curve.points]
    zero_px = top + (1.0 if curve.zero_frac is None else curve.zero_frac) * (bottom - top)
    if curve.is_line:
        pen.area([(at[0][0], zero_px), *at, (at[-1][0], zero_px)], BAND)
        pen.line(at, ACCENT, 4)
    else:
        for x_px, y_px in at:
            pen.line(((x_px, zero_px), (x_px, y_px)), ACCENT, 6)
    for dash_px in range(left, right, 18):
        pen.line(((dash_px, zero_px), (min(dash_px + 9, right), zero_px)), DIM, 2)
    best_px = at[curve.best]
    pen.dot(*best_px, 8, ACCENT)
    share = curve.points[curve.best][0]
    x_px = best_px[0] if 0.2 < share < 0.8 else left if share <= 0.2 else right
    half_px = width_px(curve.value, 34) / 2 if 0.2 < share < 0.8 else 0.0
    pen.words(x_px - half_px, best_px[1] - 22, curve.value, 34, INK, is_bold=True, is_end=share >= 0.8)
    pen.words(left, bottom + 34, curve.ends[0], 22, DIM)
    pen.words(right, bottom + 34, curve.ends[1], 22, DIM, is_end=True)
    ends_px = 2 * max(width_px(end, 22) for end in curve.ends) + 40
    name, size_px = fitted(curve.name, right - left, (22, 18))
    y_px = bottom + (34 if width_px(name, size_px) + ends_px <= right - left else 60)
    pen.words((left + right - width_px(name, size_px)) / 2, y_px, name, size_px, DIM)

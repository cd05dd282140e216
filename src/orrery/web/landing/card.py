"""The card that stands for a link to the landing page: the answer, large, and the best accelerators as bars."""

from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from orrery.web.landing.best import Best
from orrery.web.landing.view import MS, Choice, best_of

WIDTH_PX, HEIGHT_PX = 1200, 630
ROWS = 5
INK, DIM, PAPER, LINE, ACCENT, BAND = "#151922", "#535b69", "#ffffff", "#dfe3e9", "#0b5cab", "#b5cde5"
LEFT_PX, BARS_PX, TOP_PX, STEP_PX, FIGURE_PX = 72, 340, 336, 44, 150


def card(choice: Choice) -> bytes:
    """The picture as PNG, 1200 by 630, in its own colours: services that show links take no SVG."""
    picture = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), PAPER)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, 12, HEIGHT_PX), ACCENT)
    _text(draw, LEFT_PX, 92, "Best accelerator for", 34, DIM)
    _text(draw, LEFT_PX, 152, choice.title, 58, INK, is_bold=True)
    priced = [b for b in best_of(choice) if b.usd_per_million][:ROWS]
    if priced:
        _answer(draw, priced[0])
    for number, best in enumerate(priced):
        _bar(draw, TOP_PX + number * STEP_PX, best, max(b.usd_per_million or 0.0 for b in priced))
    slo = f"orrery: TTFT within {choice.ttft_s * MS:g} ms, TPOT within {choice.tpot_s * MS:g} ms"
    _text(draw, LEFT_PX, 604, slo, 22, DIM)
    _text(draw, WIDTH_PX - LEFT_PX, 604, f"{choice.lengths[0]:,} in, {choice.lengths[1]:,} out", 22, DIM, is_end=True)
    written = BytesIO()
    picture.save(written, "PNG", optimize=True)
    return written.getvalue()


def _answer(draw: ImageDraw.ImageDraw, best: Best) -> None:
    _text(draw, LEFT_PX, 262, f"${best.usd_per_million:.3g}", 76, ACCENT, is_bold=True)
    beside_px = LEFT_PX + 270
    _text(draw, beside_px, 234, "per M output tokens", 30, DIM)
    _text(draw, beside_px, 270, f"on {best.device.title}, {best.row['rate']:,.0f} tokens/s per device", 30, INK)


def _bar(draw: ImageDraw.ImageDraw, y_px: int, best: Best, most_usd: float) -> None:
    """One accelerator: its name, its cost with the 80 % interval, and the figure."""
    usd, end_px = best.usd_per_million or 0.0, WIDTH_PX - LEFT_PX - FIGURE_PX
    scale = (end_px - BARS_PX - 20) / (most_usd * 1.25)
    low, high = usd * 100 / best.row["rate_high"], usd * 100 / best.row["rate_low"]
    at = [BARS_PX + min(value, most_usd * 1.25) * scale for value in (low, usd, high)]
    draw.line((BARS_PX, y_px, end_px, y_px), LINE, 2)
    draw.rectangle((at[0], y_px - 8, at[2], y_px + 8), BAND)
    draw.rectangle((at[1] - 2, y_px - 14, at[1] + 2, y_px + 14), ACCENT)
    _text(draw, LEFT_PX, y_px + 8, best.device.title, 26, INK)
    _text(draw, WIDTH_PX - LEFT_PX, y_px + 8, f"${usd:.3g}", 26, INK, is_end=True)


def _text(
    draw: ImageDraw.ImageDraw,
    x_px: float,
    y_px: float,
    words: str,
    size_px: int,
    fill: str,
    *,
    is_bold: bool = False,
    is_end: bool = False,
) -> None:
    """Words on a baseline, from ``x_px`` or up to it; the one face there is has no bold, so its outline is drawn."""
    font = ImageFont.load_default(size_px)
    outline_px = size_px / 40 if is_bold else 0
    draw.text(
        (x_px, y_px), words, fill, font, anchor="rs" if is_end else "ls", stroke_width=outline_px, stroke_fill=fill
    )

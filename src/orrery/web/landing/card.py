"""The card that stands for a link to the landing page: the answer, large, and the best accelerators as bars."""

from html import escape

from orrery.web.landing.view import MS, Best, Choice, best_of

WIDTH_PX, HEIGHT_PX = 1200, 630
ROWS = 5
INK, DIM, PAPER, LINE, ACCENT = "#151922", "#535b69", "#ffffff", "#dfe3e9", "#0b5cab"
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
LEFT_PX, BARS_PX, TOP_PX, STEP_PX = 72, 340, 336, 44


def card(choice: Choice) -> str:
    """The picture as SVG, 1200 by 630, in its own colours."""
    found = best_of(choice)
    priced = [b for b in found if b.usd_per_million][:ROWS]
    body = [
        f'<rect width="{WIDTH_PX}" height="{HEIGHT_PX}" fill="{PAPER}"/>',
        f'<rect width="12" height="{HEIGHT_PX}" fill="{ACCENT}"/>',
        _text(LEFT_PX, 92, "Best accelerator for", 34, DIM),
        _text(LEFT_PX, 152, choice.title, 58, INK, "700"),
        *(_answer(priced[0]) if priced else ()),
        *(line for n, b in enumerate(priced) for line in _bar(n, b, max(x.usd_per_million or 0 for x in priced))),
        _text(
            LEFT_PX,
            604,
            f"orrery: TTFT within {choice.ttft_s * MS:g} ms, TPOT within {choice.tpot_s * MS:g} ms",
            22,
            DIM,
        ),
        _text(WIDTH_PX - LEFT_PX, 604, f"{choice.lengths[0]:,} in, {choice.lengths[1]:,} out", 22, DIM, end=True),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {HEIGHT_PX}" width="{WIDTH_PX}" '
        f'height="{HEIGHT_PX}" font-family="{FONT}">{"".join(body)}</svg>'
    )


def _answer(best: Best) -> tuple[str, ...]:
    return (
        _text(LEFT_PX, 262, f"${best.usd_per_million:.3g}", 76, ACCENT, "700"),
        _text(LEFT_PX + 270, 234, "per M output tokens", 30, DIM),
        _text(LEFT_PX + 270, 270, f"on {best.device.title}, {best.row['rate']:,.0f} tokens/s per device", 30, INK),
    )


def _bar(number: int, best: Best, most: float) -> tuple[str, ...]:
    """One accelerator: its name, its cost with the 80 % interval, and the figure."""
    y, usd = TOP_PX + number * STEP_PX, best.usd_per_million or 0.0
    scale = (WIDTH_PX - LEFT_PX - BARS_PX - 170) / (most * 1.25)
    low, high = usd * 100 / best.row["rate_high"], usd * 100 / best.row["rate_low"]
    x = [BARS_PX + min(value, most * 1.25) * scale for value in (low, usd, high)]
    return (
        _text(LEFT_PX, y + 8, best.device.title, 26, INK, "600"),
        f'<path d="M{BARS_PX} {y}H{WIDTH_PX - LEFT_PX - 150}" stroke="{LINE}" stroke-width="2"/>',
        f'<rect x="{x[0]:.1f}" y="{y - 8}" width="{x[2] - x[0]:.1f}" height="16" fill="{ACCENT}" opacity=".3"/>',
        f'<rect x="{x[1] - 2:.1f}" y="{y - 14}" width="4" height="28" fill="{ACCENT}"/>',
        _text(WIDTH_PX - LEFT_PX, y + 8, f"${usd:.3g}", 26, INK, "600", end=True),
    )


def _text(x: float, y: float, words: str, size: int, fill: str, weight: str = "400", *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}"{anchor}>{escape(words)}</text>'
    )

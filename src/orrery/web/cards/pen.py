"""A drawing that becomes a PNG: words in the one face that Pillow brings, rectangles and lines."""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from io import BytesIO

from PIL import Image, ImageColor, ImageDraw, ImageFont

WIDTH_PX, HEIGHT_PX = 1200, 630
INK, DIM, PAPER, LINE, ACCENT, BAND = "#151922", "#535b69", "#ffffff", "#dfe3e9", "#0b5cab", "#b5cde5"
NUM_SHADES = 12
"""Shades of each ink toward the paper, for the edges of letters; with a palette a picture is a third as large."""

_PLAIN = {0xD7: "x", 0x2192: "to", 0x2013: "-", 0x2014: "-", 0x2265: ">=", 0x2264: "<=", 0x3BC: "u", 0xB5: "u"}
_ALSO = "\u2026\u00b7\u00b0\u00b1\u201c\u201d\u2019"
"""Dots, signs and quotation marks that the face has beside ASCII."""


def plain(words: str) -> str:
    """Words in the letters that the face has: without accents, with signs spelt.

    >>> plain("µs → 2 × Müller")
    'us to 2 x Muller'
    """
    parted = unicodedata.normalize("NFKD", words.translate(_PLAIN))
    return "".join(c for c in parted if c.isascii() or c in _ALSO).strip()


@cache
def _palette() -> Image.Image:
    """The inks as they are, and their shades."""
    paper = ImageColor.getrgb(PAPER)
    inks = [ImageColor.getrgb(ink) for ink in (INK, DIM, ACCENT, BAND, LINE)]
    shares = [step / NUM_SHADES for step in range(1, NUM_SHADES + 1)]
    shades = [[round(p + (i - p) * t) for p, i in zip(paper, ink, strict=False)] for ink in inks for t in shares]
    found = Image.new("P", (1, 1))
    found.putpalette([value for shade in [list(paper), *shades] for value in shade[:3]])
    return found


@cache
def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)


class Pen:
    """One picture."""

    def __init__(self) -> None:
        self._picture = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), PAPER)
        self._draw = ImageDraw.Draw(self._picture)

    def words(
        self,
        x_px: float,
        y_px: float,
        words: str,
        size_px: int,
        fill: str,
        *,
        is_bold: bool = False,
        is_end: bool = False,
    ) -> None:
        """Words on a baseline, from ``x_px`` or up to it; the face has no bold, so its outline is drawn."""
        outline_px = size_px / 40 if is_bold else 0
        at = "rs" if is_end else "ls"
        self._draw.text(
            (x_px, y_px), plain(words), fill, _font(size_px), anchor=at, stroke_width=outline_px, stroke_fill=fill
        )

    def box(self, left_px: float, top_px: float, right_px: float, bottom_px: float, fill: str) -> None:
        """A filled rectangle."""
        self._draw.rectangle((left_px, top_px, right_px, bottom_px), fill)

    def line(self, points: Sequence[tuple[float, float]], fill: str, width_px: int) -> None:
        """A line through points."""
        self._draw.line(list(points), fill, width_px, joint="curve")

    def area(self, points: Sequence[tuple[float, float]], fill: str) -> None:
        """A filled polygon."""
        self._draw.polygon(list(points), fill)

    def dot(self, x_px: float, y_px: float, radius_px: float, fill: str) -> None:
        """A disc."""
        self._draw.ellipse((x_px - radius_px, y_px - radius_px, x_px + radius_px, y_px + radius_px), fill)

    def png(self) -> bytes:
        """The picture as a file."""
        written = BytesIO()
        self._picture.quantize(palette=_palette(), dither=Image.Dither.NONE).save(written, "PNG", compress_level=5)
        return written.getvalue()


@lru_cache(maxsize=4096)
def width_px(words: str, size_px: int) -> float:
    """Width of a line of words: of the words and the spaces between them, as letters keep their distance from those."""
    return float(_font(size_px).getlength(plain(words)))


def fitted(words: str, most_px: float, sizes_px: Sequence[int]) -> tuple[str, int]:
    """The words in the largest size in which they fit; in the smallest they are cut."""
    for size_px in sizes_px:
        if width_px(words, size_px) <= most_px:
            return words, size_px
    most = bisect_right(range(len(words)), most_px, key=lambda n: width_px(f"{words[: n + 1].rstrip()}…", sizes_px[-1]))
    return f"{words[:most].rstrip()}…", sizes_px[-1]


def wrapped(words: str, most_px: float, size_px: int, num_lines: int) -> list[str]:
    """Lines no wider than that; what is left after the last is cut."""
    lines, line, taken_px = list[str](), list[str](), 0.0
    space_px = float(_font(size_px).getlength(" "))
    for word in words.split():
        taken_px += space_px + width_px(word, size_px)
        if line and taken_px - space_px > most_px:
            lines.append(" ".join(line))
            line, taken_px = [], space_px + width_px(word, size_px)
        line.append(word)
    lines.append(" ".join(line))
    if len(lines) > num_lines:
        lines[num_lines - 1] = fitted(" ".join(lines[num_lines - 1 :]), most_px, (size_px,))[0]
    return lines[:num_lines]

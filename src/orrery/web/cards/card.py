"""Content of a card: what the page is about, one number, and a few rows, bars or a curve."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CardBar:
    """A row with a value and its interval, as shares of the scale of all bars."""

    name: str
    value_frac: float
    low_frac: float
    high_frac: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardCurve:
    """A curve in shares of its place, from the left and from above; ``zero_frac`` is where nothing is gained."""

    points: Sequence[tuple[float, float]]
    zero_frac: float | None
    best: int  # the point whose value is written
    value: str
    ends: tuple[str, str]
    name: str  # of the input
    is_line: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCard:
    """One card, from above: ``kicker`` is small, ``title`` large, ``number`` the largest with two lines beside it."""

    kicker: str
    title: str
    number: str = ""
    beside: tuple[str, str] = ("", "")  # of the number: its unit, and where it holds
    text: str = ""  # in place of a number, or below it
    columns: tuple[str, ...] = ()  # heads of the rows
    rows: tuple[tuple[str, ...], ...] = ()
    bars: tuple[CardBar, ...] = ()
    curve: CardCurve | None = None
    foot: tuple[str, str] = ("orrery", "")

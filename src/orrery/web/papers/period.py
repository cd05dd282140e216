"""A date as exactly as it is known: a day, a month or a year; and which of them have papers."""

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from orrery.evidence.find.document import Document

_TEXT = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_ARXIV = re.compile(r"(\d{2})(\d{2})\.\d{4,5}")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Period:
    """A day, or the month or the year where no more is known; zero stands for what is not known."""

    year: int
    month: int = 0
    day: int = 0

    @staticmethod
    def read(text: str) -> "Period | None":
        """From an address: ``2024``, ``2024-07`` or ``2024-07-19``; None where it is no date."""
        found = _TEXT.fullmatch(text)
        if not found:
            return None
        year, month, day = (int(part or 0) for part in found.groups())
        try:
            date(year, month if found[2] else 1, day if found[3] else 1)
        except ValueError:
            return None
        return Period(year=year, month=month, day=day)

    @staticmethod
    def of(day: date) -> "Period":
        """One day."""
        return Period(year=day.year, month=day.month, day=day.day)

    @property
    def text(self) -> str:
        """As an address has it."""
        return "-".join((f"{self.year:04}", *(f"{part:02}" for part in (self.month, self.day) if part)))

    @property
    def href(self) -> str:
        """Its page."""
        return f"/papers/day/{self.text}"

    @property
    def words(self) -> str:
        """As one says it: ``July 2024``."""
        return f"{self.first:%A, %d %B %Y}" if self.day else f"{self.first:%B %Y}" if self.month else str(self.year)

    @property
    def kind(self) -> str:
        """Day, month or year."""
        return "day" if self.day else "month" if self.month else "year"

    @property
    def first(self) -> date:
        """Its first day."""
        return date(self.year, self.month or 1, self.day or 1)

    @property
    def last(self) -> date:
        """Its last day."""
        month = self.month or 12
        return date(self.year, month, self.day or monthrange(self.year, month)[1])

    def holds(self, other: "Period") -> bool:
        """Whether all of the other lies in it."""
        return self.year == other.year and self.month in (0, other.month) and self.day in (0, other.day)

    def as_(self, kind: str) -> "Period":
        """The month or year around it; itself where it is no finer."""
        return Period(year=self.year, month=self.month if kind != "year" else 0, day=self.day if kind == "day" else 0)


def of_document(document: Document) -> Period | None:
    """When a paper came out: its day, else the month of its arXiv number (YYMM), else its year; None where unknown."""
    if document.published:
        return Period.of(date.fromisoformat(document.published))
    found = _ARXIV.match(document.arxiv)
    if found and 1 <= int(found[2]) <= 12:
        return Period(year=2000 + int(found[1]), month=int(found[2]))
    return Period(year=document.year) if document.year else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One place of a calendar."""

    period: Period
    name: str
    num: int


class Calendar:
    """How many papers each date has."""

    def __init__(self, periods: Iterable[Period]) -> None:
        self._counts = Counter(periods)
        self.periods = sorted(self._counts)

    @property
    def latest(self) -> Period | None:
        """The latest date that has papers."""
        return self.periods[-1] if self.periods else None

    def num(self, period: Period) -> int:
        """How many papers lie in a period."""
        return sum(num for known, num in self._counts.items() if period.holds(known))

    def earlier(self, period: Period) -> Period | None:
        """The nearest date before with papers, no finer than the period itself."""
        return max((p for p in self._like(period) if p.last < period.first), key=lambda p: p.last, default=None)

    def later(self, period: Period) -> Period | None:
        """The nearest date after with papers, no finer than the period itself."""
        return min((p for p in self._like(period) if p.first > period.last), key=lambda p: p.first, default=None)

    def _like(self, period: Period) -> set[Period]:
        """Dates beside a period, with its precision at most; a month has months beside it and never a whole year."""
        return {known.as_(period.kind) for known in self.periods if known.month or not period.month}

    def years(self) -> tuple[Period, ...]:
        """Years with papers, the latest first."""
        return tuple(sorted({known.as_("year") for known in self.periods}, reverse=True))

    def months(self, year: int) -> tuple[Cell, ...]:
        """The twelve months of a year."""
        found = (Period(year=year, month=month) for month in range(1, 13))
        return tuple(Cell(period=p, name=f"{p.first:%b}", num=self.num(p)) for p in found)

    def days(self, month: Period) -> tuple[Cell, ...]:
        """The days of a month; none where no paper of it has a known day."""
        if not month.month or not any(p.day and month.as_("month").holds(p) for p in self.periods):
            return ()
        last = month.as_("month").last.day
        found = (Period(year=month.year, month=month.month, day=day) for day in range(1, last + 1))
        return tuple(Cell(period=p, name=str(p.day), num=self._counts[p]) for p in found)

    def months_only(self, period: Period) -> int:
        """How many papers of a month or a year have no known day."""
        return sum(num for known, num in self._counts.items() if not known.day and period.holds(known))

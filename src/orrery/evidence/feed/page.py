"""A page of papers saved as text, in either of two layouts.

A browser's text of a daily-papers page: title, abstract, then, where the page knows them, ``• N authors`` (or the
organisation), ``·`` and the date, after which stands the number of comments where there are any. Or a bare alternation
of titles and abstracts. A date without a year is of the page's own year.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.text import MAX_CHARACTERS, plain, title_id

ABSTRACT_CHARACTERS = 240
"""A line at least so long is an abstract, whatever ends it; the longest titles have some 200."""

MAX_TITLE_CHARACTERS = 400

MAX_PAPERS = 5000

ENOUGH_YEARS = 5
"""Dates with a year that a page must show before its own year is taken to be the one after the latest of them."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(r"([A-Z][a-z]{2})[a-z]* (\d{1,2})(?:, (\d{4}))?(?: (\d{1,6}))?")
_AUTHORS = re.compile(r"•\s*(\d{1,5}) authors?")
_FURNITURE = re.compile(
    r"new|get trending papers in your email inbox.{0,20}|subscribe|(?:daily|weekly|monthly|trending) papers"
    r"|by ?AK and the research community|submitted by|upvote|view all",
    re.IGNORECASE,
)
_GLUED = re.compile(r"Subscribe(?=[A-Z0-9])")
_SENTENCE = re.compile(r"[.!?](?:\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Below:
    """The lines below an abstract."""

    num_authors: int = 0
    organisation: str = ""
    month: int = 0
    day: int = 0
    year: int = 0  # 0 where the line says none
    num_comments: int | None = None


def read_page(text: str, source: str, today: date, year: int | None = None) -> Read:
    """Every paper of a page. ``year`` is the page's own; without it, it is worked out from the page's dates."""
    lines = [line for raw in text.splitlines() if (line := plain(raw))]
    papers, skipped = _papers(lines, source)
    years = [below.year for _, _, below in papers if below.year]
    own = year or (max(years) + 1 if len(years) >= ENOUGH_YEARS else 0)
    entries = tuple(_entry(title, abstract, below, source, today, own) for title, abstract, below in papers)
    if not entries and not skipped:
        skipped = [Skipped(where=source, why="holds no title with an abstract under it.")]
    return Read(entries=entries, skipped=tuple(skipped))


def _papers(lines: Sequence[str], source: str) -> tuple[list[tuple[str, str, _Below]], list[Skipped]]:
    """Titles with what belongs to them; an abstract without a title and a title without an abstract are left out."""
    papers: list[tuple[str, str, _Below]] = []
    skipped: list[Skipped] = []
    title, at = "", _start(lines)
    while at < len(lines) and len(papers) < MAX_PAPERS:
        line = lines[at]
        below, num_lines = _below(lines, at)
        if below:
            _leave_out(title, "has no abstract on the page.", source, skipped)
            title, at = "", at + num_lines
        elif not is_abstract(line):
            _leave_out(title, "has no abstract on the page.", source, skipped)
            title, at = _GLUED.sub("", line, count=1), at + 1
        else:
            abstract, at = _joined(lines, at)
            below, num_lines = _below(lines, at)
            at += num_lines
            if title:
                papers.append((title, abstract, below or _Below()))
            else:
                skipped.append(Skipped(where=source, why=f"an abstract without a title: {abstract[:60]}…"))
            title = ""
    _leave_out(title, "has no abstract on the page.", source, skipped)
    return papers, skipped


def _start(lines: Sequence[str]) -> int:
    """Behind the page's own head, which ends with its date."""
    at = 0
    while at < len(lines) and (_FURNITURE.fullmatch(lines[at]) or _date_below(lines[at])):
        at += 1
    return at


def _leave_out(title: str, why: str, source: str, skipped: list[Skipped]) -> None:
    if title and not _FURNITURE.fullmatch(title) and not _date_below(title):
        skipped.append(Skipped(where=source, why=f"{title[:80]!r} {why}"))


def is_abstract(line: str) -> bool:
    """Long, or several sentences."""
    return len(line) >= ABSTRACT_CHARACTERS or (len(_SENTENCE.findall(line)) >= 2 and len(line.split()) >= 25)


def _joined(lines: Sequence[str], at: int) -> tuple[str, int]:
    """An abstract of several paragraphs, and the line after it."""
    end = at + 1
    while end < len(lines) and is_abstract(lines[end]) and not _below(lines, end)[0]:
        end += 1
    return " ".join(lines[at:end])[:MAX_CHARACTERS], end


def _below(lines: Sequence[str], at: int) -> tuple[_Below | None, int]:
    """The parts below an abstract, and their number of lines."""
    if at + 2 < len(lines) and lines[at + 1] == "·" and (when := _date_below(lines[at + 2])):
        authors = _AUTHORS.fullmatch(lines[at])
        return _Below(
            num_authors=int(authors[1]) if authors else 0,
            organisation="" if authors else _organisation(lines[at]),
            month=when.month,
            day=when.day,
            year=when.year,
            num_comments=when.num_comments,
        ), 3
    if at < len(lines) and (authors := _AUTHORS.fullmatch(lines[at])):
        return _Below(num_authors=int(authors[1])), 2 if at + 1 < len(lines) and lines[at + 1] == "·" else 1
    return None, 0


def _organisation(line: str) -> str:
    """The name as it is shown; the word before it is its short name, which its picture carries."""
    _short, space, shown = line.partition(" ")
    return shown if space else line


def _date_below(line: str) -> _Below | None:
    found = _DATE.fullmatch(line)
    if not found or found[1].lower() not in _MONTHS:
        return None
    comments = int(found[4]) if found[4] else None
    return _Below(
        month=_MONTHS.index(found[1].lower()) + 1, day=int(found[2]), year=int(found[3] or 0), num_comments=comments
    )


def _entry(title: str, abstract: str, below: _Below, source: str, today: date, own_year: int) -> Entry:
    title = title[:MAX_TITLE_CHARACTERS]
    return Entry(
        id=title_id(title),
        title=title,
        abstract=abstract,
        source=source,
        num_authors=below.num_authors,
        organisation=below.organisation,
        num_comments=below.num_comments,
        published=_day(below, own_year, today) if below.month else None,
    )


def _day(below: _Below, own_year: int, today: date) -> date | None:
    """The date; without a year, and none known of the page, the latest such day that has been."""
    try:
        if below.year or own_year:
            return date(below.year or own_year, below.month, below.day)
        this = date(today.year, below.month, below.day)
        return this if this <= today else this.replace(year=today.year - 1)
    except ValueError:  # no such day
        return None

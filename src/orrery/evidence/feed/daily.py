"""The daily papers of Hugging Face: what its address ``/api/daily_papers`` answers, an array of ``{paper: {…}}``."""

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.text import plain, title_id, whole_arxiv_id

MAX_ENTRIES = 5000
Raw = Mapping[str, Any]


def read_daily(document: bytes, source: str) -> Read:
    """Every paper of an answer; those without a title or an abstract are left out."""
    try:
        found: Any = json.loads(document.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise FeedError(f"{source}: is no list of daily papers (JSON): {plain(str(error))[:120]}.") from None
    if not isinstance(found, list):
        text = cast(Raw, found).get("error") if isinstance(found, dict) else None
        raise FeedError(f"{source}: is no list of daily papers{f': {plain(str(text))[:120]}' if text else ''}.")
    skipped: list[Skipped] = []
    items = cast("list[Any]", found)[:MAX_ENTRIES]
    entries = [e for i, item in enumerate(items, start=1) if (e := _entry(item, i, source, skipped))]
    return Read(entries=tuple(entries), skipped=tuple(skipped))


def _entry(item: Any, number: int, source: str, skipped: list[Skipped]) -> Entry | None:
    outer = _table(item)
    paper = _table(outer.get("paper")) or outer
    title = plain(_text(paper.get("title")) or _text(outer.get("title")))
    abstract = plain(_text(paper.get("summary")) or _text(outer.get("summary")))
    if not title or not abstract:
        missing = "title" if not title else "abstract"
        skipped.append(Skipped(where=source, why=f"paper {number} {title[:60]!r} has no {missing}."))
        return None
    authors = tuple(name for a in _list(paper.get("authors")) if (name := plain(_text(_table(a).get("name")))))
    found = whole_arxiv_id(_text(paper.get("id")))
    return Entry(
        id=found or title_id(title),
        title=title,
        abstract=abstract,
        source=source,
        authors=authors,
        num_authors=len(authors),
        published=_day(paper.get("publishedAt")) or _day(outer.get("publishedAt")),
        updated=_day(paper.get("submittedOnDailyAt")),
        organisation=_organisation(paper, outer),
        url=f"https://arxiv.org/abs/{found}" if found else "",
        num_votes=_count(paper.get("upvotes")),
        num_comments=_count(outer.get("numComments")),
    )


def _organisation(paper: Raw, outer: Raw) -> str:
    """Its shown name; the short one where it has no other."""
    for table in (_table(paper.get("organization")), _table(outer.get("organization"))):
        if name := _text(table.get("fullname")) or _text(table.get("name")):
            return plain(name)
    return ""


def _table(value: Any) -> Raw:
    return cast(Raw, value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _day(value: Any) -> date | None:
    try:
        return date.fromisoformat(_text(value)[:10])
    except ValueError:
        return None

"""Records of a paper, made ready for its card: words with the source that they come from, and links."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.evidence.feed.record import Record
from orrery.web.papers.messages import describe, link


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One source's words."""

    words: str
    source: str
    url: str  # of the source's page; empty where it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsView:
    """Records of all sources on one paper."""

    lines: tuple[Line, ...] = ()
    organisation: str = ""
    organisation_source: str = ""
    links: tuple[tuple[str, str], ...] = ()  # code and discussions, each with its source's name


NO_RECORDS = RecordsView()
"""View of a paper of which no source was asked."""


def records_view(records: Sequence[Record]) -> RecordsView:
    """Each source once: a page of a paper says all that the daily list says of it, and more."""
    latest = {r.name: r for r in sorted(records, key=lambda r: r.source == "pages")}
    lines = tuple(
        Line(words=describe(r.words, 120), source=name, url=link(r.url)) for name, r in latest.items() if r.words
    )
    by = next((r for r in latest.values() if r.organisation), None)
    codes = ((f"code ({name})", link(r.code_url)) for name, r in latest.items())
    discussions = ((f"discussion ({name})", link(r.discussion_url)) for name, r in latest.items())
    return RecordsView(
        lines=lines,
        organisation=describe(by.organisation, 60) if by else "",
        organisation_source=by.name if by else "",
        links=tuple((what, url) for what, url in (*codes, *discussions) if url),
    )


def merged_links(links: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Links, and those of sources that lead elsewhere."""
    known = {url for _, url in links}
    return (*links, *((name, url) for name, url in more if url not in known))

"""Where new papers are listed, and who says more of known ones."""

from dataclasses import replace
from datetime import date

from orrery.base.errors import UnknownName
from orrery.evidence.feed import arxiv, daily, openreview, scholar
from orrery.evidence.feed.question import Question, Source
from orrery.evidence.feed.record import Known
from orrery.evidence.feed.records import not_asked
from orrery.evidence.feed.store import Store

SOURCES = {
    "arxiv": arxiv.SEARCH,
    "rss": arxiv.LIST,
    "daily": daily.DAILY,
    "pages": daily.PAGES,
    "scholar": scholar.SOURCE,
    "openreview": openreview.SOURCE,
}


def source_named(name: str) -> Source:
    """The source of that name. Refuses an unknown one, with the nearest that there is."""
    if name not in SOURCES:
        raise UnknownName("source", name, SOURCES)
    return SOURCES[name]


def url_of(question: Question, page: int, today: date) -> str:
    """The address of a page of a question's answer."""
    source = source_named(question.source)
    return source.url((question.base or source.address).rstrip("/"), question, page, today)


def about(question: Question, store: Store, known: tuple[Known, ...], today: date) -> Question:
    """A question without words, put about papers that are known: those that the source was not asked about lately."""
    source = source_named(question.source)
    if not source.papers_a_request or question.query:
        return question
    papers = not_asked(store, question.source, (p for p in known if p.has_arxiv or not source.needs_arxiv), today)
    return replace(question, papers=papers[: question.most_papers], page_papers=source.papers_a_request)

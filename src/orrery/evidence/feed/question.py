"""Questions to sources, and the interface of a source."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from orrery.evidence.feed.entry import Read
from orrery.evidence.feed.http import Document
from orrery.evidence.feed.record import Known

PAGE_PAPERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query to a source; or papers that are known, of which it is to say more."""

    source: str
    query: str = ""
    categories: tuple[str, ...] = ()
    since: date | None = None
    most_papers: int = 200
    base: str = ""  # address in place of the source's own
    page_papers: int = PAGE_PAPERS
    papers: tuple[Known, ...] = ()  # that are asked about; none where the source is to list some

    @property
    def key(self) -> str:
        """Key shared by two fetches of which one continues the other."""
        since = self.since.isoformat() if self.since else ""
        papers = hashlib.sha256(" ".join(p.id for p in self.papers).encode()).hexdigest() if self.papers else ""
        return "|".join((self.source, self.base, self.query, "+".join(self.categories), since, papers))

    def papers_of(self, page: int) -> tuple[Known, ...]:
        """The papers that a page asks about."""
        return self.papers[page * self.page_papers : (page + 1) * self.page_papers]

    @property
    def num_pages_of_papers(self) -> int:
        """Requests for all papers that are asked about."""
        return -(-len(self.papers) // self.page_papers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Interface of a source: its requests, and the reading of its answers."""

    address: str  # a mirror may stand in for it
    interval_s: float  # least time between two requests
    url: Callable[[str, Question, int, date], str]  # below an address; of a page, counted from 0
    num_pages: Callable[[Question, date], int]
    read: Callable[[Document, str], Read]
    body: Callable[[Question, int], bytes] = lambda question, page: b""  # sent along, where it is not empty
    is_search: bool = False  # pages of hits, which end where there are no more
    is_latest_first: bool = False
    papers_a_request: int = 0  # of known papers; 0 where the source only lists
    needs_arxiv: bool = False  # to be asked about a paper

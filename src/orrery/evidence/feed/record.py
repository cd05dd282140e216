"""A source's record of a paper: how often it is cited, where it was accepted, who talks about it."""

from dataclasses import dataclass

SOURCES = {
    "scholar": "Semantic Scholar",
    "openreview": "OpenReview",
    "pages": "Hugging Face",
    "daily": "Hugging Face",
}
"""Sources that say more of a paper than its own words, and what they are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One source's words on one paper; None and empty where it says nothing."""

    paper: str  # arXiv id, or "title:…", as the library knows it
    source: str  # one of SOURCES
    url: str = ""  # the source's own page of it
    num_citations: int | None = None
    num_influential_citations: int | None = None
    venue: str = ""
    decision: str = ""  # "rejected", "withdrawn", "under review"; empty where the venue says all
    num_votes: int | None = None
    organisation: str = ""
    code_url: str = ""
    discussion_url: str = ""

    @property
    def name(self) -> str:
        """Name of the source."""
        return SOURCES.get(self.source, self.source)

    @property
    def words(self) -> str:
        """All of it in a line; empty where there is nothing but links."""
        return ", ".join(part for part in (self._place, self._citations, _counted(self.num_votes, "vote")) if part)

    @property
    def _place(self) -> str:
        if self.venue and self.decision:
            return f"{self.venue} ({self.decision})"
        return self.venue or self.decision

    @property
    def _citations(self) -> str:
        cited = _counted(self.num_citations, "citation")
        return f"{cited}, {self.num_influential_citations:,} influential" if self.num_influential_citations else cited


def _counted(num: int | None, what: str) -> str:
    return "" if num is None else f"{num:,} {what}{'' if num == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A paper that a source can be asked about."""

    id: str  # arXiv id, or "title:…"
    title: str

    @property
    def has_arxiv(self) -> bool:
        """Whether its id is one of arXiv."""
        return ":" not in self.id

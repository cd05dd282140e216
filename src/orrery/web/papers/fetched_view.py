"""A new paper without a file, made ready for its page: its own words, and what is understood of them."""

from dataclasses import dataclass

from orrery.base.units import percent
from orrery.evidence.amounts import amount, metric_name
from orrery.evidence.feed.entry import Classification, Entry, NumericClaim
from orrery.evidence.find.citation import bibtex
from orrery.web.papers.messages import MAX_ABSTRACT, describe, link

MAX_AUTHORS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A claim as it was read from the abstract."""

    what: str
    amount: str
    sure: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Content of the page of a fetched paper."""

    title: str
    abstract: str
    authors: str
    facts: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    claims: tuple[Read, ...]
    cited: str


def fetched_view(entry: Entry, classification: Classification) -> View:
    """The paper in words that are safe to show."""
    arxiv = "" if ":" in entry.id else entry.id
    addresses = {"arXiv": f"https://arxiv.org/abs/{arxiv}" if arxiv else "", "its page": entry.url}
    retained = {url: name for name, address in reversed(addresses.items()) if (url := link(address))}
    votes = "" if entry.num_votes is None else f"{entry.num_votes:,} votes"
    facts = (
        entry.id if arxiv else "",
        f"published {entry.published:%d %B %Y}" if entry.published else "",
        f"changed {entry.updated:%d %B %Y}" if entry.updated and entry.updated != entry.published else "",
        describe(entry.organisation, 80),
        votes,
        f"from {describe(entry.source, 60)}",
    )
    cited = bibtex(
        entry.id,
        describe(entry.title),
        year=entry.published.year if entry.published else None,
        arxiv=arxiv,
        url=link(entry.url),
        authors=[describe(name, 80) for name in entry.authors[:MAX_AUTHORS]],
    )
    return View(
        title=describe(entry.title),
        abstract=describe(entry.abstract, MAX_ABSTRACT),
        authors=_authors(entry),
        facts=tuple(fact for fact in facts if fact),
        tags=tuple(describe(tag, 40) for tag in entry.categories[:20]),
        links=tuple((name, url) for url, name in reversed(retained.items())),
        claims=tuple(map(read_claim, classification.claims)),
        cited=cited,
    )


def _authors(entry: Entry) -> str:
    shown = [describe(name, 80) for name in entry.authors[:MAX_AUTHORS]]
    more = max(entry.num_authors, len(entry.authors)) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 and shown else f"{more} authors" if more > 0 else "")


def read_claim(claim: NumericClaim) -> Read:
    """Format a claim as text."""
    ends = " to ".join(dict.fromkeys(amount(x, claim.unit) for x in (claim.low, claim.high)))
    against = f" against {describe(claim.baseline, 120)}" if claim.baseline else ""
    return Read(
        what=metric_name(claim.metric) + against,
        amount=ends if claim.reading == "value" else f"{claim.reading} {ends}",
        sure=percent(claim.confidence_frac),
        text=describe(claim.text),
    )

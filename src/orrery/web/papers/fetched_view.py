"""A new paper without a file, made ready for its page: its own words, and what is understood of them."""

from dataclasses import dataclass

from orrery.evidence.amounts import amount, metric_name
from orrery.evidence.feed.entry import Entry, NumericClaim, Understood
from orrery.evidence.find.citation import bibtex
from orrery.web.papers.said import MOST_ABSTRACT, link, said

MOST_AUTHORS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A claim as it was read from the abstract."""

    what: str
    amount: str
    sure: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that the page shows."""

    title: str
    abstract: str
    authors: str
    facts: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    claims: tuple[Read, ...]
    cited: str


def fetched_view(entry: Entry, told: Understood) -> View:
    """The paper in words that are safe to show."""
    arxiv = "" if ":" in entry.id else entry.id
    addresses = {"arXiv": f"https://arxiv.org/abs/{arxiv}" if arxiv else "", "its page": entry.url}
    kept = {url: name for name, address in reversed(addresses.items()) if (url := link(address))}
    votes = "" if entry.num_votes is None else f"{entry.num_votes:,} votes"
    facts = (
        entry.id if arxiv else "", f"published {entry.published:%d %B %Y}" if entry.published else "",
        f"changed {entry.updated:%d %B %Y}" if entry.updated and entry.updated != entry.published else "",
        said(entry.organisation, 80), votes, f"from {said(entry.source, 60)}",
    )  # fmt: skip
    cited = bibtex(
        entry.id, said(entry.title), year=entry.published.year if entry.published else None, arxiv=arxiv,
        url=link(entry.url), authors=[said(name, 80) for name in entry.authors[:MOST_AUTHORS]],
    )  # fmt: skip
    return View(
        title=said(entry.title), abstract=said(entry.abstract, MOST_ABSTRACT), authors=_authors(entry),
        facts=tuple(fact for fact in facts if fact), tags=tuple(said(tag, 40) for tag in entry.categories[:20]),
        links=tuple((name, url) for url, name in reversed(kept.items())), claims=tuple(map(read_claim, told.claims)),
        cited=cited,
    )  # fmt: skip


def _authors(entry: Entry) -> str:
    shown = [said(name, 80) for name in entry.authors[:MOST_AUTHORS]]
    more = max(entry.num_authors, len(entry.authors)) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 and shown else f"{more} authors" if more > 0 else "")


def read_claim(claim: NumericClaim) -> Read:
    """A claim in words."""
    ends = " to ".join(dict.fromkeys(amount(x, claim.unit) for x in (claim.low, claim.high)))
    against = f" against {said(claim.baseline, 120)}" if claim.baseline else ""
    return Read(
        what=metric_name(claim.metric) + against,
        amount=ends if claim.reading == "value" else f"{claim.reading} {ends}",
        sure=f"{claim.confidence_frac:.0%}", text=said(claim.text),
    )  # fmt: skip

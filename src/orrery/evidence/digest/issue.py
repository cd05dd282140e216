"""One issue of a digest: the new papers of a period that a reader wants, the most useful first, and why."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from orrery.base.units import percent
from orrery.evidence.digest.subscription import Frequency, SubscriptionFilter
from orrery.evidence.feed.entry import Classification
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_id
from orrery.evidence.find.fields import columns
from orrery.evidence.find.made import document_of_entry
from orrery.evidence.find.terms import terms
from orrery.evidence.understanding.claim_effect import ClaimEffect
from orrery.evidence.understanding.meaning import DeploymentEffect
from orrery.evidence.understanding.trending import DAYS, Trend, trending

MAX_ITEMS = 15
"""Largest number of papers in one issue; the last line says how many more there are."""


class AskedDeployment(Protocol):
    """A reader's deployment, asked about papers."""

    def meanings(self, understood: Classification) -> tuple[DeploymentEffect, ...]:
        """Effect of each of a paper's techniques."""
        ...

    def claim_effects(self, understood: Classification) -> tuple[ClaimEffect, ...]:
        """Each of its claims, as it would be there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One paper, why this reader gets it, and what it could mean for their deployment."""

    trend: Trend
    because: tuple[str, ...]
    meanings: tuple[DeploymentEffect, ...] = ()
    effects: tuple[ClaimEffect, ...] = ()  # one for each claim; none without a deployment

    @property
    def link(self) -> str:
        """Where to read it."""
        entry = self.trend.entry
        return entry.url or ("" if entry.id.startswith("title:") else f"https://arxiv.org/abs/{entry.id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestIssue:
    """Contents of one reader's digest for one period."""

    since: date
    until: date
    items: tuple[Item, ...]
    num_more: int = 0  # wanted as well, but further down

    @property
    def title(self) -> str:
        """The line of the subject."""
        days = f"{self.until:%d %B %Y}" if self.since == self.until else f"{self.since:%d %B} to {self.until:%d %B %Y}"
        papers = "1 paper" if len(self.items) == 1 else f"{len(self.items)} papers"
        return f"AI compute: {papers}, {days}"


def period(frequency: Frequency, today: date) -> str:
    """The name of the period that a day falls into; each gets one letter.

    >>> [period(f, date(2026, 11, 22)) for f in ("day", "week", "month")]
    ['2026-11-22', '2026-W47', '2026-11']
    """
    year, week, _ = today.isocalendar()
    return {"day": today.isoformat(), "week": f"{year}-W{week:02d}", "month": f"{today:%Y-%m}"}[frequency]


def compose(
    store: Store,
    until: date,
    selection: SubscriptionFilter,
    *,
    without: Collection[str] = (),
    deployment: AskedDeployment | None = None,
    most: int = MAX_ITEMS,
) -> DigestIssue:
    """The issue for what is wanted, up to a day; papers ``without`` were sent before."""
    trends = trending(store, until, selection.frequency)
    return chosen(trends, until, selection, without=without, deployment=deployment, most=most)


def chosen(
    trends: Sequence[Trend],
    until: date,
    selection: SubscriptionFilter,
    *,
    without: Collection[str] = (),
    deployment: AskedDeployment | None = None,
    most: int = MAX_ITEMS,
) -> DigestIssue:
    """The issue made of the papers of its period. A paper that got its id since it was sent is known by its title."""
    fresh = [t for t in trends if t.entry.id not in without and title_id(t.entry.title) not in without]
    fitting = [(t, why) for t in fresh if (why := tuple(_reasons(t, selection))) or not _is_choosy(selection)]
    items = tuple(
        Item(
            trend=t,
            because=why,
            meanings=deployment.meanings(t.understood) if deployment else (),
            effects=deployment.claim_effects(t.understood) if deployment else (),
        )
        for t, why in fitting[:most]
    )
    since = until - timedelta(days=DAYS[selection.frequency] - 1)
    return DigestIssue(since=since, until=until, items=items, num_more=max(0, len(fitting) - most))


def _is_choosy(selection: SubscriptionFilter) -> bool:
    return bool(selection.layers or selection.techniques or selection.searches)


def _reasons(trend: Trend, selection: SubscriptionFilter) -> Iterator[str]:
    """Why a reader wants a paper: its layer, a technique that it resembles, or a saved search that it answers."""
    classification = trend.understood
    if classification.layer in selection.layers:
        yield f"layer {classification.layer} ({percent(classification.layer_confidence_frac)} sure)"
    for name, sure in classification.techniques:
        if name in selection.techniques:
            yield f"resembles {name} ({percent(sure)} sure)"
    if selection.searches:
        there = {term for column in columns(document_of_entry(trend.entry, classification)).values() for term in column}
        yield from (f"has all words of {search!r}" for search in selection.searches if _answers(search, there))


def _answers(search: str, there: Collection[str]) -> bool:
    query_terms: Sequence[str] = terms(search)
    return bool(query_terms) and all(term in there for term in query_terms)

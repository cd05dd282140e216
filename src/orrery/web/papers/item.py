"""A paper in a list: its name, what it is about, how its claims fared, and what the reader has made of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from orrery.evidence.feed.entry import Classification, Entry
from orrery.evidence.find.document import LIBRARY, Document
from orrery.evidence.find.search import Hit
from orrery.evidence.judge.scorecard import read_scorecard
from orrery.evidence.understanding.trending import ScorePart, Trend
from orrery.web.papers.fetched_view import read_claim
from orrery.web.papers.messages import MAX_TEXT, describe
from orrery.web.papers.own import Marked

MAX_CLAIMS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list, made safe to show."""

    key: str
    title: str
    text: str
    facts: tuple[str, ...]  # year, layer, …
    verdicts: tuple[tuple[str, int], ...] = ()
    claims: tuple[str, ...] = ()
    because: str = ""
    is_new: bool = False
    is_read: bool = False
    is_upvoted: bool = False
    parts: tuple[ScorePart, ...] = ()

    @property
    def score(self) -> float:
        """The parts together, by which a list of what is trending is ordered."""
        return sum(part.value for part in self.parts)

    @property
    def href(self) -> str:
        """Its own page."""
        return address(self.key)


def address(key: str) -> str:
    """The page of a paper."""
    return f"/papers/{quote(key, safe=':/')}"


def item_of(document: Document, marked: Marked, because: Sequence[str] = ()) -> Item:
    """A paper of the index."""
    d = document
    known = d.key, d.arxiv, d.title
    facts = (str(d.year or ""), d.layer, d.kind, d.fit, "" if d.source == LIBRARY else f"from {describe(d.source, 40)}")
    return Item(
        key=d.key,
        title=describe(d.title),
        text=describe(d.text, MAX_TEXT),
        facts=tuple(fact for fact in facts if fact),
        verdicts=verdicts(d.key),
        because=describe(", ".join(because)),
        is_new=d.source != LIBRARY,
        is_read=marked.is_read(*known),
        is_upvoted=marked.is_upvoted(*known),
    )


def verdicts(key: str) -> tuple[tuple[str, int], ...]:
    """How many claims of a paper are reproduced, and how many are not, by the checked-in scorecard."""
    count = Counter(scored.verdict for scored in read_scorecard().papers.get(key, {}).values())
    return tuple((word, count[word]) for word in ("reproduced", "not reproduced") if count[word])


def item_of_hit(hit: Hit, marked: Marked) -> Item:
    """A paper that was found, and why."""
    return item_of(hit.document, marked, hit.because)


def item_of_entry(entry: Entry, classification: Classification, marked: Marked, library_key: str = "") -> Item:
    """A new paper, with what is understood of it; its own page is that of its file where it has one."""
    arxiv = "" if ":" in entry.id else entry.id
    who = entry.organisation or (entry.authors[0] if entry.authors else "")
    more = "" if entry.organisation or entry.num_authors < 2 else f" and {entry.num_authors - 1} more"
    layer = f"{classification.layer} ({classification.layer_confidence_frac:.0%} sure)" if classification.layer else ""
    facts = (f"{entry.published:%d %b %Y}" if entry.published else "", layer, describe(who, 60) + more if who else "")
    known = entry.id, arxiv, entry.title
    return Item(
        key=library_key or entry.id,
        title=describe(entry.title),
        text=describe(entry.abstract, MAX_TEXT),
        facts=tuple(fact for fact in facts if fact),
        verdicts=verdicts(library_key) if library_key else (),
        claims=tuple(
            dict.fromkeys(f"{c.what}: {c.amount}" for c in map(read_claim, classification.claims[:MAX_CLAIMS]))
        ),
        is_new=not library_key,
        is_read=marked.is_read(*known),
        is_upvoted=marked.is_upvoted(*known),
    )


def item_of_trend(trend: Trend, marked: Marked) -> Item:
    """A trending paper, with its score unfolded."""
    found = item_of_entry(trend.entry, trend.understood, marked, trend.library_key)
    parts = tuple(replace(part, because=describe(part.because)) for part in trend.parts)
    return replace(found, parts=parts)

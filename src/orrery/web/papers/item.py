"""A paper's card: its name, what it is about, how its claims fared, and what the reader has made of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from orrery.base.units import percent
from orrery.evidence.feed.entry import Classification, Entry
from orrery.evidence.find.document import LIBRARY, Document
from orrery.evidence.find.search import Hit
from orrery.evidence.judge.scorecard import read_scorecard
from orrery.evidence.understanding.trending import ScorePart, Trend
from orrery.evidence.understanding.weights import shipped
from orrery.web.papers.fetched_view import read_claim
from orrery.web.papers.filed import Filed, filed, paper_links
from orrery.web.papers.messages import MAX_TEXT, describe
from orrery.web.papers.own import Marked
from orrery.web.papers.period import of_document
from orrery.web.papers.records_view import NO_RECORDS, RecordsView, merged_links, records_view

MAX_CLAIMS, MAX_TECHNIQUES, MAX_AUTHORS = 3, 3, 3
"""That a card names."""

MAX_ORGANISATION = 60
"""Letters of the name of where the authors work."""

NUM_HUES = 12
"""Colours of layers in the style sheet; layers further on begin again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A paper's card, made safe to show."""

    key: str
    title: str
    text: str
    when: str  # as exactly as it is known
    authors: str = ""
    organisation: str = ""
    layer: str = ""
    sure: str = ""  # of the layer, where it is a guess
    techniques: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()  # kind, fit, where it came from
    filed: Filed = field(default_factory=Filed)
    links: tuple[tuple[str, str], ...] = ()
    num_votes: int | None = None  # None where nobody counts them
    records: RecordsView = NO_RECORDS
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
    def has_code(self) -> bool:
        """Whether a link leads to the authors' code."""
        return any(name.startswith("code") for name, _ in self.links)

    @property
    def hue(self) -> int:
        """The number of its layer's colour."""
        layers = shipped().layers
        return layers.index(self.layer) % NUM_HUES if self.layer in layers else 0

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
    known, records = (d.key, d.arxiv, d.title), records_view(marked.records_of(d.arxiv, d.title))
    period, file = of_document(d), filed(d.key) if d.source == LIBRARY else Filed()
    return Item(
        key=d.key,
        title=describe(d.title),
        text=describe(d.text, MAX_TEXT),
        when=period.words if period else "",
        authors=named_authors(d.authors),
        organisation=describe(file.organisation, MAX_ORGANISATION),
        layer=d.layer,
        techniques=tuple(describe(name, 60) for name in d.techniques[:MAX_TECHNIQUES]),
        facts=tuple(word for word in (d.kind, d.fit) if word)
        if d.source == LIBRARY
        else (f"from {describe(d.source, 40)}",),
        filed=file,
        links=merged_links(file.links or paper_links(d.arxiv, d.url), records.links),
        records=records,
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
    known, file = (entry.id, arxiv, entry.title), filed(library_key) if library_key else Filed()
    understood, records = classification, records_view(marked.records_of(arxiv, entry.title))
    return Item(
        key=library_key or entry.id,
        title=describe(entry.title),
        text=describe(entry.abstract, MAX_TEXT),
        when=f"{entry.published:%d %B %Y}" if entry.published else "",
        authors=named_authors(entry.authors, entry.num_authors),
        organisation=describe(entry.organisation or file.organisation, MAX_ORGANISATION),
        layer=understood.layer,
        sure="" if library_key or not understood.layer else f"{percent(understood.layer_confidence_frac)} sure",
        techniques=tuple(name for name, _ in understood.techniques[:MAX_TECHNIQUES]),
        filed=file,
        links=merged_links(file.links or paper_links(arxiv, entry.url), records.links),
        records=records,
        num_votes=entry.num_votes,
        claims=tuple(
            dict.fromkeys(f"{c.what}: {c.amount}" for c in map(read_claim, classification.claims[:MAX_CLAIMS]))
        ),
        is_new=not library_key,
        is_read=marked.is_read(*known),
        is_upvoted=marked.is_upvoted(*known),
    )


def named_authors(names: Sequence[str], num: int = 0) -> str:
    """The first authors, and how many more there are; empty where they are unknown."""
    shown = [describe(name, 60) for name in names[:MAX_AUTHORS]]
    more = max(num, len(names)) - len(shown)
    if not shown:
        return f"{more} authors" if more > 0 else ""
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def item_of_trend(trend: Trend, marked: Marked) -> Item:
    """A trending paper, with its score unfolded."""
    found = item_of_entry(trend.entry, trend.understood, marked, trend.library_key)
    parts = tuple(replace(part, because=describe(part.because)) for part in trend.parts)
    return replace(found, parts=parts)

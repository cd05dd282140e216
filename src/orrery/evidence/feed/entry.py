"""One paper as a feed or a saved page brings it, before anybody has written a paper file for it."""

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from orrery.evidence.feed.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericClaim:
    """A number that an abstract claims, as our rules read it."""

    metric: str  # throughput_ratio, memory_reduction, …
    low: float  # equal to high where one number is written
    high: float
    unit: str  # one of orrery.evidence.words.UNITS
    reading: str  # one of orrery.evidence.words.READINGS
    text: str  # the clause it was read from
    confidence_frac: float
    baseline: str = ""  # what it is compared with, as the abstract calls it


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A paper's own words and what the world does with it."""

    id: str  # arXiv id without version, "2401.09670"; "title:" and a hash of the title where there is none
    title: str
    abstract: str
    source: str  # the feed or page it came from
    num_authors: int = 0
    authors: tuple[str, ...] = ()  # empty where only their number is known
    published: date | None = None
    updated: date | None = None
    organisation: str = ""
    categories: tuple[str, ...] = ()
    url: str = ""
    version: int = 0  # as arXiv counts; 0 where it is not known
    num_votes: int | None = None
    num_comments: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of a feed or page that was left out, and why; the rest was kept."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Entries of one document."""

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...] = ()
    num_total: int | None = None  # of the whole search, where the document is one page of it
    records: tuple[Record, ...] = ()  # what the source says of the papers beside their own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """Classification of an entry by rules and a small classifier; every guess with its confidence."""

    layer: str = ""
    layer_confidence_frac: float = 0.0
    techniques: tuple[tuple[str, float], ...] = ()  # of ours that it resembles, most alike first: name, confidence
    claims: tuple[NumericClaim, ...] = ()


def entry_json(entry: Entry, understood: Classification | None = None, library_key: str = "") -> dict[str, Any]:
    """A paper, and what is made of it, as plain data."""
    found = {k: v.isoformat() if isinstance(v, date) else v for k, v in asdict(entry).items()}
    made = {"understood": asdict(understood)} if understood else {}
    return {**found, "library_key": library_key, **made}

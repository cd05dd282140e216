"""Documents of the search: shipped and fetched papers in one shape."""

from dataclasses import dataclass

LIBRARY = "library"
"""The source of papers that have a file; a fetched paper names the feed it came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A claim as a number that can be compared."""

    metric: str
    low: float  # equal to high where one number is reported
    high: float
    unit: str  # one of orrery.evidence.words.UNITS
    devices: tuple[str, ...] = ()  # of its set-up


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A paper as the search sees it."""

    key: str  # of its file; of a fetched paper its id
    title: str
    text: str  # the mechanism in our words; of a fetched paper its abstract
    claims: tuple[str, ...] = ()  # "request rate ratio 2 to 4.6 against vllm"
    numbers: tuple[Number, ...] = ()  # the same, to be compared
    layer: str = ""
    kind: str = ""
    fit: str = ""
    devices: tuple[str, ...] = ()  # as its set-ups name them
    setting: tuple[str, ...] = ()  # models, engines, data sets and formats of its set-ups
    techniques: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()  # of its claims, each once
    year: int | None = None
    published: str = ""  # its day, as 2024-01-18; empty where it is not known
    authors: tuple[str, ...] = ()  # empty where they are not known
    arxiv: str = ""
    url: str = ""
    source: str = LIBRARY

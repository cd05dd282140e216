"""Documents made from paper files and from fetched entries."""

from collections.abc import Iterable

from orrery.evidence.amounts import amount
from orrery.evidence.feed.entry import Classification, Entry
from orrery.evidence.find.document import Document, Number
from orrery.evidence.paper_file import Claim, Paper

DEVICES = ("device", "devices", "prefill_device", "decode_device")
"""Inputs of a set-up that name devices; lists are by comma."""

SETTING = ("model", "models", "engine", "baseline_engine", "dataset", "weights_format", "formats_swept", "platforms")
"""Inputs of a set-up whose words a reader may look for."""


def document_of_paper(paper: Paper) -> Document:
    """A paper that has a file."""
    return Document(
        key=paper.key,
        title=paper.title,
        text=paper.mechanism,
        claims=_once(map(claim_text, paper.claims)),
        numbers=tuple(dict.fromkeys(map(_number, paper.claims))),
        layer=paper.layer,
        kind=paper.kind,
        fit=paper.fit,
        devices=_parts(_inputs(paper, DEVICES)),
        setting=(*_inputs(paper, SETTING), *_sizes(paper)),
        techniques=paper.techniques,
        metrics=_once(claim.metric for claim in paper.claims),
        year=paper.year,
        published=paper.bibliography.published.isoformat() if paper.bibliography.published else "",
        authors=paper.bibliography.authors,
        arxiv=paper.arxiv,
        url=paper.link,
    )


def document_of_entry(entry: Entry, understood: Classification) -> Document:
    """A fetched paper, with what was understood of it."""
    return Document(
        key=entry.id,
        title=entry.title,
        text=entry.abstract,
        claims=_once(_phrase(c.metric, c.reading, c.low, c.high, c.unit, c.baseline) for c in understood.claims),
        numbers=tuple(Number(metric=c.metric, low=c.low, high=c.high, unit=c.unit) for c in understood.claims),
        layer=understood.layer,
        techniques=tuple(name for name, _ in understood.techniques),
        metrics=_once(claim.metric for claim in understood.claims),
        year=entry.published.year if entry.published else None,
        published=entry.published.isoformat() if entry.published else "",
        authors=entry.authors,
        arxiv="" if entry.id.startswith("title:") else entry.id,
        url=entry.url,
        source=entry.source,
    )


def _number(claim: Claim) -> Number:
    """A claim as a number, with the devices of its own set-up."""
    devices = _parts(claim.setup.word(name) for name in DEVICES)
    return Number(metric=claim.metric, low=claim.low, high=claim.high, unit=claim.unit, devices=devices)


def _parts(lists: Iterable[str]) -> tuple[str, ...]:
    """Names of lists that go by comma, each once."""
    return _once(name for words in lists for part in words.split(",") if (name := part.strip()))


def claim_text(claim: Claim) -> str:
    """A claim as a phrase: what is measured, how much, against what."""
    return _phrase(claim.metric, claim.reading, claim.low, claim.high, claim.unit, claim.baseline)


def _phrase(metric: str, reading: str, low: float, high: float, unit: str, baseline: str) -> str:
    parts = (
        metric.replace("_", " "),
        "" if reading == "value" else reading,
        " to ".join(_once(amount(x, unit) for x in (low, high))),
        f"against {baseline}" if baseline else "",
    )
    return " ".join(part for part in parts if part)


def _sizes(paper: Paper) -> tuple[str, ...]:
    """How many devices its test beds have."""
    sizes = {setup.number("num_devices") for setup in paper.setups.values()}
    return tuple(f"{size:.0f} devices" for size in sorted(sizes) if size > 1.0)


def _inputs(paper: Paper, names: Iterable[str]) -> tuple[str, ...]:
    """The words that any set-up of the paper has under these names."""
    every = [*paper.setups.values(), *(claim.setup for claim in paper.claims)]
    return _once(word for name in names for setup in every if (word := setup.word(name)))


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))

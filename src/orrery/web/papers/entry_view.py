"""The entry of a paper that has a file, made ready for its page."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from orrery.evidence.amounts import amount, metric_name
from orrery.evidence.find.citation import bibtex
from orrery.evidence.find.entry import PaperEntry, entry_of
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.page import reported
from orrery.evidence.paper_file import Paper
from orrery.evidence.verdict import VERDICTS
from orrery.web.both_widths import at_both_widths
from orrery.web.papers import drawn
from orrery.web.papers.filed import code_links
from orrery.web.papers.index import Index
from orrery.web.papers.messages import describe, link

FIRST_CLAIMS = 4
"""That are seen at once; the others are unfolded."""

MAX_WORDS = 3000
"""Letters of a sentence or two of a paper file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """One claim as text."""

    id: str
    number: int  # among the claims of its file
    what: str
    reported: str
    at: str
    on: str  # device and model of its set-up
    predicted: str
    ratio: str
    verdict: str
    because: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Content of the page of a paper's entry."""

    entry: PaperEntry
    title: str
    links: tuple[tuple[str, str], ...]
    code: tuple[tuple[str, str], ...]  # of the authors
    counts: tuple[tuple[str, int], ...]
    curve: str
    claims: tuple[ClaimRow, ...]  # the first of them
    more_claims: tuple[ClaimRow, ...]
    pictures: tuple[str, ...]
    open: tuple[tuple[str, str], ...]
    cited: str


def view_of(paper: Paper, index: Index) -> View:
    """The entry, computed and put into words."""
    entry = _cleaned(entry_of(paper, index.finder()))
    links = ((describe(name, 160), address) for name, url in entry.links.items() if (address := link(url)))
    number = {j.claim.id: n for n, j in enumerate(entry.claims)}
    rows = tuple(claim_row(j, number[j.claim.id]) for j in _in_order(entry.claims))
    count = Counter(j.verdict for j in entry.claims)
    cited = bibtex(
        paper.key,
        describe(paper.title),
        year=paper.year,
        arxiv=paper.arxiv,
        url=link(paper.link),
        authors=[describe(name, 80) for name in paper.bibliography.authors],
    )
    return View(
        entry=entry,
        title=describe(entry.title),
        links=tuple(links),
        code=code_links(paper),
        cited=cited,
        counts=tuple((verdict, count[verdict]) for verdict in VERDICTS if count[verdict]),
        curve=at_both_widths(partial(drawn.curve, entry.curve)) if entry.curve else "",
        pictures=drawn.claims(entry.claims),
        claims=rows[:FIRST_CLAIMS],
        more_claims=rows[FIRST_CLAIMS:],
        open=tuple(
            (describe(what.replace("_", " ")), describe(classification, MAX_WORDS))
            for what, classification in entry.unstated.items()
        ),
    )


def _cleaned(e: PaperEntry) -> PaperEntry:
    """The entry with its own words made safe to show: a paper file may be anybody's."""
    shown = ("mechanism", "gains", "costs", "use", "no_use", "missing", "no_curve")
    words = {name: describe(getattr(e, name), MAX_WORDS) for name in shown}
    related = tuple(replace(other, title=describe(other.title)) for other in e.related)
    curve = replace(e.curve, sentence=describe(e.curve.sentence, MAX_WORDS)) if e.curve else None
    names = tuple(describe(name, 120) for name in e.other_mechanisms)
    people = {name: tuple(describe(one, 80) for one in getattr(e, name)) for name in ("authors", "organisations")}
    return replace(
        e, **words, **people, layer=describe(e.layer, 60), related=related, curve=curve, other_mechanisms=names
    )


def _in_order(claims: Sequence[ClaimResult]) -> list[ClaimResult]:
    """Claims in order: predicted ones first, headlines of the abstract before the rest."""
    return sorted(claims, key=lambda j: (j.predicted is None, j.claim.origin != "abstract"))


def claim_row(j: ClaimResult, number: int = 0) -> ClaimRow:
    """A claim, its prediction, and why."""
    against = f" against {j.claim.baseline}" if j.claim.baseline else ""
    return ClaimRow(
        id=describe(j.claim.id, 80),
        number=number,
        what=describe(metric_name(j.claim.metric) + against, 160),
        reported=reported(j),
        at=describe(j.claim.at, 120),
        on=describe(", ".join(word for name in ("model", "device") if (word := j.claim.setup.word(name))), 80),
        predicted="" if j.predicted is None else amount(_without_noise(j.predicted), j.claim.unit),
        ratio="" if j.ratio is None else f"{round(j.ratio, 2) + 0.0:.2f}",
        verdict=j.verdict,
        because=describe(j.why, MAX_WORDS),
        note=describe(j.claim.note, MAX_WORDS),
    )


def _without_noise(value: float) -> float:
    """Zero for the difference of two equal numbers, which rounding leaves a little off."""
    return 0.0 if abs(value) < 1e-12 else value

"""A paper's entry for readers: summary, gains, costs, conditions, verdicts, open points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import OrreryError
from orrery.evidence.find.crossing import Reading, reading
from orrery.evidence.find.document import LIBRARY, Document
from orrery.evidence.find.search import Finder
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.curve import across
from orrery.evidence.judge.scorecard import Scorecard, recorded, recorded_curve
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import modules_behind
from orrery.scenario.answer import to_json
from orrery.scenario.levers.registry import technique_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A technique of the house that models the paper, or a part of it."""

    name: str
    extension_point: str  # the rule that it replaces
    gains: str
    costs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Another paper, and what the two have in common."""

    key: str
    title: str
    because: tuple[str, ...]
    shared_techniques: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperEntry:
    """A paper that has a file, as an encyclopedia has it."""

    key: str
    title: str
    year: int
    published: str  # its day; empty where it is not known
    authors: tuple[str, ...]  # empty where they are not known
    organisations: tuple[str, ...]  # where they work; the same
    layer: str
    kind: str
    fit: str
    arxiv: str
    links: Mapping[str, str]  # what stands there -> address
    mechanism: str
    techniques: tuple[Mechanism, ...]
    other_mechanisms: tuple[str, ...]  # modelled, though not as a technique that can be switched on by itself
    gains: str  # of those, and of the paper as a whole
    costs: str
    use: str  # a command that puts it into a deployment; empty where there is none
    no_use: str  # and why
    modules: tuple[str, ...]  # where it is modelled
    curve: Reading | None
    no_curve: str  # why there is no curve
    claims: tuple[ClaimResult, ...]
    missing: str  # what orrery lacks to run it again; empty where it is run
    unstated: Mapping[str, str]
    related: tuple[Related, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        names = [name for name in self.__dataclass_fields__ if name != "claims"]
        return {name: to_json(getattr(self, name)) for name in names} | {"claims": [j.to_json() for j in self.claims]}


def entry_of(
    paper: Paper, finder: Finder | None = None, *, card: Scorecard | None = None, has_curve: bool = True
) -> PaperEntry:
    """The entry of a paper; ``finder`` looks for related ones, ``card`` is the scorecard, else the checked-in one."""
    curve, no_curve = _curve(paper, card) if has_curve else (None, "left out, as asked")
    techniques = _techniques(paper.techniques)
    return PaperEntry(
        key=paper.key,
        title=paper.title,
        year=paper.year,
        published=paper.bibliography.published.isoformat() if paper.bibliography.published else "",
        authors=paper.bibliography.authors,
        organisations=paper.bibliography.organisations,
        layer=paper.layer,
        kind=paper.kind,
        fit=paper.fit,
        arxiv=paper.arxiv,
        links=_links(paper),
        mechanism=paper.mechanism,
        techniques=techniques,
        other_mechanisms=tuple(name for name in paper.techniques if name not in {t.name for t in techniques}),
        gains=paper.gains,
        costs=paper.costs,
        use=paper.use,
        no_use=paper.no_use,
        modules=modules_behind(paper.key),
        curve=curve,
        no_curve=no_curve,
        claims=recorded((paper.key,), card),
        missing=paper.missing,
        unstated=paper.unstated,
        related=_related(paper, finder) if finder else (),
    )


def _links(paper: Paper) -> dict[str, str]:
    """The paper's own addresses, then those of what else was read."""
    found = {"paper": paper.link}
    if paper.arxiv:
        found.setdefault("arXiv", f"https://arxiv.org/abs/{paper.arxiv}")
    found |= {source.title: source.url for source in paper.sources.values() if source.url}
    seen = set[str]()
    return {name: url for name, url in found.items() if not (url in seen or seen.add(url))}


def _techniques(names: Sequence[str]) -> tuple[Mechanism, ...]:
    """Return the techniques of the house among the names, in the paper's order."""
    if not names:
        return ()
    found = [(name, technique_named(name)) for name in names]
    return tuple(
        Mechanism(name=n, extension_point=t.extension_point, gains=t.gains, costs=t.costs) for n, t in found if t
    )


def _curve(paper: Paper, card: Scorecard | None) -> tuple[Reading | None, str]:
    """The paper's sweep, read: from the scorecard, else computed here and now; or why there is none."""
    if paper.missing:
        return None, "the paper is not modeled"
    if paper.sweep is None:
        return None, "its file names no input to vary"
    try:
        return reading(recorded_curve(paper, card) or across(paper)), ""
    except OrreryError as error:
        return None, str(error)


def _related(paper: Paper, finder: Finder) -> tuple[Related, ...]:
    mine = set(paper.techniques)
    hits = [hit for hit in finder.related(paper.key) if hit.document.source == LIBRARY]
    return tuple(
        Related(
            key=hit.document.key,
            title=hit.document.title,
            because=hit.because,
            shared_techniques=_shared(mine, hit.document),
        )
        for hit in hits
    )


def _shared(mine: set[str], other: Document) -> tuple[str, ...]:
    return tuple(name for name in other.techniques if name in mine)

"""All claims of all papers against what is predicted for them, narrowed as the library is."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orrery.base.errors import ScenarioError
from orrery.evidence.find.filters import Filters, select
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.page import totals
from orrery.evidence.judge.plot import draw
from orrery.evidence.judge.scorecard import recorded
from orrery.evidence.paper_file import get_paper
from orrery.evidence.verdict import VERDICTS, Verdict
from orrery.web.both_widths import at_both_widths
from orrery.web.papers.entry_view import ClaimRow, claim_row
from orrery.web.papers.index import Index

PAGE_CLAIMS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Verdicts on the claims of a layer."""

    name: str
    num_papers: int
    counts: tuple[int, ...]  # in the order of the verdicts

    @property
    def num_claims(self) -> int:
        """All of them."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Contents of the page."""

    says: str
    layers: tuple[Layer, ...]
    picture: str
    claims: tuple[tuple[str, ClaimRow], ...]  # key of the paper, and the claim
    num_claims: int
    num_reproduced: int
    num_pages: int


def judged(index: Index, filters: Filters) -> tuple[ClaimResult, ...]:
    """The claims that pass: papers by their filters, claims by verdict and metric; the furthest off first."""
    if filters.verdict and filters.verdict not in VERDICTS:
        raise ScenarioError(f"verdict: {filters.verdict[:40]!r} is none of {', '.join(VERDICTS)}.")
    documents = select(index.documents(), replace(filters, verdict=""))
    metrics = {"_".join(part.casefold().split()) for part in filters.metric.split(",")} if filters.metric else None
    found = (
        j
        for j in recorded(d.key for d in documents)
        if (not filters.verdict or j.verdict == filters.verdict)
        and (metrics is None or j.claim.metric.replace("-", "_") in metrics)
    )
    return tuple(sorted(found, key=_off, reverse=True))


def _off(j: ClaimResult) -> float:
    """Distance of a prediction from the reported number, in powers; claims without a prediction come last."""
    if j.predicted is None:
        return -1.0
    if j.ratio is None or j.verdict != "not reproduced":  # a bound may be passed by far
        return 0.0
    return abs(math.log(j.ratio)) if j.ratio > 0.0 else math.inf


def score(claims: Sequence[ClaimResult], page: int) -> Score:
    """The claims that passed, drawn and counted."""
    by_paper: dict[str, list[ClaimResult]] = {}
    for j in claims:
        by_paper.setdefault(j.paper, []).append(j)
    papers = {key: get_paper(key) for key in by_paper}
    by_layer: dict[str, list[str]] = {}
    for key, paper in sorted(papers.items()):
        by_layer.setdefault(paper.layer, []).append(key)
    layers = tuple(
        Layer(name=layer, num_papers=len(keys), counts=_counts([j for key in keys for j in by_paper[key]]))
        for layer, keys in sorted(by_layer.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )
    start = (page - 1) * PAGE_CLAIMS
    return Score(
        says=totals(papers, by_paper),
        layers=layers,
        picture=at_both_widths(lambda: draw(claims)),
        claims=tuple((j.paper, claim_row(j)) for j in claims[start : start + PAGE_CLAIMS]),
        num_claims=len(claims),
        num_reproduced=sum(j.verdict == "reproduced" for j in claims),
        num_pages=max(1, -(-len(claims) // PAGE_CLAIMS)),
    )


def _counts(claims: Sequence[ClaimResult]) -> tuple[int, ...]:
    count: Counter[Verdict] = Counter(j.verdict for j in claims)
    return tuple(count[verdict] for verdict in VERDICTS)

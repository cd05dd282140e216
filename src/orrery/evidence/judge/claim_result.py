"""The claims of a paper, each held against what the house predicts for it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from orrery.base.errors import OrreryError
from orrery.evidence.paper_file import Claim, Paper, paper_keys
from orrery.evidence.prediction import Prediction, predict, reproduced_keys
from orrery.evidence.verdict import EXPLAINED_BEYOND_FRAC, Verdict, is_reversed, ratio, verdict

OWN = "a paper of your own: no mechanism of orrery has been tied to its claims"
"""Why nothing is predicted for what a reader has added."""


class IncompleteReproduction(OrreryError):
    """A paper's reproduction that says too little or too much: claims nobody made, misses left unexplained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """One claim: what the paper reports, what comes out here, and why."""

    paper: str
    claim: Claim
    predicted: float | None  # in the claim's unit; None where nothing is predicted
    because: str  # set-up and mechanism with numbers in between; where nothing is predicted, what is missing

    @property
    def verdict(self) -> Verdict:
        """Verdict on the predicted number against the reported one."""
        return verdict(self.claim, self.predicted)

    @property
    def ratio(self) -> float | None:
        """Predicted over reported; None where nothing is predicted, or zero was reported."""
        found = math.nan if self.predicted is None else ratio(self.claim, self.predicted)
        return None if math.isnan(found) else found

    @property
    def is_reversed(self) -> bool:
        """Whether a comparison comes out the other way round than the paper reports."""
        return self.predicted is not None and is_reversed(self.claim, self.predicted)

    @property
    def why(self) -> str:
        """Explanation of the number, after its file's reasons for the verdict."""
        return f"{self.claim.because.capitalize()}. {self.because}" if self.claim.because else self.because

    def to_json(self) -> dict[str, object]:
        """One object of ``orrery reproduce --json``."""
        c = self.claim
        return {
            "paper": self.paper,
            "claim": c.id,
            "metric": c.metric,
            "unit": c.unit,
            "baseline": c.baseline,
            "reported": c.low if c.low == c.high else [c.low, c.high],
            "reading": c.reading,
            "predicted": self.predicted,
            "assumed_range": list(c.assumed),
            "ratio": self.ratio,
            "verdict": self.verdict,
            "is_reversed": self.is_reversed,
            "verdict_because": c.because,
            "because": self.because,
        }


def judge(paper: Paper) -> tuple[ClaimResult, ...]:
    """Every claim of a paper, in the order of its file; those that can be are run again here and now."""
    if paper.key not in paper_keys():
        return tuple(
            ClaimResult(paper=paper.key, claim=claim, predicted=None, because=claim.missing or OWN)
            for claim in paper.claims
        )
    found = {p.claim: p for p in predict(paper)} if paper.key in reproduced_keys() else {}
    _is_complete(paper, found)
    return tuple(_judged(paper, claim, found.get(claim.id)) for claim in paper.claims)


def _judged(paper: Paper, claim: Claim, found: Prediction | None) -> ClaimResult:
    if found is None:
        return ClaimResult(paper=paper.key, claim=claim, predicted=None, because=claim.missing)
    is_off = abs(ratio(claim, found.predicted) - 1.0) > EXPLAINED_BEYOND_FRAC
    because = found.because
    if found.differs and (is_off or verdict(claim, found.predicted) == "not reproduced"):
        because = f"{because}. Differs by {found.differs}"
    return ClaimResult(paper=paper.key, claim=claim, predicted=found.predicted, because=because)


def _is_complete(paper: Paper, found: Mapping[str, Prediction]) -> None:
    """Each claim is predicted or says what is missing, never both; a miss says what explains it."""
    claims = {claim.id: claim for claim in paper.claims}
    missing = {claim.id for claim in paper.claims if claim.missing}
    wrong = {
        "predicted, but not among the claims": found.keys() - claims.keys(),
        "predicted, though its file says what is missing": found.keys() & missing,
        "neither predicted nor said to be missing": claims.keys() - found.keys() - missing,
        "no number": {c for c, p in found.items() if not math.isfinite(p.predicted)},
        "missed, and nothing says why": {
            c
            for c, p in found.items()
            if c in claims and not p.differs and verdict(claims[c], p.predicted) == "not reproduced"
        },
    }
    if text := [f"{', '.join(sorted(ids))}: {what}" for what, ids in wrong.items() if ids]:
        raise IncompleteReproduction(f"paper {paper.key}: {'; '.join(text)}.")

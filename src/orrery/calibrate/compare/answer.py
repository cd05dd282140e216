"""Result of a comparison: a verdict, the causes in order, each run's residuals, and what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orrery.calibrate.compare.next_run import NextRun
from orrery.scenario.answer import to_json
from orrery.scenario.show import Table

Verdict = Literal["within the interval", "explained", "partly explained", "unexplained", "faster than predicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFit:
    """One cause as the measurements see it."""

    cause: str
    title: str
    evidence_frac: float  # chance of it among all causes, given that it is one of them
    explained_frac: float  # of the misfit that it takes away
    severity: float  # in the cause's own unit
    severity_said: str  # the same in words and units
    shows: str
    hides: str
    speaks_for: tuple[str, ...]  # numbers that it explains
    speaks_against: tuple[str, ...]  # numbers that it does not
    checks: tuple[str, ...]
    not_told_from: tuple[str, ...]  # causes that these measurements cannot tell from it


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One measured number beside its prediction, and beside what the first cause says."""

    run: str
    source: str  # file and row
    metric: str
    measured: float  # in the metric's unit
    predicted: float
    slower_frac: float  # measured over predicted less 1, towards slower (less power, less cache, more memory)
    with_cause_frac: float  # the same beside the prediction with the causes that are named
    is_inside: bool  # inside the prediction's 80 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The answer of ``orrery calibrate compare``."""

    verdict: Verdict
    summary: str
    nothing_frac: float  # chance that nothing is wrong beyond the prediction's own error
    suspects: tuple[CauseFit, ...]  # likeliest first
    second: CauseFit | None  # a second fault, where one does not suffice
    excluded: Mapping[str, str]  # causes that cannot be it, and why
    next_run: NextRun | None
    cells: tuple[Compared, ...]
    num_runs: int
    declined: Mapping[str, int]
    assumed: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data, in SI units."""
        return to_json(self)

    def table(self) -> Table:
        """The causes, likeliest first."""
        rows = [
            {
                "cause": s.cause,
                "evidence_frac": s.evidence_frac,
                "explained_frac": s.explained_frac,
                "severity": s.severity_said,
            }
            for s in self.suspects
        ]
        return Table(kind="causes", title=self.summary, rows=tuple(rows))

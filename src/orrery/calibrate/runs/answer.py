"""Result of a calibration: constants before and after, the runs' information on each, and whether it helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.calibrate.runs.problem import Subject
from orrery.evidence.score import Score
from orrery.scenario.answer import to_json

IDENTIFIED, PARTLY, NOT_IDENTIFIED = "identified", "partly", "not identified"
KNOWN, OPEN = 0.5, 0.9
"""A constant is identified where less than half of its prior uncertainty is left, and not where most of it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantUpdate:
    """One constant: what it was, what it is, and how much the runs tell of it.

    ``left`` is the share of the prior's standard deviation (of the logarithm) that the runs leave.
    """

    name: str
    before: float
    after: float
    sd_log: float
    left: float
    needs: str

    @property
    def word(self) -> str:
        """identified, partly, or not identified."""
        return IDENTIFIED if self.left < KNOWN else PARTLY if self.left <= OPEN else NOT_IDENTIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """One measurement beside the prediction with the shipped constants, and with those of the other runs."""

    run: str
    metric: str
    measured: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsAnswer:
    """The whole calibration. ``written`` is None where it would not have helped, or helped by chance alone."""

    name: str
    written: Path | None
    subject: Subject
    num_runs: int
    num_measurements: int
    constants: tuple[ConstantUpdate, ...]
    scores: Mapping[str, tuple[Score, Score]]  # by metric: before, after; each run left out in turn
    spreads: Mapping[str, Mapping[str, float]]
    share_frac: float  # of the correction that other predictions' intervals allow
    predicted: tuple[Predicted, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data; scores as before and after."""
        return {
            "name": self.name,
            "written": to_json(self.written),
            "subject": to_json(self.subject),
            "num_runs": self.num_runs,
            "num_measurements": self.num_measurements,
            "constants": [to_json(c) | {"identified": c.word} for c in self.constants],
            "left_out": {m: {"before": to_json(b), "after": to_json(a)} for m, (b, a) in self.scores.items()},
            "spreads": to_json(self.spreads),
            "share_frac": self.share_frac,
            "predicted": to_json(self.predicted),
            "notes": list(self.notes),
        }

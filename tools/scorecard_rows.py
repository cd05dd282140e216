"""What the scorecard is made of: one metric of one table on its test rows, with two rivals beside ours."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.score import Score, score_errors

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Words = NDArray[np.str_]

COLUMNS = ("measured", "ours", "roofline", "closed", "physics", "inside_80", "inside_95")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """One metric of one table on its test rows: measured, ours, the two rivals, and the words to group by."""

    table: str
    kind: str
    metric: str
    words: dict[str, Words]
    measured: Floats
    ours: Floats
    roofline: Floats
    closed: Floats
    physics: Floats  # ours without learned corrections
    inside_80: Floats
    inside_95: Floats

    def take(self, rows: Mask) -> "Scored":
        """Only these rows."""
        return Scored(
            table=self.table,
            kind=self.kind,
            metric=self.metric,
            words={k: v[rows] for k, v in self.words.items()},
            **{f: getattr(self, f)[rows] for f in COLUMNS},
        )

    def score(self, who: str = "ours") -> Score:
        """The errors of one of the three."""
        predicted = getattr(self, who)
        known = np.isfinite(predicted)
        if not known.any():
            return Score(
                rows=0,
                median_abs_error_frac=np.nan,
                mean_abs_error_frac=np.nan,
                p90_abs_error_frac=np.nan,
                bias_frac=np.nan,
            )
        error = predicted[known] / self.measured[known] - 1.0
        if who != "ours":
            return score_errors(error)
        return score_errors(error, self.inside_80[known], self.inside_95[known])


@dataclass(slots=True)
class Counts:
    """What became of a table's rows."""

    rows: int = 0
    test: int = 0
    screened: int = 0
    declined: dict[str, int] = field(default_factory=dict[str, int])


def join(parts: Iterable[Scored]) -> Scored:
    """Several tables or metrics as one."""
    all_parts = list(parts)
    first = all_parts[0]
    return Scored(
        table=first.table,
        kind=first.kind,
        metric=first.metric,
        words={k: np.concatenate([p.words[k] for p in all_parts]) for k in first.words},
        **{f: np.concatenate([getattr(p, f) for p in all_parts]) for f in COLUMNS},
    )

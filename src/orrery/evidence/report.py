"""The result of a check: how many rows, which were declined and why, and the error of each metric per group."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orrery.evidence.score import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The score of one metric over the rows that share the words of ``by``; ``{}`` is all rows."""

    by: Mapping[str, str]
    metric: str
    score: Score

    def to_json(self) -> dict[str, Any]:
        """One entry of ``groups``; coverage is null where no interval was stated."""
        return {
            "by": dict(self.by),
            "metric": self.metric,
            "rows": self.score.rows,
            "median_abs_error_frac": self.score.median_abs_error_frac,
            "mean_abs_error_frac": self.score.mean_abs_error_frac,
            "p90_abs_error_frac": self.score.p90_abs_error_frac,
            "bias_frac": self.score.bias_frac,
            "covered_80_frac": self.score.covered_80_frac,
            "covered_95_frac": self.score.covered_95_frac,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of ``check``. ``rows`` counts the rows that state a metric of the schema, declined ones included.

    ``assumed`` counts the rows for which a blank took a documented default; ``left_out`` the cells whose metric or
    percentile is not predicted; ``beat_bound`` the rows measured faster than the datasheet allows (they are scored);
    ``excluded`` the rows that were left out, by condition.
    """

    rows: int
    declined: Mapping[str, int]
    groups: Sequence[Group]
    assumed: Mapping[str, int] = field(default_factory=Counter[str])
    left_out: Mapping[str, int] = field(default_factory=Counter[str])
    beat_bound: int = 0
    excluded: Mapping[str, int] = field(default_factory=dict[str, int])

    def to_json(self) -> dict[str, Any]:
        """The object that ``orrery check --json`` prints."""
        return {
            "rows": self.rows,
            "declined": [{"reason": reason, "rows": rows} for reason, rows in most_first(self.declined)],
            "groups": [group.to_json() for group in self.groups],
            "assumed": [{"what": what, "rows": rows} for what, rows in most_first(self.assumed)],
            "left_out": [{"column": column, "rows": rows} for column, rows in most_first(self.left_out)],
            "beat_bound_rows": self.beat_bound,
            "excluded": [{"where": where, "rows": rows} for where, rows in self.excluded.items()],
        }


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Counts from the largest to the smallest, by name where equal."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

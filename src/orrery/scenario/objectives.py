"""Service objectives as people write them: ``ttft:1000`` is a first token within a second, of each request; and
``p99_ttft:1000`` that in 99 of 100 requests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orrery.scenario.amounts import milliseconds
from orrery.serving.metrics.percentiles import PercentileLimit

METRICS = ("ttft", "tpot", "e2el")
"""Time to first token, time per later token, and the whole request; the words of ``vllm bench serve --goodput``."""

LONGEST_MS = 1e9
"""Eleven days: beyond that a latency objective is a slip of the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One objective: a metric and its limit, for each request or, with a share, for so many of them."""

    metric: str
    limit_s: float
    share_frac: float = 0.0

    @property
    def percent(self) -> float:
        """99 for a 99th percentile, 0 for each request."""
        return round(self.share_frac * 100.0, 9)

    @property
    def name(self) -> str:
        """``ttft``, or ``p99_ttft``."""
        return f"p{self.percent:g}_{self.metric}" if self.percent else self.metric

    @property
    def written(self) -> str:
        """As typed, in milliseconds."""
        return f"{self.name}:{self.limit_s * 1e3:.12g}"


def read_objectives(texts: Sequence[str]) -> tuple[Written, ...]:
    """Objectives in ``texts``, each one or several of [pNN_]METRIC:MS; the strictest wins where one is named twice."""
    found: dict[str, Written] = {}
    for word in (w for t in texts for w in t.replace(",", " ").split()):
        one = _read(word)
        if one.name not in found or one.limit_s < found[one.name].limit_s:
            found[one.name] = one
    return tuple(sorted(found.values(), key=lambda o: (o.percent, METRICS.index(o.metric))))


def request_limits_s(texts: Sequence[str]) -> dict[str, float]:
    """The limits that hold for each request, by metric."""
    return {o.metric: o.limit_s for o in read_objectives(texts) if not o.percent}


def percentile_limits(texts: Sequence[str]) -> tuple[PercentileLimit, ...]:
    """The limits on percentiles."""
    return tuple(
        PercentileLimit(metric=o.metric, share_frac=o.share_frac, limit_s=o.limit_s)
        for o in read_objectives(texts)
        if o.percent
    )


def _read(word: str) -> Written:
    name, colon, number = word.casefold().partition(":")
    before, underscore, after = name.partition("_")
    metric = after if underscore else name
    if metric not in METRICS or not colon:
        raise ValueError(
            f"{word!r} is no objective; write METRIC:MILLISECONDS with one of {', '.join(METRICS)}, such as ttft:1000, "
            "or pNN_METRIC:MILLISECONDS, such as p99_ttft:1000"
        )
    percent = _number(before[1:]) if before[:1] == "p" else math.nan
    if underscore and not 0 < percent < 100:
        raise ValueError(f"{word!r} needs a percentile between 0 and 100, such as p99_{metric}:1000")
    limit_ms = milliseconds(number) or math.nan
    if not 0 < limit_ms <= LONGEST_MS:
        raise ValueError(f"{word!r} needs a limit above 0 and up to {LONGEST_MS:g} ms, such as {name}:1000")
    return Written(metric=metric, limit_s=limit_ms / 1e3, share_frac=percent / 100.0 if underscore else 0.0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

"""Service objectives as people write them: ``ttft:1000`` is a first token within a second."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

METRICS = ("ttft", "tpot", "e2el")
"""Time to first token, time per later token, and the whole request; the words of ``vllm bench serve --goodput``."""

LONGEST_MS = 1e9
"""Eleven days: beyond that a latency objective is a slip of the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One objective: a metric and its limit."""

    metric: str
    limit_s: float

    @property
    def written(self) -> str:
        """As typed, in milliseconds."""
        return f"{self.metric}:{self.limit_s * 1e3:.12g}"


def read_objectives(texts: Sequence[str]) -> tuple[Written, ...]:
    """Objectives in ``texts``, each one or several of METRIC:MS; the strictest wins where one is named twice."""
    found: dict[str, Written] = {}
    for word in (w for t in texts for w in t.replace(",", " ").split()):
        one = _read(word)
        if one.metric not in found or one.limit_s < found[one.metric].limit_s:
            found[one.metric] = one
    return tuple(found[m] for m in METRICS if m in found)


def _read(word: str) -> Written:
    metric, colon, number = word.partition(":")
    metric = metric.casefold()
    if metric[:1] == "p" and metric.rsplit("_", 1)[-1] in METRICS:
        raise ValueError(
            f"{word!r} asks for a percentile, and the closed form knows means only; "
            f"write {metric.rsplit('_', 1)[-1]}:{number or 'MS'} for the mean"
        )
    if metric not in METRICS or not colon:
        raise ValueError(
            f"{word!r} is no objective; write METRIC:MILLISECONDS with one of {', '.join(METRICS)}, such as ttft:1000"
        )
    try:
        limit_ms = float(number)
    except ValueError:
        limit_ms = math.nan
    if not 0 < limit_ms <= LONGEST_MS:
        raise ValueError(f"{word!r} needs a limit above 0 and up to {LONGEST_MS:g} ms, such as {metric}:1000")
    return Written(metric=metric, limit_s=limit_ms / 1e3)

"""Requests that meet every objective: their rate, their share, and how both change with the limits.

A request is good when each of its latencies is at most its limit (``<=``), as in ``vllm bench serve --goodput``. The
share is of the requests *sent*: a refused one is a missed objective (``slo_attainment`` of SGLang).
The curve scales all limits at once, the "SLO scale" of Zhong et al., "DistServe", OSDI 2024, figure 8.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.serving.metrics.latencies import Latencies
from orrery.serving.requests import Floats

METRICS = ("ttft", "tpot", "e2el")
"""Metrics that an objective may limit."""

SCALES: Floats = np.geomspace(0.1, 10.0, 41)
"""Factors on all limits at which the curve is kept."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Goodput:
    """How much of the work was good enough."""

    limits_s: Mapping[str, float]
    requests_per_s: float
    attained_frac: float  # of the requests sent, all objectives together
    attained_by_metric: Mapping[str, float]
    requests_per_s_at_scale: Floats  # if all limits were SCALES times as long


def goodput(done: Latencies, limits_s: Mapping[str, float], sent_per_s: float) -> Goodput | None:
    """Good requests among ``done``, when ``sent_per_s`` requests came a second; None without objectives."""
    if not limits_s:
        return None
    if wrong := [name for name in limits_s if name not in METRICS]:
        raise ScenarioError(f"{wrong[0]!r} is no objective of a simulated run; write one of {', '.join(METRICS)}")
    columns = {"ttft": done.ttft_s, "tpot": done.tpot_s, "e2el": done.e2el_s}
    sent = max(done.num_sent, 1)
    met = {name: columns[name] <= limit_s for name, limit_s in limits_s.items()}
    good = np.logical_and.reduce(list(met.values()))
    return Goodput(
        limits_s=dict(limits_s),
        requests_per_s=float(good.sum()) / sent * sent_per_s,
        attained_frac=float(good.sum()) / sent,
        attained_by_metric={name: float(is_met.sum()) / sent for name, is_met in met.items()},
        requests_per_s_at_scale=_at_scale([columns[n] / limit_s for n, limit_s in limits_s.items()])
        / sent
        * sent_per_s,
    )


def _at_scale(ratios: list[Floats]) -> Floats:
    """How many requests have their worst ratio of latency to limit within each of ``SCALES``."""
    worst = ratios[0] if len(ratios) == 1 else np.maximum.reduce(ratios)
    places = np.searchsorted(SCALES, worst, side="left")
    counted: Floats = np.cumsum(np.bincount(places, minlength=SCALES.size + 1)[: SCALES.size]).astype(np.float64)
    return counted

"""Measured numbers beside predicted ones: residuals, with the covariance that the prediction's error is taken to have.

A residual is r = log(measured / predicted), turned so that above 0 is slower than predicted (of
power and cache: less; of memory: more).
What the prediction is unsure of is mostly the same for all numbers of one deployment, so residuals move together::

    cov(i, j) = d_i d_j (deployment [same deployment] + metric [same deployment and metric] + run [same run])
                + [i = j] (d_i^2 own + noise_i^2)

with d from the half-width of the prediction's 80 % interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.metrics import base_metric

Floats = NDArray[np.float64]

KINDS: dict[str, tuple[str, ...]] = {
    "throughput": ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s"),
    "first token": ("ttft_s",),
    "each token": ("tpot_s", "itl_s", "decode_tokens_per_s"),
    "end-to-end latency": ("latency_s",),
    "step": ("step_time_s", "tokens_per_s_per_device", "micro_step_time_s", "model_flops_per_s_per_device", "mfu_frac"),
    "power": ("power_w",),
    "cache": ("kv_cache_tokens",),
    "memory": ("peak_memory_bytes",),
}
"""Metrics that say the same thing in other words, best first: a run counts once for each."""

SPEEDS = frozenset({"throughput", "first token", "each token", "end-to-end latency", "step"})
"""Kinds whose errors have a common part: all of them are made of the same steps."""

FALLING = frozenset(
    {
        "output_tokens_per_s",
        "total_tokens_per_s",
        "requests_per_s",
        "decode_tokens_per_s",
        "tokens_per_s_per_device",
        "model_flops_per_s_per_device",
        "mfu_frac",
        "power_w",
        "kv_cache_tokens",
    }
)
"""Metrics that fall when something is slow."""

OF_DEPLOYMENT, OF_METRIC, OF_RUN, OWN = 0.35, 0.25, 0.15, 0.25
"""Shares of the variance inside the interval. Assumed: most of a prediction's error is common to all runs of a
deployment.
"""

NOISE_RATIO = 0.03
"""Relative deviation between two runs of the same thing. Assumed: serving benchmarks repeat to a few percent."""

LOCKSTEP_RATIO = 0.35
"""The same for first tokens of a closed loop: equal requests that end in one step come back together and wait for one
another, or do not, by the chance of a client's pauses. The median deviation of such predictions over all engines that
were measured is 0.36."""

MIN_RATIO, MAX_RATIO = 0.05, 0.5
"""Deviations are held inside these; a metric without an interval takes ``UNSTATED_RATIO``."""

UNSTATED_RATIO = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One measured number of one run."""

    run: int  # which of the runs
    system: str  # the deployment: what shares the prediction's error
    metric: str
    kind: str  # a key of KINDS
    measured: float
    predicted: float
    deviation_ratio: float  # of log(measured / predicted), as the prediction's interval has it
    noise_ratio: float = NOISE_RATIO  # that no other number shares

    @property
    def slower_ratio(self) -> float:
        """log(measured / predicted), above 0 where the run is slower than predicted."""
        return towards_slower(self.metric, self.measured) - towards_slower(self.metric, self.predicted)


def kind_of(base: str) -> str:
    """The kind of a metric; empty for metrics that say nothing of speed, power or cache."""
    return next((kind for kind, members in KINDS.items() if base in members), "")


def towards_slower(metric: str, value: float) -> float:
    """log of a value, turned so that it rises as things get slower."""
    return -log(value) if base_metric(metric) in FALLING else log(value)


def bounded(deviation_ratio: float | None) -> float:
    """A deviation that can be worked with."""
    return UNSTATED_RATIO if deviation_ratio is None else min(max(deviation_ratio, MIN_RATIO), MAX_RATIO)


def covariance(cells: Sequence[Cell]) -> Floats:
    """The covariance of the residuals of a prediction without a fault."""
    deviation = np.array([c.deviation_ratio for c in cells])
    run = np.array([c.run for c in cells])
    kind = np.array([c.kind for c in cells])
    family = np.array(["speed" if c.kind in SPEEDS else c.kind for c in cells])
    system = np.array([c.system for c in cells])
    together = _same(system) & _same(family)
    shares = OF_DEPLOYMENT * together + OF_METRIC * (_same(system) & _same(kind)) + OF_RUN * (_same(run) & together)
    own = np.diag(OWN * deviation**2 + np.array([c.noise_ratio for c in cells]) ** 2)
    return np.outer(deviation, deviation) * shares + own


def _same(words: NDArray[np.generic]) -> NDArray[np.bool_]:
    return words[:, None] == words[None, :]

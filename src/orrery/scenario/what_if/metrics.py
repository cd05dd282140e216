"""Metrics by which both sides are compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import ScenarioError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure of an answer; ``is_rate``: more of it is better. ``short``: its heading beside the ranked metric."""

    name: str
    words: str
    unit: str
    is_rate: bool = False
    short: str = ""


METRICS: tuple[Metric, ...] = (
    Metric(name="ttft_s", words="Time to first token (TTFT)", unit="s", short="TTFT"),
    Metric(name="tpot_s", words="Time per output token (TPOT)", unit="s", short="TPOT"),
    Metric(name="latency_s", words="End-to-end latency (E2EL)", unit="s", short="E2EL"),
    Metric(name="output_tokens_per_s", words="Output throughput", unit="tokens_per_s", is_rate=True, short="output"),
    Metric(name="slo_attainment_frac", words="SLO attainment", unit="frac", is_rate=True),
    Metric(name="answer_time_s", words="Time of an answer", unit="s"),
    Metric(name="answer_usd", words="Cost of an answer", unit="usd"),
    Metric(name="answer_energy_j", words="Energy of an answer", unit="j"),
    Metric(name="right_frac", words="Right answers", unit="frac", is_rate=True),
    Metric(name="step_time_s", words="Step time", unit="s", short="step"),
    Metric(name="tokens_per_s", words="Training throughput", unit="tokens_per_s", is_rate=True),
    Metric(name="run_time_s", words="Time of the whole run", unit="s"),
    Metric(name="usd_per_million_tokens", words="Cost per 1M tokens", unit="usd", short="cost"),
    Metric(name="energy_j_per_token", words="Energy per token", unit="j", short="energy"),
    Metric(name="kv_capacity_tokens", words="KV cache capacity", unit="tokens", is_rate=True),
    Metric(name="peak_memory_bytes", words="Peak memory per device", unit="bytes", short="memory"),
)
"""In the order of the table; an answer has some of them."""

BY_NAME = {m.name: m for m in METRICS}

CHOICES: dict[str, tuple[str, ...]] = {
    "ttft": ("ttft_s",),
    "tpot": ("tpot_s",),
    "latency": ("latency_s", "step_time_s"),
    "throughput": ("output_tokens_per_s", "tokens_per_s"),
    "cost": ("usd_per_million_tokens",),
    "energy": ("energy_j_per_token",),
    "step_time": ("step_time_s",),
    "run_time": ("run_time_s",),
    "memory": ("kv_capacity_tokens", "peak_memory_bytes"),
}
"""Words of ``--metric``: the figures of a serving deployment and of a training job that they mean."""

ARRIVALS = ("rate", "users", "trace", "sessions", "sessions_per_hour")
"""Settings of requests that arrive whether or not earlier ones are answered."""

OF_TRAINING = frozenset(
    {"step_time_s", "tokens_per_s", "run_time_s", "peak_memory_bytes", "usd_per_million_tokens", "energy_j_per_token"}
)
ONLY_TRAINING = frozenset({"step_time_s", "tokens_per_s", "run_time_s", "peak_memory_bytes"})


def default_metric(settings: Mapping[str, Any]) -> str:
    """The word of ``--metric`` for a scenario: the figure that its traffic leaves open.

    Requests that arrive at a rate of their own are served at that rate, whatever the technique: their latency tells.
    """
    if "global_batch" in settings:
        return "step_time"
    if "max_devices" in settings:
        return "cost"
    return "latency" if any(settings.get(key) for key in ARRIVALS) else "throughput"


def metric_called(word: str, *, is_training: bool) -> Metric:
    """The metric of ``--metric``; ScenarioError where the deployment has none of that name."""
    names = CHOICES.get(word) or ((word,) if word in BY_NAME else ())
    if not names:
        near = nearest(word, (*CHOICES, *BY_NAME)) or tuple(CHOICES)
        raise ScenarioError(f"metric: got {word!r}; write {' or '.join(map(repr, near))}.")
    for name in names:
        if name in OF_TRAINING if is_training else name not in ONLY_TRAINING:
            return BY_NAME[name]
    kind = "training job" if is_training else "serving deployment"
    other = (
        "step_time, throughput, cost, energy, memory or run_time"
        if is_training
        else "ttft, tpot, latency, throughput, cost, energy or memory"
    )
    raise ScenarioError(f"metric: a {kind} has no {word}; write {other}.")

"""Metrics of the curves."""

from dataclasses import dataclass

from orrery.scenario.ask import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number of an answer, by its key there."""

    key: str
    name: str
    unit: str
    objective: str = ""  # the word of an objective that limits it


METRICS: tuple[Metric, ...] = (
    Metric(key="output_tokens_per_s", name="Throughput", unit="tokens_per_s"),
    Metric(key="tpot_s", name="Time per output token", unit="s", objective="tpot"),
    Metric(key="ttft_s", name="Time to first token", unit="s", objective="ttft"),
    Metric(key="usd_per_million_tokens", name="Cost ($/1M output tokens)", unit="usd"),
    Metric(key="energy_j_per_token", name="Energy per output token", unit="j"),
    Metric(key="peak_bytes", name="Memory of a device", unit="bytes"),
    Metric(key="latency_s", name="End-to-end latency", unit="s", objective="e2el"),
)

BY_KEY = {m.key: m for m in METRICS}


@dataclass(frozen=True, slots=True)
class Value:
    """A value and the ends of its 80 % interval, where one is known."""

    value: float
    low: float | None = None
    high: float | None = None


def figures_of(answer: Answer) -> dict[str, Value]:
    """The metrics of an answer; one that does not exist (a price that nobody knows) is left out."""
    description = answer.to_json()
    values = description | {"peak_bytes": description["memory"]["peak_bytes"]}
    found: dict[str, Value] = {}
    for metric in METRICS:
        if (value := values.get(metric.key)) is not None:
            around = description["intervals"].get(metric.key, {})
            found[metric.key] = Value(value, around.get("low_80"), around.get("high_80"))
    return found

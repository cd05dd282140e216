"""The headline figures with their 80 % intervals."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.reports.words import format_interval, format_value
from orrery.scenario.ask import Answer

FIGURES = (
    ("tpot_s", "Time per output token", "s"),
    ("ttft_s", "Time to first token", "s"),
    ("output_tokens_per_s", "Output tokens/s", ""),
    ("usd_per_million_tokens", "$ per million output tokens", "usd"),
    ("energy_j_per_token", "Energy per output token", "j"),
    ("power_w", "Power of all devices", "w"),
    ("latency_s", "End-to-end latency", "s"),
    ("requests_per_s", "Requests/s", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number as text, its interval as text, and the name that it is unfolded by."""

    path: str
    label: str
    text: str
    between: str


def figures(answer: Answer) -> Iterator[Figure]:
    """The figures that the answer has."""
    around = answer.intervals()
    for path, label, unit in FIGURES:
        value = answer.usd_per_million_tokens if path.startswith("usd") else getattr(answer.estimate, path)
        yield Figure(
            path=path, label=label, text=format_value(value, unit), between=format_interval(around.get(path), unit)
        )


def headline(answer: Answer) -> str:
    """Headline: the model, its devices, and its layout."""
    d, e = answer.question.deployment, answer.estimate
    formats = d.formats
    narrow = "" if formats.kv == formats.weights else f", cache {formats.kv}"
    return f"{d.model.name} on {e.num_devices} x {d.cluster.device.name}: {d.layout}, {formats.weights}{narrow}"

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

NAMES = {
    **{path: label for path, label, _ in FIGURES},
    "total_tokens_per_s": "Input and output tokens/s",
    "host_power_w": "Power of the hosts",
    "energy_j_per_token_with_host": "Energy per output token, hosts included",
    "usd_per_million_total_tokens": "$ per million tokens, input included",
    "engine_version": "Engine version",
    "bound_by": "Bottleneck",
    "memory.weights_bytes": "Weights per device",
    "memory.kv_capacity_bytes": "KV cache per device",
    "memory.kv_capacity_tokens": "KV cache capacity",
    "memory.kv_bytes_per_token": "KV cache per token",
    "memory.activation_bytes": "Activations per device",
    "memory.communication_bytes": "Communication buffers",
    "memory.context_bytes": "Driver and libraries",
    "memory.usable_bytes": "Memory that the engine uses",
    "answer.time_s": "Time of an answer",
    "answer.energy_j": "Energy of an answer",
    "answer.usd": "Cost of an answer",
}
"""Numbers that can be unfolded, as the page calls them."""


def name_of(path: str) -> str:
    """The name of a number; ``decode_backend`` as Decode backend."""
    return NAMES.get(path) or path.replace("_", " ").capitalize()


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

"""Measurements that cannot be right, because their unit is another one or because they contradict each other."""

from collections.abc import Mapping
from math import nan

from orrery.base.errors import ScenarioError
from orrery.evidence.metrics import METRICS, base_metric

LIMITS = {
    "ttft_s": (1e-5, 7200.0),
    "tpot_s": (2e-6, 60.0),
    "itl_s": (2e-6, 60.0),
    "latency_s": (1e-5, 1e6),
    "output_tokens_per_s": (1e-4, 1e9),
    "total_tokens_per_s": (1e-4, 1e10),
    "requests_per_s": (1e-7, 1e7),
    "step_time_s": (1e-5, 3.6e4),
    "tokens_per_s_per_device": (1e-3, 1e8),
    "peak_memory_bytes": (1e6, 1e13),
}
"""Between these a measurement is possible at all."""

APART = 5.0
"""Rates and times of one run that disagree by this factor are in different units."""


def check_run(cells: Mapping[str, str], where: str) -> None:
    """ScenarioError where a measurement is impossible, or two of one run contradict each other."""
    kind = cells.get("kind", "")
    for column in cells:
        if (metric := base_metric(column)) in LIMITS and metric in METRICS.get(kind, ()):
            low, high = LIMITS[metric]
            value = _number(cells, column)
            if value <= 0 or not low <= value <= high:
                raise ScenarioError(
                    f"{where}: {column} = {value:g} cannot be right (possible: {low:g} to {high:g}); times are in "
                    "seconds, memory in bytes, rates per second of the whole system."
                )
    ttft_s, tpot_s, latency_s, tokens = (_number(cells, c) for c in ("ttft_s", "tpot_s", "latency_s", "output_tokens"))
    if cells.get("mode") in ("closed", "open") and latency_s < ttft_s:
        raise ScenarioError(
            f"{where}: latency_s = {latency_s:g} is less than ttft_s = {ttft_s:g}; one is in another unit."
        )
    rate, clients = _number(cells, "output_tokens_per_s"), _number(cells, "concurrency")
    if cells.get("mode") == "closed" and tokens > 1:
        most = clients * tokens / (ttft_s + tpot_s * (tokens - 1.0))
        if rate > APART * most:
            raise ScenarioError(
                f"{where}: {rate:g} tokens a second from {clients:g} clients cannot go with ttft_s = {ttft_s:g} and "
                f"tpot_s = {tpot_s:g} (at most {most:.4g}); one of them is in another unit, or per device."
            )


def _number(cells: Mapping[str, str], column: str) -> float:
    try:
        return float(cells.get(column) or nan)
    except ValueError:
        raise ScenarioError(f"{column}: got {cells[column]!r}; write a number or leave it blank.") from None

"""Metrics of a simulated run: latencies, goodput, saturation, energy; and the result file in vLLM's layout."""

from orrery.serving.metrics.over_time import OverTime
from orrery.serving.metrics.result_json import About, details, result_json
from orrery.serving.metrics.summary import PERCENTILES, Breakdown, Summary, summary

__all__ = ["PERCENTILES", "About", "Breakdown", "OverTime", "Summary", "details", "result_json", "summary"]

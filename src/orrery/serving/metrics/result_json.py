"""The answer of a simulated run in the layout of ``vllm bench serve --save-result``, and what orrery adds to it.

Keys that vLLM has keep vLLM's name and unit (milliseconds for latencies, seconds in the detailed columns). Keys of our
own are in SI units with the unit last. What does not exist (a percentile of nothing, a price nobody gave) is null.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from orrery.serving.metrics.distribution import CURVE_SHARES, Distribution
from orrery.serving.metrics.goodput import SCALES
from orrery.serving.metrics.over_time import OverTime
from orrery.serving.metrics.summary import Summary
from orrery.serving.requests import Floats
from orrery.serving.simulation.result import Simulated

LATENCIES = ("ttft", "tpot", "itl", "e2el")
"""In the order of vLLM; ``ntpot`` is ours."""

REFUSED = "refused: it can never fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Inputs that the answer repeats."""

    model_id: str
    tokenizer_id: str = ""  # empty: the model's own
    date: str = ""  # YYYYmmdd-HHMMSS; empty: now
    endpoint_type: str = "orrery"
    backend: str = "orrery"
    label: str | None = None
    request_rate_per_s: float = math.inf
    burstiness_ratio: float = 1.0  # of the gamma arrivals: 1 is Poisson
    max_concurrency: int | None = None
    usd_per_s: float | None = None  # of the whole deployment


def result_json(simulated: Simulated, found: Summary, about: About, detailed: bool = False) -> dict[str, Any]:
    """``found`` of ``simulated`` as one JSON object; ``detailed`` adds a value a request."""
    answer = _stated(found, about) | _totals(found)
    for name in LATENCIES:
        answer |= _spread(name, getattr(found, name))
    answer |= _ours(found, about) | {"num_devices": simulated.num_devices, "num_machines": simulated.num_machines}
    if detailed:
        answer |= details(simulated)
    return answer


def _stated(found: Summary, about: About) -> dict[str, Any]:
    rate = about.request_rate_per_s
    return {
        "date": about.date or datetime.now(UTC).strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": about.endpoint_type,
        "backend": about.backend,
        "label": about.label,
        "model_id": about.model_id,
        "tokenizer_id": about.tokenizer_id or about.model_id,
        "num_prompts": found.num_requests,
        "request_rate": rate if math.isfinite(rate) else "inf",
        "burstiness": about.burstiness_ratio if math.isfinite(about.burstiness_ratio) else "inf",
        "max_concurrency": about.max_concurrency,
    }


def _totals(found: Summary) -> dict[str, Any]:
    return {
        "duration": found.duration_s,
        "completed": found.completed,
        "failed": found.failed,
        "total_input_tokens": found.input_tokens,
        "total_output_tokens": found.output_tokens,
        "request_throughput": found.requests_per_s,
        "request_goodput": found.goodput.requests_per_s if found.goodput else None,
        "output_throughput": found.output_tokens_per_s,
        "total_token_throughput": found.total_tokens_per_s,
        "max_output_tokens_per_s": found.max_output_tokens_per_s,
        "max_concurrent_requests": found.max_concurrent_requests,
    }


def _spread(name: str, one: Distribution) -> dict[str, float | None]:
    """``mean_ttft_ms``, ``median_…``, ``std_…`` and the percentiles."""
    values = {"mean": one.mean_s, "median": one.median_s, "std": one.std_s}
    values |= {f"p{percent:g}": one.percentile_s(percent) for percent in one.percentiles}
    return {f"{word}_{name}_ms": _number(value_s * 1e3) for word, value_s in values.items()}


def _ours(found: Summary, about: About) -> dict[str, Any]:
    one, parts, saturated = found.goodput, found.breakdown, found.saturated
    return _spread("ntpot", found.ntpot) | {
        "slo_s": dict(one.limits_s) if one else None,
        "slo_attainment": one.attained_frac if one else None,
        "slo_attainment_by_metric": dict(one.attained_by_metric) if one else None,
        "goodput_by_slo_scale": _goodput_curve(found),
        "breakdown": {
            "queue_s": _number(parts.queue_s),
            "prefill_s": _number(parts.prefill_s),
            "decode_s": _number(parts.decode_s),
        },
        "kv_use_mean_frac": found.kv_use_mean_frac,
        "kv_use_peak_frac": found.kv_use_peak_frac,
        "running_mean_requests": found.running_mean_requests,
        "waiting_mean_requests": found.waiting_mean_requests,
        "idle_frac": _number(found.idle_frac),
        "preemptions": found.preemptions,
        "prefix_hit_rate_frac": found.prefix_hit_rate_frac,
        "energy_j": _number(found.energy_j),
        "energy_j_per_output_token": _number(found.energy_j_per_output_token),
        "power_w": _number(found.power_w),
        "usd_per_million_tokens": _usd(found, about, found.output_tokens),
        "usd_per_million_total_tokens": _usd(found, about, found.input_tokens + found.output_tokens),
        "saturated_first": saturated.limit,
        "saturated_first_s": saturated.start_s,
        "confidence_95": _confidence(found),
        "latency_curves": _curves(found),
        "timeline": timeline_json(found.over_time.coarser()),
    }


def _usd(found: Summary, about: About, tokens: int) -> float | None:
    """Price of the whole run / a million of ``tokens``."""
    return about.usd_per_s * found.duration_s / tokens * 1e6 if about.usd_per_s is not None and tokens else None


def _confidence(found: Summary) -> dict[str, list[float]] | None:
    """The intervals in milliseconds, under vLLM's names."""
    if found.confidence_95 is None:
        return None
    return {
        f"{name.removesuffix('_s')}_ms": [low * 1e3, high * 1e3] for name, (low, high) in found.confidence_95.items()
    }


def _goodput_curve(found: Summary) -> dict[str, list[float]] | None:
    if found.goodput is None:
        return None
    return {"scale": _list(SCALES, 4), "request_goodput": _list(found.goodput.requests_per_s_at_scale)}


def _curves(found: Summary) -> dict[str, list[float | None]]:
    """Values at ``share`` of the requests, for drawing the whole distribution."""
    curves: dict[str, list[float | None]] = {"share": _list(CURVE_SHARES, 6)}
    for name in (*LATENCIES, "ntpot"):
        one: Distribution = getattr(found, name)
        if one.count:
            curves[f"{name}_ms"] = _list(one.curve_s * 1e3)
    return curves


def timeline_json(over: OverTime) -> dict[str, list[Any]]:
    """The timeline as columns, one entry a bin."""
    columns: Mapping[str, Floats] = {
        "start_s": over.start_s,
        "width_s": over.width_s,
        "running_requests": over.running_requests,
        "waiting_requests": over.waiting_requests,
        "kv_use_frac": over.kv_use_frac,
        "busy_frac": over.busy_frac,
        "prompt_tokens_per_s": over.prompt_tokens_per_s,
        "output_tokens_per_s": over.output_tokens_per_s,
        "preemptions": over.num_preemptions,
        "arrivals_per_s": over.arrivals_rate_per_s,
        "finishes_per_s": over.finishes_rate_per_s,
        "step_s": over.step_s,
        "power_w": over.power_w,
    }
    return {name: _list(column, 8 if name == "start_s" else 6) for name, column in columns.items()}


def details(simulated: Simulated) -> dict[str, Any]:
    """A value a request, in seconds; 0 where a refused request has none, as in vLLM."""
    is_done = np.isfinite(simulated.finish_s)
    arrive_s = np.nan_to_num(simulated.arrive_s)

    def since_arrival(times_s: Floats) -> list[float]:
        values: list[float] = np.where(is_done, times_s - simulated.arrive_s, 0.0).tolist()
        return values

    return {
        "input_lens": simulated.requests.input_tokens.tolist(),
        "output_lens": np.where(is_done, simulated.requests.output_tokens, 0).tolist(),
        "ttfts": since_arrival(simulated.first_token_s),
        "itls": [],
        "start_times": arrive_s.tolist(),
        "latencies": since_arrival(simulated.finish_s),
        "queue_times": since_arrival(simulated.admitted_s),
        "errors": ["" if one else REFUSED for one in is_done.tolist()],
    }


def _number(value: float | None) -> float | None:
    """``value``, or null where it is not a number."""
    return float(value) if value is not None and math.isfinite(value) else None


def _list(values: Floats, digits: int = 6) -> list[Any]:
    """Plain numbers of ``digits`` significant digits; null where there is none."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]

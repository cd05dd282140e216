"""A simulated run as text: what ``vllm bench serve`` prints, then what only a simulator knows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.units import percent
from orrery.reports.words import changed, format_value

Plain = Mapping[str, Any]

LATENCIES = (
    ("ttft", "Time to first token"),
    ("tpot", "Time per output token, without the first"),
    ("itl", "Inter-token latency"),
    ("e2el", "End-to-end latency"),
)
"""In vLLM's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its name, and what stands small below it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A figure of the run beside the closed form's."""

    name: str
    simulated: str
    closed: str
    interval: str
    change: str
    is_inside: bool | None


def figures(a: Plain) -> tuple[Figure, ...]:
    """The main figures."""
    tokens = f"{a['total_input_tokens']:,} input and {a['total_output_tokens']:,} output tokens"
    found = [
        Figure(name="Requests served", value=f"{a['completed']:,}", note=f"{a['failed']:,} refused; {tokens}"),
        Figure(
            name="Throughput",
            value=format_value(a["output_throughput"], "tokens_per_s"),
            note=f"with prompts {format_value(a['total_token_throughput'], 'tokens_per_s')}",
        ),
        Figure(name="Requests", value=format_value(a["request_throughput"], "requests_per_s"), note=_goodput(a)),
        Figure(name="TTFT, mean", value=_ms(a["mean_ttft_ms"]), note=_sure(a, "mean_ttft_ms")),
        Figure(name="TTFT, P99", value=_ms(a["p99_ttft_ms"]), note=_sure(a, "p99_ttft_ms")),
        Figure(name="TPOT, mean", value=_ms(a["mean_tpot_ms"]), note=_sure(a, "mean_tpot_ms")),
        Figure(
            name="Power",
            value=format_value(a["power_w"], "w"),
            note=f"{format_value(a['energy_j_per_output_token'], 'j')} per token",
        ),
        Figure(
            name="Cost ($/1M output tokens)",
            value=format_value(a["usd_per_million_tokens"], "usd"),
            note=f"{format_value(a['usd_per_million_total_tokens'], 'usd')} with prompts counted",
        ),
    ]
    return tuple(found)


def load(a: Plain) -> tuple[Figure, ...]:
    """Utilisation, and the split of the time."""
    parts: Plain = a["breakdown"]
    whole = sum(value or 0.0 for value in parts.values())
    saturated, start_s = a["saturated_first"], a["saturated_first_s"]
    shares = [
        Figure(
            name=name,
            value=format_value(parts[key], "s"),
            note=f"{percent((parts[key] or 0.0) / whole)} of the mean latency",
        )
        for name, key in (("In the queue", "queue_s"), ("In prefill", "prefill_s"), ("In decode", "decode_s"))
        if whole > 0
    ]
    return (
        *shares,
        Figure(
            name="In the batches",
            value=f"{a['running_mean_requests']:.3g}",
            note=f"{a['waiting_mean_requests']:.3g} waiting, at most {a['max_concurrent_requests']:,} at once",
        ),
        Figure(
            name="Cache in use",
            value=format_value(a["kv_use_mean_frac"], "frac"),
            note=f"peak {format_value(a['kv_use_peak_frac'], 'frac')}; {a['preemptions']:,} preemptions",
        ),
        Figure(
            name="Prompts from the cache", value=format_value(a["prefix_hit_rate_frac"], "frac"), note="of their tokens"
        ),
        Figure(name="Idle", value=percent(a["idle_frac"] or 0.0, 1), note="of the machines' time"),
        *_finetuning(a),
        Figure(
            name="First limit reached",
            value="nothing" if start_s is None else str(saturated),
            note="" if start_s is None else f"{format_value(start_s, 's')} after the start",
        ),
    )


def _finetuning(a: Plain) -> tuple[Figure, ...]:
    """Rate of fine-tuning that fills the steps, and its part of the same devices without requests."""
    found = a.get("finetuning")
    if not found:
        return ()
    share = found["retained_frac"]
    note = f"tokens/s, {found['idle_tokens_per_s']:.3g} more while idle"
    note += "" if share is None else f"; {percent(share)} of {found['alone_tokens_per_s']:.4g} without requests"
    return (Figure(name="Fine-tuning", value=f"{found['tokens_per_s']:.4g}", note=note),)


def spread(a: Plain) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The heads of the table of latencies, and its rows."""
    percents = [key.removesuffix("_ttft_ms") for key in a if key.endswith("_ttft_ms") and key[0] == "p"]
    words = ["mean", "median", *(p for p in percents if p != "p50"), "std"]
    heads = [word.upper() if word in percents else {"std": "std. dev."}.get(word, word) for word in words]
    rows = [(f"{title} ({m.upper()})", tuple(_ms(a.get(f"{w}_{m}_ms")) for w in words)) for m, title in LATENCIES]
    return tuple(heads), tuple(rows)


def objectives(a: Plain) -> tuple[tuple[str, str, str, str, bool], ...]:
    """(objective, limit, what came out, share in time, whether it holds); limits of single requests stand first."""
    needed = float(a["settings"].get("attainment") or 0.9)
    shares: Mapping[str, float] = a["slo_attainment_by_metric"] or {}
    limits: Mapping[str, float] = a["slo_s"] or {}
    rows = [
        (
            name,
            format_value(limit, "s"),
            f"{format_value(needed, 'frac')} of the requests",
            format_value(shares[name], "frac"),
            shares[name] >= needed,
        )
        for name, limit in limits.items()
    ]
    percentiles: Mapping[str, Plain] = a["slo_percentiles"] or {}
    rows += [
        (
            name,
            format_value(p["limit_s"], "s"),
            format_value(p["value_s"], "s"),
            format_value(p["attained_frac"], "frac"),
            bool(p["is_met"]),
        )
        for name, p in percentiles.items()
    ]
    return tuple(rows)


def compared(a: Plain, closed: Plain) -> tuple[Compared, ...]:
    """The run beside the closed form, whose replicas are taken together."""
    if "error" in closed:
        return ()
    times = float(closed["replicas"])
    pairs: Sequence[tuple[str, str, float | None, str, float]] = (
        ("Time to first token", "s", _s(a["mean_ttft_ms"]), "ttft_s", 1.0),
        ("Time per output token", "s", _s(a["mean_tpot_ms"]), "tpot_s", 1.0),
        ("End-to-end latency", "s", _s(a["mean_e2el_ms"]), "latency_s", 1.0),
        ("Throughput", "tokens_per_s", a["output_throughput"], "output_tokens_per_s", times),
        ("Requests", "requests_per_s", a["request_throughput"], "requests_per_s", times),
        ("Power", "w", a["power_w"], "power_w", times),
        ("Cost ($/1M output tokens)", "usd", a["usd_per_million_tokens"], "usd_per_million_tokens", 1.0),
    )
    return tuple(_compared(closed, *pair) for pair in pairs)


def _compared(closed: Plain, name: str, unit: str, value: float | None, key: str, times: float) -> Compared:
    theirs, around = closed.get(key), closed.get("intervals", {}).get(key)
    theirs = None if theirs is None else theirs * times
    low, high = (around["low_80"] * times, around["high_80"] * times) if around else (math.nan, math.nan)
    both = None if value is None or theirs is None else (value, theirs)
    return Compared(
        name=name,
        simulated=format_value(value, unit),
        closed=format_value(theirs, unit),
        interval=f"{format_value(low, unit)} to {format_value(high, unit)}" if around else "",
        change=changed(*both) if both else "-",
        is_inside=low <= both[0] <= high if around and both else None,
    )


def _goodput(a: Plain) -> str:
    rate = a["request_goodput"]
    return "" if rate is None else f"{format_value(rate, 'requests_per_s')} within the objectives"


def _sure(a: Plain, key: str) -> str:
    """The interval of a mean or a percentile over requests."""
    every: Mapping[str, Sequence[float]] = a["confidence_95"] or {}
    bounds = every.get(key)
    return f"95 %: {_ms(bounds[0])} to {_ms(bounds[1])}" if bounds else ""


def _s(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1e3


def _ms(value_ms: float | None) -> str:
    return format_value(_s(value_ms), "s")

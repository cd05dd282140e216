"""Numbers, tables and pictures from the JSON of a simulated run."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.base.cost import Interval
from orrery.drawing import Axis, Bar, Part, Series, lines, stacked
from orrery.reports.report import Figure, Number, Table
from orrery.reports.words import capital, format_value

MS = 1e-3

LATENCIES = (("ttft", "time to first token"), ("tpot", "time per output token"), ("e2el", "end-to-end latency"))

PERCENTS = ("p50", "p90", "p95", "p99")


def numbers(plain: Mapping[str, Any], doubts: Mapping[str, Interval]) -> tuple[Number, ...]:
    """Figures of the run; ``doubts`` are intervals around 1 from the errors of such predictions."""
    top: Mapping[str, Any] = plain.get("capacity") or {}
    found: list[tuple[str, str, float | None, str]] = [
        ("capacity_requests_per_s", "Requests/s that it takes", top.get("requests_per_s"), ""),
        ("completed", "Requests served", plain["completed"], ""),
        ("failed", "Requests refused", plain["failed"], ""),
        ("request_throughput", "Requests/s", plain["request_throughput"], ""),
        ("request_goodput", "Requests/s within the objectives", plain.get("request_goodput"), ""),
        ("slo_attainment", "Requests within the objectives", plain.get("slo_attainment"), "frac"),
        ("output_throughput", "Output tokens/s", plain["output_throughput"], ""),
    ]
    for name, words in LATENCIES:
        for percent in ("mean", "p99"):
            key = f"{percent}_{name}_s"
            of = "mean" if percent == "mean" else "99 of 100 within"
            value = plain.get(f"{percent}_{name}_ms")
            found.append((key, f"{capital(words)}, {of}", None if value is None else value * MS, "s"))
    found += [
        ("usd_per_million_tokens", "Dollars per million output tokens", plain.get("usd_per_million_tokens"), "usd"),
        ("power_w", "Power of all devices", plain.get("power_w"), "w"),
        ("energy_j_per_output_token", "Energy per output token", plain.get("energy_j_per_output_token"), "j"),
        ("kv_use_peak_frac", "Cache in use, at most", plain.get("kv_use_peak_frac"), "frac"),
        ("prefix_hit_rate_frac", "Prompt tokens found in the cache", plain.get("prefix_hit_rate_frac"), "frac"),
        ("preemptions", "Preemptions (KV cache full)", plain.get("preemptions"), ""),
    ]
    return tuple(
        Number(name=n, label=label, value=v, unit=u, interval=doubts[n].scaled(v) if n in doubts else None)
        for n, label, v, u in found
        if v is not None
    )


def percentiles(plain: Mapping[str, Any]) -> Table:
    """Each latency at its percentiles."""
    kinds = [p for p in PERCENTS if f"{p}_ttft_ms" in plain]
    rows = [
        (words, *(_ms(plain.get(f"{p}_{name}_ms")) for p in ("mean", *kinds)))
        for name, words in LATENCIES
        if plain.get(f"mean_{name}_ms") is not None
    ]
    heads = (f"{p.removeprefix('p')} of 100 within" for p in kinds)
    return Table(title="Latencies of the requests", columns=("", "mean", *heads), rows=tuple(rows))


def objectives(plain: Mapping[str, Any]) -> Table | None:
    """Each objective, and the share of the requests within it."""
    limits: Mapping[str, float] = plain.get("slo_s") or {}
    shares: Mapping[str, float] = plain.get("slo_attainment_by_metric") or {}
    rows = [(name, format_value(limit, "s"), format_value(shares.get(name), "frac")) for name, limit in limits.items()]
    each: Mapping[str, Mapping[str, Any]] = plain.get("slo_percentiles") or {}
    for name, one in each.items():
        verdict = "holds" if one["is_met"] else "missed"
        rows.append(
            (
                name.replace("_", " "),
                format_value(one["limit_s"], "s"),
                f"{format_value(one['value_s'], 's')}, {verdict}",
            )
        )
    if not rows:
        return None
    return Table(title="Objectives", columns=("objective", "limit", "requests within, or value"), rows=tuple(rows))


def _ms(value: float | None) -> str:
    return format_value(None if value is None else value * MS, "s")


def figures(plain: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Where a request's time goes, the distribution of latencies, and the run over time."""
    return tuple(f for f in (_breakdown(plain), _curves(plain), *_over_time(plain)) if f)


def _breakdown(plain: Mapping[str, Any]) -> Figure:
    parts: Mapping[str, float | None] = plain["breakdown"]
    named = (("in the queue", "queue_s"), ("prompt", "prefill_s"), ("answer", "decode_s"))
    bar = Bar("a request, mean", [Part(name, parts.get(key) or 0.0) for name, key in named])
    queue, whole = parts.get("queue_s") or 0.0, sum(p.value for p in bar.parts)
    share = format_value(queue / whole, "frac") if whole else "-"
    return Figure(
        title="Where a request's time goes",
        summary=f"Waiting for a place in the batch takes {share} of it.",
        svg=stacked([bar], Axis("", "s"), title="Where a request's time goes"),
    )


def _curves(plain: Mapping[str, Any]) -> Figure | None:
    curves: Mapping[str, Sequence[float | None]] = plain.get("latency_curves") or {}
    shares = [float(x or 0.0) for x in curves.get("share", ())]
    series = [
        Series(words, shares, [_nan(v, MS) for v in curves[f"{name}_ms"]])
        for name, words in LATENCIES
        if curves.get(f"{name}_ms")
    ]
    if not series:
        return None
    svg = lines(
        series,
        Axis("share of the requests", "frac"),
        Axis("latency", "s", is_log=True),
        title="Latency by share of the requests",
    )
    half, most = _ms(plain.get("median_ttft_ms")), _ms(plain.get("p99_ttft_ms"))
    summary = f"Half of the first tokens came within {half}, 99 of 100 within {most}."
    return Figure(title="Latency by share of the requests", summary=summary, svg=svg)


def _over_time(plain: Mapping[str, Any]) -> list[Figure]:
    over: Mapping[str, Sequence[float | None]] = plain.get("timeline") or {}
    if not over.get("start_s"):
        return []
    at = [_nan(v) for v in over["start_s"]]
    time = Axis("time in the run", "s")
    charts = (
        (
            "Requests running and waiting",
            "",
            (("running", "running_requests"), ("waiting", "waiting_requests")),
            f"On average {plain['running_mean_requests']:.3g} ran and {plain['waiting_mean_requests']:.3g} waited.",
        ),
        (
            "Cache in use",
            "frac",
            (("cache", "kv_use_frac"),),
            f"On average {format_value(plain['kv_use_mean_frac'], 'frac')}, at most "
            f"{format_value(plain['kv_use_peak_frac'], 'frac')}.",
        ),
        (
            "Output tokens/s",
            "",
            (("output tokens/s", "output_tokens_per_s"),),
            f"The run took {format_value(plain['duration'], 's')} and made "
            f"{format_value(plain['output_throughput'], 'tokens_per_s')}.",
        ),
    )
    return [
        Figure(
            title=title,
            summary=summary,
            svg=lines(
                [Series(n, at, [_nan(v) for v in over[key]]) for n, key in curves if key in over],
                time,
                Axis(title if not unit else "share", unit),
                title=f"{title}, over the run",
            ),
        )
        for title, unit, curves, summary in charts
    ]


def _nan(value: float | None, scale: float = 1.0) -> float:
    return float("nan") if value is None else value * scale

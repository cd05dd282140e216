"""A simulated run in the terminal: vLLM's own block, then what only a simulator knows."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet

WIDTH, LABEL = 50, 40
"""Characters of a line of the block, and of its label, as in ``vllm bench serve``."""

TOTALS = (
    ("Successful requests:", "completed"),
    ("Failed requests:", "failed"),
    ("Maximum request concurrency:", "max_concurrency"),
    ("Request rate configured (RPS):", "request_rate"),
    ("Benchmark duration (s):", "duration"),
    ("Total input tokens:", "total_input_tokens"),
    ("Total generated tokens:", "total_output_tokens"),
    ("Request throughput (req/s):", "request_throughput"),
    ("Request goodput (req/s):", "request_goodput"),
    ("Output token throughput (tok/s):", "output_throughput"),
    ("Peak output token throughput (tok/s):", "max_output_tokens_per_s"),
    ("Peak concurrent requests:", "max_concurrent_requests"),
    ("Total token throughput (tok/s):", "total_token_throughput"),
)
"""Label and key, in vLLM's order; a null is left out, and so is a request rate that is not finite."""

LATENCIES = (
    ("Time to First Token", "ttft"),
    ("Time per Output Token (excl. 1st token)", "tpot"),
    ("Inter-token Latency", "itl"),
    ("End-to-end Latency", "e2el"),
)


def print_serving_result(answer: Mapping[str, Any]) -> None:
    """The answer of a simulated run, as a person reads it."""
    out = console()
    out.print("\n".join(banner(answer)), markup=False, highlight=False)
    _print_ours(out, answer)


def banner(answer: Mapping[str, Any]) -> list[str]:
    """The lines that ``vllm bench serve`` would have printed."""
    lines = [f"{' Serving Benchmark Result ':=^{WIDTH}}"]
    lines += [_line(label, answer[key]) for label, key in TOTALS if answer.get(key) not in (None, "inf")]
    for title, metric in LATENCIES:
        lines.append(f"{title:-^{WIDTH}}")
        for word, name in (("mean", "Mean"), ("median", "Median"), *_percentiles(answer)):
            value = answer.get(f"{word}_{metric}_ms")
            lines.append(_line(f"{name} {metric.upper()} (ms):", "-" if value is None else float(value)))
    return [*lines, "=" * WIDTH]


def _percentiles(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The percentiles that the answer has, the median left out: (``p99``, ``P99``)."""
    ends = "_ttft_ms"
    words = [key.removesuffix(ends) for key in answer if key.endswith(ends) and key[0] == "p"]
    return [(word, word.upper()) for word in words if word != "p50"]


def _line(label: str, value: float | int | str) -> str:
    return f"{label:<{LABEL}} {value:<10.2f}".rstrip() if isinstance(value, float) else f"{label:<{LABEL}} {value}"


def _print_ours(out: Console, answer: Mapping[str, Any]) -> None:
    """Where the time went, what filled up, energy and money."""
    table = Sheet("", "", has_header=False)
    table.add_column("", justify="left", wraps=True)
    for row in (*_latency_rows(answer), *_load_rows(answer), *_cost_rows(answer)):
        table.add_row(*row)
    out.print(table)
    limit, start_s = answer["saturated_first"], answer["saturated_first_s"]
    if start_s is None:
        out.print("No limit reached.")
    else:
        out.print(f"First limit reached: [bold]{limit}[/], {text(float(start_s), 's')} after the start.")


def _latency_rows(answer: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    parts: Mapping[str, float | None] = answer["breakdown"]
    whole = sum(value or 0.0 for value in parts.values())
    rows = [
        (name, text(value, "s"), f"{percent(value / whole)} of the mean latency" if whole > 0 else "")
        for name, key in (("in the queue", "queue_s"), ("prefill", "prefill_s"), ("decode", "decode_s"))
        if (value := parts[key]) is not None
    ]
    if (attained := answer["slo_attainment"]) is not None:
        each = ", ".join(f"{name} {percent(share, 1)}" for name, share in answer["slo_attainment_by_metric"].items())
        rows.append(("within the objectives", percent(attained, 1), f"of the requests sent ({each})"))
    percentiles: Mapping[str, Mapping[str, Any]] = answer.get("slo_percentiles") or {}
    for name, one in percentiles.items():
        value = "-" if one["value_s"] is None else text(one["value_s"], "s")
        verdict = "within" if one["is_met"] else "beyond"
        message = (
            f"{verdict} the objective of {text(one['limit_s'], 's')} ({percent(one['attained_frac'], 1)} of "
            "the requests are)"
        )
        rows.append((name.replace("_", " "), value, message))
    sure: Mapping[str, list[float]] = answer["confidence_95"] or {}
    for word, name in (("mean_ttft_ms", "mean TTFT"), ("p99_ttft_ms", "p99 TTFT")):
        if bounds := sure.get(word):
            low, high = (text(bound / 1e3, "s") for bound in bounds)
            rows.append((name, text(answer[word] / 1e3, "s"), f"{low} to {high} (95 %)"))
    return rows


def _load_rows(answer: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    cache = (percent(answer["kv_use_mean_frac"], 1), f"peak {percent(answer['kv_use_peak_frac'], 1)}")
    return [
        (
            "in the batch",
            figures(answer["running_mean_requests"]),
            f"{figures(answer['waiting_mean_requests'])} waiting",
        ),
        ("cache in use", *cache),
        ("preemptions", f"{answer['preemptions']:,}", ""),
        ("prompt tokens from the cache", percent(answer["prefix_hit_rate_frac"], 1), ""),
        *_finetuning_rows(answer),
    ]


def _finetuning_rows(answer: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    found: Mapping[str, Any] | None = answer.get("finetuning")
    if not found:
        return []
    idle, alone = (figures(found[key]) for key in ("idle_tokens_per_s", "alone_tokens_per_s"))
    share = "" if found["retained_frac"] is None else f", {percent(found['retained_frac'])} of {alone} without requests"
    return [("fine-tuning", f"{figures(found['tokens_per_s'])} tokens/s", f"{idle} more while idle{share}")]


def _cost_rows(answer: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    if (power_w := answer["power_w"]) is not None:
        rows.append(("power", text(power_w, "w"), f"{text(answer['energy_j'], 'j')} in all"))
    if (energy_j := answer["energy_j_per_output_token"]) is not None:
        rows.append(("energy per output token", text(energy_j, "j"), ""))
    if (usd := answer["usd_per_million_tokens"]) is not None:
        rows.append(
            ("a million output tokens", f"${figures(usd)}", f"${figures(answer['usd_per_million_total_tokens'])} all")
        )
    return rows

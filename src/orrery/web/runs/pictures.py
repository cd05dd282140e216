"""Charts of a simulated run: its latencies, what happened over time, and its steps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orrery.drawing import Axis, Series, Span, Track, lines, timeline
from orrery.web.runs.served import LATENCIES

Plain = Mapping[str, Any]
Columns = Mapping[str, Sequence[float | None]]

NAN = float("nan")

OVER_TIME: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "queue": (
        "Requests in the batches and waiting",
        "",
        (("running", "running_requests"), ("waiting", "waiting_requests")),
    ),
    "cache": ("Cache in use", "frac", (("cache", "kv_use_frac"),)),
    "tokens": (
        "Tokens per second",
        "tokens/s",
        (("prompts", "prompt_tokens_per_s"), ("answers", "output_tokens_per_s")),
    ),
    "flow": ("Requests per second", "requests/s", (("arrive", "arrivals_per_s"), ("finish", "finishes_per_s"))),
    "power": ("Power", "w", (("power", "power_w"),)),
}
"""By the name of the chart: title, unit, and (name, column) of its curves."""

FIRST_STEPS = 120
"""Steps that the timeline shows unless a part of it is asked for."""


def latency_curves(answer: Plain) -> str:
    """Which share of the requests is at most so slow."""
    curves: Columns = answer["latency_curves"]
    shares = _known(curves["share"])
    series = [
        Series(metric.upper(), shares, [NAN if v is None else v / 1e3 for v in curves[f"{metric}_ms"]])
        for metric, _ in LATENCIES
        if f"{metric}_ms" in curves
    ]
    return lines(
        series,
        Axis("Share of the requests", "frac"),
        Axis("Time", "s", is_log=True),
        title="Latencies",
        says="Of the share of the requests below, each waited at most so long.",
    )


def goodput_curve(answer: Plain) -> str:
    """Goodput where the objectives are tighter or looser; empty without objectives."""
    curve = answer.get("goodput_by_slo_scale")
    if not curve:
        return ""
    series = Series("goodput", curve["scale"], curve["request_goodput"])
    return lines(
        [series],
        Axis("Objectives, times", "ratio"),
        Axis("Requests", "requests/s"),
        mark=(1.0, "as asked"),
        title="Requests within the objectives, were they tighter or looser",
    )


def over_time(answer: Plain, name: str) -> str:
    """One of the charts in ``OVER_TIME``."""
    title, unit, curves = OVER_TIME[name]
    columns: Columns = answer["timeline"]
    start_s, width_s = _known(columns["start_s"]), _known(columns["width_s"])
    middle_s = [at + width / 2 for at, width in zip(start_s, width_s, strict=True)]
    series = [Series(each, middle_s, _known(columns[column])) for each, column in curves]
    return lines(series, Axis("Time", "s"), Axis("", unit), title=title)


def steps_shown(steps: Columns, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    """The part of the window that is drawn: what is asked, else the first steps of it."""
    starts, ends = _known(steps["start_s"]), _known(steps["end_s"])
    first = starts[0] if start_s is None else start_s
    later = [end for at, end in zip(starts, ends, strict=True) if at >= first]
    machines = int(max(_known(steps["machine"]))) + 1
    last = later[min(len(later), FIRST_STEPS * machines) - 1] if later else first
    return first, (end_s if end_s is not None and end_s > first else max(last, first))


def steps_drawn(steps: Columns, start_s: float, end_s: float) -> str:
    """Replicas one below the other, a rectangle a step."""
    tracks: dict[int, list[Span]] = {}
    names = ("machine", "start_s", "end_s", "prompt_tokens", "prompts", "decodes")
    for machine, begin_s, until_s, tokens, prompts, decodes in zip(*(_known(steps[n]) for n in names), strict=True):
        if until_s > start_s and begin_s < end_s:
            kind = "mixed" if prompts and decodes else "prompts" if prompts else "answers"
            what = f"{kind}: {tokens:.0f} prompt tokens, {decodes:.0f} answers"
            tracks.setdefault(int(machine), []).append(Span(max(begin_s, start_s), min(until_s, end_s), kind, what))
    rows = [Track(f"replica {machine + 1}", spans) for machine, spans in sorted(tracks.items())]
    return timeline(rows, title="Steps", says="What each replica computes, step by step.")


def probes(answer: Plain) -> str:
    """The rates that a search for the capacity tried."""
    tried: Sequence[Plain] = answer["capacity"]["probes"]
    rates = [p["requests_per_s"] for p in tried]
    series = [
        Series(name, rates, _known([p[key] for p in tried]))
        for name, key in (("TTFT, P99", "p99_ttft_s"), ("TPOT, P99", "p99_tpot_s"))
    ]
    mark = (float(answer["capacity"]["requests_per_s"]), "capacity")
    return lines(
        series, Axis("Requests", "requests/s"), Axis("Time", "s", is_log=True), title="Latencies by rate", mark=mark
    )


def chart(answer: Plain, name: str) -> str:
    """A chart of an answer by its name; empty where there is none."""
    drawn: dict[str, Callable[[Plain], str]] = {"latencies": latency_curves, "goodput": goodput_curve, "rates": probes}
    if name in OVER_TIME:
        return over_time(answer, name)
    return drawn[name](answer) if name in drawn else ""


def _known(values: Sequence[float | None]) -> list[float]:
    return [NAN if value is None else float(value) for value in values]

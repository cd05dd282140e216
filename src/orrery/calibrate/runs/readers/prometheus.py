"""Scrapes of vLLM's ``/metrics`` (Prometheus text): one scrape is everything since the start, two are an interval.

Histograms ``vllm:time_to_first_token_seconds``, ``vllm:request_time_per_output_token_seconds`` (one value a request:
the TPOT of this house), ``vllm:inter_token_latency_seconds`` (until 0.10 ``vllm:time_per_output_token_seconds``: one
value a gap), ``vllm:e2e_request_latency_seconds``; means are sum / count, quantiles are interpolated in their bucket as
``histogram_quantile`` does. Counters ``vllm:prompt_tokens_total``, ``vllm:generation_tokens_total``,
``vllm:request_success_total``, ``vllm:num_preemptions_total``, ``vllm:prefix_cache_{queries,hits}_total``. Names as in
vLLM 0.33. A scrape has no clock: rates need the seconds between two.
"""

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.calibrate.runs.log import Log
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, needed

TIMES = {
    "ttft_s": ("time_to_first_token_seconds",),
    "tpot_s": ("request_time_per_output_token_seconds",),
    "itl_s": ("inter_token_latency_seconds", "time_per_output_token_seconds"),
    "latency_s": ("e2e_request_latency_seconds",),
}
QUANTILES = (50, 90, 99)
_LINE = re.compile(r"vllm:(\w+)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class Scrape:
    """Counters by name, and buckets by histogram: cumulative counts by upper bound. Engines are summed."""

    counters: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    buckets: dict[str, dict[float, float]] = field(
        default_factory=lambda: defaultdict[str, dict[float, float]](dict[float, float])
    )
    models: set[str] = field(default_factory=set[str])

    def since(self, earlier: "Scrape") -> "Scrape":
        """Difference of the counters to those of ``earlier``."""
        out = Scrape(models=self.models)
        for name, value in self.counters.items():
            out.counters[name] = value - earlier.counters.get(name, 0.0)
        for name, bounds in self.buckets.items():
            out.buckets[name] = {b: n - earlier.buckets.get(name, {}).get(b, 0.0) for b, n in bounds.items()}
        return out

    def mean(self, histogram: str) -> float:
        """Sum over count; NaN where nothing was counted."""
        count = self.counters.get(f"{histogram}_count", 0.0)
        return self.counters.get(f"{histogram}_sum", 0.0) / count if count > 0 else math.nan

    def quantile(self, histogram: str, percent: float) -> float:
        """Interpolated inside its bucket; NaN where it lies in the last, open one."""
        bounds = sorted(self.buckets.get(histogram, {}).items())
        if not bounds or not bounds[-1][1] > 0:
            return math.nan
        edges = [0.0, *(bound for bound, _ in bounds)]
        counts = [0.0, *(count for _, count in bounds)]
        place = bisect_left(counts, percent / 100.0 * counts[-1])
        if not math.isfinite(edges[place]):
            return math.nan
        share = (percent / 100.0 * counts[-1] - counts[place - 1]) / max(1e-12, counts[place] - counts[place - 1])
        return edges[place - 1] + share * (edges[place] - edges[place - 1])


def _recognise(log: Log) -> bool:
    return not log.objects and any(line.startswith(("vllm:", "# HELP vllm:")) for line in log.text.splitlines())


def parse(log: Log) -> Scrape:
    """The totals of one scrape."""
    out = Scrape()
    for number, line in enumerate(log.text.splitlines(), start=1):
        if not line.startswith("vllm:"):
            continue
        if not (found := _LINE.fullmatch(line)):
            raise ScenarioError(f"{log.name}, line {number}: is no sample of Prometheus text: {line[:60]!r}.")
        name, labels, value = found[1], _labels(found[2] or ""), _value(log, number, found[3])
        out.models |= {labels["model_name"]} if "model_name" in labels else set()
        if name.endswith("_bucket"):
            buckets, bound = out.buckets[name.removesuffix("_bucket")], _value(log, number, labels.get("le", "inf"))
            buckets[bound] = buckets.get(bound, 0.0) + value
        elif not name.endswith("_created"):
            out.counters[name.removesuffix("_total")] += value
    return out


def _value(log: Log, line: int, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"{log.name}, line {line}: {text[:40]!r} is no number.") from None


def _labels(text: str) -> dict[str, str]:
    return {found[1]: found[2] for found in _LABEL.finditer(text)}


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    if not any(user_settings.get(c) for c in ("concurrency", "request_rate_per_s")):
        needed(user_settings, logs[0].name, {"concurrency": "--concurrency 32 (or --rate 4)"})
    scrapes = sorted(((parse(log), log.name) for log in logs), key=lambda s: s[0].counters.get("generation_tokens", 0))
    if len(scrapes) == 1:
        return [_run(scrapes[0][0], scrapes[0][1], math.nan)]
    seconds = float(user_settings["seconds"]) if user_settings.get("seconds") else math.nan
    return [
        _run(late.since(early), f"{early_name} to {late_name}", seconds)
        for (early, early_name), (late, late_name) in pairwise(scrapes)
    ]


def _run(totals: Scrape, where: str, seconds: float) -> ParsedRun:
    requests = totals.counters.get("request_success", 0.0)
    if any(value < 0 for name, value in totals.counters.items() if name.endswith("_count")):
        raise ScenarioError(f"{where}: counts fall from one scrape to the next; the server was restarted in between.")
    if not requests > 0:
        raise ScenarioError(f"{where}: vllm:request_success_total did not grow; no request was completed in between.")
    if len(totals.models) > 1:
        raise ScenarioError(f"{where}: holds several models ({', '.join(sorted(totals.models))}); scrape one server.")
    run = ParsedRun()
    run.add_note("kind", "serving")
    run.add_note("engine", "vllm")
    run.add_note("model", next(iter(totals.models), ""))
    run.add_note("num_requests", requests)
    for column, (histogram, counter) in {
        "input_tokens": ("request_prompt_tokens", "prompt_tokens"),
        "output_tokens": ("request_generation_tokens", "generation_tokens"),
    }.items():
        mean = totals.mean(histogram)
        run.add_note(column, mean if mean > 0 else totals.counters.get(counter, 0.0) / requests)
    for column, names in TIMES.items():
        name = next((n for n in names if totals.mean(n) > 0), "")
        if name:
            run.add_note(column, totals.mean(name))
            for percent in QUANTILES:
                run.add_note(f"{column}_p{percent}", totals.quantile(name, percent))
    if seconds > 0:
        run.add_note("requests_per_s", requests / seconds)
        run.add_note("output_tokens_per_s", totals.counters.get("generation_tokens", math.nan) / seconds)
    run.notes += _notes(totals)
    return run


def _notes(totals: Scrape) -> Iterator[str]:
    """Notes on effects that a prediction leaves out: preempted requests, and prompts already in the prefix cache."""
    if (preempted := totals.counters.get("num_preemptions", 0.0)) > 0:
        yield f"{preempted:.0f} preemptions: the cache was too small for the load"
    queries, hits = (totals.counters.get(f"prefix_cache_{w}", 0.0) for w in ("queries", "hits"))
    if queries > 0 and hits > 0:
        yield (
            f"{percent(hits / queries)} of prompt tokens came from the prefix cache; first tokens came that much sooner"
        )


READER = Reader(name="a scrape of vLLM's /metrics", recognise=_recognise, read=_read)

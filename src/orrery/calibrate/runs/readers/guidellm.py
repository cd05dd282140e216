"""guidellm's ``benchmarks.json``: one entry a load, each metric a distribution over successful requests.

Layout 2 (0.4 and later; read in 0.8.1) keeps the load under ``config.strategy``, the first one (read in 0.2.1 and
0.3.0) under ``args.strategy``; metrics have the same names. What guidellm calls ``inter_token_latency_ms`` is the TPOT
of vLLM and of this house; its own ``time_per_output_token_ms`` divides by all tokens and counts the first, so it is not
read.
"""

import math
from collections.abc import Sequence
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log, Object, inner, number, search, word
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, arrivals, check_requests

TIMES = {
    "ttft_s": ("time_to_first_token_ms", 1e-3),
    "tpot_s": ("inter_token_latency_ms", 1e-3),
    "latency_s": ("request_latency", 1.0),
}
RATES = {
    "requests_per_s": "requests_per_second",
    "output_tokens_per_s": "output_tokens_per_second",
    "total_tokens_per_s": "tokens_per_second",
}
PERCENTILES = ("p50", "p90", "p95", "p99")


def _recognise(log: Log) -> bool:
    return isinstance(log.one.get("benchmarks"), list) and bool(
        {"metadata", "config", "args"} & log.one.keys() or any("run_stats" in x for x in _benchmarks(log))
    )


def _benchmarks(log: Log) -> list[Object]:
    return [cast(Object, x) for x in cast(list[Any], log.one["benchmarks"]) if isinstance(x, dict)]


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    out: list[ParsedRun] = []
    for log in logs:
        benchmarks = _benchmarks(log)
        if not benchmarks:
            raise ScenarioError(f"{log.name}: holds no benchmark; the run ended before the first one was done.")
        out += [_run(x, f"{log.name}, benchmark {i}") for i, x in enumerate(benchmarks, start=1)]
    return out


def _run(x: Object, where: str) -> ParsedRun:
    strategy = inner(x, "config", "strategy") or inner(x, "args", "strategy") or inner(x, "scheduler", "strategy")
    metrics = inner(x, "metrics")
    if not strategy or not inner(metrics, "time_to_first_token_ms"):
        raise ScenarioError(
            f"{where}: is not laid out as guidellm 0.2 to 0.8 write it (config.strategy or args.strategy, and "
            "metrics.time_to_first_token_ms); convert it to a measured table."
        )
    run, counts = ParsedRun(), inner(metrics, "request_totals") or inner(x, "request_totals")
    completed = number(counts, "successful")
    failed = number(counts, "errored")
    run.notes += check_requests(where, completed, 0.0 if math.isnan(failed) else failed)
    run.add_note("kind", "serving")
    run.add_note("model", _model(x))
    run.add_note("num_requests", completed)
    for side, key in (("input", "prompt_token_count"), ("output", "output_token_count")):
        lengths = inner(metrics, key, "successful")
        run.add_note(f"{side}_tokens", number(lengths, "mean"))
        run.add_note(f"{side}_tokens_std", number(lengths, "std_dev"))
    _arrivals(run, strategy, where)
    for column, (key, unit_s) in TIMES.items():
        if column == "latency_s" and run.cells["mode"] == "offline":
            continue
        found = inner(metrics, key, "successful")
        run.add_note(column, number(found, "mean") * unit_s)
        for percentile in PERCENTILES:
            run.add_note(f"{column}_{percentile}", number(inner(found, "percentiles"), percentile) * unit_s)
    for column, key in RATES.items():
        run.add_note(column, number(inner(metrics, key, "successful"), "mean"))
    return run


def _arrivals(run: ParsedRun, strategy: Object, where: str) -> None:
    kind, limit = word(strategy, "type_"), number(strategy, "max_concurrency")
    match kind:
        case "synchronous":
            arrivals(run, 1.0, math.nan)
        case "concurrent":
            arrivals(run, number(strategy, "streams"), math.nan)
        case "throughput":
            arrivals(run, limit, math.nan)
        case "constant" | "poisson":
            arrivals(run, math.nan, number(strategy, "rate"))
            if kind == "constant":
                run.notes.append("arrivals were evenly spaced; predicted as Poisson")
        case _:
            raise ScenarioError(f"{where}: requests arrived by {kind!r}, which is not read; leave it out.")


def _model(x: Object) -> str:
    places = (x.get("worker"), inner(x, "config").get("backend"), inner(x, "config").get("requests"))
    found = (v for place in places for v in search(place, ("backend_model", "model", "model_name")))
    return next((v for v in found if isinstance(v, str)), "")


READER = Reader(name="guidellm", recognise=_recognise, read=_read)

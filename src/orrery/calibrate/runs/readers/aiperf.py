"""AIPerf's ``profile_export_aiperf.json`` and genai-perf's ``*_genai_perf.json``: each metric an object with a unit.

Read in AIPerf 0.13 and genai-perf 0.0.16: ``time_to_first_token``, ``inter_token_latency`` (the TPOT of this house),
``request_latency`` with ``avg`` and ``p50`` to ``p99``; ``request_throughput``, ``output_token_throughput``;
``input_sequence_length``, ``output_sequence_length``; ``request_count``, ``error_request_count``. The load stands in
``input_config``, under ``phases`` in newer files and ``loadgen`` or ``perf_analyzer`` in older ones.
"""

import math
from collections.abc import Sequence
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log, Object, inner, number, search, spelled, word
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, arrivals, check_requests

TIMES = {"ttft_s": "time_to_first_token", "tpot_s": "inter_token_latency", "latency_s": "request_latency"}
RATES = {"requests_per_s": "request_throughput", "output_tokens_per_s": "output_token_throughput"}
SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
PERCENTILES = ("p50", "p90", "p95", "p99")


def _recognise(log: Log) -> bool:
    return "unit" in inner(log.one, "request_latency") and "request_throughput" in log.one


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log) for log in logs]


def _run(log: Log) -> ParsedRun:
    run, x, where = ParsedRun(), log.one, log.name
    if x.get("is_complete") is False or x.get("was_cancelled") is True:
        why = word(x, "incomplete_reason") or "it was cancelled"
        raise ScenarioError(f"{where}: the run did not finish ({why}); leave the file out.")
    completed = number(inner(x, "request_count"), "avg")
    if math.isnan(completed):  # genai-perf does not count; the run was over when every request was
        completed = number(inner(x, "request_latency"), "count")
    failed = number(inner(x, "error_request_count"), "avg")
    counted = 1.0 if math.isnan(completed) else completed
    run.notes += check_requests(where, counted, 0.0 if math.isnan(failed) else failed)
    run.add_note("kind", "serving")
    run.add_note("model", _model(inner(x, "input_config")))
    run.add_note("measured_date", word(x, "start_time")[:10])
    run.add_note("num_requests", completed)
    for side in ("input", "output"):
        lengths = inner(x, f"{side}_sequence_length")
        run.add_note(f"{side}_tokens", number(lengths, "avg"))
        run.add_note(f"{side}_tokens_std", number(lengths, "std"))
    _arrivals(run, inner(x, "input_config"))
    for column, key in TIMES.items():
        if (found := inner(x, key)) and not (column == "latency_s" and run.cells.get("mode") == "offline"):
            unit_s = seconds(word(found, "unit"), f"{where}, {key}")
            run.add_note(column, number(found, "avg") * unit_s)
            for percentile in PERCENTILES:
                run.add_note(f"{column}_{percentile}", number(found, percentile) * unit_s)
    for column, key in RATES.items():
        run.add_note(column, number(inner(x, key), "avg"))
    return run


def seconds(unit: str, where: str) -> float:
    """How many seconds a unit of time is."""
    if unit not in SECONDS:
        raise ScenarioError(f"{where}: is in {unit!r}, which is no unit of time that is known ({', '.join(SECONDS)}).")
    return SECONDS[unit]


def _arrivals(run: ParsedRun, config: Object) -> None:
    """The measured phase's limit and rate; nothing is said where the file holds neither."""
    phases = config.get("phases")
    load: Any = config
    if isinstance(phases, list) and phases:
        named = [cast(Object, p) for p in cast(list[Any], phases) if isinstance(p, dict)]
        load = next((p for p in named if "warmup" not in (word(p, "name"), word(p, "type"))), named[-1])
    limit, rate = (_first(load, names) for names in (("concurrency",), ("rate", "request_rate")))
    if limit > 0 or rate > 0:
        arrivals(run, limit, rate)


def _first(load: Any, names: tuple[str, ...]) -> float:
    found = (v for v in search(load, names) if isinstance(v, int | float) and not isinstance(v, bool))
    return next((spelled(v) for v in found), math.nan)


def _model(config: Object) -> str:
    for value in search(config, ("model_names", "models", "model", "model_name")):
        names = [value, *search(value, ("name",))] if not isinstance(value, list) else cast(list[Any], value)
        for name in names:
            if isinstance(name, str) and name:
                return name
            if isinstance(name, dict) and (found := word(cast(Object, name), "name")):
                return found
    return ""


READER = Reader(name="AIPerf, genai-perf", recognise=_recognise, read=_read)

"""`vllm bench serve --save-result` and the lines of `sglang.bench_serving`: one object a run, times in milliseconds.

Keys: ``{mean,median,std,pNN}_{ttft,tpot,itl,e2el|e2e_latency}_ms``, ``request_throughput``, ``output_throughput``,
``total_token_throughput`` (SGLang: ``total_throughput``), ``duration``, ``completed``, ``failed``, ``num_prompts``,
``total_input_tokens``, ``total_output_tokens``, ``request_rate`` ("inf" or a number), ``max_concurrency``; with
``--save-detailed`` also ``input_lens`` and ``output_lens``. Read in vLLM 0.33 and SGLang 0.5 sources.
"""

import math
import re
from collections.abc import Sequence

import numpy as np

from orrery.calibrate.runs.log import Log, Object, number, numbers, word
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, arrivals, check_duration, check_requests

TIMES = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "latency_s", "e2e_latency": "latency_s"}
RATES = {
    "request_throughput": "requests_per_s",
    "output_throughput": "output_tokens_per_s",
    "total_token_throughput": "total_tokens_per_s",
    "total_throughput": "total_tokens_per_s",
}
_KEY = re.compile(r"(mean|median|p\d{1,2}(?:\.\d+)?)_(" + "|".join(TIMES) + r")_ms")

OWN_PROTOCOL = {"sglang": "sglang", "sglang-native": "sglang", "tensorrt-llm": "tensorrt-llm", "trt": "tensorrt-llm"}
"""Backends that only that engine speaks; the others are protocols that several engines answer."""


def _recognise(log: Log) -> bool:
    return bool(log.objects) and all("request_throughput" in x and "completed" in x for x in log.objects)


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [
        _run(x, f"{log.name}, run {i}" if len(log.objects) > 1 else log.name)
        for log in logs
        for i, x in enumerate(log.objects, start=1)
    ]


def _run(x: Object, where: str) -> ParsedRun:
    run, completed, duration_s = ParsedRun(), number(x, "completed"), number(x, "duration")
    check_duration(where, duration_s)
    prompts = number(x, "num_prompts")
    failed = number(x, "failed")
    if math.isnan(failed):
        failed = prompts - completed if prompts > completed else 0.0
    run.notes += check_requests(where, completed, failed)
    run.add_note("kind", "serving")
    run.add_note("model", word(x, "model_id", "model"))
    run.add_note("engine", OWN_PROTOCOL.get(word(x, "backend", "endpoint_type"), ""))
    run.add_note("measured_date", _date(word(x, "date")))
    run.add_note("num_requests", completed)
    for side in ("input", "output"):
        run.add_note(f"{side}_tokens", number(x, f"total_{side}_tokens") / completed)
        if lengths := numbers(x, f"{side}_lens"):
            run.add_note(f"{side}_tokens_std", float(np.std(lengths)))
    for key in x:
        if (found := _KEY.fullmatch(key)) and (value := number(x, key)) > 0:
            suffix = {"mean": "", "median": "_p50"}.get(found[1], f"_{found[1]}")
            run.add_note(TIMES[found[2]] + suffix, value / 1e3)
    for key, column in RATES.items():
        run.add_note(column, number(x, key))
    latency_s = float(run.cells.get("latency_s", "nan"))
    if math.isnan(latency_s):  # not among the metrics that were asked for: of a request, first token and the rest
        latency_s = _sum_s(run)
    arrivals(run, number(x, "max_concurrency"), number(x, "request_rate"), latency_s * completed / duration_s)
    if run.cells["mode"] == "offline":  # there the schema's latency is the whole run's
        run.cells = {k: v for k, v in run.cells.items() if not k.startswith("latency_s")}
    burstiness = number(x, "burstiness")
    if run.cells["mode"] == "open" and burstiness != 1.0 and not math.isnan(burstiness):
        run.notes.append(f"arrivals had burstiness {burstiness:g}; predicted as Poisson")
    return run


def _sum_s(run: ParsedRun) -> float:
    ttft_s, tpot_s, tokens = (float(run.cells.get(c, "nan")) for c in ("ttft_s", "tpot_s", "output_tokens"))
    return ttft_s + tpot_s * (tokens - 1.0)


def _date(text: str) -> str:
    """20260217-155451 as 2026-02-17."""
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}" if re.match(r"\d{8}(?:-|$)", text) else text[:10]


READER = Reader(name="vllm bench serve, sglang.bench_serving", recognise=_recognise, read=_read)

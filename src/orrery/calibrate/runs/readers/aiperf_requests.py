"""AIPerf's ``profile_export.jsonl``: a line a request, ``{"metadata": …, "metrics": {name: {value, unit}}, "error"}``.

Means and percentiles are taken here, over requests that were served and were no warm-up. How requests arrived is not in
the file: what the user says counts, else a closed loop of as many as were in flight on average (Little's law).
"""

from collections.abc import Sequence

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log, Object, inner, number, word
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, arrivals, check_duration, check_requests
from orrery.calibrate.runs.readers.aiperf import TIMES, seconds

PERCENTILES = (50, 90, 95, 99)


def _recognise(log: Log) -> bool:
    return bool(log.objects) and all({"metadata", "metrics"} <= x.keys() for x in log.objects)


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log, user_settings) for log in logs]


def _run(log: Log, user_settings: UserSettings) -> ParsedRun:
    measured = [x for x in log.objects if word(inner(x, "metadata"), "benchmark_phase") != "warmup"]
    served = [x for x in measured if not x.get("error")]
    run = ParsedRun()
    run.notes += check_requests(log.name, len(served), len(measured) - len(served))
    run.add_note("kind", "serving")
    run.add_note("num_requests", float(len(served)))
    for side in ("input", "output"):
        lengths = _values(served, f"{side}_sequence_length", is_time=False, where=log.name)
        if not lengths.size:
            raise ScenarioError(f"{log.name}: requests do not say their {side}_sequence_length; is it AIPerf's export?")
        run.add_note(f"{side}_tokens", float(lengths.mean()))
        run.add_note(f"{side}_tokens_std", float(lengths.std()))
    for column, key in TIMES.items():
        if (values := _values(served, key, is_time=True, where=log.name)).size:
            run.add_note(column, float(values.mean()))
            for p in PERCENTILES:
                run.add_note(f"{column}_p{p}", float(np.percentile(values, p)))
    starts = np.array([number(inner(x, "metadata"), "request_start_ns") for x in served]) * 1e-9
    ends = np.array([number(inner(x, "metadata"), "request_end_ns") for x in served]) * 1e-9
    duration_s = float(ends.max() - starts.min())
    check_duration(log.name, duration_s)
    run.add_note("requests_per_s", len(served) / duration_s)
    run.add_note("output_tokens_per_s", len(served) * float(run.cells["output_tokens"]) / duration_s)
    if not any(user_settings.get(c) for c in ("concurrency", "request_rate_per_s")):
        together = max(1, round(float((ends - starts).sum()) / duration_s))
        arrivals(run, together, float("nan"))
        run.notes.append(f"the file does not say how requests arrived; taken as a closed loop of {together}")
    return run


def _values(served: Sequence[Object], key: str, *, is_time: bool, where: str) -> np.ndarray:
    found = [x for r in served if (x := inner(r, "metrics", key))]
    units = [seconds(word(x, "unit"), f"{where}, {key}") if is_time else 1.0 for x in found]
    values = np.array([number(x, "value") * unit for x, unit in zip(found, units, strict=True)], dtype=np.float64)
    return values[np.isfinite(values)]


READER = Reader(name="AIPerf, request by request", recognise=_recognise, read=_read)

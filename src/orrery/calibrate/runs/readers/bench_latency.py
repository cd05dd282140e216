"""`vllm bench latency --output-json`: one batch, start to end, repeated. Keys: ``avg_latency``, ``latencies`` and
``percentiles`` in seconds. Batch and lengths are not written down, so the user says them (vLLM's own defaults are 8
sequences, 32 prompt tokens and 128 answer tokens)."""

from collections.abc import Sequence

import numpy as np

from orrery.calibrate.runs.log import Log, number, numbers
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, check_duration, needed

FLAGS = {"batch_size": "--batch 8", "input_tokens": "--input-tokens 32", "output_tokens": "--output-tokens 128"}


def _recognise(log: Log) -> bool:
    return {"avg_latency", "latencies"} <= log.one.keys()


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log, user_settings) for log in logs]


def _run(log: Log, user_settings: UserSettings) -> ParsedRun:
    run, x = ParsedRun(), log.one
    average_s = number(x, "avg_latency")
    check_duration(log.name, average_s)
    needed(user_settings, log.name, FLAGS)
    run.add_note("kind", "serving")
    run.add_note("engine", "vllm")
    run.add_note("mode", "static")
    run.add_note("latency_s", average_s)
    if times := numbers(x, "latencies"):
        run.add_note("latency_s_p50", float(np.median(times)))
    return run


READER = Reader(name="vllm bench latency", recognise=_recognise, read=_read)

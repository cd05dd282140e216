"""`vllm bench forward`: passes of exact batches, ``[{case, requests: [{query_len, kv_len, …}], median_us, ranks}]``.

A pass of answers (one token a sequence, no drafts) is a step of a static batch, whose seconds are its ``tpot_s``; with
asynchronous scheduling the host, which is not in it, hides behind it. Other passes have no metric of the schema and are
left out.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log, Object, number
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, check_duration


def _recognise(log: Log) -> bool:
    return bool(log.objects) and all({"case", "median_us"} <= x.keys() for x in log.objects)


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    out: list[ParsedRun] = []
    for log in logs:
        runs = [run for x in log.objects if (run := _run(x, log.name))]
        if not runs:
            raise ScenarioError(
                f"{log.name}: has no pass of answers alone; measure one, such as --case decode=32*1@8192."
            )
        left = len(log.objects) - len(runs)
        if left:
            runs[0].notes.append(f"{left} passes with prompts or drafts were left out")
        out += runs
    return out


def _run(x: Object, where: str) -> ParsedRun | None:
    requests = [cast(Object, r) for r in cast(list[Any], x.get("requests") or []) if isinstance(r, dict)]
    if not requests or any(number(r, "query_len") != 1 or number(r, "num_draft_tokens") > 0 for r in requests):
        return None
    time_s = number(x, "median_us") * 1e-6
    check_duration(f"{where}, case {x['case']}", time_s)
    run = ParsedRun()
    context = float(np.mean([number(r, "kv_len") for r in requests]))
    for column, value in (
        ("kind", "serving"),
        ("engine", "vllm"),
        ("mode", "static"),
        ("batch_size", float(len(requests))),
        ("input_tokens", max(1.0, context - 1.0)),
        ("output_tokens", 2.0),
        ("tpot_s", time_s),
    ):
        run.add_note(column, value)
    return run


READER = Reader(name="vllm bench forward", recognise=_recognise, read=_read)

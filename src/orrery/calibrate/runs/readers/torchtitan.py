"""Logs of torchtitan: ``step: 10  loss: …  grad_norm: …  memory: 50.12GiB(63.3%)  tps: 5,762  tflops: …  mfu: …%``.

``tps`` is tokens a second and device; ``memory`` is the most that the allocator reserved since the last line. The
printed tflops and mfu are the same time once more, by torchtitan's own count, so they are not read. The first lines are
left out, the middle of the others stands for the run. Some old runs print ``wps`` in place of ``tps``.
"""

import re
from collections.abc import Sequence
from statistics import median

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, check_duration

GIB = 1024.0**3
WARM_UP = 2
"""First printed lines that are left out, where more than twice as many are printed."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STEP = re.compile(r"\bstep:\s*(\d{1,15})\b.*?\b(?:tps|wps):\s*(\d[\d,]{0,20})")
_MEMORY = re.compile(r"\bmemory:\s*(\d+(?:\.\d+)?)GiB")


def _recognise(log: Log) -> bool:
    return not log.objects and bool(_STEP.search(_COLOUR.sub("", log.text)))


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log) for log in logs]


def _run(log: Log) -> ParsedRun:
    text = _COLOUR.sub("", log.text)
    by_step: dict[int, float] = {}
    for step, rate in _STEP.findall(text):  # every rank may print; the first one stands
        by_step.setdefault(int(step), float(rate.replace(",", "")))
    rates = [rate for _, rate in sorted(by_step.items())]
    key_list = rates[WARM_UP:] if len(rates) > 2 * WARM_UP else rates
    rate = median(key_list)
    if not rate > 0:
        raise ScenarioError(f"{log.name}: prints a rate of {rate:g} tokens a second; nothing was trained.")
    check_duration(log.name, 1.0 / rate)
    run = ParsedRun()
    run.add_note("kind", "training")
    run.add_note("framework", "torchtitan")
    run.add_note("tokens_per_s_per_device", rate)
    if peaks := _MEMORY.findall(text):
        run.add_note("peak_memory_bytes", max(map(float, peaks)) * GIB)
    run.notes.append(f"middle of {len(key_list)} printed steps")
    return run


READER = Reader(name="a log of torchtitan", recognise=_recognise, read=_read)

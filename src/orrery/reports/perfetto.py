"""The steps of a run as Chrome trace events: a track a machine, and what waited and was held beside it.

Format: "Trace Event Format" (X complete events, C counters, M names; times in microseconds), which ui.perfetto.dev and
chrome://tracing open.
"""

from typing import Any

from orrery.serving.metrics.over_time import over_time
from orrery.serving.simulation.result import STEP, Simulated

WHOLE_RUN = 1_000_000
"""Process id of the tracks that are about all machines; they come last."""


def trace_events(simulated: Simulated) -> dict[str, Any]:
    """The object that a viewer opens. Steps are those of the logged window; counters of all machines span the run."""
    events = _names(simulated)
    column = {name: simulated.step_log[:, index].tolist() for index, name in enumerate(STEP)}
    for values in zip(*column.values(), strict=True):
        events += _step(dict(zip(STEP, values, strict=True)))
    return {"traceEvents": events + _counters(simulated), "displayTimeUnit": "ms"}


def _names(simulated: Simulated) -> list[dict[str, Any]]:
    """Names of the tracks, and their order."""
    at = STEP.index("machine")
    tracks = [(number, f"machine {number}") for number in sorted({int(m) for m in simulated.step_log[:, at]})]
    events: list[dict[str, Any]] = []
    for index, (pid, name) in enumerate([*tracks, (WHOLE_RUN, "all machines")]):
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        events.append({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": index}})
        if pid != WHOLE_RUN:
            events.append({"ph": "M", "pid": pid, "tid": 0, "name": "thread_name", "args": {"name": "steps"}})
    return events


def _step(step: dict[str, float]) -> list[dict[str, Any]]:
    """A slice named by what the step held, and the counters at its start."""
    prompts, decodes = int(step["prompts"]), int(step["decodes"])
    kind = "mixed" if prompts and decodes else "prefill" if prompts else "decode" if decodes else "other"
    start_us, pid = step["start_s"] * 1e6, int(step["machine"])
    counts = {name: int(step[name]) for name in ("prompt_tokens", "decode_tokens", "prompts", "decodes", "waiting")}
    return [
        {
            "ph": "X",
            "pid": pid,
            "tid": 0,
            "cat": kind,
            "name": _title(kind, counts),
            "ts": start_us,
            "dur": (step["end_s"] - step["start_s"]) * 1e6,
            "args": counts | {"kv_bytes": step["kv_bytes"]},
        },
        _counter(pid, "running", start_us, prompts + decodes),
        _counter(pid, "waiting", start_us, counts["waiting"]),
        _counter(pid, "kv_bytes", start_us, step["kv_bytes"]),
    ]


def _title(kind: str, counts: dict[str, int]) -> str:
    """``mixed: 512 prompt tokens, 12 decodes``."""
    parts = [f"{counts['prompt_tokens']} prompt tokens"] if counts["prompts"] else []
    parts += [f"{counts['decodes']} decodes"] if counts["decodes"] else []
    return f"{kind}: {', '.join(parts)}" if parts else kind


def _counters(simulated: Simulated) -> list[dict[str, Any]]:
    """The timeline of the whole run, all machines together."""
    over = over_time(simulated)
    events: list[dict[str, Any]] = []
    for name, column in (
        ("running", over.running_requests),
        ("waiting", over.waiting_requests),
        ("kv_use_frac", over.kv_use_frac),
        ("output_tokens_per_s", over.output_tokens_per_s),
        ("power_w", over.power_w),
    ):
        pairs = zip(over.start_s.tolist(), column.tolist(), strict=True)
        events += [_counter(WHOLE_RUN, name, start_s * 1e6, value) for start_s, value in pairs]
    return events


def _counter(pid: int, name: str, start_us: float, value: float) -> dict[str, Any]:
    return {"ph": "C", "pid": pid, "name": name, "ts": start_us, "args": {"value": value}}

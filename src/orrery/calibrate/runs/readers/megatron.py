"""Logs of Megatron-LM: a line an iteration with ``elapsed time per iteration (ms)`` and ``global batch size``.

Where the log also prints the arguments (``name ...... value`` lines), world size, degrees, lengths and precision come
from there, and the peak from ``[Rank 0] (after N iterations) memory (MB) | … max reserved: …``. The printed TFLOP/s are
the same time once more, by a count of operations of Megatron's own, so they are not read. The first iterations
compile and allocate and are left out; the middle of the others stands for the run.
"""

import re
from collections.abc import Sequence
from statistics import median

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, check_duration

STEP = "elapsed time per iteration (ms)"
MB = 1024.0**2
WARM_UP = 2
"""First printed iterations that are left out, where more than twice as many are printed."""

ARGUMENTS = {
    "world_size": "num_devices",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "data_parallel_size": "dp",
    "virtual_pipeline_model_parallel_size": "vp",
    "seq_length": "seq_len",
    "micro_batch_size": "micro_batch",
}
RECOMPUTE = {"full": "full", "selective": "selective", "none": "none"}

_ITERATION = re.compile(r"iteration\s+\d+/\s*\d+ \|(.*)")
_FIELD = re.compile(r"\s*([^:|]+?):\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(?:\||$)")
_ARGUMENT = re.compile(r"^(?:\S+:)?\s*(\w+) \.{2,} (.+?)\s*$", re.MULTILINE)
_RESERVED = re.compile(r"memory \(MB\).*?max reserved: (\d+(?:\.\d+)?)")


def _recognise(log: Log) -> bool:
    return STEP in log.text


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log) for log in logs]


def _run(log: Log) -> ParsedRun:
    lines = [dict(_FIELD.findall(found)) for found in _ITERATION.findall(log.text)]
    lines = [x for x in lines if STEP in x]
    if not lines:
        raise ScenarioError(f"{log.name}: no iteration is written whole; is the log cut off before the first one?")
    key_list = lines[WARM_UP:] if len(lines) > 2 * WARM_UP else lines
    step_s = median(float(x[STEP]) for x in key_list) / 1e3
    check_duration(log.name, step_s)
    batches = {x["global batch size"] for x in key_list if "global batch size" in x}
    if len(batches) > 1:
        raise ScenarioError(
            f"{log.name}: the global batch size changes ({', '.join(sorted(batches, key=float))}); "
            "keep the lines of one."
        )
    run, arguments = ParsedRun(), dict(_ARGUMENT.findall(log.text))
    run.add_note("kind", "training")
    run.add_note("framework", "megatron-lm")
    run.add_note("step_time_s", step_s)
    run.add_note("global_batch", next(iter(batches), arguments.get("global_batch_size", "")))
    for name, column in ARGUMENTS.items():
        if (value := arguments.get(name, "None")) != "None":
            run.add_note(column, value)
    if arguments:
        run.add_note("recompute", RECOMPUTE.get(arguments.get("recompute_granularity", "none").casefold(), ""))
        run.add_note("sharding", "zero1" if arguments.get("use_distributed_optimizer") == "True" else "")
        run.add_note("precision", _precision(arguments))
    if peaks := _RESERVED.findall(log.text):
        run.add_note("peak_memory_bytes", max(map(float, peaks)) * MB)
    run.notes.append(f"middle of {len(key_list)} iterations")
    return run


def _precision(arguments: dict[str, str]) -> str:
    if arguments.get("fp8", "None") not in ("None", "False"):
        return "fp8"
    return next((p for p in ("bf16", "fp16") if arguments.get(p) == "True"), "")


READER = Reader(name="a log of Megatron-LM", recognise=_recognise, read=_read)

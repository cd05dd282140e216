"""Kind of a file, by the real readers. Run as a program it works within bounds of time and memory: ``python -m
orrery.web.uploads.check FILE UPLOADS`` prints one JSON object.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OrreryError
from orrery.base.units import percent, si
from orrery.base.user_file import read_user_text
from orrery.base.user_text import json_value
from orrery.calibrate.runs.log import read_log
from orrery.catalog.agent_sessions import SHARED, read_sessions
from orrery.fleet.agents.turns import shape_of
from orrery.scenario.fields import SETTINGS
from orrery.scenario.jobs import AGENTS
from orrery.scenario.train_with.number_file import numbers_of
from orrery.web.address import query_of
from orrery.web.form_groups import LEFT_OUT
from orrery.web.named import grounded

MAX_CPU_S = 10
MAX_MEMORY_BYTES = 4 << 30
MAX_LETTERS = 2000
"""Maximum letters of a message: a reader may repeat what it got."""

Found = dict[str, Any]


def checked(file: Path, uploads: Path) -> Found:
    """``kind``, ``about`` (lines) and ``opens`` (where the file is used); ScenarioError where it is none of them."""
    return CHECKS[file.suffix](file, uploads)


def _json(file: Path, uploads: Path) -> Found:
    text = read_user_text(file, "config.json or trace")
    if text.lstrip()[:1] == "[":
        return _trace(file, uploads)
    if _is_result(file):
        return _runs(file)
    json_value(text, file, "write a config.json as model hubs publish it", is_unique=True)
    from orrery.models.read import read_model

    model = read_model(file)
    about = [
        f"{model.family}, {si(model.num_parameters)} parameters, {model.num_layers} layers, "
        f"{model.hidden_size:,} wide, weights in {model.weights_format}",
        *(message for _, message in model.published),
    ]
    return {"kind": "model", "about": about, "opens": f"/plan?{query_of({'model': f'upload:{file.name}'})}"}


def _is_result(file: Path) -> bool:
    """Whether a tool wrote it whose results of runs are read."""
    from orrery.calibrate.runs.reader import readers

    log = read_log(file)
    return bool(log.objects) and any(reader.recognise(log) for reader in readers())


def _trace(file: Path, _: Path) -> Found:
    from orrery.catalog.traces import load_trace, stats

    trace = load_trace(str(file))
    description = stats(trace)
    rate = (
        f", {description.request_rate_per_s:.3g} requests/s over {si(description.duration_s, 's')}"
        if description.duration_s
        else ""
    )
    about = [
        f"{description.num_requests:,} requests{rate}; {description.input_mean_tokens:,.0f} tokens in and "
        f"{description.output_mean_tokens:,.0f} out on average, {description.longest_tokens:,} the longest",
        *trace.notes,
    ]
    return {"kind": "trace", "about": about, "opens": f"/plan?{query_of({'trace': f'upload:{file.name}'})}"}


def _csv(file: Path, uploads: Path) -> Found:
    """Sessions of agents, measured runs or a trace, by the names of its columns; or numbers alone."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        header = {name.strip() for name in lines.readline(MAX_LETTERS).split(",")}
    if "session" in header and header & {*SHARED}:
        return _sessions(file)
    if "kind" in header:
        return _runs(file)
    try:
        return _trace(file, uploads)
    except OrreryError:
        if (rows := _numbers(file)) is None:
            raise
    lines, columns = rows.shape
    settings = [s.name for s in SETTINGS if "FILE" in s.metavar and s.name not in ("trace", *LEFT_OUT)]
    about = [f"{lines:,} x {columns:,} numbers, for {', '.join(settings)}"]
    name = {"worker_times": f"upload:{file.name}", "straggler_coding": "gradient"}
    return {"kind": "numbers", "about": about, "opens": f"/training?{query_of(name)}"}


def _sessions(file: Path) -> Found:
    from orrery.scenario.cache_size import BLOCK_TOKENS

    shape = shape_of(read_sessions(file, BLOCK_TOKENS))
    about = [
        f"{shape.num_turns:,} requests of {shape.num_sessions:,} sessions, prompts of {shape.input_p50_tokens:,.0f} "
        f"tokens (median); {percent(shape.shared_frac, 1)} of all input was there before"
    ]
    opens = f"/cache-size?{query_of({**AGENTS, 'sessions': f'upload:{file.name}'})}"
    return {"kind": "sessions", "about": about, "opens": opens}


def _runs(file: Path) -> Found:
    from orrery.calibrate.runs.read import reader_of

    about = [f"Measured runs ({reader_of(read_log(file)).name})"]
    return {"kind": "runs", "about": about, "opens": f"/diagnose?{query_of({'files': f'upload:{file.name}'})}"}


def _numbers(file: Path) -> NDArray[np.float64] | None:
    """Its lines of numbers; None where it holds anything else, names of columns too, which say that it is a trace."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        if not lines.read(1).isdecimal():
            return None
    try:
        return numbers_of(str(file), file.name, "numbers with commas between them", takes_zero=True)
    except OrreryError:
        return None


def _toml(file: Path, uploads: Path) -> Found:
    from orrery.scenario.file import read_settings

    settings = read_settings(file)
    return _device(file) if "facts" in settings else _scenario(file, settings, uploads)


def _device(file: Path) -> Found:
    from orrery.catalog.devices import get_device

    device = get_device(str(file))
    peaks = ", ".join(f"{name} {si(rate, 'FLOP/s')}" for name, rate in device.dense_flops_per_s.items())
    about = [
        f"{device.title} by {device.vendor}: {si(device.memory_capacity_bytes, 'bytes')}, "
        f"{si(device.memory_bandwidth_bytes_per_s, 'bytes_per_s')}, {peaks}"
    ]
    return {"kind": "device", "about": about, "opens": f"/plan?{query_of({'device': f'upload:{file.name}'})}"}


def _scenario(file: Path, settings: Mapping[str, Any], uploads: Path) -> Found:
    from orrery.scenario.fields_training import TRAINING_SETTINGS
    from orrery.scenario.schema import read_scenario

    written = read_scenario(settings, where=file.name).written()
    grounded(written, uploads)
    is_training = any(s.name in written for s in TRAINING_SETTINGS)
    is_plan = bool({"slo", "max_devices", "objective"} & written.keys()) or "," in str(written.get("device", ""))
    page = "/training" if is_training else "/plans" if is_plan else "/design"
    about = ", ".join(f"{key} = {value}" for key, value in written.items())
    return {"kind": "scenario", "about": [about or "no setting"], "opens": f"{page}?{query_of(written)}"}


CHECKS: dict[str, Callable[[Path, Path], Found]] = {".json": _json, ".jsonl": _trace, ".csv": _csv, ".toml": _toml}


def bounded() -> None:
    """Let this process take no more than its share of time and memory."""
    try:
        import resource
    except ImportError:  # a system without such bounds; the one that waits for us has its own
        return
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def main(arguments: list[str]) -> int:
    """Print what was found, or ``{"mistake": …}``."""
    bounded()
    file, uploads = Path(arguments[0]), Path(arguments[1])
    try:
        found = checked(file, uploads)
        found["about"] = [_short(line, file) for line in cast("list[str]", found["about"])[:12]]
    except OrreryError as error:
        found = {"error": _short(str(error), file)}
    except MemoryError:
        found = {"error": f"{file.name}: takes more memory to read than a file of its kind may."}
    print(json.dumps(found))
    return 0


def _short(words: str, file: Path) -> str:
    """Without the folder that the file happens to lie in."""
    return words.replace(f"{file.parent}/", "")[:MAX_LETTERS]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``orrery calibrate device --suite microbenchmarks``: what microbenchmark papers report, of the machine at hand."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from time import monotonic
from typing import Any, cast

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.files import write_atomically
from orrery.base.user_file import user_path
from orrery.calibrate.device.file import refuse_table
from orrery.calibrate.micro import worker
from orrery.calibrate.micro.answer import MicroAnswer, MicroRow, known_device, numbers_of, rows_of
from orrery.calibrate.micro.cuda.driver import CudaError, Driver, driver_library
from orrery.calibrate.micro.groups import group_names
from orrery.calibrate.micro.reading import Failed, Reading
from orrery.evidence.tables import read_table, table_text

LIMIT_S = 60.0
"""A group that takes longer is ended; what it had measured by then counts."""

COLUMNS = ("device", *(field.name for field in fields(MicroRow)))
Progress = Callable[[int, int], None]


@typed
def measure_microbenchmarks(
    *,
    backend: str = "",
    only: Sequence[str] = (),
    table: Path | str = "",
    replace_file: bool = False,
    is_resumed: bool = False,
    limit_s: float = LIMIT_S,
    on_progress: Progress = lambda done, total: None,
) -> MicroAnswer:
    """Measure latencies, rates and overheads of this machine, each in a process of its group.

    ``backend`` is "cuda" or "cuda:N" (a GPU by NVIDIA's driver) or "numpy" (the processor); blank: the GPU where there
    is one. ``only`` names groups. ``table`` is a CSV file, written after every group; with ``is_resumed`` the groups
    that stand in it without an error are not measured again. Raises ScenarioError for what cannot be meant.
    """
    if not limit_s > 0:
        raise ScenarioError(f"limit_s: got {limit_s:g}; write seconds above 0.")
    began, (platform, index) = monotonic(), _platform(backend)
    groups, path = _groups(platform, only), user_path(table) if table else None
    if path and not is_resumed:
        refuse_table(path, is_replaced=replace_file)
    if is_resumed and not path:
        raise ScenarioError("--resume goes on with a table: write --table FILE.csv too.")
    title, earlier = _earlier(path) if is_resumed and path else ("", {})
    rows: dict[str, tuple[MicroRow, ...]] = dict(earlier)
    for done, group in enumerate(groups):
        on_progress(done, len(groups))
        if _is_whole(earlier.get(group, ())):
            continue
        here, results = _measured(platform, group, index, limit_s)
        if title and here and here != title:
            raise ScenarioError(f"{path}: was measured on {title}, this is {here}; write another --table.")
        title = title or here
        rows[group] = rows_of(group, results, numbers_of(known_device(title) if title else None))
        if path:
            write_atomically(path, table_text(_lines(title, rows), COLUMNS))
    on_progress(len(groups), len(groups))
    known = known_device(title) if title else None
    return MicroAnswer(
        device=title or "this machine",
        known=known.name if known else "",
        rows=tuple(row for group in rows.values() for row in group),
        took_s=monotonic() - began,
        notes=(f"Written to {path}.",) if path else (),
    )


def _platform(backend: str) -> tuple[str, int]:
    """The platform and the number of its device; "pytorch:cuda:1" is the GPU that "cuda:1" is."""
    name, _, number = backend.removeprefix("pytorch").lstrip(":").partition(":")
    if backend in ("numpy", "pytorch:cpu") or (backend == "" and not _num_gpus()):
        return "cpu", 0
    if (name != "cuda" and backend not in ("", "pytorch")) or not (number or "0").isdigit():
        raise UnknownName("backend of microbenchmarks", backend, ("numpy", "cuda", "cuda:1"))
    if int(number or 0) >= (seen := _num_gpus()):
        raise ScenarioError(f"--backend {backend}: NVIDIA's driver shows {seen} GPUs here; write numpy instead.")
    return "cuda", int(number or 0)


def _num_gpus() -> int:
    """GPUs that NVIDIA's driver shows."""
    try:
        driver, count = Driver(driver_library()), ctypes.c_int()
        driver.call("cuDeviceGetCount", ctypes.byref(count))
    except CudaError:
        return 0
    return count.value


def _groups(platform: str, only: Sequence[str]) -> tuple[str, ...]:
    known = group_names(platform)
    for group in only:
        if group not in known:
            raise UnknownName("group of microbenchmarks", group, known)
    return tuple(group for group in known if not only or group in only)


def _measured(platform: str, group: str, index: int, limit_s: float) -> tuple[str, list[Reading | Failed]]:
    """The device's own name, and the results of a group."""
    command = [sys.executable, "-m", worker.__name__, platform, group, str(index)]
    paths = os.pathsep.join(place for place in sys.path if place)
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=limit_s, check=False, env={**os.environ, "PYTHONPATH": paths}
        )
        output, ended = done.stdout, _ending(done)
    except subprocess.TimeoutExpired as late:
        output, ended = late.stdout or b"", f"took longer than {limit_s:g} s"
    title, results = _read(output.decode(errors="replace").splitlines())
    if ended:
        results.append(Failed(name=group, error=f"the rest of the group: {ended}"))
    return title, results


def _ending(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Why a process ended early; blank where it did not."""
    if not done.returncode:
        return ""
    last = (done.stderr.decode(errors="replace").strip().splitlines() or ["without a word"])[-1]
    return f"its process ended with {done.returncode}: {last}"


def _read(lines: Sequence[str]) -> tuple[str, list[Reading | Failed]]:
    title = ""
    results: list[Reading | Failed] = []
    for line in lines:
        words = _object(line)
        title = words.get("device", title)
        if "reading" in words:
            results.append(Reading(**words["reading"]))
        if "failed" in words:
            results.append(Failed(**words["failed"]))
    return title, results


def _object(line: str) -> dict[str, Any]:
    """The object of a line; empty for a library's own print, and for a line that was cut at the limit."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _lines(title: str, rows: dict[str, tuple[MicroRow, ...]]) -> list[dict[str, Any]]:
    return [
        {"device": title, **{name: getattr(row, name) for name in row.__slots__}}
        for group in rows.values()
        for row in group
    ]


def _is_whole(rows: Sequence[MicroRow]) -> bool:
    return bool(rows) and not any(row.error for row in rows)


def _earlier(path: Path) -> tuple[str, dict[str, tuple[MicroRow, ...]]]:
    """The device and the rows of a table that is there already."""
    if not path.exists():
        return "", {}
    table = read_table(path)
    if missing := [column for column in COLUMNS if column not in table.columns]:
        raise ScenarioError(f"{path}: not a table of microbenchmarks: it lacks {', '.join(missing)}.")
    rows: dict[str, tuple[MicroRow, ...]] = {}
    numbers = {name: table.numbers(name) for name in ("value", "spread_frac", "known_value", "known_ratio")}
    for at in range(len(table)):
        cells: dict[str, Any] = {name: table.columns[name][at] for name in COLUMNS if name != "device"}
        cells |= {n: None if (v := float(values[at])) != v else v for n, values in numbers.items()}
        row = MicroRow(**cells)
        rows[row.group] = (*rows.get(row.group, ()), row)
    return next(iter(table.columns["device"]), ""), rows

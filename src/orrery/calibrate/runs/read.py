"""Logs of any known tool as one measured table, what they leave blank filled in from what the user says."""

from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_file import is_user_file, user_path
from orrery.calibrate.runs.log import Log, read_log
from orrery.calibrate.runs.reader import ParsedRun, Reader, readers
from orrery.calibrate.runs.sanity import check_run
from orrery.calibrate.runs.user_settings import checked, fill
from orrery.evidence.tables import Table

TOOL, NOTE, RUN = "tool", "run_note", "run"
"""Columns beside those of the schema: who measured, what to know about the run, and in which file it stands."""


def read_runs(paths: Sequence[Path | str], user_settings: Mapping[str, str] | None = None) -> Table:
    """One row a run, in the columns of a measured table (docs/check-your-own-runs.md), SI units.

    ``said`` are settings of ``orrery.calibrate.runs.settings`` (``device``, ``tp``, ``weights``, …). ScenarioError
    says what is wrong with a file, or where a file and ``said`` contradict each other.
    """
    cells = checked(user_settings or {})
    if not paths:
        raise ScenarioError("No file was given; write the result files, such as runs/*.json.")
    by_reader: dict[str, tuple[Reader, list[Log]]] = {}
    for path in dict.fromkeys(p for given in paths for p in _files(str(given))):
        log = read_log(path)
        reader = reader_of(log)
        by_reader.setdefault(reader.name, (reader, []))[1].append(log)
    found: list[ParsedRun] = []
    for reader, logs in by_reader.values():
        files = logs[0].name if len(logs) == 1 else f"{len(logs)} files, {logs[0].name} the first"
        for number, run in enumerate(reader.read(logs, cells), start=1):
            where = f"{files}, run {number} ({reader.name})"
            run.cells |= {TOOL: reader.name, RUN: where}
            fill(run, cells, where)
            check_run(run.cells, where)
            found.append(run)
    return _table(found)


def _files(given: str) -> list[Path]:
    """A file, or all that a pattern names: not every shell spells them out."""
    if not any(sign in given for sign in "*?") or is_user_file(Path(given)):
        return [user_path(given)]
    if not (found := sorted(glob(given))):
        raise ScenarioError(f"No file is called {given!r}.")
    return list(map(Path, found))


def reader_of(log: Log) -> Reader:
    """The reader of the tool that wrote a file; ScenarioError where none is known."""
    for reader in readers():
        if reader.recognise(log):
            return reader
    if log.broken:
        raise ScenarioError(
            f"{log.name}: begins like JSON but is not whole: {log.broken}. Was it cut off while written?"
        )
    key_list = f" Its keys: {', '.join(list(log.objects[0])[:8])}." if log.objects else ""
    raise ScenarioError(f"{log.name}: is of no tool that is known ({', '.join(r.name for r in readers())}).{key_list}")


def _table(found: Sequence[ParsedRun]) -> Table:
    for run in found:
        if run.notes:
            run.cells[NOTE] = "; ".join(run.notes)
    columns = dict.fromkeys(c for run in found for c in run.cells)
    return Table("runs", {c: [run.cells.get(c, "") for run in found] for c in columns})

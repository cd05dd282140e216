"""The process of one run: it reads what was asked from the file of runs, and writes there what came out."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import OrreryError
from orrery.web.named import grounded
from orrery.web.work.run import Run
from orrery.web.work.run_progress import RunProgress
from orrery.web.work.store import Store

NICENESS = 10
"""Runs come after short answers, and those after pages."""

MAX_RESULT_BYTES = 200_000_000
"""Maximum size (bytes) of the parts of one result together, before they are packed."""


def work_on(path: Path, uploads: Path, id: str, counts: Any) -> None:
    """The life of the process; ``counts`` is memory that the server reads."""
    stand_apart()
    store = Store(path)
    try:
        run = store.get(id)
        if run is not None:
            _end(store, run, uploads, counts)
    finally:
        store.close()


def _end(store: Store, run: Run, uploads: Path, counts: Any) -> None:
    progress = RunProgress(store, run.id)
    try:
        parts = _parts(store, run, uploads, progress, counts)
        size = sum(map(len, parts.values()))
        if size > MAX_RESULT_BYTES:
            store.end(
                run.id, "failed", f"The result has {size:,} bytes, more than is kept; ask for fewer runs at once."
            )
        else:
            progress.phase("keeping")
            store.end(run.id, "done", "", parts)
    except OrreryError as error:
        store.end(run.id, "failed", str(error))
    except MemoryError:
        store.end(run.id, "failed", "There is not enough memory; ask for fewer requests, or fewer runs at once.")
    except Exception as error:
        store.end(run.id, "failed", f"{type(error).__name__}: {error} (internal error).")
        raise


def _parts(store: Store, run: Run, uploads: Path, progress: RunProgress, counts: Any) -> Mapping[str, bytes]:
    """Parts of the result, by name."""
    from orrery.scenario.schema import read_scenario
    from orrery.scenario.simulate import NUM_COUNTS
    from orrery.web.work.kinds import KINDS, Job

    inputs = read_scenario(grounded(run.settings, uploads))
    before = store.part(str(run.options["of"]), "answer") if "of" in run.options else None
    job = Job(
        options=run.options,
        progress=progress,
        counts=np.frombuffer(counts, dtype=np.int64)[:NUM_COUNTS],
        before=json.loads(before) if before else None,
    )
    return KINDS[run.kind].run(inputs, job)


def stand_apart() -> None:
    """A group of its own, with all that it starts, so that it can be ended as a whole; it ends with the server, however
    that ends, even while it computes."""
    if sys.platform == "win32":
        return
    import fcntl
    from multiprocessing import parent_process

    os.setsid()
    os.nice(NICENESS)
    parent = parent_process()
    if parent is not None:  # when nobody holds the other end of this pipe any more, SIGIO comes, and ends the group
        line = parent.sentinel
        fcntl.fcntl(line, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)

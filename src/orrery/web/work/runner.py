"""Runner that starts runs and ends them: one thread of one server, however many look at the same file.

All that is decided stands in the file: what is queued there is started, and the process of what runs there no more is
ended. So a page may cancel a run by a word in the file, and a second server on the same folder does no harm.
"""

import os
import signal
import sqlite3
import sys
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from orrery.web.work.store import Store

BUSY_S, IDLE_S = 0.25, 2.0
"""How often the file is looked at, while something runs and while nothing does."""

MAX_RUN_S = 4 * 3600.0
"""A run that takes longer is ended."""

NUM_SHARED = 64
"""Numbers of memory that a run shares with the server; the loop counts in the first few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """A run and its process."""

    id: str
    process: BaseProcess
    counts: Any
    started_s: float = field(default_factory=time.monotonic)

    def end(self) -> None:
        """End the process and all that it has started."""
        pid = self.process.pid
        if sys.platform != "win32" and pid is not None and self.process.is_alive():
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:  # it has no group of its own yet, and no children
                self.process.kill()
        else:
            self.process.kill()
        self.process.join()


class Runner:
    """Between ``start`` and ``stop``, runs go on; ``wake`` after the file was changed."""

    def __init__(self, path: Path, uploads: Path, most_running: int) -> None:
        self._path, self._uploads, self._most_running = path, uploads, most_running
        self._going: dict[str, ActiveRun] = {}
        self._bell: tuple[Connection, Connection] = get_context("spawn").Pipe(duplex=False)
        self._ringing, self._is_stopping = Lock(), False
        self._thread = Thread(target=self._work, name="orrery-runs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the file now."""
        with self._ringing:
            if not self._bell[1].closed:
                self._bell[1].send_bytes(b"!")

    def stop(self) -> None:
        """End every run."""
        self._is_stopping = True
        self.wake()
        self._thread.join()

    def _work(self) -> None:
        store = Store(self._path)
        claim = sqlite3.connect(self._path.with_suffix(".claim"), 0.0, isolation_level=None)
        try:
            is_ours = False
            while not self._is_stopping:
                is_ours = is_ours or self._is_claimed(claim, store)
                if is_ours:
                    self._look(store)
                ends = [going.process.sentinel for going in self._going.values()]
                wait([self._bell[0], *ends], BUSY_S if ends else IDLE_S)
                while self._bell[0].poll():
                    self._bell[0].recv_bytes()
            for going in self._going.values():
                going.end()
            if is_ours:
                store.interrupt()
        finally:
            store.close()
            claim.close()
            with self._ringing:
                for end in self._bell:
                    end.close()

    def _is_claimed(self, claim: sqlite3.Connection, store: Store) -> bool:
        """Whether the runs of the file are this server's to start and to end. Those that seem to run lost their own."""
        try:
            claim.execute("BEGIN EXCLUSIVE")  # held until the process ends, however it ends
        except sqlite3.OperationalError:
            return False
        store.interrupt()
        return True

    def _look(self, store: Store) -> None:
        for going in tuple(self._going.values()):
            self._look_after(going, store)
        while len(self._going) < self._most_running and (run := store.next_queued()) is not None:
            if store.start(run.id):
                self._going[run.id] = self._begun(run.id)

    def _look_after(self, going: ActiveRun, store: Store) -> None:
        """Note how far it is, or that it has ended, or end it."""
        run = store.get(going.id)
        is_wanted = run is not None and run.state == "running"
        spent_s = time.monotonic() - going.started_s
        if is_wanted and going.process.is_alive() and spent_s < MAX_RUN_S:
            store.count(going.id, "simulating", self._served(going))
            return
        code = going.process.exitcode
        going.end()
        del self._going[going.id]
        if is_wanted:
            store.end(going.id, "failed", _why(code))

    def _served(self, going: ActiveRun) -> int:
        import numpy as np

        from orrery.scenario.simulate import served

        return served(np.frombuffer(going.counts, dtype=np.int64))

    def _begun(self, id: str) -> ActiveRun:
        from orrery.web.work.child import work_on

        context = get_context("spawn")
        counts = context.RawArray("q", NUM_SHARED)
        process = context.Process(target=work_on, args=(self._path, self._uploads, id, counts), name=f"orrery-run-{id}")
        process.start()
        return ActiveRun(id=id, process=process, counts=counts)


def _why(code: int | None) -> str:
    """Why a run has failed that did not say so itself."""
    if code is None:
        return f"It took longer than {MAX_RUN_S / 3600:g} hours; ask for less at once."
    exit_reason = f" (by signal {-code}: is there enough memory?)" if code < 0 else f" (with code {code})"
    return f"Its process ended early{exit_reason}."

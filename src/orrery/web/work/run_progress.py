"""Progress of a run's process, written into the file of runs now and then."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from orrery.web.work.store import Store

EVERY_S = 0.2
"""Between two notes of one phase."""

PATIENCE_S = 3.0
"""Loading the compiled simulator takes less; only compiling it takes longer."""


class RunProgress:
    """The progress of one run."""

    def __init__(self, store: Store, id: str) -> None:
        self._store, self._id = store, id
        self._phase, self._message, self._last_s = "starting", "", 0.0

    def phase(self, name: str, total: int = 0) -> None:
        """Begin a phase of ``total`` parts."""
        self._phase = name
        self._tell(0, total)

    def step(self, phase: str, done: int, total: int) -> None:
        """Report ``done`` of a phase; written at its start, at its end, and at most every ``EVERY_S`` between."""
        is_new, self._phase = phase != self._phase, phase
        if is_new or done >= total or time.monotonic() - self._last_s >= EVERY_S:
            self._tell(done, total)

    def add_message(self, message: str) -> None:
        """Add the latest message; it goes with the next step."""
        self._message = message

    @contextmanager
    def loading(self) -> Generator[None]:
        """While the simulator is loaded; or, where that takes long, compiled."""
        self.phase("loading")
        timer = threading.Timer(PATIENCE_S, self.phase, ("compiling",))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _tell(self, done: int, total: int) -> None:
        self._last_s = time.monotonic()
        self._store.tell(self._id, self._phase, done, total, self._message)

"""The clock of a served run: the wall, or whatever a test puts in its place."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and a way to let them pass."""

    def now_s(self) -> float:
        """The time."""
        ...

    def wait_until(self, moment_s: float) -> None:
        """Return at that time, at once where it has passed."""
        ...


SPIN_S = 1e-3
"""A sleep may end this much too late; the rest of a wait is spent looking at the clock."""


class WallClock:
    """Real time."""

    def now_s(self) -> float:
        """The time since some moment in the past."""
        return time.perf_counter()

    def wait_until(self, moment_s: float) -> None:
        """Sleep through most of the wait, then watch the clock, so that the start is sharp."""
        time.sleep(max(0.0, moment_s - time.perf_counter() - SPIN_S))
        while time.perf_counter() < moment_s:
            pass

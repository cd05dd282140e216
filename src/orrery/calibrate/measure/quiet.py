"""Measuring in quiet moments: a shared machine's speed jumps within seconds when a neighbour takes its turn.

A small product that never changes, the canary, is timed just before and after each measurement. The machine counts as
quiet while the canary takes no more than ``QUIET_RATIO`` times the least that it ever took here. A measurement outside
a quiet moment is taken again, for at most ``patience_s``; then the quietest try counts, and its slowness is said.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from orrery.calibrate.measure.backends.backend import Backend, Unsupported, time_prepared
from orrery.calibrate.measure.clock import Timed
from orrery.calibrate.measure.probes import Probe
from orrery.calibrate.measure.watch import Canary

QUIET_RATIO = 1.10
"""Boost clocks alone move a canary by a few per cent; a neighbour on the same core by half and more."""

LISTEN_S, LISTENS = 1.5, 40
"""Length and number of the first listening periods."""

PATIENCE_S = 2.0
"""How long a measurement waits for a quiet moment unless told otherwise."""

SAMPLES = 3
PAUSE_S = 0.02


@dataclass(slots=True)
class QuietSampler:
    """Takes measurements, each in a quiet moment if there is one."""

    canary: Canary
    patience_s: float = PATIENCE_S
    read_clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    least_s: float = field(init=False, default=float("inf"))  # of the canary, ever
    slowness: list[float] = field(default_factory=list[float])  # of every measurement that was kept

    def __post_init__(self) -> None:
        for _ in range(LISTENS):
            self.look()
            self.pause(LISTEN_S / LISTENS)

    def look(self) -> float:
        """How many times its least the canary takes now."""
        took = min(self._once() for _ in range(SAMPLES))
        self.least_s = min(self.least_s, took)
        return took / self.least_s

    def take(self, measure: Callable[[], Timed]) -> tuple[Timed, float]:
        """A measurement, and how much slower than quiet the machine was meanwhile (1 = quiet)."""
        began, best = self.read_clock(), (None, float("inf"))
        while True:
            before = self.look()
            if before > QUIET_RATIO and self.read_clock() - began < self.patience_s:
                self.pause(PAUSE_S)
                continue
            timed = measure()
            slow = max(before, self.look())
            if slow < best[1]:
                best = timed, slow
            if best[0] is not None and (best[1] <= QUIET_RATIO or self.read_clock() - began >= self.patience_s):
                self.slowness.append(best[1])
                return best[0], best[1]

    def time(self, backend: Backend, probe: Probe, *, budget_s: float) -> tuple[Timed, float] | Unsupported:
        """How long ``probe`` takes on ``backend``, measured as ``take`` measures; or why it cannot be."""
        prepared = backend.prepare(probe)
        if isinstance(prepared, Unsupported):
            return prepared
        return self.take(partial(time_prepared, backend, prepared, budget_s=budget_s))

    def _once(self) -> float:
        self.canary.synchronise()
        before = self.canary.read_clock()
        self.canary.compute()
        self.canary.synchronise()
        return self.canary.read_clock() - before

"""Politeness: at most one request in an interval, on a clock that tests may hold in their hands."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock that can also wait."""

    now_s: Callable[[], float] = time.monotonic
    wait_s: Callable[[float], None] = time.sleep


@dataclass(slots=True, kw_only=True)
class RateLimiter:
    """Requests at least ``interval_s`` apart."""

    interval_s: float
    clock: Clock = field(default_factory=Clock)
    _next_s: float = 0.0

    def wait(self) -> None:
        """Return when the next request may go out."""
        left_s = self._next_s - self.clock.now_s()
        if left_s > 0.0:
            self.clock.wait_s(left_s)
        self._next_s = self.clock.now_s() + self.interval_s

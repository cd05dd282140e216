"""Lateness of tokens: the deadline of each against the moment at which it was handed to the network."""

import sys

from orrery.emulator.histogram import LAG_S, Histogram

MAX_S = 0.010
"""Largest 99th percentile of the lag; a server that is later does not keep pace."""

TICK_S = 0.1
WINDOW_S = 2.0
QUIET_S = 10.0
"""Between two warnings."""


class Lag:
    """All of it as a histogram, and what of it was counted at the last look."""

    def __init__(self) -> None:
        self.histogram, self.loop = Histogram(LAG_S), Histogram(LAG_S)  # of tokens, and of a timer beside them
        self._seen: list[float] = [0.0] * len(self.histogram.cumulated)
        self._said_s = -QUIET_S

    def add(self, lag_s: float) -> None:
        """Tokens left so late."""
        self.histogram.add(lag_s if lag_s > 0.0 else 0.0)

    def watch(self, now_s: float) -> None:
        """Warn where those that left since the last look were late."""
        found = [count for _, count in self.histogram.cumulated]
        fresh = [count - seen for count, seen in zip(found, self._seen, strict=True)]
        self._seen = found
        late_s = max((end for end, count in zip(LAG_S, fresh, strict=False) if count < 0.99 * fresh[-1]), default=0.0)
        if late_s >= MAX_S and now_s - self._said_s >= QUIET_S:
            self._said_s = now_s
            print(
                f"orrery: cannot keep pace: 1 of 100 tokens leaves more than {late_s * 1e3:.0f} ms late. Use a lower "
                "--speed or fewer streams, or trust times only to so much.",
                file=sys.stderr,
                flush=True,
            )

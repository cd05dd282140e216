"""How late tokens leave: the deadline of each against the moment at which it was handed to the network."""

import sys
from collections import deque

from orrery.emulator.histogram import LAG_S, Histogram

MOST_S = 0.010
"""Of the 99th percentile; a server that is later does not keep pace."""

WINDOW_S = 2.0
QUIET_S = 10.0
"""Between two warnings."""

MOST_KEPT = 50_000


class Lag:
    """All of it as a histogram, and that of the last seconds."""

    def __init__(self) -> None:
        self.histogram = Histogram(LAG_S)
        self._recent: deque[float] = deque(maxlen=MOST_KEPT)
        self._said_s = -QUIET_S

    def add(self, lag_s: float, num_deliveries: int = 1) -> None:
        """Some tokens left so late."""
        lag_s = max(0.0, lag_s)
        for _ in range(num_deliveries):
            self.histogram.add(lag_s)
            self._recent.append(lag_s)

    def watch(self, now_s: float) -> None:
        """Warn where the last seconds were late, and forget them."""
        recent = sorted(self._recent)
        self._recent.clear()
        late_s = recent[min(len(recent) - 1, int(0.99 * len(recent)))] if recent else 0.0
        if late_s > MOST_S and now_s - self._said_s >= QUIET_S:
            self._said_s = now_s
            print(
                f"orrery: cannot keep pace: 1 of 100 tokens leaves {late_s * 1e3:.0f} ms late or more. Use a lower "
                "--speed or fewer streams, or trust times only to so much.", file=sys.stderr, flush=True,
            )  # fmt: skip

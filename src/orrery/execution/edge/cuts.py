"""Every place to cut a network between a device and a server, and which of them answers first at which link rate.

    delay of cut i = head_s[i] + (sent_bytes[i] / rate + way_s if anything is sent) + tail_s[i]

With x = 1 / rate each cut is a line in x, so the best cut over all rates is the lower envelope of lines: its corners
are exact, no rate is tried. Neurosurgeon (Kang et al., ASPLOS 2017) picks such a cut for each rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One place: times of both sides, and what crosses."""

    name: str
    head_s: float
    tail_s: float
    sent_bytes: float

    def delay_s(self, link_bytes_per_s: float, way_s: float) -> float:
        """From input to answer; a cut that sends nothing waits for no link."""
        way = self.sent_bytes / link_bytes_per_s + way_s if self.sent_bytes else 0.0
        return self.head_s + way + self.tail_s

    def energy_j(self, link_bytes_per_s: float, way_s: float, busy_w: float, sending_w: float, idle_w: float) -> float:
        """What the device draws from input to answer."""
        if not self.sent_bytes:
            return busy_w * self.head_s
        sending_s = self.sent_bytes / link_bytes_per_s
        return busy_w * self.head_s + sending_w * sending_s + idle_w * (way_s + self.tail_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRange:
    """The cut that answers first between two link rates."""

    index: int
    from_bytes_per_s: float
    to_bytes_per_s: float  # inf: on any faster link


def best_ranges(cuts: Sequence[Cut], way_s: float) -> tuple[BestRange, ...]:
    """Ranges of link rates in falling order of rate, from an endless one to none; of equals the one that sends less."""
    fixed = [c.head_s + c.tail_s + (way_s if c.sent_bytes else 0.0) for c in cuts]
    now = min(range(len(cuts)), key=lambda i: (fixed[i], cuts[i].sent_bytes))
    x, found = 0.0, list[BestRange]()
    while True:
        meets = [
            (max((fixed[i] - fixed[now]) / (cuts[now].sent_bytes - c.sent_bytes), x), c.sent_bytes, i)
            for i, c in enumerate(cuts)
            if c.sent_bytes < cuts[now].sent_bytes
        ]
        upper = inf if x == 0.0 else 1.0 / x
        if not meets:
            return (*found, BestRange(index=now, from_bytes_per_s=0.0, to_bytes_per_s=upper))
        x, _, following = min(meets)
        found.append(BestRange(index=now, from_bytes_per_s=1.0 / x if x else inf, to_bytes_per_s=upper))
        now = following

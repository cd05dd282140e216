"""Every place to cut a network between a device and a server, and which of them answers first at which link rate.

    delay of cut i = head_s[i] + passed_frac[i] x ((sent_bytes[i] / rate + way_s if anything is sent) + tail_s[i])

It is the mean over inputs, of which a filter behind the head passes a share; without one all pass. With x = 1 / rate
each cut is a line in x, so the best cut over all rates is the lower envelope of lines: its corners are exact, no rate
is tried. Neurosurgeon (Kang et al., ASPLOS 2017) picks such a cut for each rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One place: times of both sides, and what crosses for an input that passes."""

    name: str
    head_s: float
    tail_s: float
    sent_bytes: float
    passed_frac: float = 1.0  # of inputs, which are sent and finished

    @property
    def mean_bytes(self) -> float:
        """Mean bytes sent for one input, those included that exit early."""
        return self.passed_frac * self.sent_bytes

    def fixed_s(self, way_s: float) -> float:
        """The delay over a link of endless rate; a cut that sends nothing waits for no link."""
        return self.head_s + self.passed_frac * (self.tail_s + (way_s if self.sent_bytes else 0.0))

    def delay_s(self, link_bytes_per_s: float, way_s: float) -> float:
        """From input to answer."""
        return self.fixed_s(way_s) + self.mean_bytes / link_bytes_per_s

    def energy_j(self, link_bytes_per_s: float, way_s: float, busy_w: float, sending_w: float, idle_w: float) -> float:
        """Energy of the device from input to answer."""
        if not self.sent_bytes:
            return busy_w * self.head_s
        sending_s = self.sent_bytes / link_bytes_per_s
        return busy_w * self.head_s + self.passed_frac * (sending_w * sending_s + idle_w * (way_s + self.tail_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRange:
    """The cut that answers first between two link rates."""

    index: int
    from_bytes_per_s: float
    to_bytes_per_s: float  # inf: on any faster link


def best_ranges(cuts: Sequence[Cut], way_s: float) -> tuple[BestRange, ...]:
    """Ranges of link rates in falling order of rate, from an endless one to none; of equals the one that sends less."""
    fixed = [c.fixed_s(way_s) for c in cuts]
    now = min(range(len(cuts)), key=lambda i: (fixed[i], cuts[i].mean_bytes))
    x, found = 0.0, list[BestRange]()
    while True:
        meets = [
            (max((fixed[i] - fixed[now]) / (cuts[now].mean_bytes - c.mean_bytes), x), c.mean_bytes, i)
            for i, c in enumerate(cuts)
            if c.mean_bytes < cuts[now].mean_bytes
        ]
        upper = inf if x == 0.0 else 1.0 / x
        if not meets:
            return (*found, BestRange(index=now, from_bytes_per_s=0.0, to_bytes_per_s=upper))
        x, _, following = min(meets)
        found.append(BestRange(index=now, from_bytes_per_s=1.0 / x if x else inf, to_bytes_per_s=upper))
        now = following

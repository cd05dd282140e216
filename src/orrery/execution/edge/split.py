"""A network cut between a device and an edge server, with a radio link between the two.

    delay  = head / device rate + bytes / radio rate + way + tail / server rate
    energy = busy W x head time + sending W x sending time + idle W x waiting for the way and the server

All on the device sends nothing, all on the server computes nothing there. A bottleneck is a cut whose output is small:
Matsubara et al., BottleFit (arXiv 2201.02693) and before.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A device that runs the head: its rate in practice, and what it draws."""

    flops_per_s: float
    busy_w: float
    sending_w: float
    idle_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Radio:
    """The way to the server, one direction."""

    each_way_bytes_per_s: float
    way_s: float  # of a message of no bytes, there and back


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPoint:
    """What one input costs on each side, and what crosses."""

    head_flops: float
    sent_bytes: float
    tail_flops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLatency:
    """One input from capture to answer."""

    head_s: float
    sending_s: float
    waiting_s: float  # for the way and the server
    energy_j: float  # of the device

    @property
    def delay_s(self) -> float:
        """From capture to answer."""
        return self.head_s + self.sending_s + self.waiting_s


def trip(cut: SplitPoint, board: Board, radio: Radio, server_flops_per_s: float) -> EdgeLatency:
    """Through head, radio and tail, one after the other."""
    head_s = cut.head_flops / board.flops_per_s
    sending_s = cut.sent_bytes / radio.each_way_bytes_per_s
    waiting_s = cut.tail_flops / server_flops_per_s + (radio.way_s if cut.sent_bytes else 0.0)
    return EdgeLatency(
        head_s=head_s,
        sending_s=sending_s,
        waiting_s=waiting_s,
        energy_j=board.busy_w * head_s + board.sending_w * sending_s + board.idle_w * waiting_s,
    )


def filtered(cut: SplitPoint, filter_flops: float, sent_frac: float) -> SplitPoint:
    """The mean over inputs where a filter on the device passes on a share of them only."""
    return SplitPoint(
        head_flops=cut.head_flops + filter_flops,
        sent_bytes=sent_frac * cut.sent_bytes,
        tail_flops=sent_frac * cut.tail_flops,
    )


def widest_within(trips: Sequence[EdgeLatency], limit_s: float) -> int:
    """Index of the widest, of widths in rising order, whose delay keeps to a limit; of the fastest where none does."""
    retained = [i for i, each in enumerate(trips) if each.delay_s <= limit_s]
    return retained[-1] if retained else min(range(len(trips)), key=lambda i: trips[i].delay_s)

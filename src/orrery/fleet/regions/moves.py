"""Caches that move between regions: bytes on a wide-area link, in the order in which they are asked for.

A request whose earlier turns were served in another region finds their cache there. The region that serves it now
computes it again, or asks for it: half a round trip to ask, the queue of the link from there to here, the bytes, and
half a round trip until the last of them is here. Each pair of regions has a link of its own in each direction.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orrery.fleet.regions.routing import Flags, Floats
from orrery.serving.requests import Ints

ALWAYS, SOONER = "always", "sooner"
WAYS = ("off", ALWAYS, SOONER)
"""Which caches move: none; all of them; those that are there before they would be computed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WideArea:
    """The links between regions, and which caches go over them."""

    way: str
    bytes_per_s: float  # of one link, in one direction
    round_trip_s: Floats  # (region, region)
    usd_per_byte: float | None = None  # that leaves a region; None: not known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldElsewhere:
    """Requests whose history lies in another region: arrays of equal length."""

    asked_s: Floats  # when each is in the region that serves it
    holder: Ints  # the region that served the turn before
    region: Ints  # the one that serves it
    size_bytes: Floats
    again_s: Floats  # to compute it anew


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Fate of each cache."""

    is_moved: Flags
    move_s: Floats  # from asking to the last byte, the queue included; of those that do not move what it would take
    wait_s: Floats  # of it in the queue of the link
    busy_s: Mapping[tuple[int, int], float]  # by link: time in which bytes left


def moves(held: HeldElsewhere, area: WideArea) -> Moves:
    """Each cache in the order in which it is asked for; one that does not move leaves its link free."""
    size = held.asked_s.size
    is_moved, move_s, wait_s = np.zeros(size, dtype=np.bool_), np.zeros(size), np.zeros(size)
    free_s, busy_s = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    for i in np.argsort(held.asked_s, kind="stable").tolist():
        link = int(held.holder[i]), int(held.region[i])
        trip_s, sent_s = float(area.round_trip_s[link]), float(held.size_bytes[i]) / area.bytes_per_s
        heard_s = float(held.asked_s[i]) + 0.5 * trip_s
        begins_s = max(heard_s, free_s.get(link, heard_s))
        wait_s[i] = begins_s - heard_s
        move_s[i] = trip_s + wait_s[i] + sent_s
        is_moved[i] = area.way == ALWAYS or (area.way == SOONER and move_s[i] < held.again_s[i])
        if is_moved[i]:
            free_s[link] = begins_s + sent_s
            busy_s[link] = busy_s.get(link, 0.0) + sent_s
    return Moves(is_moved=is_moved, move_s=move_s, wait_s=wait_s, busy_s=busy_s)

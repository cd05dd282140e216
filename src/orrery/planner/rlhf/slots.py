"""Responses of unequal lengths in the slots of one engine: how many are being written at each step, and how far.

Every step writes one token of every sequence in a slot, so steps are counted without knowing how long one takes. A slot
whose response ends takes the next one in order.
"""

from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Slots:
    """When each response begins and ends, in steps."""

    start: Ints
    end: Ints

    @property
    def num_steps(self) -> int:
        """Steps until the last response has ended."""
        return int(self.end.max())

    def active(self, at: Floats) -> tuple[Floats, Floats]:
        """(sequences being written, tokens that they have written together) at moments between steps."""
        begun = np.searchsorted(self._starts, at, side="right")
        ended = np.searchsorted(self._ends, at, side="right")
        count = (begun - ended).astype(np.float64)
        return count, count * at - (self._start_sums[begun] - self._ended_sums[ended])

    @property
    def fullest(self) -> tuple[float, float]:
        """(sequences, tokens that they have written together) just before the end at which a prompt and its response
        add up to most; prompts are equally long, so the most tokens that are written decide."""
        count, written = self.active(self._ends.astype(np.float64) - 0.5)
        at = int(np.argmax(written))
        return float(count[at]), float(written[at] + 0.5 * count[at])

    @cached_property
    def _starts(self) -> Ints:
        return np.sort(self.start)

    @cached_property
    def _ends(self) -> Ints:
        return np.sort(self.end)

    @cached_property
    def _start_sums(self) -> Floats:
        return np.concatenate(([0.0], np.cumsum(self._starts)))

    @cached_property
    def _ended_sums(self) -> Floats:
        """Sums of the starts of responses, in the order in which they end."""
        return np.concatenate(([0.0], np.cumsum(self.start[np.argsort(self.end, kind="stable")])))


def in_slots(steps: Ints, num_slots: int) -> Slots:
    """Give each response, in order, the slot that is free first; ``steps`` that each takes."""
    free = [0] * min(num_slots, steps.size)
    start = np.zeros(steps.size, dtype=np.int64)
    for i, each in enumerate(steps.tolist()):
        start[i] = free[0]
        heapreplace(free, free[0] + each)
    return Slots(start=start, end=start + steps)


def slowest(responses: Ints, num_replicas: int, num_slots: int) -> Slots:
    """The schedule of the replica that takes most steps; responses are dealt out in runs of neighbours.

    The first token of a response comes out of the pass over its prompt, so it takes a step less than its tokens.
    """
    runs = (run for run in np.array_split(responses - 1, num_replicas) if run.size)
    return max((in_slots(run, num_slots) for run in runs), key=lambda found: found.num_steps)

"""A pipeline schedule: its numbers, the order of work that they come from, and which sizes it takes.

One micro-batch takes F seconds forward, B backward to the inputs and W to the weights on a rank (all its chunks). A
step of m micro-batches takes m (F + B + W) + idle, where idle is linear in F, B and W.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Amount = float | NDArray[np.floating[Any]]
Count = int | NDArray[np.int64]
Floats = NDArray[np.float64]

Kind = Literal["F", "B", "W", "BW"]


class PassSlot(NamedTuple):
    """A piece before it has its micro-batch."""

    kind: Kind
    chunk: int


F0, F1, B0, B1, W0, W1, BW0, BW1 = (
    PassSlot("F", 0),
    PassSlot("F", 1),
    PassSlot("B", 0),
    PassSlot("B", 1),
    PassSlot("W", 0),
    PassSlot("W", 1),
    PassSlot("BW", 0),
    PassSlot("BW", 1),
)
"""The pieces of a rank that holds at most two chunks."""

Placement = Literal["loop", "v", "mirrored"]
"""Which layers a rank's chunks are. loop: chunk c of rank r is group c pp + r. v: odd chunks run the other way, so
that the turn stays on one rank. mirrored: two copies of the model, the second from the last rank to the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of work of one rank: forward, backward (to inputs, or whole), or weight gradient of a micro-batch."""

    kind: Kind
    micro_batch: int
    chunk: int  # which of the rank's model chunks
    is_joined: bool = False  # runs beside the rank's next piece: both start together and end together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pipeline:
    """Numbers of a schedule for one or many (pp, vp, num_micro_batches); arrays of their common shape."""

    forward_idle_ratio: Amount
    backward_idle_ratio: Amount
    weight_idle_ratio: Amount
    fill_forward_ratio: Amount  # idle is no less than this many F, however short B and long W are
    fill_backward_ratio: Amount  # nor than this many B
    is_parallelogram: bool  # ranks start and end their step one after the other, so steps that follow need no filling
    in_flight_ratio: Amount  # micro-batches that the fullest rank holds activations of, all its chunks counted as 1
    last_in_flight_ratio: Amount  # the same of the last rank, which has the loss
    parameter_copies_ratio: Amount  # copies of its stage's parameters that a rank holds (DualPipe: 2)
    sends_ratio: Amount  # hand-overs to a neighbour per micro-batch and direction (interleaving: vp)
    joined_ratio: Amount = 0.0  # share of the micro-batches whose passes run beside another's in the other direction

    def idle_s(self, forward_s: Amount, backward_s: Amount, weight_s: Amount, *, is_synchronous: bool = True) -> Floats:
        """Seconds that a step takes over its m (F + B + W).

        Synchronous: all ranks meet at the optimizer (a norm over all gradients does that), so even a parallelogram has
        to be filled once a step. Otherwise its ranks go on to the next step one by one, as [zero-bubble-2024] does by
        checking the norm afterwards. Never below zero.
        """
        idle = self.forward_idle_ratio * forward_s + self.backward_idle_ratio * backward_s
        fill = np.maximum(self.fill_forward_ratio * forward_s, self.fill_backward_ratio * backward_s)
        least = fill if is_synchronous or not self.is_parallelogram else 0.0
        return np.maximum(np.asarray(idle + self.weight_idle_ratio * weight_s, dtype=np.float64), least)


Rule = Callable[[Count, Count, Count], Pipeline]
"""(pp, vp, num_micro_batches) to numbers."""

Order = Callable[[int, int, int, int], list[Piece]]
"""(pp, vp, num_micro_batches, rank) to what the rank does, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Which pp, vp and numbers of micro-batches a schedule takes."""

    least_vp: int = 1
    most_vp: int = 1
    pp_step: int = 1  # pp is a multiple of this
    micro_batch_step: int = 1  # and the number of micro-batches of this
    is_round: bool = False  # it is also a multiple of pp
    least_rounds: int = 0  # and at least so many times pp,
    least_less: int = 0  # less this

    def is_allowed(self, pp: Count, vp: Count, num_micro_batches: Count) -> NDArray[np.bool_]:
        """Whether the schedule can run, for every entry."""
        p, v, m = np.broadcast_arrays(pp, vp, num_micro_batches)
        least = np.maximum(1, self.least_rounds * p - self.least_less)
        fits = (p >= 1) & (v >= self.least_vp) & (v <= self.most_vp) & (m >= least)
        fits &= (p % self.pp_step == 0) & (m % self.micro_batch_step == 0)
        return fits & (m % np.maximum(p, 1) == 0) if self.is_round else fits

    def refusal(self, pp: int, vp: int, num_micro_batches: int) -> str:
        """Why the schedule cannot run, and the nearest numbers with which it can; empty where it can."""
        if pp < 1 or pp % self.pp_step:
            return f"needs pp in multiples of {self.pp_step}, got {pp}; write {_near(pp, self.pp_step, self.pp_step)}."
        if not self.least_vp <= vp <= self.most_vp:
            near = self.least_vp if vp < self.least_vp else self.most_vp
            what = f"{self.least_vp} to {self.most_vp}" if self.least_vp < self.most_vp else f"{near}"
            return f"needs vp = {what} chunks a rank, got {vp}; write vp = {near}."
        step = pp if self.is_round else self.micro_batch_step
        least = max(step, self.least_rounds * pp - self.least_less)
        if num_micro_batches < least or num_micro_batches % step:
            words = f" in multiples of {step}" if step > 1 else ""
            near = _near(num_micro_batches, step, least)
            return f"needs {least} or more micro-batches{words} at pp = {pp}, got {num_micro_batches}; write {near}."
        return ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """Rule of a technique at ``training.schedule``: called, it gives the numbers."""

    numbers: Rule
    order: Order
    sizes: Sizes = Sizes()
    placement: Placement = "loop"

    def __call__(self, pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
        return self.numbers(pp, vp, num_micro_batches)

    def num_chunks(self, vp: int) -> int:
        """Model chunks that a rank holds."""
        return 2 if self.placement == "mirrored" else vp


def as_floats(pp: Count, vp: Count, num_micro_batches: Count) -> tuple[Floats, Floats, Floats]:
    """The three counts as float arrays of their common shape."""
    p, v, m = np.broadcast_arrays(pp, vp, num_micro_batches)
    return p.astype(np.float64), v.astype(np.float64), m.astype(np.float64)


def in_turn(num_micro_batches: int, ahead: int, behind: int) -> list[Piece]:
    """Forward passes ``ahead`` of the backward passes to the inputs, weight gradients ``behind`` them, one in turn."""
    letters = [F0] * min(ahead, num_micro_batches)
    for i in range(num_micro_batches):
        letters += [F0] if i + ahead < num_micro_batches else []
        letters += [B0, W0] if i >= behind else [B0]
    return numbered(letters + [W0] * min(behind, num_micro_batches))


def numbered(letters: Iterable[PassSlot], first: Sequence[int] = ()) -> list[Piece]:
    """Pieces that take each chunk's micro-batches in order, from ``first[chunk]`` on (0 if not given)."""
    counts: Counter[PassSlot] = Counter()
    pieces: list[Piece] = []
    for kind, chunk in letters:
        counted = PassSlot("B" if kind == "BW" else kind, chunk)
        start = first[chunk] if first else 0
        pieces.append(Piece(kind=kind, micro_batch=start + counts[counted], chunk=chunk))
        counts[counted] += 1
        if kind == "BW":
            counts[PassSlot("W", chunk)] += 1
    return pieces


def _near(got: int, step: int, least: int) -> str:
    """The multiples of ``step`` around ``got`` that are no less than ``least``."""
    below = got // step * step
    return " or ".join(str(n) for n in (below, below + step) if n >= least) or str(-(-least // step) * step)

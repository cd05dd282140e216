"""A pipeline schedule played out piece by piece: when each rank does what, how long it waits, and how much it holds.

A forward pass waits for the forward pass of the layers before it, a backward pass for the backward pass of the layers
after it and for its own forward pass, a weight gradient for its own backward pass. Ranks do their pieces in order, one
at a time; a hand-over to another rank takes time on the link and none on the ranks.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.schedules.schedule import Floats, Piece, Placement, Schedule

Event = tuple[Literal["F", "B", "W"], int, int]
"""A pass of a micro-batch through one group of layers: kind, micro-batch, position in the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PieceSeconds:
    """Time of a piece: arrays of shape (ranks, chunks of a rank), and of the hand-over between two ranks."""

    forward_s: Floats
    backward_s: Floats  # to the inputs
    weight_s: Floats
    hand_over_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A piece, or two that run beside each other, with their time."""

    pieces: tuple[Piece, ...]
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """A step played out; arrays have one entry a rank."""

    ranks: tuple[tuple[Played, ...], ...]  # what each rank did, in order
    makespan_s: float  # from the start of the step to the end of its last piece
    busy_s: Floats
    idle_s: Floats  # makespan less busy
    own_idle_s: Floats  # from a rank's first piece to its last, less busy: what is left where steps follow each other
    in_flight_ratio: Floats  # most micro-batches held at once, from forward to weight gradient, all chunks counted as 1


def play_schedule(schedule: Schedule, pp: int, vp: int, num_micro_batches: int, seconds: PieceSeconds) -> Timeline:
    """A step of ``schedule``; ScenarioError where it does not take these sizes."""
    if why := schedule.sizes.refusal(pp, vp, num_micro_batches):
        raise ScenarioError(f"The schedule {why}")
    orders = [schedule.order(pp, vp, num_micro_batches, rank) for rank in range(pp)]
    return play(orders, schedule.placement, seconds)


def play(orders: Sequence[Sequence[Piece]], placement: Placement, seconds: PieceSeconds) -> Timeline:
    """A step in which each rank does its pieces in order. ScenarioError where ranks wait for each other for ever."""
    num_chunks = seconds.forward_s.shape[1]
    length = _length(placement, len(orders), num_chunks)
    done: dict[Event, tuple[float, int]] = {}
    waiting: dict[Event, list[int]] = {}
    played: list[list[Played]] = [[] for _ in orders]
    ready = deque(range(len(orders)))
    blocks = [_blocks(order) for order in orders]
    while ready:
        rank = ready.popleft()
        while len(played[rank]) < len(blocks[rank]):
            block = blocks[rank][len(played[rank])]
            positions = [_position(placement, len(orders), rank, piece.chunk) for piece in block]
            needs = [n for piece, at in zip(block, positions, strict=True) for n in _needs(piece, at, length)]
            if missing := [n for n in needs if n not in done]:
                waiting.setdefault(missing[0], []).append(rank)
                break
            start_s = played[rank][-1].end_s if played[rank] else 0.0
            for end_s, where in (done[n] for n in needs):
                start_s = max(start_s, end_s + (seconds.hand_over_s if where != rank else 0.0))
            end_s = start_s + sum(_duration_s(piece, rank, seconds) for piece in block)
            played[rank].append(Played(pieces=block, start_s=start_s, end_s=end_s))
            for event in (e for piece, at in zip(block, positions, strict=True) for e in _events(piece, at)):
                done[event] = (end_s, rank)
                ready.extend(waiting.pop(event, ()))
    _check_all_done(blocks, played)
    return _measured(played, _share(placement, num_chunks))


def _blocks(order: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """Pieces as they run: alone, or beside each other."""
    blocks: list[tuple[Piece, ...]] = []
    joined: tuple[Piece, ...] = ()
    for piece in order:
        joined = (*joined, piece)
        if not piece.is_joined:
            blocks.append(joined)
            joined = ()
    return [*blocks, joined] if joined else blocks


def _length(placement: Placement, pp: int, num_chunks: int) -> int:
    """Groups of layers that a micro-batch passes."""
    return pp if placement == "mirrored" else pp * num_chunks


def _share(placement: Placement, num_chunks: int) -> float:
    """One chunk's share of the activations that a micro-batch leaves on a rank."""
    return 1.0 if placement == "mirrored" else 1.0 / num_chunks


def _position(placement: Placement, pp: int, rank: int, chunk: int) -> int:
    """Where in the model a chunk of a rank stands."""
    place = rank if placement == "loop" or chunk % 2 == 0 else pp - 1 - rank
    return place if placement == "mirrored" else chunk * pp + place


def _needs(piece: Piece, position: int, length: int) -> tuple[Event, ...]:
    """Events that a piece waits for."""
    micro_batch = piece.micro_batch
    if piece.kind == "F":
        return (("F", micro_batch, position - 1),) if position else ()
    if piece.kind == "W":
        return (("B", micro_batch, position),)
    own: Event = ("F", micro_batch, position)
    return (own, ("B", micro_batch, position + 1)) if position + 1 < length else (own,)


def _events(piece: Piece, position: int) -> tuple[Event, ...]:
    """Events that a finished piece causes."""
    if piece.kind == "BW":
        return (("B", piece.micro_batch, position), ("W", piece.micro_batch, position))
    return ((piece.kind, piece.micro_batch, position),)


def _duration_s(piece: Piece, rank: int, seconds: PieceSeconds) -> float:
    """How long a piece keeps its rank busy."""
    at = (rank, piece.chunk)
    if piece.kind == "F":
        return float(seconds.forward_s[at])
    backward_s = float(seconds.backward_s[at]) if "B" in piece.kind else 0.0
    return backward_s + (float(seconds.weight_s[at]) if "W" in piece.kind else 0.0)


def _check_all_done(blocks: Sequence[Sequence[tuple[Piece, ...]]], played: Sequence[Sequence[Played]]) -> None:
    """Refuse orders in which ranks still wait although nobody works."""
    stuck = [(r, blocks[r][len(p)][0]) for r, p in enumerate(played) if len(p) < len(blocks[r])]
    if stuck:
        waits = ", ".join(f"rank {r} at {p.kind} of micro-batch {p.micro_batch}, chunk {p.chunk}" for r, p in stuck)
        raise ScenarioError(f"Deadlock in the pipeline's order: {waits}; put what they wait for earlier.")


def _measured(played: Sequence[Sequence[Played]], share: float) -> Timeline:
    """The totals of what was played."""
    starts_s = np.array([p[0].start_s if p else 0.0 for p in played])
    ends_s = np.array([p[-1].end_s if p else 0.0 for p in played])
    busy_s = np.array([sum(q.end_s - q.start_s for q in p) for p in played])
    makespan_s = float(ends_s.max())
    return Timeline(
        ranks=tuple(tuple(p) for p in played),
        makespan_s=makespan_s,
        busy_s=busy_s,
        idle_s=makespan_s - busy_s,
        own_idle_s=ends_s - starts_s - busy_s,
        in_flight_ratio=np.array([share * _peak(p) for p in played]),
    )


def _peak(played: Sequence[Played]) -> int:
    """Most chunks of micro-batches held at once, from the start of the forward pass to the weight gradient's end."""
    held = peak = 0
    for one in played:
        held += sum(piece.kind == "F" for piece in one.pieces)
        peak = max(peak, held)
        held -= sum("W" in piece.kind for piece in one.pieces)
    return peak

"""A played-out pipeline as Chrome trace events: a track a rank, a slice a piece, and the micro-batches that it holds.

Format: "Trace Event Format" (X complete events, C counters, M names; times in microseconds), which ui.perfetto.dev and
chrome://tracing open.
"""

from typing import Any

from orrery.training.schedules.schedule import Piece
from orrery.training.schedules.timeline import Played, Timeline

NAMES = {"F": "forward", "B": "input gradient", "W": "weight gradient", "BW": "backward"}
"""Display names of the kinds of pieces."""


def trace_events(timeline: Timeline) -> dict[str, Any]:
    """The object that a viewer opens."""
    events: list[dict[str, Any]] = []
    for rank, played in enumerate(timeline.ranks):
        events.append({"ph": "M", "pid": rank, "name": "process_name", "args": {"name": f"rank {rank}"}})
        events.append({"ph": "M", "pid": rank, "name": "process_sort_index", "args": {"sort_index": rank}})
        held = 0
        for one in played:
            held += sum(piece.kind == "F" for piece in one.pieces)
            events += [_slice(rank, one), _held(rank, one.start_s, held)]
            if ended := sum("W" in piece.kind for piece in one.pieces):
                held -= ended
                events.append(_held(rank, one.end_s, held))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _slice(rank: int, one: Played) -> dict[str, Any]:
    """``forward 3 & backward 1``."""
    return {
        "ph": "X",
        "pid": rank,
        "tid": 0,
        "cat": " & ".join(NAMES[p.kind] for p in one.pieces),
        "name": " & ".join(map(_title, one.pieces)),
        "ts": one.start_s * 1e6,
        "dur": (one.end_s - one.start_s) * 1e6,
        "args": {"micro_batch": [p.micro_batch for p in one.pieces], "chunk": [p.chunk for p in one.pieces]},
    }


def _title(piece: Piece) -> str:
    """``forward 3``, and from the second chunk on ``forward 3.1``."""
    return f"{NAMES[piece.kind]} {piece.micro_batch}" + (f".{piece.chunk}" if piece.chunk else "")


def _held(rank: int, at_s: float, count: int) -> dict[str, Any]:
    """Chunks of micro-batches whose activations a rank holds."""
    return {"ph": "C", "pid": rank, "name": "held", "ts": at_s * 1e6, "args": {"value": count}}

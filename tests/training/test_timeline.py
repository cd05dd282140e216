"""Pipelines played out: by hand, with hand-overs, uneven stages, deadlocks, and against a slow oracle."""

import numpy as np
import pytest
from even_pieces import even_seconds
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.training.schedules.registry import SCHEDULES, get_schedule, refusal
from orrery.training.schedules.schedule import Piece
from orrery.training.schedules.timeline import PieceSeconds, play, play_schedule
from orrery.training.schedules.trace_events import trace_events

NAMES = sorted(SCHEDULES.techniques)


def one_each(forward_s, backward_s, weight_s, hand_over_s=0.0):
    """Stages of one chunk, each with its own times."""
    columns = (np.array(x, dtype=float)[:, None] for x in (forward_s, backward_s, weight_s))
    return PieceSeconds(
        **dict(zip(("forward_s", "backward_s", "weight_s"), columns, strict=True)), hand_over_s=hand_over_s
    )


def test_two_stages_by_hand():
    """F = 1, B = 2, W = 3 on rank 0 and F = 2, B = 1, W = 1 on rank 1; hand-overs take 10."""
    timeline = play_schedule(get_schedule("1f1b"), 2, 1, 2, one_each([1, 2], [2, 1], [3, 1], 10))
    first, second = ([(one.start_s, one.end_s) for one in rank] for rank in timeline.ranks)
    assert [p.pieces[0].kind for p in timeline.ranks[0]] == ["F", "F", "BW", "BW"]
    assert [p.pieces[0].kind for p in timeline.ranks[1]] == ["F", "BW", "F", "BW"]
    assert second == [(11, 13), (13, 15), (15, 17), (17, 19)]
    assert first == [(0, 1), (1, 2), (25, 30), (30, 35)]
    assert timeline.makespan_s == 35
    assert timeline.idle_s.tolist() == [35 - 12, 35 - 8]
    assert timeline.own_idle_s.tolist() == [35 - 12, 0]
    assert timeline.in_flight_ratio.tolist() == [2, 1]


def test_a_split_backward_pass_hands_over_before_its_weights():
    whole = play_schedule(get_schedule("1f1b"), 2, 1, 2, one_each([1, 1], [1, 1], [5, 5]))
    split = play_schedule(get_schedule("zero-bubble-h1"), 2, 1, 2, one_each([1, 1], [1, 1], [5, 5]))
    assert (whole.makespan_s, split.makespan_s) == (3 * 7, 2 * 7 + 1)


def test_the_turn_of_a_v_needs_no_hand_over():
    """One rank's two chunks follow each other at once; around a loop of one rank too."""
    pieces = [Piece(kind="F", micro_batch=0, chunk=0), Piece(kind="F", micro_batch=0, chunk=1)]
    seconds = PieceSeconds(
        forward_s=np.ones((2, 2)), backward_s=np.ones((2, 2)), weight_s=np.ones((2, 2)), hand_over_s=5.0
    )
    v, loop = play([pieces, pieces], "v", seconds), play([pieces, pieces], "loop", seconds)
    assert [one.start_s for one in v.ranks[1]] == [6, 7]
    assert [one.start_s for one in v.ranks[0]] == [0, 13]
    assert [one.start_s for one in loop.ranks[0]] == [0, 12]
    assert [one.start_s for one in loop.ranks[1]] == [6, 18]


def test_joined_pieces_start_and_end_together():
    joined = [
        Piece(kind="F", micro_batch=0, chunk=0),
        Piece(kind="F", micro_batch=1, chunk=0, is_joined=True),
        Piece(kind="BW", micro_batch=0, chunk=0),
        Piece(kind="BW", micro_batch=1, chunk=0),
    ]
    timeline = play([joined], "loop", one_each([1], [2], [3]))
    assert [(len(p.pieces), p.start_s, p.end_s) for p in timeline.ranks[0]] == [(1, 0, 1), (2, 1, 7), (1, 7, 12)]
    assert timeline.busy_s.tolist() == [12]
    assert timeline.in_flight_ratio.tolist() == [2]


def test_a_deadlock_says_who_waits():
    early = [Piece(kind="BW", micro_batch=0, chunk=0), Piece(kind="F", micro_batch=0, chunk=0)]
    with pytest.raises(ScenarioError, match="rank 0 at BW of micro-batch 0, chunk 0"):
        play([early], "loop", one_each([1], [1], [1]))
    swapped = get_schedule("1f1b").order(2, 1, 2, 0)
    crossed = [[swapped[0], swapped[2], swapped[1], swapped[3]], get_schedule("gpipe").order(2, 1, 2, 1)]
    with pytest.raises(ScenarioError, match=r"rank 0 at BW of micro-batch 0.*rank 1 at F of micro-batch 1"):
        play(crossed, "loop", one_each([1, 1], [1, 1], [1, 1]))


def place(kind, pp, rank, chunk):
    """Where a chunk stands, written out."""
    if kind == "loop":
        return chunk * pp + rank
    if kind == "v":
        return [rank, 2 * pp - 1 - rank][chunk]
    return [rank, pp - 1 - rank][chunk]


def slow_oracle(schedule, pp, vp, m, seconds):
    """Start times as the least fixed point: every piece begins when its rank and what it waits for are done."""
    last = pp * vp - 1 if schedule.placement != "mirrored" else pp - 1
    blocks, where = [], {}
    for rank in range(pp):
        block = []
        for piece in schedule.order(pp, vp, m, rank):
            block.append(piece)
            at = place(schedule.placement, pp, rank, piece.chunk)
            for kind in piece.kind:
                where[kind, piece.micro_batch, at] = (len(blocks), rank)
            if not piece.is_joined:
                blocks.append((rank, block))
                block = []
    times = {"F": seconds.forward_s, "B": seconds.backward_s, "W": seconds.weight_s}
    end_s = [0.0] * len(blocks)
    for _ in range(len(blocks)):
        before = list(end_s)
        for number, (rank, block) in enumerate(blocks):
            start_s = end_s[number - 1] if number and blocks[number - 1][0] == rank else 0.0
            for piece in block:
                at = place(schedule.placement, pp, rank, piece.chunk)
                waits = {"F": [("F", at - 1)], "W": [("B", at)]}.get(piece.kind, [("B", at + 1), ("F", at)])
                for kind, there in waits:
                    if 0 <= there <= last:
                        other, other_rank = where[kind, piece.micro_batch, there]
                        start_s = max(start_s, end_s[other] + seconds.hand_over_s * (other_rank != rank))
            end_s[number] = start_s + sum(times[k][rank, p.chunk] for p in block for k in p.kind)
        if before == end_s:
            break
    return [[end_s[n] for n, (r, _) in enumerate(blocks) if r == rank] for rank in range(pp)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_uneven_stages_play_as_the_oracle_says(name, data):
    schedule = get_schedule(name)
    sizes = [s for s in [(2, 1, 4), (4, 1, 8), (2, 2, 4), (3, 2, 6), (4, 2, 8), (3, 1, 5)] if not refusal(name, *s)]
    pp, vp, m = data.draw(st.sampled_from(sizes))
    whole = st.integers(0, 8).map(float)  # sums of whole numbers are exact
    shape = (pp, schedule.num_chunks(vp))
    drawn = [
        np.array(data.draw(st.lists(whole, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))).reshape(shape)
        for _ in range(3)
    ]
    seconds = PieceSeconds(forward_s=drawn[0], backward_s=drawn[1], weight_s=drawn[2], hand_over_s=data.draw(whole))
    timeline = play_schedule(schedule, pp, vp, m, seconds)
    assert [[one.end_s for one in rank] for rank in timeline.ranks] == slow_oracle(schedule, pp, vp, m, seconds)
    assert timeline.makespan_s == max(one.end_s for rank in timeline.ranks for one in rank)
    assert timeline.busy_s + timeline.idle_s == pytest.approx(np.full(pp, timeline.makespan_s))


@pytest.mark.parametrize("name", NAMES)
def test_a_slower_link_never_helps(name):
    schedule = get_schedule(name)
    pp, vp, m = next(s for s in [(4, 1, 8), (4, 2, 8)] if not refusal(name, *s))
    spans = [
        play_schedule(schedule, pp, vp, m, even_seconds(schedule, pp, vp, 1, 2, 1, hand_over_s=h)).makespan_s
        for h in (0.0, 0.1, 0.5, 2.0)
    ]
    assert spans == sorted(spans)
    assert spans[-1] > spans[0]


def test_trace_events_of_a_dual_pipe():
    schedule = get_schedule("dualpipe")
    timeline = play_schedule(schedule, 4, 1, 8, even_seconds(schedule, 4, 1, 1, 1, 1))
    events = trace_events(timeline)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert sum(len(e["args"]["micro_batch"]) for e in slices if e["pid"] == 0) == len(schedule.order(4, 1, 8, 0))
    assert max(e["ts"] + e["dur"] for e in slices) == pytest.approx(timeline.makespan_s * 1e6)
    assert any(e["name"] == "forward 3 & backward 5.1" for e in slices if e["pid"] == 0)
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {f"rank {r}" for r in range(4)}
    held = [e["args"]["value"] for e in events if e["ph"] == "C" and e["pid"] == 0]
    assert (max(held), held[-1]) == (5, 0)

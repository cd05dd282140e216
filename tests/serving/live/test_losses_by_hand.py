"""What a client that hangs up and a machine that is lost leave behind, one function at a time."""

import numpy as np
import pytest
from small_state import decode, lane_of, prefill, put, state

from orrery.base.compiled import source_of
from orrery.engine.queue import _kernel as queue
from orrery.serving.live import _kernel as live
from orrery.serving.live._kernel import (
    _is_of,
    _leave_ready,
    _seat_of,
    _stands_on,
    _stop,
    _wake_all,
)
from orrery.serving.simulation.allocation import _kernel as allocation
from orrery.serving.simulation.allocation._kernel import enqueue, hold_back, schedule_event
from orrery.serving.simulation.step_results import _kernel as step_results
from orrery.serving.simulation.tables import _kernel as k


@pytest.fixture
def plain(monkeypatch):
    """The compiled functions as their sources."""
    for module in (queue, live, allocation, step_results):
        for name, value in vars(module).items():
            if callable(value) and source_of(value) is not value:
                monkeypatch.setattr(module, name, source_of(value))
    return live


def loaded(w, lane, requests, tokens):
    w.rates[lane, [k.LOAD_REQUESTS, k.LOAD_TOKENS]] = [requests, tokens]


def test_seats_that_are_kept_close_up():
    w = state()
    lane_of(w, 1, num_ready=3)
    w.seats[1, k.SEAT_READY, :3] = [2, 0, 3]
    assert [_seat_of(w, 1, k.SEAT_READY, 3, i) for i in (2, 0, 3, 1)] == [0, 1, 2, 3]
    _leave_ready(w, 1, 0)
    assert w.seats[1, k.SEAT_READY, : w.lanes[1, k.NUM_READY]].tolist() == [2, 3]
    _leave_ready(w, 1, 3)
    assert w.seats[1, k.SEAT_READY, : w.lanes[1, k.NUM_READY]].tolist() == [2]


def test_a_client_hangs_up_before_its_request_comes(plain):
    w = state()
    for i, due_s in ((0, 3.0), (1, 2.0)):
        plain.expect(w, i, due_s)
    plain.withdraw(w, 1, 1.0)
    assert (w.counts[k.EVENTS], w.req[1, k.STATUS]) == (0, k.FAILED)


def test_a_client_hangs_up_in_the_queue(plain):
    """Seen or not yet seen: word of it comes the way that requests do."""
    for entering in (enqueue, hold_back):
        w = state()
        loaded(w, 1, 2.0, 90.0)
        for i in (0, 1):
            put(w, i, lane=1, status=k.WAITING, input=30, output=9)
            entering(w, i, 1)
        plain.withdraw(w, 0, 1.0)
        assert w.lanes[1, [k.NUM_WAITING, k.WAITING_ROOT, k.UNSEEN]].tolist() == [1, 1, -1]
        assert w.rates[1, [k.LOAD_REQUESTS, k.LOAD_TOKENS]].tolist() == [1.0, 51.0]
        assert w.moments.tolist() == [np.inf, 1.0]


def test_a_client_hangs_up_while_its_prompt_is_computed(plain):
    w = state()
    prefill(w, 0, 0, 1)
    loaded(w, 0, 2.0, 90.0)
    put(w, 1, input=30, output=9, blocks=2)
    w.memory.free[0] = 80
    plain.withdraw(w, 1, 1.0)
    assert (w.lanes[0, k.NUM_PROMPTS], w.seats[0, k.SEAT_PROMPTS, 0], w.memory.free[0]) == (1, 0, 100)


def test_a_client_hangs_up_while_it_is_answered(plain):
    """Its computed prefix can be found; 3 of 9 tokens were to come."""
    w = state(2, 1, ids=[[0], [1]], blocks_each=1)
    decode(w, 0, 0, 1, context=70)
    loaded(w, 0, 2.0, 20.0)
    lane_of(w, 0, steps=7)
    put(w, 1, input=30, output=9, made=1, joined=2, computed=30, blocks=3)
    w.memory.free[0] = 70
    plain.withdraw(w, 1, 1.0)
    assert (w.lanes[0, k.NUM_DECODING], w.req[1, k.STATUS], w.memory.users.tolist()) == (1, k.FAILED, [-1, 0])
    assert w.memory.free[0] + w.memory.evictable[0] == 100
    assert w.rates[0, [k.LOAD_REQUESTS, k.LOAD_TOKENS]].tolist() == [1.0, 17.0]


def test_a_client_hangs_up_while_its_cache_is_under_way(plain):
    """Both lanes let go: two blocks at the source, three here, and the seat kept for it."""
    w = state(places=1)
    lane_of(w, 1, reserved=2)
    loaded(w, 1, 1.0, 8.0)
    put(w, 0, lane=1, status=k.MOVING, input=30, output=9, made=1, source=0, source_blocks=2, blocks=3, adapter=0)
    w.slots[1, k.SLOT_REQUESTS, 0] = 1
    w.memory.free[:] = [80, 70]
    schedule_event(w, 0, 5.0)
    plain.withdraw(w, 0, 1.0)
    assert (w.memory.free.tolist(), w.counts[k.EVENTS], w.lanes[1, k.RESERVED]) == ([100, 100], -1, 1)
    assert w.req[0, [k.SOURCE, k.SOURCE_BLOCKS]].tolist() == [-1, 0]
    assert (w.slots[1, k.SLOT_REQUESTS, 0], w.rates[0, k.NOTED_S]) == (0, 1.0)
    put(w, 1, lane=1, status=k.MOVING, input=30, output=9, made=1)
    lane_of(w, 1, num_ready=1)
    w.seats[1, k.SEAT_READY, 0] = 1
    plain.withdraw(w, 1, 2.0)
    assert w.lanes[1, [k.RESERVED, k.NUM_READY]].tolist() == [0, 0]


def test_who_waits_is_woken():
    w = state(lanes=3)
    lane_of(w, 1, num_waiting=1)
    _wake_all(w, 4.0)
    assert w.moments[:3].tolist() == [np.inf, 4.0, np.inf]


def test_what_stands_on_a_machine():
    w = state(6, 3, unit_machine=np.array([0, 0, 1]))
    assert [bool(_is_of(w, lane, 0)) for lane in (-1, 0, 1, 2)] == [False, True, True, False]
    for i, (status, lane, source, blocks) in enumerate(
        [
            (k.WAITING, 1, -1, 0),
            (k.DECODING, 2, 1, 0),
            (k.DECODING, 2, -1, 0),
            (k.TO_COME, 0, -1, 0),
            (k.DONE, 0, -1, 0),
            (k.DONE, 0, -1, 1),
        ]
    ):
        put(w, i, status=status, lane=lane, source=source, blocks=blocks)
    assert [bool(_stands_on(w, i, 0)) for i in range(6)] == [True, True, False, False, False, True]
    for status in (k.REFUSED, k.FAILED):
        put(w, 0, status=status)
        assert not _stands_on(w, 0, 0)


def test_a_units_step_is_lost(plain):
    w = state(lanes=2, places=2, unit_lane=np.array([0, 2]), unit_machine=np.array([0]))
    w.units[0, [k.BEGAN, k.SPENT]] = [1.0, 5.0]
    w.moments[0] = 2.0
    w.step[:], w.rates[:, k.LINK_S], w.memory.free[:] = 1.0, 3.0, 10
    w.slots[:] = 7
    for lane in (0, 1):
        lane_of(w, lane, layers_all=3, layers_left=2, next_end=5)
    _stop(w, 0)
    assert np.isnan(w.units[0, k.BEGAN])
    assert (w.units[0, k.SPENT], w.moments[0], w.step.sum(), w.rates[:, k.LINK_S].sum()) == (0.0, np.inf, 0.0, 0.0)
    assert w.lanes[:, [k.LAYERS_ALL, k.LAYERS_LEFT]].sum() == 0
    assert w.lanes[:, k.NEXT_END].tolist() == [k.NEVER] * 2
    assert w.memory.free.tolist() == [100, 100]
    assert w.slots[:, k.SLOT_ADAPTER].tolist() == [[-1, -1]] * 2
    assert w.slots[:, k.SLOT_REQUESTS].tolist() == [[0, 0]] * 2


def lost(plain, retries):
    """Machine 0 has one request in the queue, one that is answered; machine 1 another one."""
    w = state(stage_s=np.array([[4.0], [5.0]]))
    for i, lane in ((0, 0), (2, 1)):
        put(w, i, lane=lane, status=k.WAITING, input=30, output=9)
        enqueue(w, i, lane)
    decode(w, 0, 1, context=31)
    put(w, 1, input=30, output=9, made=2, computed=31, blocks=2)
    loaded(w, 0, 2.0, 46.0)
    w.memory.free[0] = 80
    plain.lose(w, 0, 6.0, retries)
    return w


def test_requests_of_a_lost_machine_go_back_to_the_router(plain):
    w = lost(plain, retries=True)
    assert w.req[:3, k.STATUS].tolist() == [k.TO_COME, k.TO_COME, k.WAITING]
    assert (w.req[1, k.MADE], w.req[1, k.COMPUTED]) == (2, 0)
    assert w.due_s[:2].tolist() == [6.0, 6.0]
    assert w.rates[0, [k.LOAD_REQUESTS, k.LOAD_TOKENS]].tolist() == [0.0, 0.0]
    assert (w.stage_s.ravel().tolist(), w.counts[k.SERVED]) == ([0.0, 5.0], 0)
    assert w.moments.tolist() == [np.inf, 6.0]


def test_or_they_fail(plain):
    w = lost(plain, retries=False)
    assert w.req[:3, k.STATUS].tolist() == [k.FAILED, k.FAILED, k.WAITING]
    assert (w.counts[k.SERVED], w.counts[k.EVENTS]) == (2, -1)


def test_whoever_is_done_is_only_let_go(plain):
    """It waited in a batch that stays together."""
    w = state()
    decode(w, 0, 0)
    put(w, 0, status=k.DONE, output=2, made=2, blocks=1)
    w.memory.free[0] = 90
    plain.lose(w, 0, 6.0, True)
    assert (w.req[0, k.STATUS], w.req[0, k.BLOCKS], w.lanes[0, k.NUM_DECODING], w.counts[k.EVENTS]) == (
        k.DONE,
        0,
        0,
        -1,
    )

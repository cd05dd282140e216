"""The event loop function by function: where a request goes, why it is refused, when lanes look, what runs next."""

import numpy as np
import pytest
from small_state import lane_of, put, rules, state

from orrery.base.compiled import source_of
from orrery.engine.queue._kernel import pushed
from orrery.serving.simulation import _kernel as loop
from orrery.serving.simulation._kernel import _arrive, _look_for_new, _route, _turn
from orrery.serving.simulation.memory._kernel import publish, take
from orrery.serving.simulation.tables import _kernel as k


def routed(w, i, chosen=0):
    """The lane of a request, and what its router was told."""
    told = []

    def route(*given):
        told.append([np.asarray(x).tolist() for x in given])
        return chosen

    return _route(w, route, i, 2.0), told[0] if told else None


def test_one_lane_or_none_needs_no_router():
    w = state(lanes=3, entry=np.array([2]))
    assert routed(w, 0) == (2, None)
    w.entry = np.array([], np.int64)
    assert routed(w, 0) == (-1, None)


def test_what_a_router_is_told():
    """Loads of the lanes that take requests, the session's home among them, the turn and two draws."""
    w = state(lanes=3, entry=np.array([0, 2]), draws=np.array([[0.25, 0.75]] * 4))
    w.rates[:, [k.LOAD_REQUESTS, k.LOAD_TOKENS]] = [[1, 10], [2, 20], [3, 30]]
    w.counts[k.ARRIVED], w.home[1] = 7, 2
    put(w, 0, session=1)
    lane, told = routed(w, 0, 1)
    assert (lane, told[:7]) == (2, [[1, 3], [10, 30], [0, 0], 1, 7, 0.25, 0.75])
    assert w.home[1] == 2
    lane, _ = routed(w, 0, 0)
    assert (lane, w.home[1]) == (0, 0)
    assert routed(w, 1, 0)[1][3] == -1
    w.home[1] = 1  # which takes none now
    assert routed(w, 0, 0)[1][3] == -1


def test_routers_that_ask_for_prefixes_or_adapters():
    w = state(2, 2, ids=[[0, 1], [0, 1]], blocks_each=1, rules=rules(needs_prefix=True), places=1)
    take(w.memory, 1, 10)
    publish(w.memory, 1, w.prefix_ids, 0, 0, 1, w.held[0], 1)
    put(w, 1, input=40, output=2, adapter=5)
    assert routed(w, 1)[1][2] == [0, 1]
    w.rules = rules(needs_adapter=True)
    w.slots[0, k.SLOT_ADAPTER, 0] = 5
    assert routed(w, 1)[1][2] == [1, 0]


def arrived(w, i, now_s=2.0):
    """A request comes to the first lane; the key is all that its queue's order is told."""
    told = []

    def order(*given):
        told.append([float(x) for x in given[:-1]])
        return 9.0

    _arrive(w, order, lambda *_: 0, i, now_s)
    return told[0] if told else None


def test_a_request_comes():
    """Its client's last one ends at 50 in virtual time, the queue is at 20: it starts at 50, and its 39 tokens end at
    89."""
    w = state()
    put(w, 1, input=30, output=9, client=1)
    w.when[1, k.PRIORITY], w.tag[:3] = 3.0, [20.0, 10.0, 50.0]
    assert arrived(w, 1) == [2.0, 3.0, 30.0, 9.0, 50.0]
    assert w.tag[:3].tolist() == [20.0, 10.0, 89.0]
    assert (w.req[1, k.STATUS], w.key[1], w.when[1, k.ARRIVED_S], w.counts[k.ARRIVED]) == (k.WAITING, 9.0, 2.0, 1)
    assert w.rates[0, [k.LOAD_REQUESTS, k.LOAD_TOKENS]].tolist() == [1.0, 39.0]
    assert w.lanes[0, [k.NUM_WAITING, k.WAITING_ROOT]].tolist() == [1, 1]
    assert (w.timeline[2, k.B_ARRIVALS], w.moments[0]) == (1.0, 2.0)
    w.tag[2] = 0.0
    assert arrived(w, 1, 3.0)[4] == 20.0  # it comes back: behind what the queue has served
    assert (w.when[1, k.ARRIVED_S], w.timeline[:, k.B_ARRIVALS].sum()) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, k.WAITING),
        ({"output": 130}, k.WAITING),
        ({"output": 131}, k.REFUSED),  # 161 tokens need 11 of 10 blocks
        ({"queue": 3}, k.REFUSED),
        ({"queue": 4}, k.WAITING),
        ({"exit": []}, k.FAILED),
        ({"entry": []}, k.FAILED),
    ],
)
def test_requests_that_are_refused(change, status):
    w = state(rules=rules(max_queue=change.get("queue", 0)))
    lane_of(w, 0, num_waiting=3)
    put(w, 0, input=30, output=change.get("output", 9))
    for name in ("entry", "exit"):
        setattr(w, name, np.array(change.get(name, [0, 1]), np.int64))
    arrived(w, 0)
    assert (w.req[0, k.STATUS], w.counts[k.ARRIVED]) == (status, 1)
    assert w.counts[k.SERVED] == (status != k.WAITING)


def test_machines_for_prompts_and_answers_must_both_hold_a_request():
    """The prompt alone where it is computed, all of it where the answer is made."""
    for pooled, output, status in ((20, 9, k.WAITING), (10, 9, k.REFUSED), (20, 131, k.REFUSED)):
        w = state(entry=np.array([0]), exit=np.array([1]))
        lane_of(w, 0, role=k.PROMPTS, pooled=pooled)
        lane_of(w, 1, role=k.ANSWERS)
        put(w, 0, input=30, output=output)
        arrived(w, 0)
        assert w.req[0, k.STATUS] == status


def test_a_request_that_comes_while_a_step_runs_is_held_back():
    for interval, began_s, unseen in ((4, 1.0, 0), (4, np.nan, -1), (1, 1.0, -1)):
        w = state()
        lane_of(w, 0, recv_interval=interval)
        w.units[0, k.BEGAN] = began_s
        put(w, 0, input=30, output=9)
        arrived(w, 0)
        assert w.lanes[0, k.UNSEEN] == unseen
        assert w.lanes[0, k.NUM_WAITING] == 1


@pytest.mark.parametrize(
    ("until", "prompts", "decoding", "waiting", "sees"),
    [
        (3, 0, 1, False, False),
        (1, 0, 1, False, True),
        (3, 1, 1, False, True),
        (3, 0, 0, False, True),
        (3, 0, 0, True, False),
        (2, 0, 1, False, False),
    ],
)
def test_looks_for_new_requests(until, prompts, decoding, waiting, sees):
    """After so many decode steps, after prompts, and where nothing is left to do."""
    w = state()
    lane_of(w, 0, recv_interval=4, until_recv=until, num_decoding=decoding, unseen=3, num_waiting=1)
    if waiting:
        lane_of(w, 0, waiting=2)
    w.step[0, k.N_PROMPTS] = prompts
    _look_for_new(w, 0, 1)
    assert (w.lanes[0, k.UNSEEN] == -1) == sees
    assert w.lanes[0, k.UNTIL_RECV] == (4 if sees else until - 1)


def test_lanes_of_a_unit_look_together():
    """One had prompts, so both look; idle is a unit whose lanes all are."""
    w = state(unit_lane=np.array([0, 2]))
    for lane, unseen in ((0, 2), (1, 3)):
        lane_of(w, lane, recv_interval=4, until_recv=3, num_decoding=1, unseen=unseen)
    w.step[1, k.N_PROMPTS] = 1.0
    _look_for_new(w, 0, 2)
    assert w.lanes[:, k.UNSEEN].tolist() == [-1, -1]
    w = state(unit_lane=np.array([0, 2]))
    for lane, busy in ((0, 0), (1, 1)):
        lane_of(w, lane, recv_interval=4, until_recv=3, num_prompts=busy, unseen=3)
    _look_for_new(w, 0, 1)
    assert w.lanes[0, k.UNSEEN] == -1
    lane_of(w, 0, unseen=2)
    _look_for_new(w, 0, 2)
    assert w.lanes[0, k.UNSEEN] == 2


@pytest.fixture
def stepped(monkeypatch):
    """What a turn does, in its order; a scheduled step ends at 9 s."""
    told = []
    for name in (
        "book_decodes",
        "book_prompts",
        "end_batch",
        "note_step",
        "steer_split",
        "wake_others",
        "_look_for_new",
    ):
        monkeypatch.setattr(loop, name, lambda w, *given, name=name: told.append((name, *map(float, given))))
    monkeypatch.setattr(loop, "schedule_lane", lambda w, g, s, t, lane, now: told.append(("schedule", lane)) or w.works)
    monkeypatch.setattr(loop, "price_step", lambda w, o, s, unit, now: 9.0)
    monkeypatch.setattr(loop, "has_others", lambda w, unit: w.shares)
    return told


def turned(w, told, **given):
    told.clear()
    for name, value in ({"works": True, "shares": False} | given).items():
        setattr(w, name, value)
    _turn(w, None, None, None, None, 0, 4.0)
    return list(told)


def test_a_turn_books_the_step_in_flight_and_starts_the_next(stepped):
    w = state()
    assert turned(w, stepped) == [("schedule", 0)]
    assert w.moments[0] == 9.0
    w.units[0, k.BEGAN] = 1.5
    w.step[0, [k.N_DECODES, k.N_PROMPTS]] = [2.0, 1.0]
    w.rates[0, [k.LAYERS_FRAC, k.PROMPT_PADDING, k.ANSWER_PADDING]] = [0.5, 3.0, 4.0]
    found = turned(w, stepped, shares=True)
    assert found == [
        ("book_decodes", 0.0, 4.0),
        ("book_prompts", 0.0, 4.0),
        ("note_step", 0.0, 1.5, 4.0),
        ("steer_split", 0.0, 2.5),
        ("schedule", 0),
        ("wake_others", 0.0, 4.0),
    ]
    assert np.isnan(w.units[0, k.BEGAN])
    assert w.step[0].sum() == 0.0
    assert w.rates[0, [k.LAYERS_FRAC, k.PROMPT_PADDING, k.ANSWER_PADDING]].tolist() == [1.0, 0.0, 0.0]


def test_a_turn_of_a_batch_that_stays_together(stepped):
    w = state(rules=rules(holds_batch=True))
    w.units[0, k.BEGAN] = 1.5
    lane_of(w, 0, recv_interval=4)
    assert [x[0] for x in turned(w, stepped)] == ["end_batch", "note_step", "steer_split", "_look_for_new", "schedule"]


def test_a_unit_without_work_is_asked_twice(stepped):
    """When the only one was preempted it comes back at once."""
    w = state()
    assert turned(w, stepped, works=False) == [("schedule", 0)] * 2
    assert w.moments[0] == np.inf


def test_arrivals_go_before_events_and_events_before_steps(monkeypatch):
    """All at 1 s: request 2 comes, then 0 whose event is due, then the unit turns; request 3 comes at 5 s, which is
    later than the run may go."""
    told = []
    monkeypatch.setattr(loop, "_arrive", lambda w, order, route, i, now: told.append(("arrive", int(i), now)))

    def turn(w, grant, swap, transfer, overlap, unit, now):
        told.append(("turn", int(unit), now))
        w.moments[unit] = np.inf
        w.winners[1] = 1

    monkeypatch.setattr(loop, "_turn", turn)
    w = state(order=np.array([2, 3]))
    w.when[:, k.ENTER] = [0.0, 0.0, 1.0, 5.0]
    w.counts[k.EVENTS] = pushed(-1, 0, 1.0, w.due_s, w.event_links, w.number)
    w.moments[0] = 1.0
    last_s = source_of(loop.run)(w, 4.0, 0, *[None] * 6)
    assert told == [("arrive", 2, 1.0), ("arrive", 0, 1.0), ("turn", 0, 1.0)]
    assert (last_s, w.counts[k.UPCOMING]) == (1.0, 1)
    w.counts[k.SERVED] = 4
    assert source_of(loop.run)(w, 9.0, 0, *[None] * 6) == 0.0
    assert len(told) == 3


def test_closed_loops_let_so_many_in_at_the_start(monkeypatch):
    told = []
    monkeypatch.setattr(loop, "_arrive", lambda w, order, route, i, now: told.append((int(i), now)))
    w = state(rules=rules(concurrency=2))
    w.when[:, k.ENTER] = [0.5, 0.25, 0.0, 0.0]
    source_of(loop.run)(w, 4.0, 0, *[None] * 6)
    assert told == [(1, 0.25), (0, 0.5)]
    assert w.req[:, k.PLACE].tolist() == [1, 1, 0, 0]


def test_a_cache_that_has_come_wakes_both_lanes(monkeypatch):
    """The lane that answers and the one that computed the prompt; whoever shares a pool with the latter too."""
    told = []
    monkeypatch.setattr(loop, "_turn", lambda w, *given: told.append(given[-2:]) or w.moments.fill(np.inf))
    monkeypatch.setattr(loop, "wake_others", lambda w, unit, now_s: told.append(("others", unit, now_s)))
    w = state(order=np.array([], np.int64))
    put(w, 0, lane=1, status=k.MOVING, source=0, source_blocks=2, made=1)
    w.counts[k.EVENTS] = pushed(-1, 0, 1.0, w.due_s, w.event_links, w.number)
    w.memory.free[0] = 80
    source_of(loop.run)(w, 1.0, 0, *[None] * 6)
    assert (w.req[0, k.SOURCE], w.memory.free[0], w.lanes[1, k.NUM_READY]) == (-1, 100, 1)
    assert told[0] == ("others", 0, 1.0)
    assert w.rates[0, k.NOTED_S] == 1.0

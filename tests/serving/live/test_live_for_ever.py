"""A run without an end: rows, names of blocks, sessions and clients come back, and memory stays what it was."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from playing import Heard, check_empty, live_of
from small_runs import play, prefixes, service_of
from test_live_faults import equal

from orrery.base.errors import ScenarioError
from orrery.serving.live.prefixes import FIRST_IDS, widened
from orrery.serving.live.recent import LruSlots
from orrery.serving.live.result import FINISHED
from orrery.serving.requests import Requests
from orrery.serving.simulation.memory._kernel import found, memory_of, publish, release, take
from orrery.serving.simulation.tables import _kernel as k


def sharing(count, *, rows=8):
    """Requests one after the other, half of whose prompt is one of three that repeat; the run that serves them."""
    zeros = np.zeros(count, dtype=np.int64)
    start, ids = prefixes(zeros + 96, np.arange(count) % 3, zeros + 3, 16)
    requests = Requests(
        arrive_s=np.arange(count) * 0.05,
        input_tokens=zeros + 80,
        output_tokens=zeros + 16,
        client=zeros,
        priority=np.zeros(count),
        prefix_start=start,
        prefix_ids=ids,
        prefix_block_tokens=16,
    )
    return requests, live_of(service_of(), requests, max_requests=rows, blocks=40)


def test_rows_and_names_of_blocks_come_back():
    requests, live = sharing(3000)
    heard = Heard()
    for i in range(requests.count):
        names = [f"block {n}" for n in requests.prefix_ids[requests.prefix_start[i] : requests.prefix_start[i + 1]]]
        now_s = float(requests.arrive_s[i])
        assert live.submit(now_s=now_s, input_tokens=80, output_tokens=16, prefix_ids=names) == i
        heard.add(live.advance(now_s))
    heard.add(live.advance(np.inf))
    assert heard.end == dict.fromkeys(range(requests.count), FINISHED)
    assert np.unique(requests.prefix_ids).size > 2 * FIRST_IDS, "far more names than ids"
    assert live._world.memory.num_ids == FIRST_IDS
    assert live._world.prefix_ids.size == FIRST_IDS
    assert live._prefixes.num_names <= FIRST_IDS
    check_empty(live)
    world, _ = play(service_of(), requests, blocks=40)
    assert live.snapshot().hit_tokens.sum() == world.req[:, k.CACHED].sum() > 48 * 2900


def test_ids_are_more_when_requests_name_more():
    _, live = sharing(3)
    names = [[(i, b) for b in range(6)] for i in range(3)]
    many = [("long", b) for b in range(3 * FIRST_IDS)]
    for i in range(3):
        live.submit(now_s=0.0, input_tokens=80, output_tokens=16, prefix_ids=names[i])
    live.submit(now_s=0.0, input_tokens=80, output_tokens=16, prefix_ids=many)
    assert live._world.memory.num_ids == 4 * FIRST_IDS
    heard = Heard().add(live.advance(1.0))
    assert len(heard.end) == 4
    live.submit(now_s=1.0, input_tokens=80, output_tokens=16, prefix_ids=names[1])
    live.advance(np.inf)
    assert live.snapshot().hit_tokens.sum() == 64, "all whole blocks but the one that holds the last prompt token"
    check_empty(live)


def test_one_whose_blocks_cannot_be_followed_is_refused_and_takes_nothing(monkeypatch):
    _, live = sharing(1, rows=2)
    monkeypatch.setattr("orrery.serving.live.prefixes.MAX_CACHE_NODES", 5000)
    for _ in range(3):
        with pytest.raises(ScenarioError, match="more than can be followed"):
            live.submit(now_s=0.0, input_tokens=80, output_tokens=16, prefix_ids=range(6000))
    assert not live._row_of
    for id in range(2):
        assert live.submit(now_s=0.0, input_tokens=80, output_tokens=16, prefix_ids=range(6)) == id
    assert Heard().add(live.advance(np.inf)).end == {0: FINISHED, 1: FINISHED}
    check_empty(live)


def test_a_wider_table_holds_the_same_blocks_in_the_same_order():
    held, ids = np.arange(40, dtype=np.int64) * 10, np.array([0, 1, 2, 3, 4, 5])
    first, second = (memory_of(np.array([60, 60]), np.array([20, 0]), 6, 2) for _ in range(2))
    for m in (first, second):
        take(m, 0, 60)
        publish(m, 0, ids, 0, 0, 6, held, 1)
        release(m, 0, 0, 60, ids, 0, 6)
    second = widened(second, 11)
    for amount in (10, 30, 20):
        assert take(first, 0, amount)
        assert take(second, 0, amount)
        assert found(first, 0, ids, 0, 6) == found(second, 0, ids, 0, 6)
        assert first.evictable.tolist() == second.evictable.tolist()
        assert first.host_free.tolist() == second.host_free.tolist()
        assert (second.on_host.reshape(2, 11)[:, :6] == first.on_host.reshape(2, 6)).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60))
def test_recent_names_keep_their_numbers(names):
    recent, held = LruSlots(4), {}
    for name in names:
        number, is_new = recent.number_of(name)
        assert 0 <= number < 4
        assert is_new == (held.get(number) != name)
        held[number] = name


def test_clients_and_sessions_without_end_take_no_more_room():
    live = live_of(service_of(fleet="three", router="session-affinity", queue="fair"), equal(), max_requests=4)
    live._sessions, live._clients = LruSlots(3), LruSlots(3)
    for i in range(12):
        live.submit(now_s=0.1 * i, input_tokens=9, output_tokens=2, session=f"talk {i}", client=f"key {i}")
        live.advance(0.1 * i + 0.09)
    live.advance(np.inf)
    assert (live._world.home[:3] >= 0).all()
    assert (live._world.home[3:] == -1).all()
    check_empty(live)

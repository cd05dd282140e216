"""Clients that hang up, replicas that are lost, slow or too many; requests that can never fit; long and short steps."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from playing import Heard, check_empty, live_of, submit
from small_runs import limits, service_of, setting, traffic

from orrery.base.errors import ScenarioError
from orrery.serving.live import Live
from orrery.serving.live.result import FAILED, FINISHED, REFUSED
from orrery.serving.requests import Requests
from orrery.serving.simulation.tables import _kernel as k

QUIET = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def equal(count=6, *, input_tokens=40, output_tokens=12):
    """Requests that all come at once."""
    zeros = np.zeros(count, dtype=np.int64)
    return Requests(
        arrive_s=np.zeros(count),
        input_tokens=zeros + input_tokens,
        output_tokens=zeros + output_tokens,
        client=zeros,
        priority=np.zeros(count),
    )


def all_submitted(requests, *, max_requests=None, blocks=None, seats=None, **chosen):
    """A live run to which everything was submitted."""
    live = live_of(service_of(**chosen), requests, max_requests=max_requests, blocks=blocks, seats=seats)
    for i in range(requests.count):
        submit(live, requests, i)
    return live


def check_whatever_goes_wrong(chosen, limits, requests, seed):
    rng, heard, gone = np.random.default_rng(seed), Heard(), set()
    live = live_of(service_of(**chosen), requests, **{n: x for n, x in limits.items() if n != "concurrency"})
    replicas, now_s = live.snapshot().is_up.size, 0.0
    for i in range(requests.count):
        submit(live, requests, i)
        while rng.random() < 0.6:
            now_s += float(rng.choice([0.0, 1e-3, 8e-3, 0.05]))
            heard.add(live.advance(now_s))
            what, some = rng.integers(0, 6), int(rng.integers(0, replicas))
            if what == 0:
                victim = int(rng.integers(0, i + 1))
                live.cancel(victim, now_s=now_s)
                gone.add(victim)
            elif what == 1 and not chosen["lends_cache"]:
                live.kill(some, now_s=now_s, retry=bool(rng.random() < 0.7))
            elif what == 2:
                live.revive(some, now_s=now_s)
            elif what == 3:
                live.slow(some, float(rng.choice([0.5, 1.0, 3.0])))
    heard.add(live.advance(np.inf))
    check_empty(live)
    for i in range(requests.count):
        assert i in heard.end or i in gone
        if heard.end.get(i) == FINISHED:
            assert heard.tokens[i] == requests.output_tokens[i]
        else:
            assert heard.tokens.get(i, 0) <= requests.output_tokens[i]


@settings(max_examples=15, **QUIET)
@given(setting(), limits(), traffic(following=False), st.integers(0, 2**32 - 1))
def test_whatever_goes_wrong_nothing_is_lost_or_left_over(chosen, limits, requests, seed):
    check_whatever_goes_wrong(chosen, limits, requests, seed)


@pytest.mark.slow
@settings(max_examples=1500, **QUIET)
@given(setting(), limits(), traffic(following=False), st.integers(0, 2**32 - 1))
def test_whatever_goes_wrong_over_many_runs(chosen, limits, requests, seed):
    check_whatever_goes_wrong(chosen, limits, requests, seed)


@pytest.mark.parametrize("lost", ["source", "target"])
def test_a_first_token_that_was_lost_with_its_cache_is_sent_once(lost):
    """It goes to the client with the cache. Where either side is lost before, the prompt is computed again.

    The answer has four tokens whichever is lost, the first as long after the loss as it would come after the request.
    """
    requests = equal(1, input_tokens=200, output_tokens=4)
    live = all_submitted(requests, fleet="pools")
    came_s = live.next_s
    while not live.world.req[0, k.MADE]:
        assert not live.advance(live.next_s).id.size
    world, at_s = live.world, live.clock_s
    assert world.req[0, k.SOURCE] >= 0
    column = k.SOURCE if lost == "source" else k.LANE
    replica = int(world.unit_machine[world.lanes[world.req[0, column], k.UNIT]])
    live.kill(replica, now_s=at_s)
    live.revive(replica, now_s=at_s)
    heard = Heard().add(live.advance(np.inf))
    assert (heard.tokens, heard.end) == ({0: 4}, {0: FINISHED})
    whole = Heard().add(all_submitted(requests, fleet="pools").advance(np.inf))
    assert heard.first[0] == pytest.approx(at_s + whole.first[0] - came_s, rel=1e-9)
    check_empty(live)


def test_thousands_hang_up_in_any_order_and_soon():
    """Half of them while they wait, half on their way: as many steps as the depth of a heap, not its size."""
    requests = equal(4000)
    live = all_submitted(requests, seats=1)
    order = np.random.default_rng(0).permutation(4000).tolist()
    for id in order[:2000]:
        live.cancel(id, now_s=0.0)
    live.advance(0.05)
    assert live.num_waiting > 1900
    for id in order[2000:]:
        live.cancel(id, now_s=0.05)
    assert live.num_waiting == 0
    live.advance(np.inf)
    check_empty(live)


def test_a_long_way_is_gone_in_pieces_to_the_same_end():
    whole = Heard().add(all_submitted(equal(output_tokens=60), seats=2).advance(np.inf))
    live, heard, clocks_s = all_submitted(equal(output_tokens=60), seats=2), Heard(), []
    while live.next_s < np.inf:
        description = live.advance(1e6, 10)
        assert description.id.size <= 10 + 4, "one event's more: two tokens and two ends"
        heard.add(description)
        clocks_s.append(live.clock_s)
    assert len(clocks_s) > 20
    assert (np.diff(clocks_s) >= 0).all()
    assert (heard.tokens, heard.first, heard.ended_s) == (whole.tokens, whole.first, whole.ended_s)


def test_one_who_hangs_up_makes_room_at_once():
    requests = equal(2, input_tokens=60, output_tokens=100)
    live = all_submitted(requests, blocks=10, seats=1)
    before = live.advance(0.1)
    assert set(before.id.tolist()) == {0}, "the second waits for the only seat"
    assert live.snapshot().cache_frac[0] >= 0.4
    live.cancel(0, now_s=0.1)
    assert live.snapshot().cache_frac[0] == 0.0
    after = Heard().add(live.advance(np.inf))
    assert after.tokens == {1: 100}
    assert after.end == {1: FINISHED}
    check_empty(live)


def test_one_who_hangs_up_while_it_waits_or_is_on_its_way_is_never_served():
    requests = equal(3)
    live = all_submitted(requests, seats=1)
    live.cancel(2, now_s=0.0)
    assert live.snapshot().waiting.sum() == 0, "still in the front end"
    heard = Heard().add(live.advance(0.03))
    assert live.snapshot().waiting.tolist() == [1]
    live.cancel(1, now_s=0.03)
    assert live.snapshot().waiting.tolist() == [0]
    heard.add(live.advance(np.inf))
    assert heard.tokens == {0: 12}
    live.cancel(0, now_s=9.0)
    live.cancel(77, now_s=9.0)
    check_empty(live)


def test_a_lost_replicas_requests_go_on_elsewhere_with_what_they_had():
    live, heard = all_submitted(equal(output_tokens=60), fleet="three"), Heard()
    heard.add(live.advance(0.2))
    assert live.snapshot().running.tolist() == [2, 2, 2]
    had = dict(heard.tokens)
    live.kill(1, now_s=0.2)
    assert live.snapshot().is_up.tolist() == [1, 0, 1]
    heard.add(live.advance(0.25))
    assert live.snapshot().running.tolist() == [3, 0, 3]
    heard.add(live.advance(np.inf))
    assert heard.tokens == dict.fromkeys(range(6), 60)
    assert all(0 < n < 60 for n in had.values())
    assert live.snapshot().answer_tokens.sum() == 360, "no token is made twice"
    check_empty(live)


def test_without_a_retry_they_fail_and_without_replicas_so_do_later_ones():
    live = all_submitted(equal(2, output_tokens=60))
    heard = Heard().add(live.advance(0.1))
    live.kill(0, now_s=0.1, retry=False)
    heard.add(live.advance(0.1))
    assert heard.end == {0: FAILED, 1: FAILED}
    assert heard.ended_s == {0: 0.1, 1: 0.1}
    assert live.submit(now_s=0.2, input_tokens=4, output_tokens=4) == 2
    heard.add(live.advance(0.3))
    assert heard.end[2] == FAILED
    live.revive(0, now_s=0.4)
    live.submit(now_s=0.5, input_tokens=4, output_tokens=4)
    assert heard.add(live.advance(np.inf)).end[3] == FINISHED
    check_empty(live)


def test_a_prompt_whose_successor_is_gone_fails():
    live = all_submitted(equal(1, input_tokens=1500), fleet="pools")
    while not live.snapshot().running.any():
        live.advance(live.next_s)
    now_s = live.next_s
    live.kill(2, now_s=now_s)
    live.kill(3, now_s=now_s)
    heard = Heard().add(live.advance(np.inf))
    assert heard.tokens == {0: 1}, "the prompt's own"
    assert heard.end == {0: FAILED}
    check_empty(live)


def test_a_slow_replica_takes_so_many_times_as_long_a_step():
    def gaps_s(factor):
        live = all_submitted(equal(1, output_tokens=9))
        live.slow(0, factor)
        return np.diff(live.advance(np.inf).time_s[:9])

    np.testing.assert_allclose(gaps_s(3.0), 3.0 * gaps_s(1.0), rtol=1e-9)


def test_fewer_replicas_finish_what_they_have_and_take_no_more():
    requests = equal(output_tokens=200)
    live = live_of(service_of(fleet="three"), requests)
    for i in range(3):
        submit(live, requests, i)
    live.advance(0.1)
    live.set_replicas(1, now_s=0.1)
    for i in range(3, 6):
        submit(live, requests, i, later_s=0.1)
    live.advance(0.3)
    assert live.snapshot().running.tolist() == [4, 1, 1]
    live.kill(0, now_s=0.3)
    live.advance(0.35)
    assert live.snapshot().running.tolist() == [0, 5, 1], "the first that is up takes them"
    assert Heard().add(live.advance(np.inf)).end == dict.fromkeys(range(6), FINISHED)
    check_empty(live)


def test_what_can_never_fit_is_refused_when_it_comes():
    live = live_of(service_of(), equal(), max_requests=4, blocks=5)
    live.submit(now_s=0.0, input_tokens=70, output_tokens=20)
    live.submit(now_s=0.0, input_tokens=10**6, output_tokens=1)
    live.submit(now_s=0.0, input_tokens=30, output_tokens=5)
    heard = Heard().add(live.advance(np.inf))
    assert heard.end == {0: REFUSED, 1: REFUSED, 2: FINISHED}
    assert set(heard.tokens) == {2}
    check_empty(live)


def test_what_makes_no_sense_is_said():
    live = live_of(service_of(), equal(), max_requests=1)
    with pytest.raises(ScenarioError, match="at least 1 each"):
        live.submit(now_s=0.0, input_tokens=0, output_tokens=4)
    live.submit(now_s=0.0, input_tokens=4, output_tokens=4)
    with pytest.raises(ScenarioError, match="1 requests are unfinished"):
        live.submit(now_s=0.0, input_tokens=4, output_tokens=4)
    with pytest.raises(ScenarioError, match="write 0 to 0"):
        live.kill(1, now_s=0.0)
    with pytest.raises(ScenarioError, match="factor"):
        live.slow(0, 0.0)
    with pytest.raises(ScenarioError, match="which has 1"):
        live.set_replicas(2, now_s=0.0)
    lending = live_of(service_of(fleet="three", lends_cache=True), equal())
    with pytest.raises(ScenarioError, match="stand and fall together"):
        lending.kill(0, now_s=0.0)


def test_late_ones_come_now_and_idle_days_change_nothing():
    live = live_of(service_of(), equal(), max_requests=2)
    took = []
    for day in range(3):
        now_s = day * 86_400.0
        live.advance(now_s)
        live.submit(now_s=now_s - 5.0 if day else 0.0, input_tokens=40, output_tokens=3)
        description = live.advance(now_s + 60.0)
        took.append(description.time_s - now_s)
        assert live.next_s == np.inf
    np.testing.assert_allclose(took[1][1:] - took[1][0], took[0][1:] - took[0][0], atol=1e-9)
    assert took[1][0] < took[0][0], "its front end was long past"
    assert isinstance(live, Live)

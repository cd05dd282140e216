"""Routers and queues on loads that can be read off, and what remembers names."""

import pytest

from orrery.serving.live.recent import LruSlots
from orrery.serving.simulation.rules import QUEUES, ROUTERS
from orrery.serving.techniques import kv_cost

REQUESTS, TOKENS, BLOCKS = [5.0, 2.0, 9.0, 2.0], [500.0, 90.0, 80.0, 70.0], [3.0, 0.0, 8.0, 1.0]


def route(name, *, requests=REQUESTS, home=-1, turn=0, draws=(0.0, 0.0), knobs=()):
    """The replica that a router picks of four."""
    return ROUTERS.get(name).rule(requests, TOKENS, BLOCKS, home, turn, *draws, knobs)


@pytest.mark.parametrize(
    ("draws", "picked"),
    [
        ((0.0, 0.3), 1),  # of the first and the second the second is shorter
        ((0.3, 0.0), 1),
        ((0.6, 0.1), 0),  # the third has 9, the first 5
        ((0.3, 0.8), 1),  # equal: the first that was drawn
        ((0.8, 0.3), 3),
        ((0.74, 0.74), 2),
        ((0.99, 0.5), 3),
        ((1.0, 0.6), 3),  # a draw of 1 is the last
        ((0.6, 1.0), 3),
    ],
)
def test_the_shorter_of_two_draws(draws, picked):
    assert route("power-of-two", draws=draws) == picked


def test_routers_without_chance():
    assert route("least-loaded") == 1
    assert [route("round-robin", turn=turn) for turn in range(6)] == [0, 1, 2, 3, 0, 1]
    assert route("session-affinity", home=2) == 2
    assert route("session-affinity", home=0) == 0
    assert route("session-affinity") == 1


@pytest.mark.parametrize(
    ("behind", "picked"),
    [
        (7.0, 2),  # 9 is not more than 2 + 7
        (6.9, 0),
        (3.0, 0),
        (2.9, 3),  # one block against none
        (0.0, 3),
    ],
)
def test_the_longest_prefix_of_those_that_are_not_too_far_behind(behind, picked):
    assert route("prefix-aware", knobs=[behind]) == picked


def test_equal_prefixes_go_to_the_shorter_queue():
    rule = ROUTERS.get("prefix-aware").rule
    assert rule([5.0, 4.0, 4.0], [0.0] * 3, [2.0, 2.0, 2.0], -1, 0, 0.0, 0.0, [8.0]) == 1
    assert rule([4.0, 5.0], [0.0] * 2, [2.0, 2.0], -1, 0, 0.0, 0.0, [8.0]) == 0


@pytest.mark.parametrize(("draw", "picked"), [(0.0, 0), (0.24, 0), (0.25, 1), (0.9, 1), (0.92, 2), (1.0, 2)])
def test_costs_are_drawn_by_their_softmax(draw, picked):
    """Costs 40, 20 and 60 over a spread of 40 at a temperature of 0.5 weigh e^-1, 1 and e^-2: 0.24, 0.67 and 0.09."""
    tokens, blocks = [200.0, 20.0, 60.0], [10.0, 0.0, 0.0]
    assert kv_cost.route([0.0] * 3, tokens, blocks, -1, 0, draw, 0.0, [1.0, 0.5, 16.0]) == picked


def test_of_equal_costs_the_first_is_taken_whatever_the_temperature():
    assert kv_cost.route([0.0] * 2, [50.0, 50.0], [0.0, 0.0], -1, 0, 0.9, 0.0, [1.0, 0.5, 16.0]) == 0
    assert kv_cost.route([0.0] * 2, [50.0, 40.0], [0.0, 0.0], -1, 0, 0.9, 0.0, [1.0, 0.0, 16.0]) == 1


def test_keys_of_queues():
    """The smallest comes first: of times, of priorities' worth of them, of answers, of clients' turns."""
    keys = {name: QUEUES.get(name).rule for name in ("fcfs", "priority", "shortest-first", "fair")}
    assert keys["fcfs"](7.0, 2.0, 100.0, 10.0, 55.0, []) == 7
    assert keys["priority"](7.0, 2.0, 100.0, 10.0, 55.0, [30.0]) == 67
    assert keys["fair"](7.0, 2.0, 100.0, 10.0, 55.0, []) == 55
    assert keys["shortest-first"](7.0, 2.0, 100.0, 10.0, 55.0, [0.1]) == 20


def test_names_keep_their_numbers_until_others_were_heard_of_more_recently():
    slots = LruSlots(2)
    assert slots.number_of("a") == (0, True)
    assert slots.number_of("b") == (1, True)
    assert slots.number_of("a") == (0, False)
    assert slots.number_of("c") == (1, True)  # b was silent for longest
    assert slots.number_of("b") == (0, True)
    assert slots.number_of("c") == (1, False)

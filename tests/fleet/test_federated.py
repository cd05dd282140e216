"""Schedules of clients: who waits, who is stale, and that all of them learn."""

import numpy as np
import pytest

from orrery.base.errors import UnknownName
from orrery.fleet.federated import FEDERATED
from orrery.fleet.federated.federation import History, Holdings, federation, staleness_weight

NAMES = ("federated-average", "federated-async", "federated-compass")
EQUAL = (0.01,) * 3


def history(name, step_s, run_s=4.0, **knobs):
    technique = FEDERATED.get(name)
    return technique.rule(federation(step_s, run_s=run_s), technique.knobs(**knobs))


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_learns(name):
    assert history(name, EQUAL, run_s=8.0).final_frac > 0.8


def test_a_round_lasts_as_long_as_its_slowest_client():
    found = history("federated-average", (0.001, 0.002, 0.01), run_s=2.1, num_steps=50)
    assert found.time_s == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0])


def test_an_asynchronous_server_hears_fast_clients_more_often():
    found = history("federated-async", (0.005, 0.01, 0.02), run_s=2.05, num_steps=20)
    assert found.time_s[1:4] == pytest.approx([0.1, 0.2, 0.2])
    assert found.time_s.size == 1 + 20 + 10 + 5


def test_compass_brings_equal_clients_in_together():
    found = history("federated-compass", EQUAL, run_s=1.0, num_least=10, num_most=20)
    gaps = np.diff(found.time_s)
    assert gaps == pytest.approx(np.full(gaps.size, 0.2))  # twenty steps of 0.01 s each


def test_equal_clients_under_compass_are_synchronous_averaging():
    ours = history("federated-compass", EQUAL, run_s=2.0, num_least=5, num_most=20)
    theirs = history("federated-average", EQUAL, run_s=2.0, num_steps=20)
    assert ours.time_s == pytest.approx(theirs.time_s)
    assert ours.accuracy_frac == pytest.approx(theirs.accuracy_frac)


def test_clients_within_the_range_of_steps_are_one_group_that_nobody_waits_for():
    """The fastest takes 40 steps of 1 ms; one at 2 ms takes 20 meanwhile, one at 3 ms takes 13: a round each 40 ms."""
    found = history("federated-compass", (0.002, 0.001, 0.003), run_s=0.4, num_least=10, num_most=40)
    assert np.diff(found.time_s) == pytest.approx(np.full(10, 0.04))


def test_a_client_too_slow_for_a_group_opens_one_that_others_can_join():
    """At 10 ms a step four fit until 40 ms, and eight until the fast one turns again at 80 ms: fewer than ten, so it
    opens a group with ten, due at 100 ms, which the fast one joins at 80 ms for its last 20 steps."""
    found = history("federated-compass", (0.001, 0.01), run_s=0.2, num_least=10, num_most=40)
    assert found.time_s[:4] == pytest.approx([0.0, 0.04, 0.08, 0.1])


def test_compass_gives_fast_clients_more_steps():
    found = history("federated-compass", (0.01, 0.02), run_s=3.0, num_least=5, num_most=40)
    assert np.diff(found.time_s).min() > 0.0
    assert found.time_s.size < 3.0 / (5 * 0.01)  # fewer arrivals than if the fast one came alone


def test_age_counts_less():
    assert staleness_weight(0, 0.5) == 1.0
    assert staleness_weight(3, 0.5) == 0.5


def test_clients_mostly_hold_their_own_classes():
    found = federation(EQUAL, run_s=1.0)
    for client, part in enumerate(found.parts):
        assert 0.85 < (part.labels % 3 == client).mean() < 1.0


def test_clients_that_share_classes_hold_as_many_as_is_said_and_every_point_once():
    found = federation((0.01,) * 5, run_s=1.0, num_classes=10, holdings=Holdings(least=5, most=6), seed=3)
    assert {len(set(part.labels.tolist())) for part in found.parts} <= {5, 6}
    assert sum(part.labels.size for part in found.parts) == found.data.train.labels.size
    assert len({label for part in found.parts for label in part.labels.tolist()}) == 10


def test_when_a_target_is_reached():
    found = History(time_s=np.array([0.0, 1.0, 2.0]), accuracy_frac=np.array([0.1, 0.6, 0.5]))
    assert found.reached_s(0.55) == 1.0
    assert found.reached_s(0.9) == float("inf")


def test_an_unknown_schedule_is_told_its_neighbours():
    with pytest.raises(UnknownName, match="federated-async"):
        FEDERATED.get("federated-asyn")

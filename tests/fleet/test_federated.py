"""Schedules of clients: who waits, who is stale, and that all of them learn."""

import numpy as np
import pytest

from orrery.base.errors import UnknownName
from orrery.fleet.federated import FEDERATED
from orrery.fleet.federated.federation import History, federation, staleness_weight

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
    assert gaps == pytest.approx(np.full(gaps.size, 0.1))


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


def test_when_a_target_is_reached():
    found = History(time_s=np.array([0.0, 1.0, 2.0]), accuracy_frac=np.array([0.1, 0.6, 0.5]))
    assert found.reached_s(0.55) == 1.0
    assert found.reached_s(0.9) == float("inf")


def test_an_unknown_schedule_is_told_its_neighbours():
    with pytest.raises(UnknownName, match="federated-async"):
        FEDERATED.get("federated-asyn")

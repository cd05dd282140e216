"""Runs in which requests follow one another: how long they last, by hand, and that every request is told once."""

import numpy as np
import pytest

from orrery.fleet.service.run import earliest_s
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.serving.requests import Requests

TALK = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 200, "output_tokens": 20, "rate": 2.0}


def test_when_followers_come_at_the_earliest():
    """At 1 s, 5 s after that, 2 s after that one; another at 4 s, and 7 s after it."""
    requests = Requests(
        arrive_s=np.array([1.0, 5.0, 2.0, 4.0, 7.0]),
        input_tokens=np.full(5, 10),
        output_tokens=np.full(5, 10),
        after=np.array([-1, 0, 1, -1, 3]),
    )
    assert earliest_s(requests).tolist() == [1.0, 6.0, 8.0, 4.0, 11.0]
    assert requests.arrive_s.tolist() == [1.0, 5.0, 2.0, 4.0, 7.0]


def test_a_run_of_conversations_ends_with_the_last_of_them():
    """Not after the sum of all pauses, which are 20 s each: the price is that of the time until the last answer."""
    answer = simulate_fleet(**TALK, turns=4, think_s=20.0, days=0.005, usd_per_hour=3.6, cold_start_s=1.0)
    run = answer.run
    last_s = float(run.outcome.finish_s.max())
    assert answer.inputs.top.days * 86_400.0 <= run.end_s == pytest.approx(max(last_s, 432.0))
    assert answer.cost_usd == pytest.approx(run.end_s * 1e-3)
    assert run.fates["served"] == answer.num_sent
    assert run.end_s < 2_000.0 < run.requests.arrive_s.sum()

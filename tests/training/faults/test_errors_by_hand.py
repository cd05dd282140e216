"""How faults are found and what they cost, strike by strike; and flows over spines."""

from dataclasses import replace
from math import e, exp
from statistics import NormalDist

import numpy as np
import pytest
from orrery.training.faults.error_cost import FaultEvent, Job, error_cost, mean_lost_s, play
from orrery.training.faults.paths import (
    Contention,
    Flow,
    _degrees,
    _fullest,
    _with_link,
    contention,
    expected_fullest,
    fullest_link_probabilities,
    job_gain_ratio,
    plan,
    ring_flows,
)

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.faults import error_cost as costs
from orrery.training.faults import paths
from orrery.training.faults.detection import FaultKind, HeartbeatDetection, Response, Timeout, slow_rank

CRASH = FaultKind(name="crash", device_mtbf_s=1000.0)
SLOW = FaultKind(name="slow", device_mtbf_s=500.0, slowdown_ratio=2.0)


def test_delays_until_the_restart():
    """A rhythm: half a report of 4 s and two steps of 5 s. A rank of double the time stands out of a noise of 0.02
    after a step: (z x 0.02)^2 < 1, at double the step."""
    assert CRASH.stops
    assert not SLOW.stops
    people = Timeout(timeout_s=30.0, slow_detection_s=500.0, diagnosis_s=60.0)
    assert people.response(CRASH) == Response(detection_s=30.0, diagnosis_s=60.0)
    assert people.response(SLOW) == Response(detection_s=500.0, diagnosis_s=60.0)
    rhythm = HeartbeatDetection(step_s=5.0, num_ranks=100, report_s=4.0, diagnosis_s=7.0)
    assert rhythm.response(CRASH) == Response(detection_s=2.0 + 10.0, diagnosis_s=7.0)
    assert rhythm.response(SLOW) == Response(detection_s=2.0 + 5.0 * 2.0, diagnosis_s=7.0)
    assert rhythm.threshold == pytest.approx(NormalDist().inv_cdf(1 - 1e-4))
    assert rhythm.slow_steps(1.01) == int(np.ceil((rhythm.threshold * 2) ** 2))
    assert rhythm.slow_steps(1.0) == 0
    little = replace(SLOW, slowdown_ratio=1.01)
    assert rhythm.response(little).detection_s == pytest.approx(2.0 + 5.0 * 1.01 * rhythm.slow_steps(1.01))
    assert (rhythm.noise_frac, rhythm.num_missed_steps, rhythm.false_alarm_frac) == (0.02, 2, 0.01)


def test_the_rank_that_is_late_beyond_chance():
    """Late by 3 against the median of each of four steps: beyond 2 x 2 / sqrt(4)."""
    arrivals = np.array([[0.0, 3.0, 0.0]] * 4) + np.arange(4.0)[:, None]
    assert slow_rank(arrivals, 2.0, 2.0) == 1
    assert slow_rank(arrivals, 2.0, 3.0) == -1  # not beyond it
    assert slow_rank(np.zeros((4, 3)), 2.0, 2.0) == -1


JOB = Job(num_devices=10, interval_s=20.0, restart_s=3.0)


def test_work_since_the_last_save():
    """Half an interval where failures are rare; 1/r - t / (e^(rt) - 1) else."""
    assert mean_lost_s(1e-9, 20.0) == 10.0
    assert mean_lost_s(0.05, 20.0) == pytest.approx(20 - 20 / (e - 1))
    assert mean_lost_s(1e-7, 20.0) == pytest.approx(10.0, rel=1e-5)


class Found:
    """Crashes after 2 s, stragglers after 10 s; 4 s to set a node aside."""

    def response(self, kind):
        return Response(detection_s=2.0 if kind.stops else 10.0, diagnosis_s=4.0)


def test_shares_of_two_kinds_of_faults():
    """0.01 crashes and 0.02 stragglers a second, 0.03 in all; a straggler is found before the next fault with e^-0.3,
    and costs half of (1 - e^-0.3) / 0.03 s."""
    found = error_cost(JOB, [CRASH, SLOW], Found())
    lost, alone = mean_lost_s(0.03, 20.0), exp(-0.3)
    slow = (1 - alone) / 0.03 / 2
    wasted = 0.01 * lost + 0.02 * (alone * lost + slow)
    running = 1 / (1 - wasted)
    parts = running * np.array(
        [
            0.01 * lost + 0.02 * alone * lost,
            0.02 * slow,
            0.01 * 2,
            (0.01 + 0.02 * alone) * 4,
            (0.01 + 0.02 * alone) * 3,
        ]
    )
    time_s = 1 + parts.sum()
    shares = [found.lost_frac, found.slow_frac, found.detection_frac, found.diagnosis_frac, found.restart_frac]
    assert shares == pytest.approx((parts / time_s).tolist())
    assert found.useful_frac == pytest.approx(1 / time_s)
    assert found.overhead_frac == pytest.approx(1 - 1 / time_s)
    assert found.num_failures_per_s == pytest.approx(running * 0.03 / time_s)
    with pytest.raises(OutOfRange, match="save more often"):
        error_cost(replace(JOB, interval_s=1e9), [replace(CRASH, device_mtbf_s=1.0)], Found())


def test_strikes_one_by_one():
    """Saves every 20 s of work. 50 s run until a crash: 10 s are lost. Then a straggler after 30 s, found after 10 s of
    which 5 s were work: 35 s since the restart, 15 s lost; 20 s more until the next straggler; 4 s on, before it is
    found, a crash: 2 s at half pace, 22 s in all, 2 s lost."""
    strikes = [
        FaultEvent(kind=CRASH, device=0, after_s=50.0),
        FaultEvent(kind=SLOW, device=0, after_s=30.0),
        FaultEvent(kind=SLOW, device=0, after_s=30.0),
        FaultEvent(kind=CRASH, device=0, after_s=4.0),
    ]
    found = play(JOB, strikes, Found())
    useful, lost, slow = 40.0 + 20.0 + 20.0, 10.0 + 15.0 + 2.0, 5.0 + 2.0
    time_s = useful + lost + slow + 2 * 2.0 + 3 * 4.0 + 3 * 3.0
    assert found.useful_frac == pytest.approx(useful / time_s)
    assert found.lost_frac == pytest.approx(lost / time_s)
    assert found.slow_frac == pytest.approx(slow / time_s)
    assert found.detection_frac == pytest.approx(4.0 / time_s)
    assert (found.diagnosis_frac, found.restart_frac) == (pytest.approx(12.0 / time_s), pytest.approx(9.0 / time_s))
    assert found.num_failures_per_s == pytest.approx(4 / time_s)


def test_strikes_from_known_numbers(monkeypatch):
    """A third of strikes are crashes: numbers below it; they come every 1 / 0.03 s on average."""

    class Draws:
        def random(self, count):
            return np.array([0.2, 0.4])

        def integers(self, low, high, count):
            assert (low, high) == (0, 10)
            return np.array([7, 8])

        def exponential(self, mean_s, count):
            return np.array([1.0, 2.0]) * mean_s

    monkeypatch.setattr(costs, "stream", lambda seed, name: Draws())
    found = costs.draw_strikes(JOB, [CRASH, SLOW], 2)
    assert [(f.kind.name, f.device) for f in found] == [("crash", 7), ("slow", 8)]
    assert [f.after_s for f in found] == pytest.approx([1 / 0.03, 2 / 0.03])


def test_odds_of_the_fullest_link():
    """Two flows on two links: half of the time on one. Three on two: 1/4 on one, else 2 and 1."""
    assert fullest_link_probabilities(2, 2) == pytest.approx([0.0, 0.5, 1.0])
    assert fullest_link_probabilities(3, 2) == pytest.approx([0.0, 0.0, 0.75, 1.0])
    assert fullest_link_probabilities(0, 5) == [1.0]
    assert (expected_fullest(2, 2), expected_fullest(3, 2)) == (pytest.approx(1.5), pytest.approx(2.25))
    assert expected_fullest(4, 1) == pytest.approx(4.0)
    assert _with_link(np.array([1.0, 0.0, 0.0]), 1, 1).tolist() == [1.0, 1.0, 0.0]
    for flows, links in ((-1, 2), (2, 0)):
        with pytest.raises(ScenarioError, match="flows"):
            fullest_link_probabilities(flows, links)


def test_rings_over_leaves():
    """Leaves 0, 0, 1, 2: the flow within leaf 0 needs no spine, and the last goes back."""
    assert ring_flows([0, 0, 1, 2]) == [Flow(source=0, target=1), Flow(source=1, target=2), Flow(source=2, target=0)]
    assert ring_flows([3, 3]) == []


def test_flows_on_links_up_and_down():
    """Three flows from leaf 0 to 1, 2 and 2: spines (0, 0, 0) put three on a link up; (0, 1, 1) two; (0, 1, 0) two up
    from leaf 0 over spine 0."""
    flows = [Flow(source=0, target=1), Flow(source=0, target=2), Flow(source=0, target=2)]
    assert _fullest(flows, np.array([[0, 0, 0], [0, 1, 1], [0, 1, 0], [0, 1, 2]]), 3).tolist() == [3, 2, 2, 1]
    into = [Flow(source=0, target=2), Flow(source=1, target=2)]
    assert _fullest(into, np.array([[1, 1], [0, 1]]), 2).tolist() == [2, 1]
    assert _degrees([0, 0, 2]) == {0: 2, 2: 1}


def test_planned_spines():
    """Four flows between two leaves and two others: no link gets two. Five from a leaf over two spines: 3 and 2."""
    flows = [Flow(source=a, target=b) for a in (0, 1) for b in (2, 3)]
    assert _fullest(flows, plan(flows, 2)[None], 2).tolist() == [1]
    five = [Flow(source=0, target=1 + i % 3) for i in range(5)]
    assert sorted(np.bincount(plan(five, 2)).tolist()) == [2, 3]


def test_hashed_against_planned(monkeypatch):
    """Draws of two flows over two spines: together, apart, apart, together. Two planes: the slower of each pair."""

    class Draws:
        def integers(self, low, high, size):
            assert (low, high) == (0, 2)
            return np.resize(np.array([0, 0, 0, 1, 1, 0, 1, 1]), size)

    monkeypatch.setattr(paths, "stream", lambda seed, name: Draws())
    flows = [Flow(source=0, target=1), Flow(source=0, target=2)]
    found = contention(flows, 2, num_draws=4)
    assert (found.hashed_ratio, found.planned_ratio, found.gain_ratio) == (1.5, 1.0, 1.5)
    assert found.hashed_p99_ratio == 2.0
    assert contention(flows, 2, num_draws=2, num_planes=2).hashed_ratio == 2.0
    # each flow in two: 0 0 0 1 is three of four halves on a link, 1 0 1 1 too
    assert contention(flows, 2, num_draws=2, num_connections=2).hashed_ratio == 1.5
    assert contention([], 2) == Contention(hashed_ratio=1.0, hashed_p99_ratio=1.0, planned_ratio=1.0)
    alone = contention([Flow(source=0, target=1)], 2, num_draws=4, num_connections=4)
    assert alone.hashed_ratio >= 1.0  # a flow alone is no faster for being cut


def test_a_job_gains_by_the_share_that_shows():
    """Half of the time at double speed: 1 / 0.75."""
    assert job_gain_ratio(0.5, 2.0) == pytest.approx(4 / 3)
    assert (job_gain_ratio(0.0, 2.0), job_gain_ratio(1.0, 2.0)) == (1.0, 2.0)

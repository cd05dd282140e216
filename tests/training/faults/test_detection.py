"""Faults by kind: how long until they are found, what they take in all, and what paths do to a collective."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.faults.detection import FaultKind, HeartbeatDetection, Timeout, slow_rank
from orrery.training.faults.error_cost import Job, draw_strikes, error_cost, play
from orrery.training.faults.paths import (
    Flow,
    contention,
    expected_fullest,
    fullest_link_probabilities,
    job_gain_ratio,
    plan,
    ring_flows,
)

HOUR, YEAR = 3600.0, 365 * 86400.0
JOB = Job(num_devices=2048, interval_s=1800.0, restart_s=300.0)
KINDS = (
    FaultKind(name="crash", device_mtbf_s=12 * YEAR),
    FaultKind(name="hang", device_mtbf_s=15 * YEAR),
    FaultKind(name="straggler", device_mtbf_s=20 * YEAR, slowdown_ratio=1.3),
)
BY_HAND = Timeout(timeout_s=1800.0, slow_detection_s=6 * HOUR, diagnosis_s=2 * HOUR)
RHYTHM = HeartbeatDetection(step_s=10.0, num_ranks=2048, report_s=10.0, diagnosis_s=300.0)


def parts(cost):
    return (
        cost.useful_frac
        + cost.lost_frac
        + cost.slow_frac
        + cost.detection_frac
        + cost.diagnosis_frac
        + cost.restart_frac
    )


def test_a_rhythm_finds_faults_sooner_than_a_timeout():
    crash, _, straggler = KINDS
    assert BY_HAND.response(crash).detection_s == 1800.0
    assert RHYTHM.response(crash).detection_s == 25.0
    assert BY_HAND.response(straggler).detection_s == 6 * HOUR
    assert RHYTHM.response(straggler).detection_s == pytest.approx(5.0 + 13.0 * RHYTHM.slow_steps(1.3))


@given(st.floats(1.001, 3.0), st.floats(1.001, 3.0))
def test_the_slower_the_rank_the_fewer_steps_it_takes(a, b):
    low, high = sorted((a, b))
    assert RHYTHM.slow_steps(high) <= RHYTHM.slow_steps(low)


def test_a_slow_rank_stands_out_when_predicted_and_a_healthy_job_hardly_ever():
    watch = replace(RHYTHM, num_ranks=256, noise_frac=0.05)
    steps, draws = watch.slow_steps(1.03), np.random.default_rng(0)
    found = {4 * steps: 0, max(1, steps // 4): 0}
    for count, _ in itertools.product(found, range(100)):
        arrivals = 10.0 + 0.5 * draws.standard_normal((count, 256))
        arrivals[:, 77] += 0.3
        found[count] += slow_rank(arrivals, 0.5, watch.threshold) == 77
    assert found[4 * steps] >= 95
    assert found[max(1, steps // 4)] <= 30
    alarms = [slow_rank(10.0 + 0.5 * draws.standard_normal((steps, 256)), 0.5, watch.threshold) for _ in range(200)]
    assert sum(rank >= 0 for rank in alarms) <= 10


@pytest.mark.parametrize("detector", [BY_HAND, RHYTHM])
def test_shares_add_up_and_agree_with_strikes_played_out(detector):
    mean = error_cost(JOB, KINDS, detector)
    played = play(JOB, draw_strikes(JOB, KINDS, 20_000, seed=2), detector)
    assert parts(mean) == pytest.approx(1.0)
    assert parts(played) == pytest.approx(1.0)
    for name in ("useful_frac", "lost_frac", "slow_frac", "detection_frac", "diagnosis_frac", "restart_frac"):
        assert getattr(played, name) == pytest.approx(getattr(mean, name), rel=0.05, abs=0.004), name
    assert played.num_failures_per_s == pytest.approx(mean.num_failures_per_s, rel=0.03)


def test_overhead_worked_by_hand_for_rare_faults():
    kinds = (FaultKind(name="hang", device_mtbf_s=1e12),)
    cost = error_cost(JOB, kinds, BY_HAND)
    per_failure = 900.0 + 1800.0 + 7200.0 + 300.0
    assert cost.overhead_frac == pytest.approx(2048 / 1e12 * per_failure, rel=1e-3)
    with pytest.raises(OutOfRange, match="save more often"):
        error_cost(replace(JOB, interval_s=1e9), (replace(KINDS[0], device_mtbf_s=2e6),), BY_HAND)


def test_strikes_are_spread_over_devices_and_kinds():
    strikes = draw_strikes(JOB, KINDS, 6000)
    share = sum(s.kind.name == "crash" for s in strikes) / 6000
    assert share == pytest.approx((1 / 12) / (1 / 12 + 1 / 15 + 1 / 20), abs=0.03)
    assert len({s.device for s in strikes}) > 1800


@pytest.mark.parametrize(("flows", "links"), [(0, 3), (1, 1), (3, 2), (4, 3), (5, 4)])
def test_odds_of_the_fullest_link_are_those_of_all_choices(flows, links):
    chosen = [max((c.count(x) for x in set(c)), default=0) for c in itertools.product(range(links), repeat=flows)]
    requested = [sum(m <= k for m in chosen) / len(chosen) for k in range(flows + 1)]
    assert fullest_link_probabilities(flows, links) == pytest.approx(requested)
    assert expected_fullest(flows, links) == pytest.approx(sum(chosen) / len(chosen))


def test_one_leaf_drawn_is_as_counted():
    flows = [Flow(source=0, target=leaf) for leaf in range(1, 9)]
    found = contention(flows, 8, num_draws=20_000)
    assert found.hashed_ratio == pytest.approx(expected_fullest(8, 8), rel=0.01)
    assert found.planned_ratio == 1.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60), st.integers(1, 9))
def test_a_plan_loads_no_link_more_than_it_must(pairs, spines):
    flows = [Flow(source=a, target=b) for a, b in pairs]
    chosen = plan(flows, spines)
    for ends in ([f.source for f in flows], [f.target for f in flows]):
        degree = max(ends.count(x) for x in ends)
        most = max(
            sum(1 for e, s in zip(ends, chosen, strict=True) if (e, s) == key) for key in zip(ends, chosen, strict=True)
        )
        limit = math.ceil(
            max(
                degree,
                max(map([f.source for f in flows].count, range(6))),
                max(map([f.target for f in flows].count, range(6))),
            )
            / spines
        )
        assert most <= limit
    assert ((chosen >= 0) & (chosen < spines)).all()


def test_more_connections_and_fewer_planes_collide_less():
    flows = ring_flows([0, 1] * 8)
    assert len(flows) == 16
    one, four, planes = (contention(flows, 8, **k) for k in ({}, {"num_connections": 8}, {"num_planes": 8}))
    assert four.hashed_ratio < one.hashed_ratio < planes.hashed_ratio
    assert one.planned_ratio == 1.0
    assert one.hashed_ratio <= one.hashed_p99_ratio
    assert contention([], 8).gain_ratio == 1.0
    assert ring_flows([0, 0, 1, 1]) == [Flow(source=0, target=1), Flow(source=1, target=0)]


def test_a_job_gains_what_its_communication_does():
    assert job_gain_ratio(0.0, 3.0) == 1.0
    assert job_gain_ratio(1.0, 3.0) == pytest.approx(3.0)
    assert job_gain_ratio(0.3, 2.0) == pytest.approx(1 / 0.85)
    with pytest.raises(ScenarioError, match="at least one link"):
        fullest_link_probabilities(3, 0)

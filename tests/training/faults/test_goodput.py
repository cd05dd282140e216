"""Goodput: closed forms against limits, hand-worked numbers and simulated runs; the best interval against a search."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.faults.goodput import expected
from orrery.training.faults.interval import best_s, best_steps, young_s
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan, erlang_loss_frac
from orrery.training.faults.simulate import simulate

HOUR = 3600.0
JOB = FaultModel(
    num_devices=1024,
    device_mtbf_s=20_000 * HOUR,
    node_mtbf_s=10_000 * HOUR,
    detection_s=600.0,
    diagnosis_s=300.0,
    restart_s=240.0,
)
SAVES = CheckpointPlan(interval_s=1800.0, blocked_s=60.0, load_s=60.0)
RUN = RunPlan(step_s=10.0, num_steps=30_000)


def parts(g):
    return g.useful_frac + g.checkpoint_frac + g.lost_frac + g.recovery_frac


def test_the_rate_of_a_job_is_the_sum_over_its_parts():
    job = FaultModel(
        num_devices=20, devices_per_node=8, device_mtbf_s=1e6, node_mtbf_s=2e6, link_mtbf_s=4e6, software_mtbf_s=1e5
    )
    assert job.num_nodes == 3
    assert job.failures_per_s == pytest.approx(20 / 1e6 + 3 / 2e6 + 20 / 4e6 + 1e-5)
    assert job.node_loss_frac == pytest.approx(26.5 / 36.5)
    assert FaultModel(num_devices=8).failures_per_s == 0.0


def test_without_failures_only_saves_are_added():
    g = expected(
        FaultModel(num_devices=8), CheckpointPlan(interval_s=100.0, blocked_s=5.0), RunPlan(step_s=1, num_steps=250)
    )
    assert g.time_s == 250 + 3 * 5
    assert (g.lost_frac, g.recovery_frac, g.num_failures) == (0.0, 0.0, 0.0)


def test_one_stretch_worked_by_hand():
    job = FaultModel(num_devices=1, device_mtbf_s=100.0, detection_s=3.0, restart_s=20.0)
    g = expected(job, CheckpointPlan(interval_s=50.0, blocked_s=10.0), RunPlan(step_s=50.0, num_steps=2))
    stretch = (100.0 + 3.0) * math.exp(0.2) * (math.exp(0.6) - 1.0)
    assert g.time_s == pytest.approx(2 * stretch)
    assert g.num_failures == pytest.approx(2 * math.exp(0.2) * (math.exp(0.6) - 1.0))


@given(
    st.floats(1e3, 1e9),
    st.floats(1.0, 1e4),
    st.floats(0.0, 500.0),
    st.floats(0.0, 900.0),
    st.floats(0.0, 900.0),
    st.integers(1, 5000),
)
def test_parts_add_up_and_failures_only_cost(mtbf, interval, blocked, down, restart, steps):
    job = FaultModel(num_devices=1, device_mtbf_s=max(mtbf, interval + blocked), detection_s=down, restart_s=restart)
    saves, run = CheckpointPlan(interval_s=interval, blocked_s=blocked), RunPlan(step_s=3.0, num_steps=steps)
    g = expected(job, saves, run)
    assert parts(g) == pytest.approx(1.0)
    assert min(g.useful_frac, g.checkpoint_frac, g.lost_frac, g.recovery_frac) >= -1e-9
    assert g.time_s >= expected(replace(job, device_mtbf_s=math.inf), saves, run).time_s


@pytest.mark.parametrize("lag", [0.0, 400.0])
def test_simulated_runs_agree_with_the_closed_form(lag):
    saves = replace(SAVES, lag_s=lag)
    g, runs = expected(JOB, saves, RUN), simulate(JOB, saves, RUN, num_runs=4000, seed=1)
    error = 4.0 * runs.time_s.std() / math.sqrt(runs.time_s.size)
    assert runs.time_s.mean() == pytest.approx(g.time_s, abs=error + 1e-3 * (lag > 0) * g.time_s)
    assert runs.recovery_s.mean() == pytest.approx(g.recovery_frac * g.time_s, rel=0.03)
    assert runs.num_failures.mean() == pytest.approx(g.num_failures, rel=0.03)
    assert runs.lost_s.mean() == pytest.approx(g.lost_frac * g.time_s, rel=0.05)


def test_a_lag_is_done_again_after_a_failure_worked_by_hand():
    """Every failure falls back, beside its recovery of 20 s, the part of the 12 s of lag that was work: 12 x 50 / 60.

    Tries of a stretch of 60 s at one failure in 100 s: e^0.6 - 1 failures, each followed by 20 + 10 s to get through,
    which may fail too: e^0.3.
    """
    job = FaultModel(num_devices=1, device_mtbf_s=100.0, detection_s=3.0, restart_s=20.0)
    saves = CheckpointPlan(interval_s=50.0, blocked_s=10.0, lag_s=12.0)
    run = RunPlan(step_s=50.0, num_steps=2)
    g = expected(job, saves, run)
    first_tries = math.exp(0.6) - 1.0
    stops = first_tries * math.exp(0.3)
    assert g.num_failures == pytest.approx(2 * stops)
    assert g.time_s == pytest.approx(
        2 * (60.0 + (first_tries * 100.0 - 60.0) + first_tries * 100.0 * (math.exp(0.3) - 1.0) + 3.0 * stops)
    )
    again_s = first_tries * 100.0 * (math.exp(0.3) - math.exp(0.2))
    assert g.lost_frac * g.time_s == pytest.approx(2 * (first_tries * 100.0 - 60.0 + again_s))


def test_a_lag_costs_what_was_saved_but_not_through():
    with_lag, without = (simulate(JOB, replace(SAVES, lag_s=x), RUN, num_runs=2000) for x in (900.0, 0.0))
    assert with_lag.lost_s.mean() - without.lost_s.mean() == pytest.approx(
        900.0 * without.num_failures.mean(), rel=0.15
    )


def test_bursts_keep_the_mean_life_and_widen_the_spread():
    runs = {shape: simulate(JOB, SAVES, RUN, num_runs=3000, weibull_shape=shape) for shape in (0.6, 1.0)}
    assert runs[0.6].time_s.std() > 1.1 * runs[1.0].time_s.std()
    assert runs[1.0].percentile_s(50) < runs[1.0].percentile_s(99)
    again = simulate(JOB, SAVES, RUN, num_runs=3000)
    assert (again.time_s == runs[1.0].time_s).all()


def test_weibull_failures_come_at_the_mean_rate_over_a_long_run():
    job = FaultModel(num_devices=1, device_mtbf_s=500.0)
    runs = simulate(
        job, CheckpointPlan(interval_s=1.0), RunPlan(step_s=1.0, num_steps=100_000), num_runs=50, weibull_shape=0.7
    )
    assert runs.num_failures.mean() == pytest.approx(100_000 / 500, rel=0.05)


def test_a_run_that_never_gets_through_is_said_to():
    job = FaultModel(num_devices=1, device_mtbf_s=1.0)
    with pytest.raises(OutOfRange, match="1e\\+03 failures are expected between two saves"):
        expected(job, CheckpointPlan(interval_s=1000.0), RunPlan(step_s=1.0, num_steps=2000))


@given(st.floats(1.0, 2e3), st.floats(1e3, 1e7))
def test_the_best_interval_beats_its_neighbours(blocked, mtbf):
    def per_work(t):
        return math.expm1((t + blocked) / mtbf) / t

    best = best_s(blocked, mtbf)
    assert per_work(best) <= min(per_work(best * 0.97), per_work(best * 1.03))


def daly_s(blocked_s, mtbf_s):
    """Work between saves with the higher-order terms, a rule near the exact one. [daly-2006]"""
    half = blocked_s / (2.0 * mtbf_s)
    if half >= 1.0:
        return mtbf_s
    return young_s(blocked_s, mtbf_s) * (1.0 + math.sqrt(half) / 3.0 + half / 9.0) - blocked_s


@pytest.mark.parametrize(("ratio", "near"), [(1e-6, 1e-3), (1e-8, 1e-4)])
def test_the_three_rules_meet_where_saves_are_cheap(ratio, near):
    assert young_s(ratio * 1e6, 1e6) == pytest.approx(best_s(ratio * 1e6, 1e6), rel=near)
    assert daly_s(ratio * 1e6, 1e6) == pytest.approx(best_s(ratio * 1e6, 1e6), rel=near)


def test_the_higher_order_is_nearer_than_the_first():
    exact = best_s(600.0, 6000.0)
    assert abs(daly_s(600.0, 6000.0) - exact) < 0.05 * abs(young_s(600.0, 6000.0) - exact)
    assert daly_s(20_000.0, 6000.0) == 6000.0
    assert best_s(0.0, 6000.0) == 0.0


def test_best_steps_is_the_best_of_all_whole_steps():
    job, run = replace(JOB, device_mtbf_s=2000 * HOUR), RunPlan(step_s=40.0, num_steps=400)
    saves = CheckpointPlan(interval_s=40.0, blocked_s=30.0)
    times = {
        n: expected(job, replace(saves, interval_s=40.0 * n), RunPlan(step_s=40.0, num_steps=n * 1000)).time_s / n
        for n in range(1, 60)
    }
    assert best_steps(job, saves, replace(run, num_steps=100_000)) == min(times, key=times.__getitem__)
    assert best_steps(FaultModel(num_devices=1), saves, run) == 400


def test_spares_follow_erlang():
    assert erlang_loss_frac(2.0, 0) == 1.0
    assert erlang_loss_frac(2.0, 2) == pytest.approx(2.0 / 5.0)  # (4/2) / (1 + 2 + 4/2)
    waits = [replace(JOB, repair_s=86400.0, num_spares=n).spare_wait_s for n in range(6)]
    assert waits[0] == pytest.approx(86400.0)
    assert all(a > b for a, b in itertools.pairwise(waits))


def test_spares_wait_as_a_simulated_pool_does():
    job = FaultModel(num_devices=1, device_mtbf_s=100.0, repair_s=250.0, num_spares=2)
    draws = np.random.default_rng(3)
    now, repairs, waited, count = 0.0, [], 0.0, 40_000
    for _ in range(count):
        now += draws.exponential(100.0)
        repairs = [t for t in repairs if t > now]
        repairs.append(now + draws.exponential(250.0))
        if len(repairs) > 2:
            waited += min(repairs) - now
            now = min(repairs)
    assert waited / count == pytest.approx(job.spare_wait_s, rel=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FaultModel(num_devices=0),
        lambda: FaultModel(num_devices=1, device_mtbf_s=0.0),
        lambda: FaultModel(num_devices=1, restart_s=-1.0),
        lambda: CheckpointPlan(interval_s=0.0),
        lambda: CheckpointPlan(interval_s=1.0, lag_s=math.inf),
        lambda: RunPlan(step_s=1.0, num_steps=0),
        lambda: simulate(JOB, SAVES, RUN, weibull_shape=0.0),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(ScenarioError, match="write a"):
        make()

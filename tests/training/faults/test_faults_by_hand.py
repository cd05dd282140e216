"""Lives of a job's parts, how often to save, and where the time goes, on a few round numbers."""

from dataclasses import replace
from math import exp, expm1, inf

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.faults import simulate as playing
from orrery.training.faults.goodput import _overheads, expected, expected_two_level
from orrery.training.faults.interval import best_s, best_steps, young_s
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan, check_fracs, erlang_loss_frac


def test_a_job_of_ten_devices_on_two_nodes():
    """10 / 100 + 2 / 40 + 10 / 200 + 1 / 20 = 0.25 failures/s, a fifth of them of the software."""
    faults = FaultModel(
        num_devices=10, device_mtbf_s=100.0, node_mtbf_s=40.0, link_mtbf_s=200.0, software_mtbf_s=20.0,
        detection_s=1.0, diagnosis_s=2.0, repair_s=4.0,
    )  # fmt: skip
    assert faults.num_nodes == 2
    assert faults.failures_per_s == pytest.approx(0.25)
    assert faults.node_loss_frac == pytest.approx(0.8)
    assert faults.spare_wait_s == pytest.approx(0.8 * 4.0)
    assert faults.down_s == pytest.approx(1.0 + 2.0 + 3.2)
    # one spare: 0.8 failures/s x 0.25 x 4 s of repair are 0.8 erlang, of which 0.8 / 1.8 are lost; half of a repair
    spared = replace(faults, num_spares=1)
    assert spared.spare_wait_s == pytest.approx(0.8 * (0.8 / 1.8) * 4.0 / 2)
    assert replace(faults, repair_s=0.0).down_s == 3.0
    assert FaultModel(num_devices=9).num_nodes == 2
    assert FaultModel(num_devices=9).failures_per_s == FaultModel(num_devices=9).node_loss_frac == 0.0
    usual = FaultModel(num_devices=9)
    assert (usual.detection_s, usual.diagnosis_s, usual.restart_s, usual.num_spares, usual.repair_s) == (0, 0, 0, 0, 0)


def test_erlangs_loss():
    """Two erlang on two spares: (4 / 2) / (1 + 2 + 2)."""
    assert erlang_loss_frac(2.0, 0) == 1.0
    assert erlang_loss_frac(2.0, 1) == pytest.approx(2 / 3)
    assert erlang_loss_frac(2.0, 2) == pytest.approx(0.4)


def test_plans():
    assert RunPlan(step_s=2.0, num_steps=5).work_s == 10.0
    usual = CheckpointPlan(interval_s=1.0)
    assert (usual.blocked_s, usual.lag_s, usual.load_s) == (0.0, 0.0, 0.0)
    check_fracs(share=0.0)
    check_fracs(share=1.0)
    for share in (-0.1, 1.1):
        with pytest.raises(ScenarioError, match="share"):
            check_fracs(share=share)


# --- how often


def test_rules_for_the_interval():
    """C = 2 and M = 100: 20."""
    assert young_s(2.0, 100.0) == pytest.approx(20.0)


@pytest.mark.parametrize("blocked_s", [1e-6, 2.0, 50.0, 500.0])
def test_the_best_interval_is_where_the_mean_time_is_flat(blocked_s):
    """(e^((t + C) / M) - 1) / t is least at t: 1 - t/M = e^(-(t + C)/M)."""
    x = best_s(blocked_s, 100.0) / 100.0
    assert 0 < x < 1
    assert 1 - x == pytest.approx(exp(-x - blocked_s / 100.0), rel=1e-9)
    assert best_s(0.0, 100.0) == 0.0


def test_whole_steps_between_saves():
    """21.4 s of work are best: of 2 and 3 steps of 8 s the better one; without failures one save at the end."""
    faults = FaultModel(num_devices=1, device_mtbf_s=100.0)
    saves = CheckpointPlan(interval_s=1.0, blocked_s=2.0)
    run = RunPlan(step_s=8.0, num_steps=600)
    found = best_steps(faults, saves, run)
    times = {n: expected(faults, replace(saves, interval_s=8.0 * n), run).time_s for n in (1, 2, 3, 4)}
    assert found == min(times, key=times.get)
    assert best_steps(FaultModel(num_devices=1), saves, run) == 600
    assert best_steps(faults, saves, replace(run, num_steps=1)) == 1
    assert best_steps(faults, saves, RunPlan(step_s=500.0, num_steps=9)) == 1


# --- goodput


FAULTS = FaultModel(num_devices=1, device_mtbf_s=10.0, detection_s=1.0, restart_s=2.0)
SAVES = CheckpointPlan(interval_s=4.0, blocked_s=1.0, load_s=3.0)


def test_overheads_of_a_stretch():
    """At 0.1/s: e^0.5 - 1 tries fail in 5 s; each is followed by 5 s of restart and load that may fail."""
    cut = expm1(0.5)
    lost_s, recovery_s, stops = _overheads(FAULTS, SAVES, 5.0)
    assert stops == pytest.approx(cut * exp(0.5))
    assert lost_s == pytest.approx(10 * cut - 5.0)
    assert recovery_s == pytest.approx(cut * exp(0.5) * 1.0 + cut * expm1(0.5) * 10)
    assert 5.0 + lost_s + recovery_s == pytest.approx((10 + 1) * exp(0.5) * cut)
    # of a lag of 5 s, 4 of each 5 s are work that is done again
    late = replace(SAVES, lag_s=5.0)
    lost_s, recovery_s, stops = _overheads(FAULTS, late, 5.0)
    assert stops == pytest.approx(cut * exp(0.5 + 0.4))
    assert lost_s == pytest.approx(10 * cut - 5.0 + cut * (expm1(0.9) - expm1(0.5)) * 10)
    assert recovery_s == pytest.approx(stops * 1.0 + cut * expm1(0.5) * 10)
    assert _overheads(FaultModel(num_devices=1), SAVES, 5.0) == (0.0, 0.0, 0.0)
    _overheads(FAULTS, CheckpointPlan(interval_s=1.0), 2997.9)
    with pytest.raises(OutOfRange, match="300"):
        _overheads(FAULTS, CheckpointPlan(interval_s=1.0), 2998.1)


def test_a_run_of_whole_stretches_and_a_rest():
    """10 s of work in stretches of 4, 4 and 2 s, each with a save of 1 s."""
    run = RunPlan(step_s=2.0, num_steps=5)
    found = expected(FAULTS, SAVES, run)
    long, short = _overheads(FAULTS, SAVES, 5.0), _overheads(FAULTS, SAVES, 3.0)
    time_s = 10 + 3 + 2 * sum(long[:2]) + sum(short[:2])
    assert found.time_s == pytest.approx(time_s)
    assert found.useful_frac == pytest.approx(10 / time_s)
    assert found.checkpoint_frac == pytest.approx(3 / time_s)
    assert found.lost_frac == pytest.approx((2 * long[0] + short[0]) / time_s)
    assert found.recovery_frac == pytest.approx((2 * long[1] + short[1]) / time_s)
    assert found.num_failures == pytest.approx(2 * long[2] + short[2])
    assert found.overhead_frac == pytest.approx(1 - 10 / time_s)
    even = expected(FAULTS, SAVES, RunPlan(step_s=2.0, num_steps=4))
    assert even.checkpoint_frac * even.time_s == pytest.approx(2.0)


def test_two_levels_are_one_where_memory_brings_nothing_back_or_everything():
    run = RunPlan(step_s=2.0, num_steps=6)
    memory = CheckpointPlan(interval_s=2.0, blocked_s=0.25, load_s=0.5)
    shallow = expected_two_level(FAULTS, memory, SAVES, run, storage_only_frac=0.0)
    alone = expected(FAULTS, memory, run)
    # storage's saves still cost a quarter of a stretch
    assert shallow.num_failures == pytest.approx(alone.num_failures * shallow.time_s / alone.time_s)
    assert shallow.time_s == pytest.approx(alone.time_s + 3 * 1.0)
    both = expected_two_level(FAULTS, memory, SAVES, run, storage_only_frac=0.25)
    parts = both.useful_frac + both.checkpoint_frac + both.lost_frac + both.recovery_frac
    assert parts == pytest.approx(1.0)
    slow = replace(FAULTS, device_mtbf_s=10.0 / 0.75)
    stretch = expected(slow, memory, run).time_s / 12.0
    rare = replace(FAULTS, device_mtbf_s=40.0)
    deep = expected(rare, replace(SAVES, interval_s=4.0 * stretch), RunPlan(step_s=2.0 * stretch, num_steps=6))
    assert both.time_s == pytest.approx(deep.time_s)
    assert both.num_failures == pytest.approx(
        deep.num_failures + expected(slow, memory, run).num_failures * deep.time_s / (12.0 * stretch)
    )


# --- played out


class Lives:
    """Lives that are known, one after the other for all runs."""

    def __init__(self, *lives):
        self.lives = list(lives)

    def weibull(self, shape, count):
        return np.array(self.lives.pop(0), float)


def test_two_runs_played_out():
    """10 s of work in stretches of 4 s and saves of 1 s, done after 13 s. The first run fails at 6 s with one save that
    counts; after 1 s down and 5 s of restart and load it has 6 s and two saves to go. The second fails at 4 s with
    none, then 3 s into its recovery, then not."""
    saves = replace(SAVES, lag_s=0.5)
    world = playing._World(FAULTS, saves, RunPlan(step_s=2.0, num_steps=5), 1.0, Lives([0.6, 0.4], [1.31, 0.3], [1.81]))
    time_s, recovery_s, failures = world.play(2)
    assert failures.tolist() == [1.0, 2.0]
    assert time_s.tolist() == pytest.approx([7.0 + 5 + 8, 5.0 + 4 + 18])
    assert recovery_s.tolist() == pytest.approx([1.0 + 5, 1.0 + (3 + 1) + 5])
    # at 5.4 s the save of 5 s is not through yet
    late = playing._World(FAULTS, saves, RunPlan(step_s=2.0, num_steps=5), 1.0, Lives([0.54], [1.9]))
    assert late.play(1)[0].tolist() == pytest.approx([6.4 + 5 + 13])


def test_lives_keep_their_mean():
    """A shape of a half doubles Weibull's mean: the scale is half of 10 s."""
    world = playing._World(FAULTS, SAVES, RunPlan(step_s=2.0, num_steps=5), 0.5, Lives([1.0]))
    assert world._next_failure_s(1).tolist() == [5.0]
    quiet = playing._World(FaultModel(num_devices=1), SAVES, RunPlan(step_s=2.0, num_steps=5), 1.0, Lives())
    assert quiet._next_failure_s(2).tolist() == [inf, inf]


def test_parts_of_runs_that_never_fail():
    found = playing.simulate(FaultModel(num_devices=1), SAVES, RunPlan(step_s=2.0, num_steps=5), num_runs=3)
    assert found.time_s.tolist() == [13.0] * 3
    assert (found.saving_s, found.work_s, found.lost_s.tolist()) == (3.0, 10.0, [0.0] * 3)
    assert (found.useful_frac, found.percentile_s(50)) == (pytest.approx(10 / 13), 13.0)
    even = playing.simulate(FaultModel(num_devices=1), SAVES, RunPlan(step_s=2.0, num_steps=4))
    assert (even.saving_s, even.time_s.size) == (2.0, 1000)

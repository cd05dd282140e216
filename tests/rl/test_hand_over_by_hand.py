"""Rollout engines, the tail and errors of a step: shares and counts by hand on small stand-ins."""

from math import exp, hypot, log
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.cost import Spread
from orrery.rl import error_range
from orrery.rl.engine import _dealt
from orrery.rl.error_range import UNSURE, _shares
from orrery.rl.rollout import _round
from orrery.rl.step import PoolMemory, RlStep
from orrery.serving.extrapolation import UNMEASURED, VERSIONLESS


def test_replicas_get_runs_of_neighbours():
    """Seven over three are 0 1 2, 3 4, 5 6: turns are 0 3 5, 1 4 6, 2."""
    assert _dealt(7, 3).tolist() == [0, 3, 5, 1, 4, 6, 2]


def test_a_round_that_stops_before_all_have_ended():
    """Ends at 1 to 10 s and 20 s, over at 10 s: nine of ten have ended by 9 s, so the tail is 1 s. Replica 0 works to
    the end, replica 1 until its last at 9 s. Of 40 J in 20 s, half are spent."""
    ends = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20])
    machine = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    found = SimpleNamespace(machine=machine, preemptions=np.array([1, 2]), energy_j=40.0, duration_s=20.0)
    got = _round(SimpleNamespace(replicas=2), None, found, ends, 10.0, 7.0)
    assert (got.time_s, got.tail_s, got.preemptions, got.energy_j, got.written_tokens) == (10.0, 1.0, 3, 20.0, 7.0)
    assert got.busy_s.tolist() == [10.0, 9.0]


def step_of(phases, limited_by="", pace=None):
    return SimpleNamespace(phases=phases, time_s=sum(phases.values()), limited_by=limited_by, pace=pace)


def test_shares_of_a_step():
    """In turn 5 s of 10 are the engine's and 2 are handing over; side by side all but that is the slower pool's."""
    phases = {"generation": 5.0, "policy training": 3.0, "weight sync": 2.0}
    assert _shares(step_of(phases)) == pytest.approx({"engine": 0.5, "trainer": 0.3, "other": 0.2})
    assert _shares(step_of({"generation": 1.0, "values": 1.0})) == {"engine": 0.5, "trainer": 0.5, "other": 0.0}
    assert _shares(step_of({"values": 2.0})) == {"engine": 0.0, "trainer": 1.0, "other": 0.0}
    every = {"generation": 1.0, "weight sync": 1.0, "offload": 1.0, "framework": 1.0, "reward": 1.0, "values": 3.0}
    assert _shares(step_of(every)) == {"engine": 0.125, "trainer": 0.375, "other": 0.5}
    apart = {"policy training": 8.0, "weight sync": 2.0}
    assert _shares(step_of(apart, "training", 1)) == pytest.approx({"engine": 0.0, "trainer": 0.8, "other": 0.2})
    assert _shares(step_of(apart, "generation", 1)) == pytest.approx({"engine": 0.8, "trainer": 0.0, "other": 0.2})


def test_errors_add_as_squares_of_logarithms(monkeypatch):
    """Each part unsure by its own ratio r to the power of its share: exp(hypot(share x log r))."""
    monkeypatch.setattr(error_range, "engine_spread", lambda _: UNSURE)
    monkeypatch.setattr(error_range, "spread_of", lambda *_: None)
    step = step_of({"generation": 5.0, "policy training": 3.0, "weight sync": 2.0})
    step.job = SimpleNamespace(training=None)
    found = error_range.step_interval(step)
    for end, sign in (("low_80", -1), ("high_80", 1), ("low_95", -1), ("high_95", 1)):
        ratio = getattr(UNSURE, f"{end}_ratio")
        assert getattr(found, end) == pytest.approx(10.0 * exp(sign * hypot(0.5, 0.3, 0.2) * abs(log(ratio))))
    assert found.low_95 < found.low_80 < 10.0 < found.high_80 < found.high_95


def generating(version, experts=None, **spreads):
    """A step whose engine has errors of these kinds of runs."""
    blocks = [SimpleNamespace(experts=None), SimpleNamespace(experts=experts)]
    engine = SimpleNamespace(spreads=spreads, version=version)
    return SimpleNamespace(
        job=SimpleNamespace(generation=SimpleNamespace(model=SimpleNamespace(blocks=blocks), engine=engine))
    )


def test_errors_of_an_engine_are_those_of_runs_like_it():
    """Of offline runs, with experts where a block has them; wider where no release is given or nothing was measured."""
    dense, routed = (
        Spread(low_80_ratio=1 / r, high_80_ratio=r, low_95_ratio=1 / r**2, high_95_ratio=r**2, because="runs")
        for r in (1.1, 1.2)
    )
    known = {"offline.tpot_s": dense, "offline experts.tpot_s": routed}
    assert error_range.engine_spread(generating("0.11", **known)) is dense
    assert error_range.engine_spread(generating("0.11", experts=8, **known)) is routed
    assert error_range.engine_spread(generating("", **known)).high_80_ratio == pytest.approx(1.1**VERSIONLESS)
    assert error_range.engine_spread(generating("0.11")) is UNMEASURED


def test_what_is_assumed_lies_around_one():
    """A factor of two either way: nine tenths of it within 80 %, all of it within 95 %."""
    assert 0.4 <= UNSURE.low_95_ratio < 0.5 < UNSURE.low_80_ratio < 1.0 < UNSURE.high_80_ratio < 2.0
    assert UNSURE.high_95_ratio * UNSURE.low_95_ratio == pytest.approx(1.0)
    assert UNSURE.high_80_ratio * UNSURE.low_80_ratio == pytest.approx(1.0, rel=0.05)


def rl_step_of(phases, *, is_colocated, pace=None):
    """Four training devices of 10 W idle and 100 W at work; two that generate, of 10 W idle."""
    cluster = SimpleNamespace(device=SimpleNamespace(idle_power_w=10.0), num_devices=4)
    job = SimpleNamespace(
        training=SimpleNamespace(cluster=cluster),
        generation=SimpleNamespace(cluster=cluster),
        generation_devices=2,
        is_colocated=is_colocated,
    )
    rollouts = SimpleNamespace(time_s=6.0, energy_j=1000.0, busy_s=5.0)
    return RlStep(
        job=job,
        phases=phases,
        rollouts=rollouts,
        passes=SimpleNamespace(time_s=3.0),
        pace=pace,
        trainer=PoolMemory(peak_bytes=8.0, room_bytes=8.0),
        generator=PoolMemory(peak_bytes=9.0, room_bytes=8.0),
        trainer_power_w=100.0,
    )


def test_energy_and_idleness_of_a_step_in_turn():
    """10 s: 6 of rollouts (1000 J), 3 of passes at 4 x 100 W = 1200 J, 1 of hand-over. On the same devices 4 x 10 W
    for 1 s = 40 J. Apart, trainers idle 7 s = 280 J and engines 4 s at 2 x 10 W = 80 J."""
    phases = {"generation": 6.0, "policy training": 3.0, "weight sync": 1.0}
    same, apart = (rl_step_of(phases, is_colocated=x) for x in (True, False))
    assert (same.time_s, same.energy_j, apart.energy_j) == (10.0, 2240.0, 2560.0)
    assert (same.generation_idle_s, apart.generation_idle_s) == (1.0, 5.0)
    assert (same.training_idle_s, apart.training_idle_s) == (0.0, 6.0)
    assert same.limited_by == "generation"
    assert same.trainer.fits
    assert not same.generator.fits


def test_energy_of_a_step_that_is_nothing_but_rollouts_and_passes():
    """Apart, engines idle no second of 6 s; trainers idle 3 s at 4 x 10 W. On the same devices nobody idles, and
    never less than that, however short the step."""
    phases = {"generation": 3.0, "policy training": 3.0}
    assert rl_step_of(phases, is_colocated=False).energy_j == 1000.0 + 1200.0 + 120.0
    assert rl_step_of(phases, is_colocated=True).energy_j == 1000.0 + 1200.0
    assert rl_step_of({"policy training": 2.0}, is_colocated=False).energy_j == 1000.0 + 1200.0


@pytest.mark.parametrize(("waits_s", "limit"), [(0.1, "training"), (0.2, "generation")])
def test_what_limits_pools_side_by_side(waits_s, limit):
    """A wait of up to a hundredth of 10 s is none. Engines work half of a period of 8 s: 10 - 4 s idle."""
    phases = {"policy training": 9.0 - waits_s, "weight sync": 1.0, "waiting for rollouts": waits_s}
    step = rl_step_of(phases, is_colocated=False, pace=SimpleNamespace(busy_frac=0.5, period_s=8.0))
    assert step.limited_by == limit
    assert step.training_idle_s == waits_s
    assert step.generation_idle_s == pytest.approx(6.0)

"""What the watch says of machines that are played to it."""

import pytest

from orrery.base.errors import OrreryError
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.calibrate.measure.watch import Canary, LoadMonitor, Spent, time_spent

SECOND = 1.0


class Machine:
    """Two cores whose canary takes ``compute_s`` and ``memory_s``; a second passes between readings."""

    def __init__(self):
        self.now_s, self.compute_s, self.memory_s = 0.0, 1e-3, 5e-3
        self.wobble = [1.0]
        self.spent = Spent(total_s=0.0, busy_s=0.0, own_s=0.0, stolen_s=0.0)
        self._turn = 0
        canary = Canary(
            compute=lambda: self._pass(self.compute_s),
            memory=lambda: self._pass(self.memory_s),
            synchronise=lambda: None,
            read_clock=lambda: self.now_s,
        )
        self.watch = LoadMonitor(canary, lambda: self.spent)

    def _pass(self, length_s):
        self.now_s += length_s * self.wobble[self._turn % len(self.wobble)]
        self._turn += 1

    def look(self, own=1.0, others=0.0, stolen=0.0):
        """A second of work, so much of the two cores by each, then a reading."""
        s = self.spent
        retained = None if stolen is None or s.stolen_s is None else s.stolen_s + 2 * stolen * SECOND
        self.spent = Spent(
            total_s=s.total_s + 2 * SECOND,
            busy_s=s.busy_s + 2 * (own + others) * SECOND,
            own_s=s.own_s + 2 * own * SECOND,
            stolen_s=retained,
        )
        return self.watch.look()


@pytest.fixture
def machine():
    return Machine()


def test_a_quiet_machine_widens_nothing(machine):
    for _ in range(6):
        machine.look(own=0.9)
    verdict = machine.watch.verdict()
    assert verdict.is_quiet
    assert (verdict.widen_ratio, verdict.drift_ratio, verdict.missing) == (1.0, pytest.approx(1.0), ())


def test_our_own_load_is_no_disturbance(machine):
    for own in (0.0, 1.0, 0.5, 1.0):
        machine.look(own=own)
    assert machine.watch.verdict().is_quiet


def test_other_processes_are_named(machine):
    for _ in range(4):
        machine.look(own=0.5, others=0.4)
    verdict = machine.watch.verdict()
    assert verdict.is_busy
    assert "Other processes took 40 %" in verdict.words[0]


def test_time_that_the_host_keeps_is_named(machine):
    for _ in range(4):
        machine.look(own=0.8, stolen=0.1)
    assert "kept 10 %" in machine.watch.verdict().words[0]


def test_jitter_is_named(machine):
    machine.wobble = [1.0, 1.9, 1.3, 1.0, 2.4]
    for _ in range(6):
        machine.look()
    verdict = machine.watch.verdict()
    assert verdict.is_busy
    assert "timed again at once" in " ".join(verdict.words)


def test_slowing_down_under_our_load_alone_is_throttling(machine):
    for _ in range(9):
        machine.look()
        machine.compute_s *= 1.04
    verdict = machine.watch.verdict()
    assert verdict.is_throttling
    assert not verdict.is_busy
    assert "1.27x slower" in verdict.words[0]


def test_slowing_down_beside_others_is_not_called_throttling(machine):
    for _ in range(9):
        machine.look(own=0.5, others=0.4)
        machine.compute_s *= 1.04
    verdict = machine.watch.verdict()
    assert not verdict.is_throttling
    assert verdict.is_busy


def test_a_speed_that_goes_up_and_down_is_named(machine):
    for speed in (1.0, 1.6, 1.0, 1.6, 1.6, 1.0, 1.6, 1.0, 1.0):
        machine.compute_s = 1e-3 * speed
        machine.look()
    verdict = machine.watch.verdict()
    assert verdict.drift_ratio == pytest.approx(1.6)
    assert not verdict.is_throttling
    assert "moved by 1.60x" in verdict.words[0]


def test_intervals_widen_as_far_as_the_machine_moved(machine):
    for speed in (1.0, 1.0, 1.5, 1.0, 1.0, 1.5, 1.0):
        machine.memory_s = 5e-3 * speed
        machine.look()
    assert machine.watch.verdict().widen_ratio == pytest.approx(1.5)


def test_one_odd_reading_in_many_widens_little(machine):
    for i in range(30):
        machine.compute_s = 3e-3 if i == 7 else 1e-3
        machine.look()
    verdict = machine.watch.verdict()
    assert verdict.widen_ratio == 1.0
    assert verdict.drift_ratio == pytest.approx(3.0)


def test_slowness_of_a_reading_is_against_the_usual_one(machine):
    machine.look()
    machine.look()
    machine.compute_s, machine.memory_s = 2e-3, 15e-3
    last = machine.look()
    assert machine.watch.slowness(last) == (pytest.approx(2.0), pytest.approx(3.0))


def test_a_missing_counter_is_said_and_no_failure(machine):
    machine.spent = Spent(total_s=0.0, busy_s=0.0, own_s=0.0, stolen_s=None)
    for _ in range(3):
        machine.look(stolen=None)
    verdict = machine.watch.verdict()
    assert verdict.is_quiet
    assert "not counted" in verdict.missing[0]


def test_a_watch_that_never_looked_says_so(machine):
    with pytest.raises(OrreryError, match="not looked yet"):
        machine.watch.verdict()


def test_the_canary_of_a_backend_really_runs():
    watch = LoadMonitor(Canary.of(NumpyBackend()))
    first, second = watch.look(), watch.look()
    assert first.compute_s > 0
    assert second.memory_s > 0
    assert second.at_s > first.at_s
    assert second.spent.own_s > first.spent.own_s
    assert watch.verdict().widen_ratio >= 1.0


def test_the_systems_counters_add_up():
    spent = time_spent()
    assert 0 < spent.busy_s <= spent.total_s
    assert spent.own_s > 0

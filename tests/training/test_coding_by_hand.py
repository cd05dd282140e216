"""Coded workers on known numbers: codes of four, late ones round by round, deadlines, and repetitions."""

import sys
from math import exp, log

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.coding import runtime, stragglers
from orrery.training.coding.gradient_code import gradient_code
from orrery.training.coding.multiplexed import Multiplexed, _answer
from orrery.training.coding.plain import Plain
from orrery.training.coding.runtime import WorkerPace, run_s, worker_times_s
from orrery.training.coding.scheme import CodingKnobs, checked
from orrery.training.coding.selective import SelectiveRepetition
from orrery.training.coding.stragglers import follows_burst_model, gilbert_elliott, is_bursty


def flags(text):
    """Rows of 0 and 1."""
    return np.array([[c == "1" for c in row] for row in text.split()])


class Draws:
    """Known numbers of each kind."""

    def __init__(self, **given):
        self.given = given

    def random(self, shape):
        return np.array(self.given["random"], float).reshape(shape)

    def standard_normal(self, shape):
        return np.resize(np.array(self.given["normal"], float), shape)


def test_groups_that_hold_the_same():
    """Six workers, one may be late: three pairs; the first of each pair that answers counts."""
    code = gradient_code(6, 1)
    assert code.is_repetition
    assert code.matrix_ratio.tolist() == [[1, 1, 0, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 0, 0]] * 2 + [[0, 0, 0, 0, 1, 1]] * 2
    assert (code.num_workers, code.load_frac) == (6, pytest.approx(2 / 6))
    answered = np.array([True, True, False, True, True, False])
    assert code.coefficients(answered).tolist() == [1, 0, 0, 1, 1, 0]
    chunks = np.arange(12.0).reshape(6, 2)
    assert code.decode(code.encode(chunks), answered).tolist() == [30.0, 36.0]
    with pytest.raises(OutOfRange, match="2 of 6"):
        code.coefficients(np.array([False, False, True, True, True, True]))


def test_a_cyclic_code_of_three(monkeypatch):
    """H = (1, 2, -3): worker 0 sends g0 - g1 / 2, worker 1 g1 + 2/3 g2, worker 2 g2 + 3 g0. Without worker 2 the sum is
    w0 + 1.5 w1."""
    monkeypatch.setattr(
        sys.modules[gradient_code.__module__], "stream", lambda seed, name: Draws(normal=[1.0, 2.0, 9.0])
    )
    code = gradient_code(3, 1, kind="cyclic")
    assert code.matrix_ratio.tolist() == [
        pytest.approx([1.0, -0.5, 0.0]),
        pytest.approx([0.0, 1.0, 2 / 3]),
        pytest.approx([3.0, 0.0, 1.0]),
    ]
    assert not code.is_repetition
    assert code.coefficients(np.array([True, True, False])) == pytest.approx([1.0, 1.5, 0.0])
    with pytest.raises(OutOfRange, match="2 of 3"):
        code.coefficients(np.array([True, False, False]))


def test_codes_that_are_made_where_nobody_says():
    assert gradient_code(4, 1).is_repetition
    assert not gradient_code(4, 2).is_repetition
    assert not gradient_code(4, 1, kind="cyclic").is_repetition
    assert gradient_code(3, 0).matrix_ratio.tolist() == np.eye(3).tolist()
    assert gradient_code(3, 0, kind="cyclic").matrix_ratio.tolist() == np.eye(3).tolist()
    assert gradient_code(3, 2).load_frac == 1.0
    for n, s, kind in ((3, 3, ""), (3, -1, ""), (4, 2, "repetition"), (4, 1, "other")):
        with pytest.raises(ScenarioError, match=r"gradient code|max_stragglers"):
            gradient_code(n, s, kind=kind)


# --- stragglers


KNOBS = CodingKnobs(num_stragglers=2, burst_rounds=2, window_rounds=4)


def test_bursts_in_a_window():
    """Two workers at most in four rounds, each for two rounds from its first one on."""
    assert follows_burst_model(flags("1000 1000"), KNOBS)
    assert not follows_burst_model(flags("1000 0000 1000"), KNOBS)  # three rounds from first to last
    assert follows_burst_model(flags("1000 1000 0100"), KNOBS)
    assert not follows_burst_model(flags("1000 0100 0010"), KNOBS)
    assert follows_burst_model(flags("1000 0000 0000 0000 1000"), KNOBS)
    assert follows_burst_model(flags("1000 0000 1000 0000"), KNOBS)  # only the newest round is looked at
    assert not is_bursty(flags("1000 0000 1000 0000"), KNOBS)
    assert is_bursty(flags("1100 1100 0000 0000 0000 0011"), KNOBS)
    usual = CodingKnobs()
    assert (usual.num_stragglers, usual.burst_rounds, usual.window_rounds) == (15, 1, 2)
    CodingKnobs(num_stragglers=0)
    for bad in ({"num_stragglers": -1}, {"burst_rounds": 0}, {"burst_rounds": 2, "window_rounds": 2}):
        with pytest.raises(ScenarioError, match="coding"):
            CodingKnobs(**bad)


def test_slow_workers_from_known_numbers(monkeypatch):
    """A fifth is slow and leaves with a half: others enter with 0.125. The first worker starts slow (0.1), stays at
    0.5, leaves at 0.4; the second enters at 0.12 and not at 0.13."""
    drawn = [[0.1, 0.2], [0.5, 0.125], [0.4, 0.12]]
    monkeypatch.setattr(stragglers, "stream", lambda seed, name: Draws(random=drawn))
    found = gilbert_elliott(2, 3, late_frac=0.2, leave_frac=0.5)
    assert found.tolist() == flags("10 10 01").tolist()
    for bad in ((1.0, 0.5), (-0.1, 0.5), (0.2, 0.0), (0.2, 1.1), (0.9, 0.5)):
        with pytest.raises(ScenarioError, match="stragglers"):
            gilbert_elliott(2, 3, late_frac=bad[0], leave_frac=bad[1])
    gilbert_elliott(2, 3, late_frac=0.5, leave_frac=1.0)


# --- time


def test_times_of_workers(monkeypatch):
    """2 s and half of 6 s: 5 s; one deviation more is 1.05 times as long; twice that while slow."""
    monkeypatch.setattr(runtime, "stream", lambda seed, name: Draws(normal=[0.0, 1.0]))
    pace = WorkerPace(fixed_s=2.0, per_load_s=6.0, slow_ratio=2.0)
    times = worker_times_s(pace, 0.5, flags("01 10"))
    assert times.ravel() == pytest.approx([5.0, 5.0 * 1.05 * 2, 10.0, 5.0 * exp(log(1.05))])


def test_a_master_that_waits_half_as_long_again():
    """The fastest takes 2 s: 3 s are waited. One late worker is tolerated; with two, the master waits for the nearer.
    Whoever comes at the deadline is in time. Where all come before it, the round ends with the last."""
    scheme = Plain(code=gradient_code(4, 1))
    times = np.array(
        [[2.0, 2.5, 3.0, 9.0], [2.0, 2.5, 7.0, 9.0], [2.0, 2.5, 2.6, 2.7], [2.0, 5.0, 6.0, 7.0], [2.0, 3.0, 3.0, 3.0]]
    )
    rounds_s, late = run_s(scheme, times, 0.5)
    assert rounds_s.tolist() == [3.0, 7.0, 2.7, 6.0, 3.0]
    assert late.tolist() == flags("0001 0001 0000 0001 0000").tolist()
    patient, none_late = run_s(Plain(code=gradient_code(4, 0)), times, 0.5)
    assert (patient.tolist(), none_late.any()) == ([9.0, 9.0, 2.7, 7.0, 3.0], False)


def test_a_plain_code_takes_each_round_by_itself():
    scheme = Plain(code=gradient_code(4, 1))
    assert (scheme.delay_rounds, scheme.num_workers, scheme.num_chunks, scheme.load_frac) == (0, 4, 4, 0.5)
    assert scheme.tolerates(flags("1111 0001"))
    assert not scheme.tolerates(flags("0000 0011"))
    chunks = np.arange(8.0).reshape(2, 4, 1)
    assert scheme.decode(chunks, flags("1000 0001")).tolist() == [[6.0], [22.0]]
    assert checked(scheme, chunks, flags("1000 0001")) == (2, 1)
    for wrong in (flags("1000"), flags("100 001")):
        with pytest.raises(ScenarioError, match="write"):
            checked(scheme, chunks, wrong)


def test_selective_repetition_repeats_what_is_owed():
    """Bursts of one round in windows of two, two workers at most: s = ceil(2 / 2) = 1. Job 0 misses two answers of
    four; one of them is repeated in round 1, in place of that worker's new task."""
    scheme = SelectiveRepetition.of(4, CodingKnobs(num_stragglers=2, burst_rounds=1, window_rounds=2))
    assert (scheme.code.num_stragglers, scheme.delay_rounds, scheme.load_frac) == (1, 1, 0.5)
    chunks = np.arange(8.0).reshape(2, 4, 1)
    late = flags("1100 0000 0000")
    assert scheme.tolerates(late[:1])
    assert scheme.decode(chunks, late).tolist() == [[6.0], [22.0]]
    with pytest.raises(OutOfRange, match="job 0 needs 3 answers and has 2"):
        scheme.decode(chunks, flags("1100 1100 0000"))
    many = SelectiveRepetition.of(12, CodingKnobs(num_stragglers=5, burst_rounds=2, window_rounds=5))
    assert many.code.num_stragglers == 2  # ceil(10 / 6)
    with pytest.raises(ScenarioError, match="W = x B"):
        SelectiveRepetition.of(4, CodingKnobs(num_stragglers=2, burst_rounds=2, window_rounds=4))


def test_sizes_of_a_multiplexed_job():
    """Windows of three and bursts of one of four workers: two own chunks each, one group of four under a code that
    holds two: load 2 x 3 / (4 x (1 + 2 x 2))."""
    scheme = Multiplexed.of(4, CodingKnobs(num_stragglers=1, burst_rounds=1, window_rounds=3))
    assert (scheme.own_chunks, scheme.num_chunks, scheme.delay_rounds) == (2, 12, 2)
    assert scheme.load_frac == pytest.approx(6 / 20)
    everyone = Multiplexed.of(4, CodingKnobs(num_stragglers=4, burst_rounds=1, window_rounds=3))
    assert (everyone.code, everyone.num_chunks, everyone.load_frac) == (None, 8, pytest.approx(3 / 8))
    assert Multiplexed.of(4, CodingKnobs(num_stragglers=3, burst_rounds=1, window_rounds=3)).code is not None


def test_slots_of_a_multiplexed_job():
    """Own chunks come in slots 0 and 1; in slot 2 whoever lost one repeats it, the others send the coded task."""
    own, coded = np.zeros((3, 2), bool), np.zeros((1, 3), bool)
    _answer(own, coded, 0, np.array([True, False, True]))
    _answer(own, coded, 1, np.array([True, True, True]))
    assert own.tolist() == [[True, True], [False, True], [True, True]]
    _answer(own, coded, 2, np.array([True, True, False]))
    assert own.tolist() == [[True, True]] * 3
    assert coded.tolist() == [[True, False, False]]


def test_a_multiplexed_job_is_decoded_with_its_last_slot():
    """One worker is late in round 0 and repeats its chunk in round 2; three others send the coded task."""
    scheme = Multiplexed.of(4, CodingKnobs(num_stragglers=1, burst_rounds=1, window_rounds=3))
    chunks = np.arange(24.0).reshape(2, 12, 1)
    late = flags("1000 0000 0000 0000")
    assert scheme.decode(chunks, late).tolist() == [[66.0], [210.0]]
    with pytest.raises(OutOfRange, match="uncoded chunks"):
        scheme.decode(chunks, flags("1000 0000 1000 0000"))
    with pytest.raises(OutOfRange, match="coded answers"):
        scheme.decode(chunks, flags("0000 0000 1100 0000"))
    plain = Multiplexed.of(4, CodingKnobs(num_stragglers=4, burst_rounds=1, window_rounds=3))
    assert plain.decode(np.arange(8.0).reshape(1, 8, 1), flags("1111 0000 0000")).tolist() == [[28.0]]

"""How long faults go on until the rhythm of collectives shows them, against arrivals that are drawn."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.training.faults.detection import FaultKind, HeartbeatDetection

STOPS, SLOW = (FaultKind(name=n, device_mtbf_s=1e9, slowdown_ratio=x) for n, x in (("stop", math.inf), ("slow", 1.3)))
RHYTHM = HeartbeatDetection(step_s=10.0, num_ranks=2048, report_s=10.0, diagnosis_s=300.0)


def slow_rank(arrival_s, noise_s, threshold):
    """The rank that is late beyond chance in (steps, ranks) arrivals at the same collective; -1 where none is."""
    late_s = (arrival_s - np.median(arrival_s, axis=1, keepdims=True)).mean(axis=0)
    latest = int(np.argmax(late_s))
    return latest if late_s[latest] > threshold * noise_s / math.sqrt(arrival_s.shape[0]) else -1


def test_a_rhythm_shows_a_fault_after_half_a_report_and_some_steps():
    assert RHYTHM.response(STOPS).detection_s == 25.0
    assert RHYTHM.response(SLOW).detection_s == pytest.approx(5.0 + 13.0 * RHYTHM.slow_steps(1.3))
    assert RHYTHM.response(SLOW).diagnosis_s == 300.0


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

"""How long faults go on before they are found, on a few round numbers."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from orrery.training.faults.detection import FaultKind, HeartbeatDetection, Response

CRASH = FaultKind(name="crash", device_mtbf_s=1000.0)
SLOW = FaultKind(name="slow", device_mtbf_s=500.0, slowdown_ratio=2.0)


def test_delays_until_the_restart():
    """A rhythm: half a report of 4 s and two steps of 5 s. A rank of double the time stands out of a noise of 0.02
    after a step: (z x 0.02)^2 < 1, at double the step."""
    assert CRASH.stops
    assert not SLOW.stops
    rhythm = HeartbeatDetection(step_s=5.0, num_ranks=100, report_s=4.0, diagnosis_s=7.0)
    assert rhythm.response(CRASH) == Response(detection_s=2.0 + 10.0, diagnosis_s=7.0)
    assert rhythm.response(SLOW) == Response(detection_s=2.0 + 5.0 * 2.0, diagnosis_s=7.0)
    assert rhythm.threshold == pytest.approx(NormalDist().inv_cdf(1 - 1e-4))
    assert rhythm.slow_steps(1.01) == int(np.ceil((rhythm.threshold * 2) ** 2))
    assert rhythm.slow_steps(1.0) == 0
    little = replace(SLOW, slowdown_ratio=1.01)
    assert rhythm.response(little).detection_s == pytest.approx(2.0 + 5.0 * 1.01 * rhythm.slow_steps(1.01))
    assert (rhythm.noise_frac, rhythm.num_missed_steps, rhythm.false_alarm_frac) == (0.02, 2, 0.01)

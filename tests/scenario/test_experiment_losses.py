"""Experiments about workers that are late and stages that are lost: limits, by hand, and refusals."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.experiment import run_experiment


def coded(*sizes, **more):
    found = run_experiment("straggler-coding", steps=more.pop("steps", 10), sizes=sizes, **more)
    return {row["scheme"]: row for row in found.rows}


def test_equal_workers_make_every_code_a_loss():
    """Ten rounds of 0.5 s and 2 s x load, nobody slow: redundancy is only more work."""
    found = coded("workers=8", "late_frac=0", "scatter_ratio=1", "multiplexed=1:2:2", "selective=1:2:2")
    assert found["none"]["total_s"] == pytest.approx(10 * (0.5 + 2.0 / 8))
    assert found["gradient"]["total_s"] == pytest.approx(10 * (0.5 + 2.0 * 4 / 8))
    assert all(row["total_s"] > found["none"]["total_s"] for name, row in found.items() if name != "none")
    assert all(row["decoding_error"] < 1e-9 for row in found.values())


def test_no_redundancy_is_the_plain_code():
    found = coded("workers=8", "gradient=0", "wait_frac=0", "multiplexed=1:2:2", "selective=1:2:2")
    assert found["gradient"]["total_s"] == pytest.approx(found["none"]["total_s"])


def test_a_users_trace_says_who_is_slow(tmp_path):
    """One worker is ten times as slow in every round: whoever waits takes ten times as long, a code does not."""
    path = tmp_path / "times.npz"
    np.savez(path, times=np.array([[1.0] * 7 + [10.0]]))
    sizes = ("workers=8", "gradient=1", "multiplexed=1:2:2", "selective=1:2:2")
    found = coded(*sizes, data=str(path))
    assert found["none"]["round_s"] == pytest.approx(10 * (0.5 + 2.0 / 8))
    assert found["gradient"]["round_s"] == pytest.approx(2 * (0.5 + 2.0 * 2 / 8))  # twice the fastest is waited for
    np.savez(path, times=np.ones((2, 5)))
    with pytest.raises(ScenarioError, match="write an array times"):
        coded(*sizes, data=str(path))


@pytest.mark.parametrize(
    ("size", "says"), [("selective=1:2", "burst:window:stragglers"), ("gradient=8", "write 0 to 7")]
)
def test_codes_that_do_not_exist_are_refused(size, says):
    with pytest.raises(ScenarioError, match=says):
        coded("workers=8", size)


def lost(*sizes, **more):
    found = run_experiment("stage-losses", steps=more.pop("steps", 20), sizes=("stages=2", "hidden=8", *sizes), **more)
    return {row["way"]: row for row in found.rows}


def test_without_failures_only_the_second_forward_pass_costs():
    found = lost("hourly_failure=0", "step_s=10", "whole_steps=100")
    for name in ("rollback", "neighbour-average"):
        assert found[name]["run_s"] == pytest.approx(1000.0)
        assert found[name]["failures"] == 0.0
    assert found["redundant"]["run_s"] == pytest.approx(1000.0 * 4 / 3)


def test_failures_cost_replacing_and_lost_steps():
    found = lost("hourly_failure=0.5", "step_s=36", "whole_steps=100", "replace_s=7", "save_steps=1")
    q = 1.0 - 0.5 ** (2 * 36 / 3600)
    steps = 100 / (1 - q)  # saved in every step: each is tried until it goes well
    assert found["rollback"]["run_s"] == pytest.approx(steps * 36 + (steps - 100) * 7)
    assert found["redundant"]["failures"] == pytest.approx(100 * (1.0 - 0.5 ** (2 * 48 / 3600)))
    with pytest.raises(ScenarioError, match="hourly_failure"):
        lost("hourly_failure=2")

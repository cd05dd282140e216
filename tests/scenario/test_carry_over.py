"""Old optima on new devices: by hand, through every door, and where nothing is gained."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.sweep.carried import carried_over, carry

BASE = {"model": "llama-2-7b", "input_tokens": 300, "output_tokens": 60, "num_requests": 60, "concurrency": 64}
OVER = ("device=a100-sxm-40gb,v100-sxm-32gb", "max_num_seqs=4,64")


def rows(**figures):
    return [
        {"varied": {"device": device, "max_num_seqs": n}, "output_throughput": value}
        for device, found in figures.items()
        for n, value in found.items()
    ]


def test_both_ways_by_hand():
    """The best of a is 64, where b does 30 of its 40; the best of b is 8, where a does 50 of its 100."""
    a_to_b, b_to_a = carried_over(rows(a={8: 50.0, 64: 100.0}, b={8: 40.0, 64: 30.0}), ["device", "max_num_seqs"])
    assert (a_to_b.old_device, a_to_b.new_device) == ("a", "b")
    assert (a_to_b.carried, a_to_b.best) == (30.0, 40.0)
    assert a_to_b.retuning_gain_frac == pytest.approx(1 / 3)
    assert (b_to_a.carried, b_to_a.best, b_to_a.retuning_gain_frac) == (50.0, 100.0, 1.0)


def test_what_does_not_run_is_carried_as_far_as_it_goes():
    assert carry({(512, 8): 1.0}, {(4, 2): 2.0, (8, 1): 3.0}) == (4, 2)
    assert carry({(512, 8): 1.0}, {(4, 8): 2.0, (512, 1): 3.0, (513, 8): 4.0}) == (4, 8)
    assert carry({(4, 1): 1.0}, {(8, 1): 3.0}) is None
    assert carry({("fp8", 8): 1.0}, {("bf16", 8): 3.0}) is None
    (found, _) = carried_over(rows(a={8: 9.0}, b={64: 5.0}), ["device", "max_num_seqs"])
    assert found.carried is found.retuning_gain_frac is found.to_json()["carried_to"] is None


@given(st.dictionaries(st.integers(1, 64), st.floats(0.1, 1e6), min_size=1, max_size=8))
def test_the_same_device_twice_gains_nothing(found):
    for one in carried_over(rows(a=found, b=found), ["device", "max_num_seqs"]):
        assert one.retuning_gain_frac == 0.0


def test_every_door_says_the_same(capsys):
    found = orrery.sweep(**BASE, over=OVER, carry_over=True).to_json()["carry_over"]
    words = [w for k, v in BASE.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    swept = [w for one in OVER for w in ("--sweep", one)]
    assert run(["simulate", *words, *swept, "--carry-over", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["carry_over"] == json.loads(json.dumps(found))
    assert run(["simulate", *words, *swept, "--carry-over"]) == 0
    assert "old best" in capsys.readouterr().out
    assert "carry_over" not in orrery.sweep(**BASE, over=OVER).to_json()
    assert all(one["retuning_gain_frac"] >= 0.0 for one in found)


@pytest.mark.parametrize("over", [("device=a100-sxm-40gb,v100-sxm-32gb",), ("tp=1,2", "max_num_seqs=4,8")])
def test_devices_and_something_to_tune_are_needed(over):
    with pytest.raises(ScenarioError, match="sweep device=a,b and something to tune"):
        orrery.sweep(**BASE, device="a100-sxm-40gb", over=over, carry_over=True)


def test_without_a_sweep_it_is_refused(capsys):
    assert run(["simulate", "--model", "llama-2-7b", "--carry-over"]) != 0
    assert "--carry-over is about sweeps" in capsys.readouterr().err

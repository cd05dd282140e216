"""Sweeps: the grid, its failures, processes that agree bit for bit, and going on after the power went out."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_ray import fake_ray

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import read_scenario
from orrery.scenario.sweep import point, sweep
from orrery.scenario.sweep.grid import points_of, read_axes
from orrery.scenario.sweep.rows import rows_of
from orrery.scenario.sweep.saved_runs import keep, saved_run

ONE = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 300,
    "output_tokens": 30,
    "num_requests": 100,
    "rate": 5.0,
}
CLOCK = ("date", "requests_simulated_per_s")
"""What differs between two runs of the same."""


def timeless(runs):
    return [{key: value for key, value in run.items() if key not in CLOCK} for run in runs]


def grid(*texts, **settings):
    return points_of(read_scenario(ONE | settings), read_axes(texts))


def test_a_grid_is_every_combination_in_order():
    found = grid("tp=1,2", "rate=3,4.5")
    assert [p.label for p in found] == ["tp=1 rate=3", "tp=1 rate=4.5", "tp=2 rate=3", "tp=2 rate=4.5"]
    assert [(p.scenario.tp, p.scenario.rate) for p in found] == [(1, 3.0), (1, 4.5), (2, 3.0), (2, 4.5)]
    assert found[1].varied == {"tp": 1, "rate": 4.5}


def test_knobs_lists_and_defaults_can_vary():
    knobs = grid("policy.chunk_tokens=256,default", knob=["policy.chunk_tokens=99", "queue.x=1"])
    assert [p.scenario.knob for p in knobs] == [("queue.x=1", "policy.chunk_tokens=256"), ("queue.x=1",)]
    assert [p.varied["policy.chunk_tokens"] for p in knobs] == [256.0, None]
    assert [p.scenario.split for p in grid("split=0.4,0.6;0.5")] == ["0.4,0.6", "0.5"]
    limits = grid("slo=ttft:500,ttft:900", slo=["ttft:100", "tpot:50"])
    assert [p.scenario.slo for p in limits] == [("ttft:500", "tpot:50"), ("ttft:900", "tpot:50")]
    switches = grid("prefix-caching=true,false")
    assert [p.scenario.prefix_caching for p in switches] == [True, False]


def test_a_way_to_arrive_replaces_the_others():
    assert [(p.scenario.rate, p.scenario.concurrency) for p in grid("concurrency=2")] == [(None, 2)]
    traced = points_of(read_scenario({"model": "m", "device": "d", "trace": "chat"}), read_axes(["rate=2"]))
    assert (traced[0].scenario.trace, traced[0].scenario.rate) == ("chat", 2.0)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["tpp=1"], "did you mean 'tp'"),
        (["tp"], "such as tp=1,2,4"),
        (["tp="], "such as tp=1,2,4"),
        (["=1,2"], "such as tp=1,2,4"),
        (["tp=1,two"], "sweep tp=two: tp: got 'two'"),
        (["tp=1", "tp=2"], "given twice"),
        (["max_devices=4"], "no setting of a simulated run"),
        (["seat.x=4"], "no knobs of 'seat'"),
        (["rate=1", "concurrency=1"], "exclude each other"),
        (["seed=" + ",".join(map(str, range(400))), "tp=" + ",".join(map(str, range(1, 400)))], "too many"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(texts, message):
    with pytest.raises(ScenarioError, match=message):
        grid(*texts)


def test_nothing_to_vary_is_refused():
    with pytest.raises(ScenarioError, match="nothing varies"):
        sweep(over=[], **ONE)


def test_failures_stand_beside_answers():
    found = sweep(over=["tp=1,3", "model=llama-3.1-8b,llama-3.1-405b"], jobs=1, **ONE)
    kinds = [row["status"] for row in rows_of(found.runs)]
    assert kinds == ["done", "infeasible", "failed", "failed"]
    assert (len(found.answers), found.num_infeasible, found.num_failed) == (1, 1, 2)
    assert "does not divide" in found.runs[2]["error"]["message"]
    assert found.runs[1]["infeasible"]["unit"] == "bytes"


def test_a_bug_in_one_run_does_not_stop_the_others(monkeypatch):
    real = point.simulate

    def sometimes(scenario):
        if scenario.tp == 2:
            raise ZeroDivisionError("oh")
        return real(scenario)

    monkeypatch.setattr(point, "simulate", sometimes)
    found = sweep(over=["tp=2,1"], jobs=1, **ONE)
    assert found.runs[0]["error"] == {"kind": "ZeroDivisionError", "message": "oh"}
    assert found.runs[1]["completed"] == 100


@pytest.mark.slow
def test_two_processes_say_bit_for_bit_what_one_does():
    over = ["rate=4,8", "policy=chunked-prefill,prefill-first"]
    one = sweep(over=over, jobs=1, **ONE)
    assert timeless(sweep(over=over, jobs=2, **ONE).runs) == timeless(one.runs)
    assert len({run["mean_ttft_ms"] for run in one.runs}) == 4


def test_a_capacity_can_be_swept():
    found = sweep(over=["tp=1,2"], jobs=1, finds_capacity=True, slo=["tpot:9"], **ONE)
    one, two = (run["capacity"]["requests_per_s"] for run in found.runs)
    assert one < two
    assert rows_of(found.runs)[1]["capacity_requests_per_s"] == two
    with pytest.raises(ScenarioError, match="leave concurrency out"):
        sweep(over=["concurrency=1,2"], finds_capacity=True, **ONE)


def test_finished_runs_are_found_again_by_all_that_was_asked(tmp_path):
    keep(tmp_path, {"tp": 1, "seed": 2}, False, {"a": 1})
    assert saved_run(tmp_path, {"seed": 2, "tp": 1}, False) == {"a": 1}
    assert saved_run(tmp_path, {"tp": 1, "seed": 2}, True) is None
    assert saved_run(tmp_path, {"tp": 1}, False) is None
    (only,) = tmp_path.iterdir()
    only.write_text(only.read_text()[:-9])
    assert saved_run(tmp_path, {"tp": 1, "seed": 2}, False) is None


def test_a_machine_s_failure_is_tried_again_and_a_user_s_is_not(tmp_path, monkeypatch):
    def breaks(scenario):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(point, "simulate", breaks)
        sweep(over=["tp=1"], jobs=1, resume=tmp_path, **ONE)
    found = sweep(over=["tp=1,3"], jobs=1, resume=tmp_path, **ONE)
    assert (found.num_resumed, len(found.answers), found.num_failed) == (0, 1, 1)
    assert sweep(over=["tp=1,3"], jobs=1, resume=tmp_path, **ONE).num_resumed == 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes under /proc")
def test_after_a_kill_nothing_is_lost_and_nothing_run_twice(tmp_path):
    seeds = "seed=" + ",".join(map(str, range(40)))
    over, base = ["--sweep", seeds, "--jobs", "2"], dict(ONE, num_requests=800)
    flags = [word for key, value in base.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    program = "from orrery.cli.main import main\nif __name__ == '__main__': main()"
    (tmp_path / "main.py").write_text(program)
    rejected = subprocess.Popen(
        [sys.executable, tmp_path / "main.py", "simulate", *flags, *over, "--resume", tmp_path / "runs"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while len(list((tmp_path / "runs").glob("*.json"))) < 3 and time.monotonic() < until:
        assert rejected.poll() is None, "the sweep was over before it could be killed"
        time.sleep(0.005)
    children = Path(f"/proc/{rejected.pid}/task/{rejected.pid}/children").read_text().split()
    rejected.send_signal(signal.SIGKILL)
    rejected.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(Path(f"/proc/{pid}").exists() for pid in children), "processes outlive the sweep that started them"
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.json")}
    assert 3 <= len(before) < 40
    after = sweep(over=[seeds], jobs=1, resume=tmp_path / "runs", **base)
    assert after.num_resumed == len(before)
    assert len(after.answers) == 40
    assert {path: path.stat().st_mtime_ns for path in before} == before
    again = sweep(over=[seeds], jobs=1, resume=tmp_path / "runs", **base)
    assert again.num_resumed == 40
    assert again.runs == after.runs
    fresh = sweep(over=["seed=0,39"], jobs=1, **base)
    assert timeless(fresh.runs) == timeless([again.runs[0], again.runs[39]])


def test_ray_runs_the_same_points(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setitem(sys.modules, "ray", fake_ray(calls))
    found = sweep(over=["rate=4,8"], ray="local", resume=tmp_path, **ONE)
    assert (calls[0], calls[-1]) == ("local", "shutdown")
    assert timeless(found.runs) == timeless(sweep(over=["rate=4,8"], jobs=1, **ONE).runs)
    assert sweep(over=["rate=4,8"], ray="local", resume=tmp_path, **ONE).num_resumed == 2

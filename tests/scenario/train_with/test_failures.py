"""``--recovery``, ``--detection``, ``--parity-nodes`` and ``--checkpoint reshape``: by hand, and without effect."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_with.failures import faults_of
from orrery.training.faults.goodput import expected
from orrery.training.faults.model import CheckpointPlan, RunPlan
from orrery.training.reshape.storage import Packing

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 64,
    "pp": 4,
    "global_batch": 256,
    "seq_len": 2048,
    "framework": "megatron-lm",
    "train_tokens": 1e11,
}
FAILS = {"node_mtbf_s": 5e5}


def rows(answer, kind):
    return {next(iter(row.values())): row for row in answer.to_json()["techniques"][kind]}


def same(one, other):
    drop = ("settings", "techniques", "notes")
    return {k: v for k, v in one.to_json().items() if k not in drop} == {
        k: v for k, v in other.to_json().items() if k not in drop
    }


def test_rollback_and_a_timeout_are_what_is_there_without_them():
    plain = orrery.train(**JOB, **FAILS)
    assert same(plain, orrery.train(**JOB, **FAILS, recovery="rollback"))
    assert same(plain, orrery.train(**JOB, **FAILS, detection="timeout"))
    assert "techniques" not in plain.to_json()


def test_a_redundant_forward_pass_by_hand():
    plain, twice = orrery.train(**JOB, **FAILS), orrery.train(**JOB, **FAILS, recovery="redundant")
    more = twice.step_time_s - plain.step_time_s
    assert more == pytest.approx(twice.parts["redundant forward"])
    assert more > plain.parts["forward"]
    q = -math.expm1(-8 / 5e5 * twice.step_time_s)  # eight nodes
    run = twice.run
    assert run.goodput.num_failures == pytest.approx(run.num_steps * q)
    assert run.time_s == pytest.approx(run.num_steps * (twice.step_time_s + q * 1200.0))
    assert run.goodput.lost_frac == 0.0
    own, after = plain.ranks[0], plain.ranks[1]
    assert twice.ranks[0].parts["weights"] == own.parts["weights"] + after.parts["weights"]


def test_neighbours_by_hand():
    answer = orrery.train(**JOB, **FAILS, recovery="neighbour-average", setback_steps=50)
    q, run = -math.expm1(-8 / 5e5 * answer.step_time_s), answer.run
    steps = run.num_steps / (1.0 - 50 * q)
    assert run.time_s == pytest.approx(steps * (answer.step_time_s + q * 1200.0))
    found = rows(answer, "recovery")
    assert found["neighbour-average"]["run_s"] == pytest.approx(run.time_s)
    assert found["rollback"]["run_s"] == pytest.approx(orrery.train(**JOB, **FAILS).run.time_s)
    assert found["redundant"]["run_s"] == pytest.approx(orrery.train(**JOB, **FAILS, recovery="redundant").run.time_s)


def test_the_gain_of_neighbours_goes_where_nothing_fails():
    rare = {"node_mtbf_s": 1e15}
    plain = orrery.train(**JOB, **rare).run.time_s
    assert orrery.train(**JOB, **rare, recovery="neighbour-average", setback_steps=50).run.time_s == pytest.approx(
        plain, rel=1e-4
    )


def test_detection_by_hand():
    answer = orrery.train(**JOB, **FAILS, detection="collective", report_s=20, diagnosis_s=900)
    found = rows(answer, "detection")
    assert found["collective"]["noticed_after_s"] == pytest.approx(10 + 2 * answer.step_time_s)
    assert found["timeout"]["node_known_after_s"] == 1500
    assert found["collective"]["overhead_frac"] < found["timeout"]["overhead_frac"]
    timeout = orrery.train(**JOB, **FAILS, detection="timeout", diagnosis_s=900)
    assert answer.run.time_s < timeout.run.time_s
    alike = orrery.train(**JOB, **FAILS, detection_s=10 + 2 * answer.step_time_s)
    assert alike.run.time_s == pytest.approx(answer.run.time_s)


SLOW = {"slow_mtbf_s": 2e7, "slow_ratio": 1.5, "slow_notice_s": 7200}


def test_rare_slow_devices_by_hand():
    """A third of two hours comes late; then diagnosis, restart, and half of what was saved and of loading it."""
    settings = {"detection": "timeout", "diagnosis_s": 900, "restart_s": 100, "checkpoint_interval_s": 600}
    rare = {**SLOW, "slow_mtbf_s": 64e9}  # one in 1e9 s of the job
    found = orrery.train(**JOB, **rare, **settings).run.goodput
    step_s = orrery.train(**JOB).step_time_s
    interval_s = round(600 / step_s) * step_s
    each_s = 7200 / 3 + 900 + 100 + interval_s / 2
    assert (found.lost_frac + found.recovery_frac) * 1e9 == pytest.approx(each_s, rel=0.05)


def test_slow_devices_against_drawn_ones():
    """Stops of rate a and slow ones of rate b, drawn: a slow device that a failure takes out first has no restart."""
    settings = {"node_mtbf_s": 8 * 40e3, "restart_s": 100, "detection_s": 600, "diagnosis_s": 900}
    slow = {"slow_mtbf_s": 64 * 60e3, "slow_ratio": 1.5, "slow_notice_s": 20e3}
    model = faults_of(read_scenario({**settings, **slow, "detection": "timeout"}), 10.0, 64, 8)
    found = expected(model, CheckpointPlan(interval_s=600.0), RunPlan(step_s=10.0, num_steps=100_000))
    draws = np.random.default_rng(3)
    work_s = time_s = 0.0
    held_until_s = None  # of wall time left until a slow device is known
    for _ in range(40_000):
        left_s = draws.exponential(1.0 / (1 / 40e3 + 1 / 60e3))
        stops = draws.random() < (1 / 40e3) / (1 / 40e3 + 1 / 60e3)
        if held_until_s is not None:
            spent_s = min(left_s, held_until_s)
            work_s, time_s, left_s = work_s + spent_s / 1.5, time_s + spent_s, left_s - spent_s
            if spent_s == held_until_s:
                work_s, time_s = work_s - 300.0, time_s + 900.0 + 100.0
        work_s, time_s = work_s + left_s, time_s + left_s
        held_until_s = None if stops else 20e3
        if stops:
            work_s, time_s = work_s - 300.0, time_s + 600.0 + 900.0 + 100.0
    assert found.useful_frac == pytest.approx(work_s / time_s, rel=0.01)


def test_slow_devices_that_hardly_ever_come_cost_nothing():
    alike = orrery.train(**JOB, **FAILS, **{**SLOW, "slow_ratio": 1.0 + 1e-9, "slow_mtbf_s": 1e15})
    assert alike.run.time_s == pytest.approx(orrery.train(**JOB, **FAILS).run.time_s, rel=1e-5)


def test_the_rhythm_of_collectives_sees_slow_devices_that_a_timeout_does_not():
    found = rows(orrery.train(**JOB, **FAILS, **SLOW, detection="collective"), "detection")
    assert found["timeout"]["slow_noticed_after_s"] == 7200
    assert found["collective"]["slow_noticed_after_s"] < 100
    assert found["collective"]["overhead_frac"] < found["timeout"]["overhead_frac"]


def test_no_parity_survives_nothing():
    answers = {
        m: orrery.train(**JOB, **FAILS, checkpoint="in-memory", parity_nodes=m, parity_group_nodes=4) for m in (0, 1, 2)
    }
    shares = [rows(a, "saves")["memory"]["failures_frac"] for a in answers.values()]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert 0.9 < shares[1] < shares[2] < 1.0
    assert answers[0].run.time_s > answers[1].run.time_s
    memory, storage = rows(answers[1], "saves").values()
    assert memory["lost_work_s"] <= storage["lost_work_s"]
    assert memory["failures_frac"] + storage["failures_frac"] == pytest.approx(1.0)


def test_memory_by_hand():
    """Two groups of four nodes: one more loss of three within the window, eight of them in turn."""
    answer = orrery.train(**JOB, **FAILS, checkpoint="in-memory", parity_nodes=1, parity_group_nodes=4)
    found = rows(answer, "saves")["storage"]["failures_frac"]
    window = 1200.0  # noticed, restarted; what a lost node reads is under a second more
    assert found == pytest.approx(3 * window / 5e5, rel=0.02)


def test_packing_by_hand():
    times = Packing(
        num_source_ranks=8, num_target_ranks=4, num_tensors=10, num_target_stages=2, process_bytes_per_s=1e9, file_s=0.1
    ).times(1e9)
    assert times.save_s == pytest.approx(14e9 / 8 / 1e9 + 0.1)
    assert times.convert_s == pytest.approx(26e9 / 4 / 1e9 + (8 + 30) / 4 * 0.1)
    assert times.load_s == pytest.approx(12e9 / 4 / 1e9 + 15 * 0.1)


def test_reshaping_beats_a_long_repair_and_not_a_short_one():
    job = {**JOB, **FAILS, "checkpoint": "reshape", "reshape_to": "pp=2"}
    found = orrery.train(**job, repair_s=86400)
    wait, go_on = found.table("outage")
    assert go_on["lost_s"] < wait["lost_s"]
    speed = go_on["speed_meanwhile_frac"]
    assert 0.3 < speed < 1.0
    _, convert, load, alone = (row["time_s"] for row in found.table("reshape"))
    assert alone > convert
    assert go_on["lost_s"] > convert + load + (1 - speed) * (86400 - convert - load)
    short = orrery.train(**job, repair_s=go_on["break_even_repair_s"] * 0.5)
    wait, go_on = short.table("outage")
    assert go_on["lost_s"] > wait["lost_s"]
    assert found.run.time_s < orrery.train(**JOB, **FAILS, repair_s=86400).run.time_s


def test_files_and_packing_cost_what_they_say():
    job = {**JOB, **FAILS, "checkpoint": "reshape", "reshape_to": "pp=2"}
    free = orrery.train(**job, pack_bytes_per_s=1e13, checkpoint_file_s=0).table("reshape")
    slow = orrery.train(**job, pack_bytes_per_s=1e8, checkpoint_file_s=0).table("reshape")
    parameters = orrery.train(**JOB).job.model.num_parameters
    more = slow[0]["time_s"] - free[0]["time_s"]
    assert more == pytest.approx(14.0 * parameters / 64 / 1e8, rel=1e-3)
    assert free[0]["time_s"] == pytest.approx(14.0 * parameters / 8 / 2e9, rel=1e-3)
    alone = slow[3]["time_s"]  # one process reads, unpacks, packs and writes all of it
    assert alone == pytest.approx(26.0 * parameters / 2e9 + 26.0 * parameters / 1e8, rel=1e-3)


@settings(max_examples=15, deadline=None)
@given(
    mtbf=st.floats(2e5, 1e12),
    way=st.sampled_from(
        [
            {"recovery": "redundant"},
            {"recovery": "neighbour-average", "setback_steps": 10},
            {"detection": "collective"},
            {"checkpoint": "in-memory", "parity_nodes": 1},
            {"checkpoint": "reshape", "reshape_to": "pp=2", "repair_s": 3600},
            {"detection": "collective", "recovery": "redundant"},
            {"repair_s": 3600, "spare_nodes": 1},
        ]
    ),
)
def test_shares_of_a_run_add_up_and_no_run_is_shorter_than_its_steps(mtbf, way):
    answer = orrery.train(**JOB, node_mtbf_s=mtbf, **way)
    run = answer.run
    assert sum(run.parts.values()) == pytest.approx(run.time_s)
    g = run.goodput
    assert g.useful_frac + g.checkpoint_frac + g.lost_frac + g.recovery_frac == pytest.approx(1.0)
    assert min(g.useful_frac, g.checkpoint_frac, g.lost_frac, g.recovery_frac) >= -1e-12
    assert run.time_s >= run.num_steps * answer.step_time_s * (1 - 1e-12)
    assert sum(answer.parts.values()) == pytest.approx(answer.step_time_s)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recovery": "redundant", "node_mtbf_s": None}, "recovery: nothing fails"),
        ({"recovery": "redundant", "pp": 1}, "pp is 1, so a stage has no neighbour"),
        ({"recovery": "neighbour-average"}, "setback_steps: is missing"),
        ({"setback_steps": 3}, "means nothing without recovery"),
        ({"detection": "collective", "detection_s": 5}, "follows from the rhythm"),
        ({"slow_mtbf_s": 1e8}, "slow_ratio: is missing beside slow_mtbf_s"),
        ({"slow_ratio": 1.5, "slow_mtbf_s": 1e8}, "slow_notice_s: is missing beside slow_mtbf_s"),
        ({"slow_ratio": 1.5}, "slow_mtbf_s: is missing beside slow_ratio"),
        ({"slow_ratio": 1.0}, "slow_ratio"),
        ({"parity_nodes": 1}, "write checkpoint = in-memory"),
        ({"checkpoint": "in-memory", "parity_nodes": 6}, "write at most 5"),
        ({"spare_nodes": 1}, "repair_s: is missing"),
        ({"checkpoint": "reshape"}, "reshape_to: is missing"),
        ({"reshape_to": "tp=2"}, "write checkpoint = reshape"),
        ({"checkpoint": "reshape", "reshape_to": "ep=2"}, "write DEGREE=N"),
        ({"checkpoint": "reshape", "reshape_to": "tp=2,pp=64"}, "reshape_to"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    with pytest.raises(ScenarioError, match=message):
        orrery.train(**{k: v for k, v in (JOB | FAILS | given).items() if v is not None})

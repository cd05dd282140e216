"""``--recovery``, ``--detection``, ``--parity-nodes`` and ``--checkpoint reshape``: by hand, and without effect."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.scenario.fields import BY_NAME
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_with.failures import (
    detection_table,
    faults_of,
    from_memory,
    group_nodes,
    notice_of,
    recovery_table,
    without_rollback,
)
from orrery.training.faults.goodput import expected
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan
from orrery.training.faults.saving import SaveCost
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


OFTEN = FaultModel(num_devices=16, node_mtbf_s=2000.0, detection_s=100.0, diagnosis_s=20.0, restart_s=80.0)
"""A loss every 1,000 s on average, and 200 s until training goes on."""

LONG = RunPlan(step_s=10.0, num_steps=1000)


def test_losses_of_stages_that_come_often():
    """In a step of 10 s a stage is lost with 1 - e^(-0.01) = 0.00995; a setback of 20 steps makes 1,000 steps 1,248."""
    q = -math.expm1(-0.01)
    twice = without_rollback(read_scenario({"recovery": "redundant"}), OFTEN, LONG, 4)
    assert twice.time_s == pytest.approx(1000 * 10 + 1000 * q * 200)
    assert (twice.lost_frac, twice.checkpoint_frac) == (0.0, 0.0)
    assert twice.num_failures == pytest.approx(1000 * q)
    averaged = read_scenario({"recovery": "neighbour-average", "setback_steps": 20})
    back = without_rollback(averaged, OFTEN, LONG, 4)
    steps = 1000 / (1 - 20 * q)
    assert back.time_s == pytest.approx(steps * (10 + q * 200))
    assert back.useful_frac == pytest.approx(10_000 / back.time_s)
    assert back.lost_frac == pytest.approx((steps - 1000) * 10 / back.time_s)
    assert back.recovery_frac == pytest.approx(steps * q * 200 / back.time_s)
    rows = recovery_table(averaged, OFTEN, expected(OFTEN, CheckpointPlan(interval_s=50.0), LONG), LONG, 4, 12.0).rows
    assert [row["recovery"] for row in rows] == ["rollback", "redundant", "neighbour-average"]
    assert rows[1]["run_s"] == pytest.approx(1000 * (12 - math.expm1(-0.012) * 200))
    assert [row["step_s"] for row in rows] == [10.0, 12.0, 10.0]
    assert rows[2]["run_s"] == pytest.approx(back.time_s)


def test_notices_by_hand():
    """Ten minutes where nobody says; a device 1.25 times as slow loses a fifth of the time until people notice it."""
    usual = notice_of(read_scenario({}), None, 10.0, 64)
    assert (usual.detection_s, usual.diagnosis_s, usual.slow_detection_s, usual.slow_frac) == (600.0, 0.0, 0.0, 0.0)
    slow = {"slow_mtbf_s": 1e6, "slow_ratio": 1.25, "slow_notice_s": 3600, "detection_s": 0, "diagnosis_s": 30}
    said = notice_of(read_scenario(slow), "timeout", 10.0, 64)
    assert (said.detection_s, said.diagnosis_s, said.slow_detection_s) == (0.0, 30.0, 3600.0)
    assert said.slow_frac == pytest.approx(0.2)
    # half of a report of 10 s, then two steps
    assert notice_of(read_scenario({}), "collective", 10.0, 64).detection_s == pytest.approx(5 + 20)


def test_outages_by_hand():
    """Starting up is part of a restart; a repair without spares is waited for."""
    said = {"node_mtbf_s": 2000, "restart_s": 50, "startup_s": 30, "repair_s": 400, "spare_nodes": 1}
    found = faults_of(read_scenario(said), 10.0, 16, 8)
    assert (found.detection_s, found.diagnosis_s, found.restart_s) == (600.0, 0.0, 80.0)
    assert (found.repair_s, found.num_spares, found.device_mtbf_s) == (400.0, 1, math.inf)
    assert found.failures_per_s == pytest.approx(2 / 2000)
    # a failure a thousand seconds: 0.4 of a spare is away, 0.4 / 1.4 find none and wait for half of a repair
    assert found.down_s == pytest.approx(600 + 0.4 / 1.4 * 400 / 2)
    usual = faults_of(read_scenario({"node_mtbf_s": 2000}), 10.0, 16, 8)
    assert (usual.restart_s, usual.repair_s, usual.num_spares) == (600.0, 0.0, 0)


def test_both_notices_on_the_same_outage():
    """What an outage has beside its notice stays: 20 s of diagnosis are said, 50 more came from elsewhere."""
    scenario = read_scenario({"node_mtbf_s": 2000, "detection_s": 100, "diagnosis_s": 20})
    faults = FaultModel(num_devices=16, node_mtbf_s=2000.0, detection_s=100.0, diagnosis_s=70.0, restart_s=600.0)
    saves = CheckpointPlan(interval_s=50.0)
    timeout, collective = detection_table(scenario, faults, 10.0, saves, LONG).rows
    assert (timeout["noticed_after_s"], timeout["node_known_after_s"]) == (100.0, 120.0)
    assert timeout["overhead_frac"] == pytest.approx(expected(faults, saves, LONG).overhead_frac)
    seen = FaultModel(num_devices=16, node_mtbf_s=2000.0, detection_s=25.0, diagnosis_s=50.0, restart_s=600.0)
    assert collective["noticed_after_s"] == pytest.approx(25.0)
    assert collective["recovery_frac"] == pytest.approx(expected(seen, saves, LONG).recovery_frac)
    assert "slow_noticed_after_s" not in timeout


@pytest.mark.parametrize(
    ("settings", "nodes", "group"),
    [
        ({}, 64, (6, 1)),  # the defaults that the help names
        ({}, 4, (4, 1)),
        ({}, 1, (1, 0)),
        ({"parity_group_nodes": 4, "parity_nodes": 3}, 64, (4, 3)),
        ({"parity_nodes": 0}, 64, (6, 0)),
        ({name: int(BY_NAME[name].example) for name in ("parity_group_nodes", "parity_nodes")}, 64, (6, 1)),
    ],
)
def test_groups_of_nodes(settings, nodes, group):
    assert group_nodes(read_scenario(settings), nodes) == group


@pytest.mark.parametrize(("nodes", "words"), [(64, "at most 3, or more parity_group_nodes"), (4, "or more devices")])
def test_a_group_outlives_fewer_nodes_than_it_has(nodes, words):
    with pytest.raises(ScenarioError, match=words):
        group_nodes(read_scenario({"parity_group_nodes": 4, "parity_nodes": 4}), nodes)


def test_what_two_nodes_outlive():
    """A pair without the other's parity for 200 + 100 s: a second loss within them is a share of about 300 / 2,000."""
    cost = SaveCost(
        blocked_s=1.0,
        durable_lag_s=40.0,
        load_s=30.0,
        memory_lag_s=4.0,
        memory_load_s=2.0,
        rebuild_s=100.0,
        num_node_losses=1,
        host_bytes=7.0,
        memory_interval_s=60.0,
    )
    storage = CheckpointPlan(interval_s=500.0, blocked_s=1.0, lag_s=40.0, load_s=30.0)
    found, table = from_memory(OFTEN, cost, storage, LONG, 2, 1)
    memory, stored = table.rows
    # one is lost after 1,000 s; alone for alone_s, the other is rebuilt (back_frac) or lost as well
    up_s, alone_s = 2000 / 2, 1 / (1 / 2000 + 1 / 300)
    back_frac = alone_s / 300
    to_loss_s = (up_s + alone_s) / (1 - back_frac)
    assert stored["failures_frac"] == pytest.approx(1000 / to_loss_s)
    assert memory["failures_frac"] == pytest.approx(1 - 1000 / to_loss_s)
    assert (memory["lost_work_s"], stored["lost_work_s"]) == (34.0, 290.0)
    assert (memory["load_s"], stored["load_s"]) == (2.0, 30.0)
    assert (memory["interval_s"], stored["interval_s"]) == (60.0, 500.0)
    assert (memory["host_bytes_per_node"], stored["host_bytes_per_node"]) == (7.0, 0.0)
    assert memory["outlives_the_run_frac"] == pytest.approx(math.exp(-found.time_s / to_loss_s))
    assert stored["outlives_the_run_frac"] == 1.0
    assert table.title == "What a failure loses: groups of 2 nodes that outlive 1 lost"


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

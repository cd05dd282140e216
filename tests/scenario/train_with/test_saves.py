"""Saves of a run: all ways side by side, what a save costs beside its bytes, and runs that are drawn."""

import json
import math

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.cli.main import run
from orrery.hardware.cluster import Cluster
from orrery.scenario.experiment import run_experiment
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_with.saves import SavedState, checkpoint_name, saved_run, saving_of
from orrery.training.faults.interval import best_s
from orrery.training.faults.model import FaultModel, RunPlan

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 16,
    "global_batch": 64,
    "seq_len": 2048,
    "framework": "megatron-lm",
    "recompute": "full",
    "train_tokens": 1e10,
}
FAILS = {"node_mtbf_s": 1e5, "restart_s": 60}


def ways(**settings):
    return {row["checkpoint"]: row for row in orrery.train(**JOB, **settings).table("checkpoints")}


def test_a_blocking_save_by_hand():
    """Sixteen copies over 31.5 GB/s each, packed at 1 GB/s, a file in 2 s, and an eighth of 4 GB/s of its node."""
    found = ways(**FAILS, checkpoint="blocking", storage_bytes_per_s=4e9, pack_bytes_per_s=1e9, checkpoint_file_s=2.0)
    answer = orrery.train(**JOB, **FAILS, checkpoint="blocking", storage_bytes_per_s=4e9)
    state = answer.run.checkpoint_bytes  # of one replica: all 16 devices hold it
    copy_s, write_s = state / 31.5e9, state / (4e9 / 8)
    assert found["blocking"]["copy_s"] == pytest.approx(copy_s)
    assert found["blocking"]["blocked_s"] == pytest.approx(copy_s + state / 1e9 + 2.0 + write_s)
    assert found["in-memory"]["copy_s"] == pytest.approx(copy_s / 16)
    plain = ways(**FAILS, checkpoint="blocking", storage_bytes_per_s=4e9)
    assert plain["blocking"]["blocked_s"] == pytest.approx(copy_s + write_s)
    free = ways(**FAILS, checkpoint="lazy", storage_bytes_per_s=4e9, pack_bytes_per_s=1e13, checkpoint_file_s=0.0)
    assert free["lazy"]["run_s"] == pytest.approx(plain["lazy"]["run_s"], rel=1e-3)


def test_on_endless_storage_lazy_saves_are_snapshots_less_what_the_passes_hide():
    found = ways(**FAILS, checkpoint="lazy", storage_bytes_per_s=1e14)
    assert found["snapshot"]["blocked_s"] == pytest.approx(found["snapshot"]["copy_s"])
    assert found["lazy"]["blocked_s"] == 0.0
    assert found["lazy"]["counts_after_s"] == pytest.approx(found["snapshot"]["copy_s"], rel=1e-3)


def test_the_table_has_the_run_that_is_asked_for():
    answer = orrery.train(**JOB, **FAILS, checkpoint="in-memory")
    rows = {row["checkpoint"]: row for row in answer.table("checkpoints")}
    assert rows["in-memory"]["run_s"] == pytest.approx(answer.run.goodput.time_s)
    assert rows["snapshot"]["run_s"] == pytest.approx(orrery.train(**JOB, **FAILS).run.goodput.time_s)
    assert rows["in-memory"]["run_s"] < rows["blocking"]["run_s"]


def test_host_memory_and_its_buffer_hold_copies_up():
    plain = ways(**FAILS, checkpoint="snapshot")
    slow = ways(**FAILS, checkpoint="snapshot", host_memory_bytes_per_s=8e9)
    assert slow["snapshot"]["copy_s"] == pytest.approx(plain["snapshot"]["copy_s"] * 31.5)
    full = ways(**FAILS, checkpoint="snapshot", checkpoint_buffer_bytes=1e9)
    assert full["snapshot"]["blocked_s"] > plain["snapshot"]["blocked_s"]


def test_saves_cost_without_failures_too():
    plain = orrery.train(**JOB).run
    step_s = orrery.train(**JOB).step_time_s
    saved = orrery.train(**JOB, checkpoint="blocking", checkpoint_interval_s=100 * step_s).run
    saves = -(-plain.num_steps // 100)
    assert saved.time_s - plain.time_s == pytest.approx(saves * saved.checkpoint_blocked_s)
    assert saved.goodput.num_failures == 0.0
    seldom = orrery.train(**JOB, checkpoint="in-memory", checkpoint_interval_s=1e9).run
    assert seldom.goodput.lost_frac == 0.0


def test_drawn_runs_of_independent_failures_are_the_closed_form():
    mean = orrery.train(**JOB, **FAILS, checkpoint="blocking").run.goodput
    drawn = orrery.train(**JOB, **FAILS, checkpoint="blocking", failure_shape=1.0)
    assert drawn.run.goodput.time_s == pytest.approx(mean.time_s, rel=0.01)
    assert drawn.run.goodput.num_failures == pytest.approx(mean.num_failures, rel=0.1)
    times = [row["time_s"] for row in drawn.table("run_times")[1:]]
    assert times == sorted(times)
    assert times[0] < drawn.run.goodput.time_s < times[-1]


@pytest.fixture(scope="module")
def state():
    """Two nodes of eight; 4 GB of every device, and 3 s of a step in which it may be read."""
    cluster = Cluster(device=get_device("a100-sxm-80gb"), num_devices=16, devices_per_node=8)
    return SavedState(cluster=cluster, state_bytes=4e9, num_replicas=2, forward_s=3.0, update_s=1.0)


NEVER = FaultModel(num_devices=16)
OFTEN = FaultModel(num_devices=16, node_mtbf_s=2000.0)


def test_a_save_by_its_links(state):
    found = saving_of(read_scenario({}), state, RunPlan(step_s=10.0, num_steps=5))
    assert (found.forward_s, found.backward_s, found.update_s) == (3.0, 6.0, 1.0)
    assert (found.storage_bytes_per_s, found.node_storage_bytes_per_s) == (4e9, 2e9)  # assumed of each node
    assert found.node_link_bytes_per_s == 8 * state.cluster.device.scaleout.each_way_bytes_per_s
    for endless in (found.host_memory_bytes_per_s, found.host_buffer_bytes, found.pack_bytes_per_s):
        assert endless == math.inf
    assert (found.file_s, found.num_replicas) == (0.0, 2)
    said = {"storage_bytes_per_s": 1e9, "pack_bytes_per_s": 3e9, "checkpoint_file_s": 0.5}
    found = saving_of(read_scenario(said), state, RunPlan(step_s=10.0, num_steps=5))
    assert (found.storage_bytes_per_s, found.pack_bytes_per_s, found.file_s) == (2e9, 3e9, 0.5)


def test_how_often_is_asked_or_best(state):
    """A blocking save takes 4 / 31.5 s to copy and 16 s at an eighth of 2 GB/s. Losses come every 1,000 s, so Young's
    rule saves every root of 2 x 16.1 x 1,000: 179.6 s. A run of 5 steps cannot save more seldom than once."""
    run = RunPlan(step_s=10.0, num_steps=1000)
    asked = read_scenario({"checkpoint_interval_s": 256})
    assert saved_run(asked, state, OFTEN, run, "blocking").interval_steps == 26
    assert saved_run(read_scenario({"checkpoint_interval_s": 1}), state, OFTEN, run, "blocking").interval_steps == 1
    best = saved_run(read_scenario({}), state, OFTEN, run, "blocking")
    assert best.cost.blocked_s == pytest.approx(4 / 31.5 + 16)
    assert abs(best.interval_steps - 179.6 / 10) < 1
    assert best.saves.interval_s == 10.0 * best.interval_steps
    assert saved_run(read_scenario({}), state, NEVER, run, "blocking").interval_steps == 1000
    short = RunPlan(step_s=10.0, num_steps=5)
    assert saved_run(read_scenario({}), state, OFTEN, short, "blocking").interval_steps == 5


def test_free_saves_come_as_often_as_they_are_written(state):
    """Copied behind 9 s in which nothing changes, then 16 s to storage: two steps between saves, or one of one."""
    run = RunPlan(step_s=10.0, num_steps=1000)
    found = saved_run(read_scenario({}), state, OFTEN, run, "lazy")
    assert found.cost.blocked_s == 0.0
    assert found.interval_steps == math.ceil(found.cost.durable_lag_s / 10.0) == 2
    assert saved_run(read_scenario({}), state, OFTEN, RunPlan(step_s=10.0, num_steps=1), "lazy").interval_steps == 1


def test_what_a_save_blocks_depends_on_how_often_it_comes(state):
    """A node writes its 32 GB in 3,000 s, so saves every 1,800 s wait for 1,200 s of the one before; with losses every
    1,000 s it is best to save more often than that, and they wait for what then is left of 3,000 s. After 5 steps of
    10 s that is nearly all."""
    slow = read_scenario({"storage_bytes_per_s": 32e9 / 3000})
    found = saved_run(slow, state, OFTEN, RunPlan(step_s=10.0, num_steps=1000), "snapshot")
    first_s = best_s(1200.0, 1000.0)
    assert found.interval_steps * 10.0 == pytest.approx(best_s(3000.0 - first_s, 1000.0), abs=10.0)
    assert found.cost.blocked_s == pytest.approx(3000.0 - found.interval_steps * 10.0)
    seldom = saved_run(slow, state, NEVER, RunPlan(step_s=10.0, num_steps=5), "snapshot")
    assert (seldom.interval_steps, seldom.cost.blocked_s) == (5, pytest.approx(2950.0))


def test_names_of_saves_as_they_are_written():
    assert checkpoint_name(read_scenario({})) == "snapshot"
    assert checkpoint_name(read_scenario({"checkpoint": "in-memory"})) == "in-memory"


def test_bursts_of_failures_spread_runs_farther():
    def spread(shape):
        rows = orrery.train(**JOB, **FAILS, checkpoint="blocking", failure_shape=shape).table("run_times")
        return rows[-1]["time_s"] - rows[1]["time_s"]

    assert spread(0.5) > spread(1.0) > spread(3.0)


def test_the_command_says_the_same(capsys):
    given = {**JOB, **FAILS, "checkpoint": "lazy", "pack_bytes_per_s": 1e9, "failure_shape": 0.7}
    flags = [w for k, v in given.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    assert run(["train", *flags, "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    found = orrery.train(**given)
    assert out["run"]["time_s"] == pytest.approx(found.run.time_s, rel=1e-12)
    assert {row["checkpoint"] for row in out["techniques"]["checkpoints"]} >= {"blocking", "lazy", "in-memory"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"checkpoint": "lazy"}, "checkpoint: nothing is saved"),
        ({"checkpoint_buffer_bytes": 1e9}, "checkpoint_buffer_bytes: nothing is saved"),
        ({"pack_bytes_per_s": 1e9}, "pack_bytes_per_s: nothing is saved"),
        ({"failure_shape": 0.7}, "failure_shape: nothing fails"),
        ({**FAILS, "failure_shape": 0.7, "checkpoint": "in-memory"}, "failure_shape: drawn runs go back to storage"),
        (
            {**FAILS, "failure_shape": 0.7, "recovery": "redundant", "pp": 2},
            "failure_shape: drawn runs go back to storage",
        ),
        ({**FAILS, "failure_shape": 0.0}, "failure_shape"),
    ],
)
def test_what_means_nothing_is_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        orrery.train(**JOB, **settings)


def test_parity_brings_every_bit_back():
    found = run_experiment("node-parity", steps=40, sizes=["groups=2", "group_nodes=4", "parity=1", "node_bytes=64"])
    rows = {int(row["lost_nodes"]): row for row in found.rows}
    assert list(rows) == [0, 1, 2, 3]
    assert all(row["bits_equal"] for row in rows.values())
    assert [rows[n]["came_back_frac"] for n in (0, 1, 3)] == [1.0, 1.0, 0.0]
    # of two lost nodes of eight, 16 of 28 pairs are of two groups
    assert rows[2]["by_formula_frac"] == pytest.approx(16 / 28)
    assert rows[2]["came_back_frac"] == pytest.approx(16 / 28, abs=0.25)
    bare = run_experiment("node-parity", steps=5, sizes=["parity=0", "groups=2"]).rows
    assert [row["came_back_frac"] for row in bare] == [1.0, 0.0]
    with pytest.raises(ScenarioError, match="parity"):
        run_experiment("node-parity", steps=2, sizes=["group_nodes=3", "parity=3"])

"""``--worker-times`` with ``--straggler-coding``, and ``--seq-lengths`` with ``--sequence-balancing``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 8,
    "global_batch": 32,
    "seq_len": 2048,
    "framework": "pytorch",
    "sharding": "none",
    "recompute": "full",
}
FIXED = ("gradient reduction", "parameter gathering", "update", "once a step")
LONG = {
    "model": "llama-3.2-1b",
    "device": "h100-sxm",
    "devices": 16,
    "tp": 1,
    "global_batch": 64,
    "seq_len": 65536,
}


def written(path, rows):
    path.write_text("\n".join(",".join(f"{x:g}" for x in row) for row in rows) + "\n")
    return str(path)


def busy(answer):
    return sum(seconds for name, seconds in answer.parts.items() if name not in FIXED)


def rows_of(answer, kind):
    return {next(iter(row.values())): row for row in answer.table(kind)}


def test_the_slowest_rank_by_hand(tmp_path):
    times = np.ones((4, 8))
    times[0, 3], times[2, 5] = 3.0, 2.0
    plain = orrery.train(**JOB)
    uneven = orrery.train(**JOB, worker_times=written(tmp_path / "t.csv", times))
    assert uneven.parts["waiting for slow ranks"] == pytest.approx(busy(plain) * (2.0 + 0 + 1.0 + 0) / 4)
    assert uneven.step_time_s == pytest.approx(plain.step_time_s + busy(plain) * 0.75)


def test_a_code_by_hand(tmp_path):
    """One rank is three times as slow in every round: coded for one straggler, each does twice the work, none waits."""
    times = np.ones((6, 8))
    times[:, 2] = 3.0
    file = written(tmp_path / "t.csv", times)
    plain = orrery.train(**JOB)
    coded = orrery.train(**JOB, worker_times=file, straggler_coding="gradient", max_stragglers=1, wait_frac=0.5)
    fixed_s = plain.step_time_s - busy(plain)
    assert coded.parts["forward"] == pytest.approx(2 * plain.parts["forward"])
    # the deadline is half as long again as the fastest rank took
    assert coded.step_time_s == pytest.approx(1.5 * 2 * busy(plain) + fixed_s)
    uncoded = rows_of(coded, "stragglers")["none"]["step_s"]
    assert uncoded == pytest.approx(3 * busy(plain) + fixed_s)
    assert any("differ from their sum by" in note and "e-1" in note for note in coded.notes)


@pytest.mark.parametrize("name", ["gradient", "selective", "multiplexed"])
def test_equal_ranks_make_coding_a_loss(tmp_path, name):
    file = written(tmp_path / "t.csv", np.full((8, 8), 2.5))
    plain, alike = orrery.train(**JOB), orrery.train(**JOB, worker_times=file)
    assert alike.step_time_s == plain.step_time_s
    assert alike.parts["waiting for slow ranks"] == 0.0
    coded = orrery.train(**JOB, worker_times=file, straggler_coding=name, window_rounds=3)
    assert coded.step_time_s > plain.step_time_s
    load = rows_of(coded, "stragglers")[name]["load_ratio"]
    assert coded.step_time_s == pytest.approx(plain.step_time_s + (load - 1.0) * busy(plain))


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    late=st.integers(0, 3),
    name=st.sampled_from([None, "gradient", "selective", "multiplexed"]),
    wait=st.floats(0.0, 2.0),
)
def test_parts_add_up_and_no_round_is_shorter_than_its_own_work(tmp_path_factory, seed, late, name, wait):
    draw = np.random.default_rng(seed)
    times = np.exp(0.3 * draw.standard_normal((12, 8)))
    file = written(tmp_path_factory.mktemp("times") / "t.csv", times)
    knobs = {"straggler_coding": name, "max_stragglers": late, "wait_frac": wait} if name else {}
    answer = orrery.train(**JOB, worker_times=file, **knobs)
    plain = orrery.train(**JOB)
    assert sum(answer.parts.values()) == pytest.approx(answer.step_time_s)
    assert min(answer.parts.values()) >= 0.0
    load = rows_of(answer, "stragglers")[name or "none"]["load_ratio"]
    assert load >= 1.0 - 1e-12
    assert answer.step_time_s >= plain.step_time_s + (load - 1.0) * busy(plain) - 1e-9


def test_equal_sequences_gain_nothing(tmp_path):
    file = written(tmp_path / "n.csv", [[65536]])
    static = orrery.train(**LONG, seq_lengths=file)
    balanced = orrery.train(**LONG, seq_lengths=file, sequence_balancing=True)
    assert balanced.step_time_s == pytest.approx(static.step_time_s, rel=0.02)
    off = orrery.train(**LONG, seq_lengths=file, sequence_balancing=False)
    assert off.parts == static.parts
    assert off.peak_memory_bytes == static.peak_memory_bytes


def test_uneven_sequences_gain_and_each_part_has_its_share():
    answer = orrery.train(
        **{**LONG, "seq_len": 524288, "global_batch": 16}, seq_lengths="lognormal:2000:2", sequence_balancing=True
    )
    rows = rows_of(answer, "sequences")
    static = rows["one mesh for the longest"]
    assert static["largest_group"] > 1
    assert rows["ranks by length"]["speedup_ratio"] > 1.1
    best = min(row["step_s"] for row in rows.values())
    lasting = sum(answer.parts.values())
    assert lasting == pytest.approx(answer.step_time_s) == pytest.approx(best)
    assert rows["… and activations on the host"]["largest_group"] <= rows["ranks by length"]["largest_group"]


def test_short_sequences_have_less_attention():
    long = orrery.train(**LONG, seq_lengths="lognormal:60000:0")
    short = orrery.train(**LONG, seq_lengths="lognormal:2000:0")
    assert short.parts["forward"] < long.parts["forward"]
    flops = [a.mfu_frac * a.step_time_s for a in (short, long)]
    assert flops[0] < flops[1]
    assert 0.1 < short.mfu_frac < 0.8


def test_a_file_is_read_in_order_and_cut_at_the_batch(tmp_path):
    from orrery.scenario.schema import read_scenario
    from orrery.scenario.train_with.sequences import lengths_of

    file = written(tmp_path / "n.csv", [[100], [50], [10]])
    scenario = read_scenario({"seq_lengths": file})
    assert lengths_of(scenario, 128, 300).tolist() == [100, 50, 10, 100, 40]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("1,2\n3", {}, "line 2: has 1 numbers, the lines before 2"),
        ("1,2\n3,x", {}, "line 2: got '3'"),
        ("1,0\n3,1", {}, "not above 0"),
        ("a,b\n", {}, "holds no numbers"),
        ("1,2\n2,1", {}, "2 columns for dp = 8"),
        ("1,2,3,4,5,6,7,8\n", {"straggler_coding": "gradient", "max_stragglers": 8}, "max_stragglers|gradient code"),
        (None, {"straggler_coding": "gradient"}, "straggler_coding: means nothing without worker_times"),
        (None, {"max_stragglers": 1}, "means nothing without straggler_coding"),
        (None, {"sequence_balancing": True}, "means nothing without seq_lengths"),
        (None, {"seq_lengths": "lognormal:x:1"}, "write one length"),
        (None, {"seq_lengths": "nofile.csv"}, "which is no file"),
        (None, {"seq_lengths": "lognormal:100:1", "local_updates": "co2"}, "local_updates: does not go with"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(tmp_path, text, given, message):
    if text is not None:
        (tmp_path / "t.csv").write_text(text)
        given = {**given, "worker_times": str(tmp_path / "t.csv")}
    with pytest.raises(ScenarioError, match=message):
        orrery.train(**JOB, **given)

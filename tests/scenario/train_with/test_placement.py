"""``--placement``: each matrix's state on the user's mesh, its cost, and where it differs from Megatron's."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.scenario.ask import InfeasibleAnswer

JOB = {
    "model": "gpt3-1.3b",
    "device": "a100-sxm-80gb",
    "devices": 16,
    "tp": 4,
    "global_batch": 64,
    "seq_len": 2048,
    "recompute": "full",
    "sharding": "zero1",
}


def rows(answer, kind):
    return {next(iter(row.values())): row for row in answer.table(kind)}


def test_megatrons_cuts_are_as_they_are_written():
    found = rows(orrery.train(**JOB, placement="searched"), "matrices")
    assert {name: row["megatron"] for name, row in found.items()} == {
        "qkv": "B x S(1)",
        "out": "B x S(0)",
        "up": "B x S(1)",
        "down": "B x S(0)",
    }


def test_states_of_megatron_by_hand():
    answer = orrery.train(**JOB, placement="searched")
    megatron, hidden = rows(answer, "plans")["megatron"], answer.job.model.hidden_size
    assert megatron["weight_bytes"] == 16.0 * 12 * hidden**2 / 4  # twelve squares of the width over four ranks


def test_changes_of_state_by_hand():
    """Over four ranks a gather sends three times the tensor, an all-reduce six, an exchange 3/4, a slice nothing."""
    found = rows(orrery.train(**JOB, placement="searched"), "conversions")
    assert {name: row["sent_ratio"] for name, row in found.items()} == pytest.approx(
        {"S(0) to B": 3.0, "P to S(0)": 3.0, "P to B": 6.0, "S(0) to S(1)": 0.75, "B to S(0)": 0.0}
    )
    assert found["B to S(0)"]["time_s"] == 0.0
    alone = rows(orrery.train(**{**JOB, "devices": 1, "tp": 1}, placement="searched"), "conversions")
    assert {row["sent_ratio"] for row in alone.values()} == {0.0}


def test_a_step_is_not_changed_by_being_asked_about():
    plain, asked = orrery.train(**JOB), orrery.train(**JOB, placement="searched")
    assert asked.parts == plain.parts
    assert asked.peak_memory_bytes == plain.peak_memory_bytes
    assert any("the step is that of the layout" in note for note in asked.notes)


@settings(max_examples=6, deadline=None)
@given(tp=st.sampled_from([1, 2, 4, 8]), rate=st.sampled_from([1e9, 1e11, 1e14]))
def test_what_is_searched_is_never_dearer(tp, rate):
    answer = orrery.train(**{**JOB, "tp": tp}, node_link_bytes_per_s=rate, placement="searched")
    plans = rows(answer, "plans")
    assert plans["searched"]["time_s"] <= plans["megatron"]["time_s"] * (1 + 1e-12)
    for plan in plans.values():
        parts = ("compute_s", "conversion_s", "weights_s", "update_s")
        assert sum(plan[part] for part in parts) == pytest.approx(plan["time_s"])


def test_two_rules_write_what_families_write_by_hand():
    answer = orrery.train(**{**JOB, "model": "llama-3.1-8b"}, placement="two-rules")
    assert all(row["same"] for row in answer.table("matrices"))
    memory = {row["shards"]: row for row in answer.table("memory_by_rules")}[4]
    assert memory["state_bytes"] == pytest.approx(16.0 * answer.job.model.num_parameters / 4, rel=1e-3)
    assert memory["fits"] == (memory["state_bytes"] + memory["activations_bytes"] <= 85.9e9)


def test_smaller_meshes_hold_more_on_each_device():
    """Each mesh of twice as many shards up to all devices, whatever the layout's own."""
    rows = [orrery.train(**{**JOB, "tp": tp}, placement="two-rules").table("memory_by_rules") for tp in (2, 4)]
    assert rows[0] == rows[1]
    assert [row["shards"] for row in rows[0]] == [1, 2, 4, 8, 16]
    for more, fewer in pairwise(rows[0]):
        assert more["state_bytes"] == pytest.approx(2 * fewer["state_bytes"], rel=0.01)
        assert more["total_bytes"] > fewer["total_bytes"]
    fits = [row["fits"] for row in rows[0]]
    assert fits == sorted(fits)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"placement": "search"}, "write 'searched'"),
        ({"placement": "searched", "model": "mixtral-8x7b"}, "no plain attention and feed-forward"),
        ({"placement": "searched", "cp": 2}, "write cp = ep = 1"),
        ({"placement": "two-rules", "model": "mixtral-8x7b"}, "for dense layers"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    with pytest.raises(ScenarioError, match=message):
        orrery.train(**{**JOB, **given})


def test_what_does_not_fit_still_says_how_it_would_be_cut():
    """7B in 32 bits, 16 bytes a parameter over two devices, is 54 GB of states; four hold them."""
    job = {"model": "llama-7b", "device": "a100-sxm-40gb", "seq_len": 1024, "global_batch": 1, "precision": "fp32"}
    found = {
        n: orrery.train(**job, devices=n, tp=n, placement="two-rules", recompute="none", sequence_parallel=False)
        for n in (2, 4)
    }
    two, four = (found[n].table("memory_by_rules")[-1] for n in (2, 4))
    assert (two["shards"], four["shards"]) == (2, 4)
    assert isinstance(found[2], InfeasibleAnswer)
    assert two["state_bytes"] == pytest.approx(16 * 6.738e9 / 2, rel=1e-3)
    assert two["total_bytes"] == two["state_bytes"] + two["activations_bytes"]
    assert (two["fits"], four["fits"]) == (False, True)

"""``--nic-groups``: nodes whose cards cannot all talk to each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 32,
    "pp": 2,
    "micro_batch": 2,
    "global_batch": 128,
    "seq_len": 2048,
    "framework": "megatron-lm",
    "sharding": "zero1",
    "recompute": "full",
}


def rows(answer):
    return {row["placement"]: row for row in answer.table("network_cards")}


def test_equal_cards_give_one_number():
    answer = orrery.train(**JOB, nic_groups="ib:2:5e10,roce:2:5e10", nic_group_link_bytes_per_s=5e10)
    found = rows(answer)
    steps = [found[way]["step_s"] for way in ("grouped", "dealt", "one-transport")]
    assert max(steps) == min(steps)
    plain = orrery.train(**JOB, node_link_bytes_per_s=5e10)
    assert steps[0] == pytest.approx(plain.step_time_s, rel=1e-6)
    assert found["adapted"]["step_s"] < steps[0]  # the last stage has the head: that is no gain of the groups
    one_group = rows(orrery.train(**JOB, nic_groups="ib:4:5e10"))
    assert one_group["adapted"]["step_s"] == found["adapted"]["step_s"]


def test_rings_stay_in_their_group_and_hand_overs_cross():
    groups = {"nic_groups": "ib:2:5e10,roce:2:5e10", "nic_group_link_bytes_per_s": 2e9}
    found = rows(orrery.train(**JOB, **groups))
    near = rows(orrery.train(**JOB, nic_groups="ib:4:5e10"))
    far = rows(orrery.train(**JOB, nic_groups="eth:4:2e9"))
    assert found["grouped"]["longest_ring_s"] == pytest.approx(near["grouped"]["longest_ring_s"])
    assert found["one-transport"]["step_s"] == pytest.approx(far["grouped"]["step_s"])
    assert found["adapted"]["step_s"] <= found["grouped"]["step_s"] < found["dealt"]["step_s"]
    assert near["grouped"]["step_s"] < found["grouped"]["step_s"] < far["grouped"]["step_s"]


@settings(max_examples=10, deadline=None)
@given(
    placement=st.sampled_from(["adapted", "grouped", "dealt", "one-transport"]),
    first=st.floats(1e9, 1e12),
    second=st.floats(1e9, 1e12),
    between=st.floats(1e8, 1e11),
)
def test_parts_add_up(placement, first, second, between):
    answer = orrery.train(
        **JOB,
        nic_groups=f"a:2:{first:g},b:2:{second:g}",
        nic_group_link_bytes_per_s=between,
        nic_placement=placement,
    )
    assert answer.step_time_s == pytest.approx(rows(answer)[placement]["step_s"])
    assert sum(answer.parts.values()) == pytest.approx(answer.step_time_s)
    assert min(answer.parts.values()) >= 0.0
    assert answer.mfu_frac < 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nic_groups": "ib:2,roce:3", "nic_group_link_bytes_per_s": 1e9}, "have 5 nodes, the job 4"),
        ({"nic_groups": "ib:2,roce:2"}, "nic_group_link_bytes_per_s: is missing"),
        ({"nic_groups": "ib"}, "write NAME:NODES"),
        ({"nic_groups": "ib:4:-1"}, "write NAME:NODES"),
        ({"nic_placement": "grouped"}, "means nothing without nic_groups"),
        ({"nic_groups": "ib:4", "schedule": "interleaved", "vp": 2}, "under the 1f1b schedule"),
        ({"nic_groups": "ib:4", "sites": 2, "site_link_bytes_per_s": 1e9}, "sites: does not go with nic_groups"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    with pytest.raises(ScenarioError, match=message):
        orrery.train(**JOB, **given)

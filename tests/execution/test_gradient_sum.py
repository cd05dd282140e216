"""Sums of gradients beside the backward pass: by hand, off, and where nothing is left to gain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knob_array
from orrery.execution.train.gradient_sum import GradientSum
from orrery.execution.train.hidden import GRADIENT

MIXTURE = {
    "model": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "devices": 64,
    "ep": 16,
    "sharding": "zero1",
    "recompute": "full",
    "global_batch": 128,
    "seq_len": 4096,
}
DENSE = {"model": "llama-3.2-1b", "device": "a100-sxm-80gb", "devices": 16, "global_batch": 64, "seq_len": 2048}
WAYS = ("gradient-serial", "gradient-buckets", "gradient-slots")


def added(name, reduce_s, idle_s, bucket=0.25, layer=0.125, contention=1.0):
    found = GradientSum(
        reduce_s=np.array(reduce_s),
        idle_s=np.array(idle_s),
        last_bucket_frac=np.full(len(reduce_s), bucket),
        last_layer_frac=np.full(len(reduce_s), layer),
        contention_ratio=contention,
    )
    technique = GRADIENT.get(name)
    return technique.rule(found, knob_array(technique)).tolist()


def test_by_hand():
    """5 s in 3 s of idle links leave 2; in 9 s only the last part is left: a quarter as a bucket, an eighth as a
    layer; products 1.1 times slower for 3 s of the sum add 0.3.
    """
    reduce_s, idle_s = [4.0, 5.0, 8.0, 0.0], [0.0, 3.0, 9.0, 3.0]
    assert added("gradient-serial", reduce_s, idle_s) == [4.0, 5.0, 8.0, 0.0]
    assert added("gradient-buckets", reduce_s, idle_s) == [4.0, 2.0, 2.0, 0.0]
    assert added("gradient-slots", reduce_s, idle_s) == [4.0, 2.0, 1.0, 0.0]
    assert added("gradient-slots", [5.0], [3.0], contention=1.1) == [pytest.approx(2.3)]


@given(
    reduce_s=st.floats(0, 10),
    idle_s=st.floats(0, 10),
    contention=st.floats(1, 2),
    layer=st.floats(0.01, 1),
    name=st.sampled_from(WAYS),
)
def test_never_more_than_after_the_pass_and_no_less_than_the_links_need(reduce_s, idle_s, contention, layer, name):
    (found,) = added(name, [reduce_s], [idle_s], layer=layer, contention=contention)
    assert max(0.0, reduce_s - idle_s) <= found + 1e-9
    assert found <= reduce_s + 1e-9


def reduction(**settings):
    return orrery.train(**settings).parts["gradient reduction"]


@pytest.mark.parametrize("job", [MIXTURE, DENSE])
def test_the_frameworks_own_way_is_what_its_name_says(job):
    """Megatron-LM sums after the pass unless told otherwise; DDP in buckets."""
    assert reduction(**job, framework="megatron-lm") == reduction(
        **job, framework="megatron-lm", gradient_overlap="gradient-serial"
    )
    found = [reduction(**job, framework="megatron-lm", gradient_overlap=name) for name in WAYS]
    assert found[0] > found[1] > 0.0
    assert found[0] > found[2] > 0.0


def test_buckets_are_what_ddp_does():
    plain = DENSE | {"framework": "pytorch"}
    assert reduction(**plain) == reduction(**plain, gradient_overlap="gradient-buckets")


def test_links_that_an_exchange_uses_are_not_idle():
    """An exchange that is itself hidden behind experts takes the links from the gradients."""
    slow = MIXTURE | {"node_link_bytes_per_s": 4e9, "gradient_overlap": "gradient-slots", "global_batch": 64}
    alone, beside = reduction(**slow), reduction(**slow, expert_overlap="expert-pipeline")
    assert beside > alone
    fast = slow | {"node_link_bytes_per_s": 1e14}
    assert reduction(**fast) < 0.05 * alone


def test_the_gain_is_gone_where_no_other_rank_is():
    alone = DENSE | {"devices": 2, "tp": 2, "global_batch": 4}
    plain, slots = orrery.train(**alone), orrery.train(**alone, gradient_overlap="gradient-slots")
    assert plain.step_time_s == slots.step_time_s
    assert any("no effect on this deployment: dp is 1" in note for note in slots.notes)
    full = DENSE | {"sharding": "zero3", "gradient_overlap": "gradient-slots"}
    assert any("zero3 without a pipeline" in note for note in orrery.train(**full).notes)


@pytest.mark.parametrize(
    "beside",
    [
        {"offload": "zero-offload"},
        {"local_updates": "co2"},
        {"partition": "three-level"},
        {"seq_lengths": "lognormal:500:1"},
        {"sites": 2, "site_link_bytes_per_s": 1e9, "sites_train": "experts"},
    ],
)
def test_what_sums_in_its_own_way_refuses_it(beside):
    with pytest.raises(ScenarioError, match="gradient_overlap"):
        orrery.train(**DENSE, **beside, gradient_overlap="gradient-slots")


def test_groups_of_network_cards_take_it():
    groups = DENSE | {
        "pp": 2,
        "framework": "megatron-lm",
        "nic_groups": "a:1:5e10,b:1:2e10",
        "nic_group_link_bytes_per_s": 2e9,
    }
    serial, slots = (orrery.train(**groups, gradient_overlap=name).step_time_s for name in (WAYS[0], WAYS[2]))
    assert slots < serial

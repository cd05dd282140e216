"""Experts on the host: shares by hand, all cached is absent, bounds hold, rates that vanish take the gain with them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.execution.experts.offloaded import GRID, Machine, played, split_s
from orrery.execution.host_experts import HostExperts, kept_frac
from orrery.execution.memory import memory_of
from orrery.execution.shard import shard
from orrery.execution.step import from_host
from orrery.kernels.ops import Popularity
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario

MIXTRAL = {
    "model": "mixtral-8x7b",
    "device": "h100-sxm",
    "tp": 2,
    "input_tokens": 256,
    "output_tokens": 32,
    "concurrency": 4,
    "engine_version": "0.11.0",
}
HOST = {"expert_offload": "host-compute", "host_flops_per_s": 1e12, "host_memory_bytes_per_s": 2e11}
EIGHT = Machine(
    num_experts=8,
    experts_per_token=2,
    expert_bytes=1e8,
    expert_parameters=5e7,
    link_bytes_per_s=1e11 / 0.82,  # 1 ms an expert
    other_s=0.0,
)


def tpot_s(**settings) -> float:
    answer = orrery.estimate(**MIXTRAL | settings)
    assert not isinstance(answer, InfeasibleAnswer)
    return answer.estimate.tpot_s


def test_all_cached_is_absent_to_the_bit():
    for way in ({"expert_offload": "host"}, HOST):
        assert tpot_s(**way, expert_cached=1.0) == tpot_s()


def test_nothing_cached_without_a_host_that_computes_is_the_link():
    """One token, two of eight experts, none kept: 2 ms over the link, then the last one's 0.5 ms on the device."""
    rule = HostExperts(cached_frac=0.0)
    found = played(rule, EIGHT, Popularity(), tuple(1e-3 for _ in GRID))
    assert found.shown_ratio[0] == pytest.approx(2.5)
    assert found.bound_ratio[0] == pytest.approx(2.0)


def test_a_host_that_computes_all_by_itself():
    """One token, none kept, fixed: two experts of 100 MB at 76 % of 100 GB/s, one after the other."""
    rule = HostExperts(
        computes=True, cached_frac=0.0, schedule="fixed", host_flops_per_s=1e15, host_memory_bytes_per_s=1e11
    )
    found = played(rule, EIGHT, Popularity(), tuple(1e-3 for _ in GRID))
    assert found.shown_ratio[0] == pytest.approx(2 * 1e8 / 0.76e11 / 1e-3)


def test_whole_layers_are_kept_or_none_of_them():
    """Of 32 layers a quarter's: eight take what they take on the device, 24 what they take with none kept."""
    none = {"cached_frac": 0.0, "cache": "static"}
    deployment = resolve(read_scenario(MIXTRAL | HOST | {"expert_cache": "layers", "expert_cached": 0.25})).deployment
    bare = replace(deployment, host_experts=replace(deployment.host_experts, **none))
    (experts,) = shard(deployment).experts
    found, without = from_host(deployment, experts), from_host(bare, experts)
    assert experts.count == 32
    assert found.shown_ratio == pytest.approx(tuple(0.25 + 0.75 * ratio for ratio in without.shown_ratio))
    assert found.bound_ratio == pytest.approx(tuple(0.25 + 0.75 * ratio for ratio in without.bound_ratio))
    assert (
        shard(deployment).experts[0].weight_bytes == shard(replace(bare, host_experts=None)).experts[0].weight_bytes / 4
    )


def test_a_share_of_layers_is_a_whole_number_of_them():
    rule = HostExperts(cache="layers", cached_frac=0.3)
    assert kept_frac(rule, 64, 27.0) == 8 / 27
    assert kept_frac(replace(rule, cached_frac=1.0), 64, 27.0) == 1.0
    assert kept_frac(replace(rule, cache="lru"), 64, 27.0) == 19 / 64
    assert tpot_s(**HOST, expert_cache="layers", expert_cached=1.0) == tpot_s()


def test_each_layer_s_popular_experts_beat_whole_layers_where_tokens_repeat():
    """As many bytes on the device; host and device work at once, and what is kept is what tokens use."""
    on = HOST | {"expert_schedule": "fixed", "expert_cached": 0.5, "expert_repeat": 0.8, "concurrency": 1}
    layers, popular = (tpot_s(**on, expert_cache=cache, expert_loads="zipf:1") for cache in ("layers", "static"))
    assert popular < layers


def test_parts_of_an_expert_are_shared_out_by_hand():
    assert split_s([1.0, 2.0, 4.0], 2.0) == pytest.approx(2.5)  # 1 + 3/4 of 2 there, 5/4 of 2 here
    assert split_s([], 2.0) == 0.0
    assert split_s([1.0, 1.0], 1e9) == pytest.approx(2.0)  # no link
    assert split_s([1e9], 3.0) == pytest.approx(3.0)  # no host


def test_each_part_can_be_switched_off():
    on = HOST | {"expert_repeat": 0.8, "expert_cached": 0.5, "concurrency": 1}
    fixed = tpot_s(**on, expert_schedule="fixed", expert_cache="static")
    greedy = tpot_s(**on, expert_schedule="greedy", expert_cache="static")
    score = tpot_s(**on, expert_cache="score")
    ahead = tpot_s(**on, expert_cache="score", expert_prefetch=1.0)
    assert greedy <= fixed * (1 + 1e-9)
    assert len({fixed, greedy, score, ahead}) >= 3


def test_a_predictor_that_is_always_wrong_brings_nothing():
    rule = {"cached_frac": 0.5, "cache": "lru", "repeat_frac": 0.5}
    wide = replace(EIGHT, other_s=1e-2)
    seconds = tuple(1e-3 for _ in GRID)
    none, right = (
        played(HostExperts(**rule, prefetch_frac=share), wide, Popularity(), seconds).shown_ratio[0]
        for share in (0.0, 1.0)
    )
    wrong = played(HostExperts(**rule, prefetch_frac=1e-12), wide, Popularity(), seconds).shown_ratio[0]
    assert right < none
    assert wrong > right


def test_repeating_tokens_find_their_experts_in_the_cache():
    times = [tpot_s(expert_offload="host", expert_repeat=r, concurrency=1) for r in (0.0, 0.6, 0.95)]
    assert times == sorted(times, reverse=True)


def test_a_slow_host_memory_takes_the_gain():
    link = tpot_s(expert_offload="host")
    fast = tpot_s(**HOST)
    slow = tpot_s(**HOST | {"host_memory_bytes_per_s": 1e6})
    assert fast < link
    assert slow == pytest.approx(link, rel=0.15)


def test_memory_holds_what_is_kept():
    whole, half = (memory_of(resolve(read_scenario(MIXTRAL | s)).deployment) for s in ({}, {"expert_offload": "host"}))
    experts = sum(x.count * x.weight_bytes for x in shard(resolve(read_scenario(MIXTRAL)).deployment).experts)
    assert whole.weights_bytes - half.weights_bytes == pytest.approx(experts / 2)


def test_simulated_steps_cost_the_same():
    change = HOST | {"expert_cached": 0.25}
    found = orrery.simulate(**MIXTRAL | change, num_requests=32, lengths="constant")
    closed = orrery.estimate(**MIXTRAL | change).estimate
    assert found.summary.output_tokens_per_s == pytest.approx(closed.output_tokens_per_s, rel=0.15)
    assert any("expert_offload: 25 %" in note for note in found.notes)


def test_what_means_nothing_is_refused():
    with pytest.raises(ScenarioError, match="host's own rates"):
        orrery.estimate(**MIXTRAL, expert_offload="host-compute")
    with pytest.raises(ScenarioError, match="experts lie on the devices"):
        orrery.estimate(**MIXTRAL, expert_cached=0.5)
    with pytest.raises(ScenarioError, match="write ep = 1"):
        orrery.estimate(**MIXTRAL | {"ep": 2}, expert_offload="host")
    with pytest.raises(ScenarioError, match="write one of host, host-compute"):
        orrery.estimate(**MIXTRAL, expert_offload="disk")
    for cache in ("static", "layers"):
        with pytest.raises(ScenarioError, match="expert_prefetch: nothing takes another's place"):
            orrery.estimate(**MIXTRAL, expert_offload="host", expert_cache=cache, expert_prefetch=0.5)
    with pytest.raises(ScenarioError, match="has no experts"):
        orrery.estimate(**MIXTRAL | {"model": "llama-3.1-8b"}, expert_offload="host")


@given(
    computes=st.booleans(),
    kept=st.sampled_from([0.0, 0.25, 0.75]),
    cache=st.sampled_from(["lru", "score", "static"]),
    schedule=st.sampled_from(["greedy", "fixed"]),
    ahead=st.sampled_from([0.0, 0.5, 1.0]),
    repeat=st.sampled_from([0.0, 0.7]),
)
@settings(max_examples=12, deadline=None)
def test_no_way_beats_its_bound(computes, kept, cache, schedule, ahead, repeat):
    rule = HostExperts(
        computes=computes,
        cached_frac=kept,
        cache=cache,
        schedule=schedule,
        prefetch_frac=ahead,
        repeat_frac=repeat,
        host_flops_per_s=1e12,
        host_memory_bytes_per_s=1e11,
    )
    found = played(rule, EIGHT, Popularity(exponent=0.5), tuple(1e-3 * max(1, n / 512) for n in GRID))
    assert (np.array(found.shown_ratio) >= np.array(found.bound_ratio) * (1 - 1e-9)).all()
    assert (np.array(found.bound_ratio) >= 0.0).all()


def test_the_table_is_of_the_deployment():
    d = resolve(read_scenario(MIXTRAL | {"expert_offload": "host"})).deployment
    found = from_host(d, shard(d).experts[0])
    assert len(found.shown_ratio) == len(GRID)
    assert found.shown_ratio[-1] < found.shown_ratio[4]  # large steps hide the link

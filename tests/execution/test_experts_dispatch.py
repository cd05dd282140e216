"""How tokens reach experts of other ranks: which way an engine goes, and what each way costs, by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from batches import decodes

from orrery import network
from orrery.execution.experts.dispatch import DEEPEP, GATHER, LOW_LATENCY_TOKENS, dispatcher_of
from orrery.execution.layout import Layout
from orrery.execution.shard import cache_of, has_exchange, shard
from orrery.execution.step import step
from orrery.network.group import Group
from orrery.network.routing import Routing

DEEPSEEK = "deepseek-ai/DeepSeek-V3"
LAYERS, HIDDEN, WIDTH, EXPERTS, CHOSEN = 58, 7168, 2048, 256, 8


def part_of(deployment, batch, name):
    return next(p for p in step(deployment, batch).parts if p.name == name)


@pytest.mark.parametrize(("experts", "ranks", "chosen"), [(8, 4, 2), (8, 2, 3), (12, 4, 4), (6, 6, 2), (4, 2, 4)])
def test_the_ranks_that_a_token_reaches_are_those_of_all_its_choices(experts, ranks, chosen):
    """Every set of experts that a token may choose, and the ranks that hold any of them, counted one by one."""
    each = experts // ranks
    reached = [len({expert // each for expert in choice}) for choice in combinations(range(experts), chosen)]
    group = Group(kind="all_to_all", num_devices=ranks, per_node=ranks)
    routing = Routing(group=group, num_experts=experts, experts_per_token=chosen)
    assert routing.places_hit(ranks) == pytest.approx(sum(reached) / len(reached), rel=1e-12)


@pytest.mark.parametrize("ranks", [16, 32, 64])
def test_many_experts_are_reached_as_if_each_choice_were_free(ranks):
    """Of 256 experts, 8 chosen: within 2 % of R (1 - (1 - 1/R)^8), as choosing without putting back spreads wider."""
    routing = Routing(
        group=Group(kind="all_to_all", num_devices=ranks, per_node=ranks), num_experts=256, experts_per_token=8
    )
    free = ranks * (1 - (1 - 1 / ranks) ** 8)
    assert free <= routing.places_hit(ranks) <= 1.02 * free


@pytest.mark.parametrize(
    ("layout", "shares", "cut"),
    [
        (Layout(tp=8), False, 8),
        (Layout(tp=8, ep=8), False, 1),
        (Layout(dp=8), False, 1),
        (Layout(dp=8, ep=8), True, 1),
        (Layout(tp=2, dp=4, ep=4), True, 2),
        (Layout(dp=8, etp=8), True, 8),
        (Layout(tp=4, dp=2, etp=8), True, 8),
        (Layout(tp=4, dp=2, etp=4), False, 4),
        (Layout(tp=8, dp=2, ep=8, etp=1), False, 1),
    ],
    ids=str,
)
def test_who_shares_experts_and_how_they_are_cut(layout, shares, cut):
    assert (layout.shares_experts, layout.expert_tp) == (shares, cut)


def test_attention_in_parallel_before_experts_that_are_cut(deploy):
    """DeepSeek-V3 on eight devices: attention whole on each, every expert cut in eight.

    58 layers of 256 experts, each three matrices of 7168 x 2048, in BF16: an eighth of them on each device, whether
    they are cut or dealt out.
    """
    cut, dealt, replicas = (deploy(model=DEEPSEEK, dp=8, **more) for more in ({"etp": 8}, {"ep": 8}, {}))
    held = LAYERS * EXPERTS * 3 * HIDDEN * WIDTH * 2
    sizes = [sum(x.count * x.weight_bytes for x in shard(d).experts) for d in (cut, dealt, replicas)]
    assert sizes == pytest.approx([held / 8, held / 8, held])
    assert [has_exchange(d) for d in (cut, dealt, replicas)] == [True, True, False]
    assert shard(cut).weight_bytes == pytest.approx(shard(dealt).weight_bytes)
    assert cache_of(cut) == cache_of(replicas)
    assert {(x.tp, x.ep) for x in shard(cut).experts} == {(8, 1)}


def collective_s(deployment, kind, n, num_bytes):
    work = network.Collective(
        kind=kind,
        num_devices=n,
        message_bytes=np.array([num_bytes]),
        library="nccl",
        has_peer_to_peer=True,
        devices_per_node=deployment.cluster.devices_per_node,
    )
    return float(network.predict(work, deployment.cluster.device).time_s[0])


@pytest.mark.parametrize("more", [{"ep": 8}, {"etp": 8}], ids=str)
def test_gathering_brings_every_token_to_every_rank(deploy, more):
    """64 tokens a rank, 8 ranks, 7168 wide in BF16: 512 tokens x 14,336 bytes out and back, once for each layer."""
    deployment = deploy(model=DEEPSEEK, dp=8, **more)
    num_bytes = 8 * 64 * 7168 * 2.0
    out, back = (float(part_of(deployment, decodes(64), name).time_s[0]) for name in ("dispatch", "combine"))
    assert out == pytest.approx(LAYERS * collective_s(deployment, "all_gather", 8, num_bytes), rel=1e-12)
    assert back == pytest.approx(LAYERS * collective_s(deployment, "reduce_scatter", 8, num_bytes), rel=1e-12)


def sent_s(deployment, kind, tokens, library, n=32):
    work = network.TokenExchange(
        kind=kind,
        num_devices=n,
        tokens=np.array([tokens]),
        hidden_size=HIDDEN,
        num_experts=EXPERTS,
        experts_per_token=CHOSEN,
        format="bf16",
        library=library,
        devices_per_node=deployment.cluster.devices_per_node,
    )
    return float(network.predict(work, deployment.cluster.device).time_s[0])


@pytest.mark.parametrize(("tokens", "library"), [(64, "deepep-low-latency"), (4 * LOW_LATENCY_TOKENS, "deepep-normal")])
def test_many_ranks_send_each_token_where_its_experts_are(deploy, tokens, library):
    """32 ranks: decodes by kernels for low latency, steps of prompts by kernels for throughput; once for each layer."""
    deployment = deploy(model=DEEPSEEK, engine="sglang", dp=32, ep=32)
    for name, kind in (("dispatch", "moe_dispatch"), ("combine", "moe_combine")):
        found = float(part_of(deployment, decodes(tokens), name).time_s[0])
        assert found == pytest.approx(LAYERS * sent_s(deployment, kind, tokens, library), rel=1e-12)


def test_a_rank_of_several_devices_sends_a_part_of_its_tokens_from_each(deploy):
    deployment = deploy(model=DEEPSEEK, engine="sglang", tp=2, dp=16, ep=32)
    found = float(part_of(deployment, decodes(64), "dispatch").time_s[0])
    assert found == pytest.approx(LAYERS * sent_s(deployment, "moe_dispatch", 32, "deepep-low-latency"), rel=1e-12)


@pytest.mark.parametrize(
    ("engine", "device", "layout", "way"),
    [
        ("vllm", "h200-sxm", {"dp": 8, "ep": 8}, GATHER),
        ("vllm", "h200-sxm", {"dp": 16, "ep": 16}, DEEPEP),
        ("sglang", "h200-sxm", {"dp": 8, "ep": 8}, GATHER),
        ("sglang", "gb200", {"dp": 32, "ep": 32}, DEEPEP),
        ("sglang", "gb200", {"dp": 16, "etp": 16}, GATHER),
        ("tensorrt-llm", "gb200", {"dp": 8, "ep": 8}, GATHER),
        ("tensorrt-llm", "gb200", {"dp": 16, "ep": 16}, "tensorrt-llm-two-sided"),
        ("tensorrt-llm", "b200", {"dp": 8, "ep": 8}, GATHER),
        ("tensorrt-llm", "rtx-pro-6000-server", {"dp": 16, "ep": 16}, GATHER),
        ("tensorrt-llm", "gb200", {"dp": 8, "etp": 8}, GATHER),
        ("tensorrt-llm", "h200-sxm", {"dp": 8, "ep": 8}, GATHER),
    ],
)
def test_which_way_an_engine_goes(deploy, engine, device, layout, way):
    deployment = deploy(model=DEEPSEEK, device=device, engine=engine, **layout)
    assert dispatcher_of(deployment, shard(deployment).experts[0]) == way


def test_a_stated_dispatcher_stands_but_for_experts_that_are_cut(deploy):
    """Experts in slices are everywhere, so that there is nobody to send a token to alone."""
    whole = replace(deploy(model=DEEPSEEK, dp=8, ep=8), dispatcher="deepep-normal")
    cut = replace(deploy(model=DEEPSEEK, dp=8, etp=8), dispatcher="deepep-normal")
    assert dispatcher_of(whole, shard(whole).experts[0]) == "deepep-normal"
    assert dispatcher_of(cut, shard(cut).experts[0]) == GATHER


def test_replicas_exchange_nothing(deploy):
    names = {p.name for p in step(deploy(model=DEEPSEEK, dp=8), decodes(64)).parts}
    assert not names & {"dispatch", "combine"}

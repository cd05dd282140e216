"""How tokens reach experts of other ranks, and copies of popular experts: from flags to seconds and bytes."""

import pytest

import orrery
from orrery.base.errors import OrreryError
from orrery.execution.experts.all_to_all import SPELLINGS, get_dispatcher
from orrery.execution.shard import shard
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import Scenario

ASKED = {
    "model": "deepseek-v3",
    "device": "h200-sxm",
    "dp": 8,
    "ep": 8,
    "engine": "sglang",
    "engine_version": "0.5.12",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 512,
}


def notes_of(**more):
    return [n for n in resolve(Scenario(**(ASKED | more))).notes if n.startswith(("all2all", "num_redundant"))]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("allgather_reducescatter", "all-gather"),
        ("none", "all-gather"),
        ("deepep", "deepep"),
        ("", ""),
        ("deepep_low_latency", "deepep-low-latency"),
        ("DEEPEPLOWLATENCY", "deepep-low-latency"),
        ("deepep_high_throughput", "deepep-normal"),
        ("NVLINK_ONE_SIDED", "tensorrt-llm-one-sided"),
        ("flashinfer_all2allv", "tensorrt-llm-two-sided"),
    ],
)
def test_engines_own_words_are_taken(word, name):
    assert get_dispatcher(word) == name


@pytest.mark.parametrize(("word", "says"), [("pplx", "nobody has measured it"), ("deepepp", "deepep")])
def test_others_are_refused_with_what_to_write(word, says):
    with pytest.raises(OrreryError, match=says):
        get_dispatcher(word)


def test_the_default_is_the_releases_and_says_so():
    message = "--moe-a2a-backend none: all-gather and reduce-scatter under data-parallel attention"
    assert notes_of() == [f"all2all_backend: all-gather ({message})"]
    assert "deepep" in notes_of(dp=16, ep=16)[0]
    assert notes_of(all2all_backend="none") == []
    assert "not used" in notes_of(dp=1, ep=1, tp=8, all2all_backend="deepep")[0]
    assert "cut over 2" in notes_of(tp=2, dp=4, ep=4, all2all_backend="deepep")[0]


@pytest.mark.parametrize("name", [n for n in SPELLINGS if n != "all-gather"])
def test_the_way_that_is_asked_for_is_priced(name):
    plain, inputs = (orrery.estimate(**ASKED, **more) for more in ({}, {"moe_a2a_backend": name}))
    assert inputs.estimate.tpot_s != plain.estimate.tpot_s
    same = orrery.estimate(**ASKED, all2all_backend="all-gather")
    assert same.estimate.tpot_s == plain.estimate.tpot_s


def test_copies_by_hand_in_memory():
    """58 layers of 256 experts, three matrices of 7168 x 2048 in FP8 blocks; 32 copies on 8 ranks: 4 more each."""
    plain, copied = (resolve(Scenario(**ASKED, num_redundant_experts=n)).deployment for n in (None, 32))
    one = shard(plain).experts[0].weight_bytes / 32
    more = shard(copied).weight_bytes - shard(plain).weight_bytes
    assert more == pytest.approx(58 * 4 * one)
    assert one == pytest.approx(3 * 7168 * 2048, rel=0.01)


@pytest.mark.parametrize("ask", [orrery.estimate, orrery.simulate], ids=["estimate", "simulate"])
def test_copies_help_uneven_loads_and_no_others(ask):
    def tpot_s(loads, **more):
        case = {k: v for k, v in ASKED.items() if k != "concurrency"} | {"concurrency": 256}
        if ask is orrery.simulate:
            case |= {"num_requests": 512, "output_tokens": 32}
        found = ask(**case, expert_loads=loads, **more).to_json()
        return found.get("tpot_s") or found["mean_tpot_ms"] / 1e3

    assert tpot_s("zipf:1.2", num_redundant_experts=32) < 0.99 * tpot_s("zipf:1.2")
    assert tpot_s("balanced", num_redundant_experts=32) == tpot_s("balanced")
    assert tpot_s("zipf:0", num_redundant_experts=32) >= tpot_s("zipf:0")


def test_a_plan_keeps_to_layouts_that_hold_the_copies():
    found = orrery.plan(
        model="qwen3-30b-a3b",
        device="h100-sxm",
        max_devices=4,
        rate=4,
        input_tokens=512,
        output_tokens=128,
        ep_num_redundant_experts=16,
        moe_a2a_backend="deepep",
        expert_loads="zipf:1",
    ).to_json()
    assert found["plans"]
    assert all(p["layout"]["ep"] > 1 and (128 + 16) % p["layout"]["ep"] == 0 for p in found["plans"])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"num_redundant_experts": 5}, "write 8"),
        ({"num_redundant_experts": 44}, "write 40"),
        ({"dp": 1, "ep": 1, "tp": 8, "num_redundant_experts": 8}, "ep above 1"),
        ({"num_redundant_experts": 4000}, "at most that"),
        ({"model": "llama-3.1-8b", "dp": 1, "ep": 1, "num_redundant_experts": 8}, "has no experts"),
    ],
)
def test_copies_that_do_not_fit_the_ranks_are_refused(more, says):
    with pytest.raises(OrreryError, match=says):
        resolve(Scenario(**(ASKED | more)))

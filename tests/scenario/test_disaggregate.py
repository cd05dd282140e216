"""Joint, split or separate: each design is the simulator's own, and pools of their own pay where they should."""

import json

import pytest

from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.execution.layout import Layout
from orrery.scenario.capacity import find_capacity
from orrery.scenario.disaggregate import RESOLVED, plan_disaggregated
from orrery.scenario.simulate import simulate

SERVED = {
    "model": "llama-3.1-8b",
    "device": "a100-sxm-80gb",
    "max_devices": 6,
    "weights": "bf16",
    "kv": "bf16",
    "num_requests": 600,
}
LONG = {"input_tokens": 6000, "output_tokens": 100, "slo": ["ttft:4000", "tpot:25"]}


@pytest.fixture(scope="module")
def answer():
    return plan_disaggregated(**SERVED | LONG)


def test_every_kind_is_there_and_the_best_comes_first(answer):
    assert {d.way for d in answer.designs} == {"joint", "split", "separate"}
    rates = [d.requests_per_s_per_device for d in answer.designs]
    assert rates == sorted(rates, reverse=True)
    assert all(d.num_devices <= 6 for d in answer.designs)
    keys = [d.key for d in answer.designs]
    assert len(keys) == len(set(keys))


def test_a_design_typed_in_carries_what_the_plan_says(answer):
    for way in ("joint", "separate"):
        best = answer.best(way)
        assert find_capacity(**best.settings).requests_per_s == best.requests_per_s


def test_long_prompts_beside_a_strict_tpot_pay_for_pools_of_their_own(answer):
    assert answer.gain_ratio > 1.0 + RESOLVED
    assert answer.best("joint").limited_by == "tpot"
    assert answer.conclusion.startswith("Disaggregation pays:")


def test_ratios_beside_the_best_one_were_tried(answer):
    ratios = {(d.pairing.num_prefill, d.pairing.num_decode) for d in answer.designs if d.pairing}
    assert len(ratios) >= 3


def test_where_nothing_is_decoded_a_decode_pool_is_wasted():
    """One output token comes from the prefill pool: the other devices stand idle."""
    found = plan_disaggregated(**SERVED | {"input_tokens": 2000, "output_tokens": 1, "slo": ["ttft:2000"]})
    separate = found.best("separate")
    idle = 1.0 - separate.pairing.num_decode / separate.num_devices
    assert found.gain_ratio <= idle * (1.0 + 2 * RESOLVED) < 1.0
    assert found.conclusion.startswith("Disaggregation does not pay:")


def test_a_rate_is_carried_by_the_cheapest_design_that_holds():
    found = plan_disaggregated(**SERVED | LONG | {"rate": 1.0, "usd_per_hour": 2.0})
    carrying = [d for d in found.designs if d.requests_per_s >= 1.0]
    assert found.designs[0] in carrying
    assert found.designs[0].usd_per_hour == min(d.usd_per_hour for d in carrying)


def test_pools_inside_a_node_hand_over_inside_it(answer):
    assert {d.link for d in answer.designs if d.way == "separate"} == {"node"}
    assert {d.link for d in answer.designs if d.way != "separate"} == {""}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_devices": 1}, "max_devices: got 1"),
        ({"replicas": 2}, "replicas: is what this search finds"),
        ({"users": 10}, "users: is what this search finds"),
        ({"split": "0.5"}, "split: is what this search finds"),
        ({"prefill_device": "h10O"}, "h100"),
    ],
)
def test_what_it_cannot_take_is_refused(settings, says):
    with pytest.raises(OrreryError, match=says):
        plan_disaggregated(**SERVED | LONG | settings)


def test_the_command_prints_the_designs_and_the_sentence(capsys):
    words = [
        "plan",
        "--disaggregate",
        "--model",
        "llama-3.1-8b",
        "--device",
        "l40s",
        "--max-devices",
        "2",
        "--input-tokens",
        "1000",
        "--output-tokens",
        "50",
        "--num-requests",
        "300",
    ]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "Joint, split or separate, at no more than 2 devices" in text
    assert "--find-capacity" in text
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["designs"][0]["requests_per_s_per_device"] > 0
    assert found["conclusion"].split(":")[0] in text
    assert run([*words, "--simulate"]) == 2


def test_a_prefill_pool_of_a_mixture_has_a_layout_of_its_own():
    """Without its flags it has the others' layout; with them its ranks, and the run differs."""
    served = {
        "model": "qwen3-30b-a3b",
        "device": "h100-sxm",
        "tp": 2,
        "prefill_replicas": 1,
        "input_tokens": 1000,
        "output_tokens": 20,
        "rate": 4,
        "num_requests": 100,
    }
    alike, own = (simulate(**served, **more) for more in ({}, {"prefill_dp": 2, "prefill_ep": 2}))
    assert alike.service.pools[0].deployment.layout == alike.service.pools[1].deployment.layout
    assert own.service.pools[0].deployment.layout == Layout(tp=1, dp=2, ep=2)
    assert own.service.pools[1].deployment.layout == Layout(tp=2)
    assert own.summary.ttft.mean_s != alike.summary.ttft.mean_s
    with pytest.raises(OrreryError, match="prefill_ep: there are no separate replicas"):
        simulate(**{k: v for k, v in served.items() if k != "prefill_replicas"}, prefill_ep=2)

"""Joint, split or separate: each design is the simulator's own, and pools of their own pay where they should."""

import json
from types import SimpleNamespace

import pytest

from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.execution.layout import Layout
from orrery.planner.budget import Budget, Weight
from orrery.planner.pools import Pairing
from orrery.scenario.ask import estimate, plan
from orrery.scenario.capacity import find_capacity
from orrery.scenario.disaggregate import RESOLVED, _nearby, plan_disaggregated
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
    assert all(d.weight.num_devices <= 6 for d in answer.designs)
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


def _beside(num_prefill, num_decode, **budget):
    """Designs near one whose prefill replicas are a device and a dollar an hour, and decode replicas two dollars."""
    prefill, decode = (SimpleNamespace(weight=Weight(num_devices=1, usd_per_hour=usd, power_w=0.0)) for usd in (1, 2))
    pairing = Pairing(prefill=prefill, num_prefill=num_prefill, decode=decode, num_decode=num_decode)
    return [(near.num_prefill, near.num_decode) for near in _nearby(pairing, Budget(**budget))]


def test_designs_beside_one_by_hand():
    """Of devices one more or fewer; of dollars an eighth of the side for prompts, one at the least, and the rest of
    them for the other."""
    assert _beside(2, 1, max_devices=4) == [(3, 1), (2, 2), (1, 1), (1, 2)]
    assert _beside(16, 12, max_devices=99, max_usd_per_hour=40.0) == [(14, 13), (16, 12), (18, 11)]
    assert _beside(4, 3, max_devices=99, max_usd_per_hour=10.0) == [(3, 3), (4, 3), (5, 2)]
    assert _beside(1, 1, max_devices=99, max_usd_per_hour=3.0) == [(1, 1)]


def test_where_nothing_is_decoded_a_decode_pool_is_wasted():
    """One output token comes from the prefill pool: the other devices stand idle."""
    found = plan_disaggregated(**SERVED | {"input_tokens": 2000, "output_tokens": 1, "slo": ["ttft:2000"]})
    separate = found.best("separate")
    idle = 1.0 - separate.pairing.num_decode / separate.weight.num_devices
    assert found.gain_ratio <= idle * (1.0 + 2 * RESOLVED) < 1.0
    assert found.conclusion.startswith("Disaggregation does not pay:")


def test_a_rate_is_carried_by_the_cheapest_design_that_holds():
    found = plan_disaggregated(**SERVED | LONG | {"rate": 1.0, "usd_per_hour": 2.0})
    carrying = [d for d in found.designs if d.requests_per_s >= 1.0]
    assert found.designs[0] in carrying
    assert found.designs[0].weight.usd_per_hour == min(d.weight.usd_per_hour for d in carrying)


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


MIXED = {**SERVED, **LONG, "device": "a100-sxm-80gb,h100-sxm", "tp": 1, "num_requests": 300}
del MIXED["max_devices"]


@pytest.fixture(scope="module")
def in_watts():
    return plan_disaggregated(**MIXED, power_budget_w=8000.0, clock_frac="1,0.7")


def test_pools_within_dollars_stay_within_them():
    found = plan_disaggregated(**MIXED, max_usd_per_hour=14.0)
    assert all(d.weight.usd_per_hour <= 14.0 for d in found.designs)
    rates = [d.requests_per_s for d in found.designs]
    assert rates == sorted(rates, reverse=True)
    assert {d.settings["device"] for d in found.designs if d.way == "joint"} == {"a100-sxm-80gb", "h100-sxm"}
    best = found.best("separate")
    assert found.gain_ratio == best.requests_per_s / found.best("joint").requests_per_s
    assert "within the budget" in found.conclusion
    assert find_capacity(**best.settings).requests_per_s == best.requests_per_s


def test_pools_within_watts_may_run_slower_and_say_so(in_watts):
    assert all(d.weight.power_w <= 8000.0 for d in in_watts.designs)
    slower = [d for d in in_watts.designs if "at 70 %" in d.prefill + d.decode]
    assert slower
    assert all({"clock_frac", "prefill_clock_frac"} & d.settings.keys() for d in slower)
    assert find_capacity(**slower[0].settings).requests_per_s == slower[0].requests_per_s


def test_a_decode_pool_of_its_own_device_leaves_the_joint_ones_alone():
    settings = {**MIXED, "device": "h100-sxm", "decode_device": "a100-sxm-80gb", "max_usd_per_hour": 14.0}
    found = plan_disaggregated(**settings)
    ways = {d.way: d for d in reversed(found.designs)}
    assert "h100-sxm" in ways["joint"].decode
    assert "h100-sxm" in ways["separate"].prefill
    assert "a100-sxm-80gb" in ways["separate"].decode


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_usd_per_hour": 0.5}, "not enough for one device"),
        ({"max_usd_per_hour": 9.0, "device": "h100-sxm,cerebras-wse-3"}, "no price of cerebras-wse-3 is known"),
        ({"power_budget_w": 9000.0, "power_cap": "everyone"}, "power_cap"),
        ({"prefill_clock_frac": 0.7}, "leave it out"),
    ],
)
def test_budgets_that_hold_nothing_are_refused(settings, words):
    with pytest.raises(OrreryError, match=words):
        plan_disaggregated(**MIXED | settings)


def test_command_and_file_size_pools_as_python_does(tmp_path, capsys, in_watts):
    file = tmp_path / "mine.toml"
    given = {**MIXED, "power_budget_w": 8000.0, "clock_frac": "1,0.7"}
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()))
    assert run(["plan", "--scenario", str(file), "--disaggregate", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["designs"] == json.loads(json.dumps(in_watts.to_json()))["designs"]


def test_prompts_at_a_lower_clock_take_longer_and_answers_do_not():
    one = {**SERVED, "device": "a100-sxm-80gb", "prefill_replicas": 1, "input_tokens": 6000, "output_tokens": 20}
    del one["max_devices"]
    asked = {**one, "rate": 0.5, "num_requests": 40}
    full, slow = simulate(**asked), simulate(**asked, prefill_clock_frac=0.5)
    same = simulate(**asked, prefill_clock_frac=1.0)
    assert same.summary.ttft.mean_s == full.summary.ttft.mean_s
    assert slow.summary.ttft.mean_s > 1.3 * full.summary.ttft.mean_s
    assert slow.summary.tpot.mean_s == pytest.approx(full.summary.tpot.mean_s, rel=0.02)


def test_dollars_bound_a_plain_plan_as_well():
    asked = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 1000, "output_tokens": 200}
    free, bound = plan(**asked, max_devices=8), plan(**asked, max_usd_per_hour=9.0)
    assert max(p.usd_per_hour for p in bound.plans) <= 9.0 < max(p.usd_per_hour for p in free.plans)
    assert bound.goal.max_devices == 3  # at 2.95 $ an hour
    assert bound.money is None
    assert plan(**asked, rate=1000.0, max_usd_per_hour=9.0).infeasible.unit in ("$/hour", "devices")


def test_a_plain_plan_says_what_it_does_not_use():
    asked = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 1000, "output_tokens": 200, "rate": 1.0}
    notes = plan(**asked, decode_device="a100-sxm-80gb").notes
    assert "decode_device: not used; add --disaggregate" in notes


def test_each_device_may_have_a_price_of_its_own():
    """Eight A100 for 2 $ and four H100 for 4 $ an hour."""
    asked = {"model": "llama-3.1-8b", "device": "a100-sxm-80gb,h100-sxm", "input_tokens": 1000, "output_tokens": 200}
    priced = {"device_usd_per_hour": "a100-sxm-80gb=2,h100-sxm=4", "max_usd_per_hour": 16.0, "tp": 1, "pp": 1}
    found = plan(**asked, **priced)
    assert {p.operation.deployment.cluster.device.name: p.operation.num_devices for p in found.plans} == {
        "a100-sxm-80gb": 8,
        "h100-sxm": 4,
    }
    assert {p.usd_per_hour for p in found.plans} == {16.0}
    one = {**asked, "device": "h100-sxm", "rate": 1.0}
    alike, named = plan(**one, usd_per_hour=4.0), plan(**one, device_usd_per_hour="h100-sxm=4")
    assert named.plans[0].usd_per_hour == alike.plans[0].usd_per_hour
    for ask in (simulate, estimate):
        asked = {**one, "num_requests": 50} if ask is simulate else one
        prices = ({"usd_per_hour": 4.0}, {"device_usd_per_hour": "h100-sxm=4"})
        answers = [ask(**asked, **price).to_json() for price in prices]
        paid = [{k: v for k, v in a.items() if "usd" in k} for a in answers]
        assert paid[0] == paid[1]
        assert any(paid[0].values())


@pytest.mark.parametrize("text", ["h100-sxm", "h100-sxm=", "=4", "h100-sxm=-1", "h100-sxm=nan", "h100-sxmm=4"])
def test_prices_that_are_none_are_refused(text):
    with pytest.raises(OrreryError, match="h100-sxm"):
        plan(model="llama-3.1-8b", device="h100-sxm", input_tokens=9, output_tokens=9, device_usd_per_hour=text)


HELPED = {"layerwise_transfer": True, "max_prefill_queue": 2}


@pytest.mark.parametrize("name", HELPED)
def test_what_pools_do_for_each_other_needs_pools(name, capsys):
    served = {"model": "llama-3.1-8b", "device": "a100-sxm-80gb", "input_tokens": 1000, "output_tokens": 10, "rate": 1}
    with pytest.raises(OrreryError, match=f"{name}: there are no separate replicas for prompts"):
        simulate(**served, **{name: HELPED[name]})
    plain = plan(**served, max_devices=1, **{name: HELPED[name]})
    assert f"{name}: not used; add --disaggregate" in plain.notes


def test_only_separate_pools_have_them():
    small = SERVED | {"max_devices": 2, "num_requests": 100, "slo": ["ttft:2000"]}
    found = plan_disaggregated(**small, **HELPED, input_tokens=2000, output_tokens=20)
    assert {d.way for d in found.designs if set(HELPED) <= set(d.settings)} == {"separate"}
    assert all(d.infeasible is None for d in found.designs)

"""Trees of reasons: every rule worked out again from the values of its own parts, and which facts stand beside it."""

import math
from dataclasses import replace

import pytest

import orrery
from orrery.base.cost import Cost
from orrery.base.errors import ScenarioError
from orrery.scenario.why import of_cost, why

LOOP = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 1000, "output_tokens": 200, "concurrency": 16}
PAID = {"usd_per_hour": 3.6, "electricity": 0.36}


@pytest.fixture(scope="module")
def answer():
    return orrery.estimate(**LOOP, **PAID, tp=2)


def values(reason):
    """Values of the parts by name."""
    return {part.name: part.value for part in reason.parts}


def facts(reason):
    return [fact.name for fact in reason.facts]


def test_a_first_token_is_the_front_end_a_step_and_what_is_left(answer):
    reason, engine = why(answer, "ttft_s"), answer.question.deployment.engine
    entry, step, rest = reason.parts
    assert entry.value == engine.request_s + 1000 * engine.per_prompt_token_s
    assert step.value == answer.estimate.prefill_cost.time_s
    assert entry.value + step.value + rest.value == pytest.approx(answer.estimate.ttft_s)
    assert "step_s" in facts(rest)


def test_a_later_token_is_a_decode_step_and_what_is_left(answer):
    step, rest = why(answer, "tpot_s").parts
    assert step.value == answer.estimate.cost.time_s
    assert step.value + rest.value == pytest.approx(answer.estimate.tpot_s)
    assert {"step_s", "overlap_frac"} <= set(facts(rest))


def test_latency_and_rates_follow_from_their_parts(answer):
    latency = why(answer, "latency_s")
    v = values(latency)
    assert latency.value == pytest.approx(v["ttft_s"] + 199 * v["tpot_s"], rel=1e-3)
    requests = why(answer, "requests_per_s")
    v = values(requests)
    assert v["concurrency"] == 16.0
    assert requests.value == pytest.approx(v["concurrency"] / v["latency_s"], rel=1e-3)
    rate = why(answer, "output_tokens_per_s")
    v = values(rate)
    assert v["output_tokens"] == 200.0
    assert rate.value == pytest.approx(v["requests_per_s"] * v["output_tokens"])
    total = why(answer, "total_tokens_per_s")
    v = values(total)
    assert total.value == pytest.approx(v["requests_per_s"] * (v["input_tokens"] + v["output_tokens"]))


def test_energy_is_power_over_the_rate(answer):
    energy, both = why(answer, "energy_j_per_token"), why(answer, "energy_j_per_token_with_host")
    v = values(both)
    assert energy.value == pytest.approx(v["power_w"] / v["output_tokens_per_s"])
    assert both.value == pytest.approx((v["power_w"] + v["host_power_w"]) / v["output_tokens_per_s"])
    host = why(answer, "host_power_w")
    assert host.value == pytest.approx(values(host)["num_devices"] * host.facts[0].value)
    assert facts(why(answer, "power_w")) == ["idle_power_w", "power_limit_w"]


@pytest.mark.parametrize(
    ("name", "rate"),
    [("usd_per_million_tokens", "output_tokens_per_s"), ("usd_per_million_total_tokens", "total_tokens_per_s")],
)
def test_dollars_are_the_price_and_the_power_over_the_rate(answer, name, rate):
    """Two devices at $3.60 an hour are $0.002 a second; a watt at $0.36 per kWh is $1e-7 a second."""
    reason = why(answer, name)
    v = values(reason)
    assert (reason.name, v["usd_per_hour"], v["num_devices"]) == (name, 3.6, 2.0)
    assert v["electricity_usd_per_kwh"] == 0.36
    assert reason.value == pytest.approx((0.002 + answer.estimate.power_w * 1e-7) / v[rate] * 1e6)


def test_the_cache_is_what_memory_leaves(answer):
    cache = why(answer, "memory.kv_capacity_bytes")
    v = values(cache)
    left = v["memory.usable_bytes"] - sum(v[f"memory.{name}_bytes"] for name in ("weights", "activation", "context"))
    assert cache.value == pytest.approx(left - why(answer, "memory.communication_bytes").value)
    usable = why(answer, "memory.usable_bytes")
    capacity, share = (fact.value for fact in usable.facts[:2])
    assert usable.value == pytest.approx(capacity * share, rel=0.02)  # less what a driver keeps of the capacity
    tokens = why(answer, "memory.kv_capacity_tokens")
    v = values(tokens)
    (block,) = (fact.value for fact in tokens.facts)
    blocks = math.floor(v["memory.kv_capacity_bytes"] / (v["memory.kv_bytes_per_token"] * block))
    assert tokens.value == blocks * block


def test_weights_say_whose_they_are(answer):
    parameters, layout = why(answer, "memory.weights_bytes").parts
    assert parameters.value == answer.question.deployment.model.num_parameters
    assert layout.value == "tp2"
    per_token = why(answer, "memory.kv_bytes_per_token")  # 32 layers of 8 heads of 128, keys and values in 16 bits
    assert per_token.value == 32 * 8 * 128 * 2 * 2 / 2


def test_a_name_is_found_by_how_it_begins(answer):
    assert why(answer, " TPOT-S ").name == "tpot_s"
    assert why(answer, "usd").name == "usd_per_million_tokens"
    with pytest.raises(ScenarioError, match="known: ttft_s, tpot_s"):
        why(answer, "")


def test_a_cost_is_told_with_its_longest_part_first():
    short = Cost(name="norm", time_s=1.0, exposed_s=1.0)
    long = Cost(name="gemm", time_s=3.0, exposed_s=3.0, flops=2e12, bytes=1e9, bound_by="compute")
    found = of_cost(Cost(name="step", time_s=4.0, exposed_s=4.0, parts=(short, long)))
    assert [p.name for p in found.parts] == ["gemm: time_s", "norm: time_s"]
    assert found.parts[0].rule.startswith("bound by compute, ")
    assert "FLOP" in found.parts[0].rule
    assert (found.rule, found.parts[1].rule) == ("", "")
    assert of_cost(Cost(name="copy", time_s=1.0, exposed_s=1.0, bytes=1e9)).rule.startswith("0")


def test_a_version_is_given_or_the_newest(answer):
    newest = why(answer, "engine_version")
    assert newest.value == "newest"
    assert newest.rule.startswith("not given")
    given = why(orrery.estimate(**LOOP, engine_version="0.11.0"), "engine_version")
    assert (given.value, given.rule) == ("0.11.0", "given")


def with_ratios(answer, memory_ratio, compute_ratio):
    """The same answer of an engine whose kernels take so much longer in a step."""
    deployment = answer.question.deployment
    engine = replace(deployment.engine, memory_ratio=memory_ratio, compute_ratio=compute_ratio)
    return replace(answer, question=replace(answer.question, deployment=replace(deployment, engine=engine)))


@pytest.mark.parametrize(("ratios", "is_said"), [((1.0, 1.0), False), ((1.25, 1.0), True), ((1.0, 1.25), True)])
def test_kernels_that_take_longer_in_a_step_are_said_to(answer, ratios, is_said):
    for name, at in (("tpot_s", 0), ("ttft_s", 1)):
        step = why(with_ratios(answer, *ratios), name).parts[at]
        assert (
            step.rule.endswith(
                "; kernels of vllm, times the engine's memory ratio, or its compute ratio where operations bind"
            )
            is is_said
        )
        assert bool({"memory_ratio", "compute_ratio"} & set(facts(step))) is is_said


def test_a_back_end_is_asked_for_or_ruled(answer):
    ruled = why(answer, "attention_backend")
    assert (ruled.rule, len(ruled.facts)) == ("the first rule of vllm (newest) that holds", 1)
    asked = why(orrery.estimate(**LOOP, attention_backend="flashinfer"), "attention_backend")
    assert (asked.value, asked.rule) == ("flashinfer", "asked for")
    unknown = why(orrery.estimate(**LOOP, engine="transformers"), "attention_backend")
    assert (unknown.rule, unknown.facts) == ("no rule of transformers is known; the kernels of pytorch", ())

"""Answers: the shapes that scripts rely on, from Python."""

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError, UnknownName
from orrery.scenario.answer import to_json
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate, plan
from orrery.scenario.why import paths, why

SMALL = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 128, "concurrency": 8}
METRICS = ("ttft_s", "tpot_s", "output_tokens_per_s", "energy_j_per_token", "usd_per_million_tokens")


@pytest.fixture(scope="module")
def answer() -> Answer:
    found = estimate(**SMALL)
    assert isinstance(found, Answer)
    return found


def test_an_estimate_has_the_promised_keys(answer: Answer) -> None:
    out = answer.to_json()
    for name in METRICS:
        assert out[name] > 0
    assert out["bound_by"] in ("compute", "memory", "network", "overhead", "host")
    assert {"weights_bytes", "kv_capacity_bytes", "activation_bytes"} <= out["memory"].keys()
    assert json.loads(json.dumps(out, allow_nan=False)) == out


def test_intervals_hold_their_numbers(answer: Answer) -> None:
    out = answer.to_json()
    for name, interval in out["intervals"].items():
        assert interval["low_95"] <= interval["low_80"] <= interval["high_80"] <= interval["high_95"], name
        assert out[name] > 0


def test_dollars_are_price_over_rate() -> None:
    found = estimate(**SMALL, usd_per_hour=3.6)
    assert isinstance(found, Answer)
    expected = 3.6 / 3600 / found.estimate.output_tokens_per_s * 1e6
    assert found.usd_per_million_tokens == pytest.approx(expected)
    with_power = estimate(**SMALL, usd_per_hour=3.6, electricity=0.36)
    assert isinstance(with_power, Answer)
    extra = found.estimate.power_w * 0.36 / 3.6e6 / found.estimate.output_tokens_per_s * 1e6
    assert with_power.usd_per_million_tokens == pytest.approx(expected + extra)


def test_defaults_are_said(answer: Answer) -> None:
    message = "\n".join(answer.notes)
    for word in ("engine: vllm", "weights: bf16", "activations: bf16", "kv: bf16"):
        assert word in message


def test_what_cannot_be_has_numbers() -> None:
    found = estimate(**SMALL | {"model": "llama-3.1-405b"})
    assert isinstance(found, InfeasibleAnswer)
    out = found.to_json()["infeasible"]
    assert out["need"] > out["have"] > 0
    assert out["smallest_change"]


def test_devices_without_a_layout_become_tensor_parallel() -> None:
    found = estimate(**SMALL, devices=4)
    assert isinstance(found, Answer)
    assert found.question.deployment.layout.tp == 4
    assert found.estimate.num_devices == 4
    wide = estimate(**SMALL, devices=16)
    assert isinstance(wide, Answer)
    assert (wide.question.deployment.layout.tp, wide.question.deployment.layout.pp) == (8, 2)
    assert any("tp = 8, pp = 2" in n for n in wide.notes)


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"devices": 4, "tp": 2}, "devices: 4 is not what tp 2 takes"),
        ({"devices": 3, "pp": 2}, "cannot be cut"),
        ({"tp": 3}, "tp: 3 does not divide 32"),
        ({"pp": 33}, "33 stages for 32 layers"),
        ({"ep": 2}, "has no experts"),
        ({"device": "h100-sxm,a100"}, "got 2 devices"),
        ({"device": ","}, "device: got"),
        ({"input_tokens": None}, "input_tokens: is missing"),
        ({"concurrency": None}, "batch, concurrency, users and rate: all missing"),
        ({"model": None}, "model: is missing"),
    ],
)
def test_impossible_questions_say_what_to_write(extra: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        estimate(**SMALL | extra)


@pytest.mark.parametrize("bad", [{"model": "lama-3.1-8b"}, {"device": "h10"}, {"weights": "fp7"}, {"engine": "vlm"}])
def test_unknown_names_answer_with_the_nearest(bad: dict[str, Any]) -> None:
    with pytest.raises(UnknownName) as error:
        estimate(**SMALL | bad)
    assert error.value.near


def test_every_number_unfolds_to_facts(answer: Answer) -> None:
    for path in paths(answer):
        reason = why(answer, path)
        out = reason.to_json()
        assert out["value"] is not None, path
        json.dumps(out, allow_nan=False)
    text = json.dumps(why(answer, "tpot_s").to_json())
    assert "memory_bandwidth_bytes_per_s" in text
    assert "stated" in text


def test_a_tree_adds_up(answer: Answer) -> None:
    reason = why(answer, "tpot")
    assert sum(float(p.value or 0) for p in reason.parts) == pytest.approx(float(reason.value or 0), rel=1e-6)
    assert why(answer, "memory.kv").name == "memory.kv_capacity_bytes"
    with pytest.raises(ScenarioError, match="did you mean 'tpot_s'"):
        why(answer, "tpto_s")


def test_a_trace_gives_an_estimate_its_traffic() -> None:
    found = estimate(model="llama-3.1-8b", device="h100-sxm", trace="chat")
    assert isinstance(found, Answer)
    assert found.question.workload.mode == "open"
    assert found.estimate.requests_per_s == pytest.approx(found.question.workload.request_rate_per_s)
    assert found.question.workload.input_tokens_std > 0


def test_what_is_fixed_is_planned_with() -> None:
    found = plan(
        model="llama-3.1-8b",
        device="h100-sxm",
        max_devices=4,
        rate=2,
        input_tokens=512,
        output_tokens=128,
        cp=2,
        weights="bf16,int4",
        kv="bf16",
        max_num_batched_tokens=4096,
    )
    assert found.plans
    for item in found.plans:
        d = item.operation.deployment
        assert d.layout.cp == 2
        assert d.formats.weights in ("bf16", "int4_weight_only")
        assert (d.formats.kv, d.max_num_batched_tokens) == ("bf16", 4096)


def test_a_plan_has_the_promised_keys() -> None:
    out = plan(
        model="llama-3.1-8b",
        device="h100-sxm",
        max_devices=2,
        rate=2,
        input_tokens=512,
        output_tokens=128,
        slo=["ttft:1000", "tpot:50"],
    ).to_json()
    best = out["plans"][0]
    for name in (*METRICS, "total_tokens_per_s", "replicas", "concurrency", "usd_per_million_total_tokens"):
        assert best[name] > 0
    assert best["layout"].keys() == {"tp", "pp", "dp", "ep", "cp", "etp"}
    assert best["launch"].keys() == {"vllm", "sglang", "tensorrt-llm"}
    assert best["ttft_s"] <= 1.0
    assert best["tpot_s"] <= 0.05
    assert best["requests_per_s"] == pytest.approx(2)
    json.dumps(out, allow_nan=False)


def test_an_impossible_plan_is_a_result() -> None:
    found = plan(
        model="llama-3.1-8b",
        device="h100-sxm",
        max_devices=1,
        rate=2,
        input_tokens=512,
        output_tokens=128,
        slo=["tpot:0.01"],
    )
    out = found.to_json()
    assert out["plans"] == []
    assert out["infeasible"]["have"] > out["infeasible"]["need"] == pytest.approx(1e-5)
    assert "Relax tpot" in out["infeasible"]["smallest_change"]
    assert out["rejected"]


def test_the_serialiser_makes_plain_data() -> None:
    class Colour(StrEnum):
        RED = "red"

    @dataclass(frozen=True)
    class Thing:
        a: Any

    mixed = Thing({"x": (1, math.inf, np.float64(2.5), np.arange(2)), "y": Colour.RED, "z": Path("p"), "t": True})
    assert to_json(mixed) == {"a": {"x": [1, None, 2.5, [0, 1]], "y": "red", "z": "p", "t": True}}
    with pytest.raises(TypeError, match="no JSON form for object"):
        to_json(object())


def test_the_front_door_offers_what_it_lists() -> None:
    for name in orrery.__all__:
        assert getattr(orrery, name) is not None
    assert set(orrery.__all__) <= set(dir(orrery))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = orrery.nonsense

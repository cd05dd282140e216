"""What each kind of report says: the answer's own numbers, bars that are direct answers, limits that hold."""

import json
from pathlib import Path
from typing import Any

import pytest

import orrery
from orrery.reports.changes import farthest
from orrery.reports.make import report_of
from orrery.reports.page import page
from orrery.reports.report import Input, Report
from orrery.reports.source import read_source
from orrery.scenario.plan import plan_scenario
from orrery.scenario.schema import read_scenario
from orrery.scenario.simulate import simulate
from orrery.scenario.sweep import sweep
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_plan import train_plan

PLAN = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "max_devices": 2,
    "rate": 4.0,
    "input_tokens": 512,
    "output_tokens": 128,
    "slo": ["ttft:500", "tpot:30"],
    "tp": 1,
}
ESTIMATE = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "concurrency": 16}
TRAIN = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "devices": 16,
    "tp": 2,
    "pp": 2,
    "global_batch": 64,
    "seq_len": 4096,
    "micro_batch": 1,
    "sharding": "zero1",
    "train_tokens": 1e10,
    "node_mtbf_s": 1e7,
}


def reported(folder: Path, answer: dict[str, Any]) -> Report:
    path = folder / "answer.json"
    path.write_text(json.dumps(answer, allow_nan=False))
    return report_of(read_source(path))


def value_of(report: Report, name: str) -> float | None:
    return next(n.value for n in report.numbers if n.name == name)


def bar(report: Report, name: str) -> Input:
    assert report.sensitivity is not None
    return next(i for i in report.sensitivity.inputs if i.name == name)


def test_an_estimates_bars_are_direct_estimates(tmp_path: Path) -> None:
    answer = orrery.estimate(**ESTIMATE)
    found = reported(tmp_path, answer.to_json())
    assert value_of(found, "tpot_s") == answer.estimate.tpot_s
    for name, changes in (
        ("input length", {"input_tokens": 614}),
        ("output length", {"output_tokens": 77}),
        ("requests in flight", {"concurrency": 19}),
    ):
        direct = orrery.estimate(**ESTIMATE | changes)
        end = bar(found, name).high
        assert end.values["ttft_s"] == direct.estimate.ttft_s
        assert end.values["usd_per_million_tokens"] == direct.usd_per_million_tokens
    error, rate = bar(found, "the model's error (80 %)"), answer.estimate.intervals["output_tokens_per_s"]
    assert (error.low.values["output_tokens_per_s"], error.high.values["output_tokens_per_s"]) == (
        rate.low_80,
        rate.high_80,
    )
    price = bar(found, "price of a device-hour")
    assert price.high.values["usd_per_million_tokens"] == pytest.approx(1.2 * (answer.usd_per_million_tokens or 0))
    table = found.alternatives.tables[0] if found.alternatives else None
    assert table is not None
    assert any(row[1].startswith("FP8") for row in table.rows)


def test_a_plans_report_keeps_the_plan(tmp_path: Path) -> None:
    answer = plan_scenario(read_scenario(PLAN))
    found = reported(tmp_path, answer.to_json())
    best = answer.plans[0]
    assert value_of(found, "usd_per_million_tokens") == best.usd_per_million_tokens
    assert value_of(found, "ttft_s") == best.operation.ttft_s
    busier = bar(found, "arrivals").high.values
    assert busier["usd_per_million_tokens"] == pytest.approx((best.usd_per_million_tokens or 0) / 1.2)
    assert busier["highest_requests_per_s"] == pytest.approx(best.operation.highest_requests_per_s)
    assert bar(found, "input length").high.values["highest_requests_per_s"] < best.operation.highest_requests_per_s
    assert f"{100 * (1 - 4.0 / best.operation.highest_requests_per_s):.3g} % of its capacity" in found.headline
    assert found.commands[0].line.startswith("orrery plan --model llama-3.1-8b")
    assert any("vllm serve" in c.line for c in found.commands)
    assert "Minimum devices: 1 device is the minimum." in found.alternatives.summary  # pyright: ignore


@pytest.mark.slow
def test_a_plans_limits_are_where_it_stops_working(tmp_path: Path) -> None:
    """The plan found again with the lengths at which its report says that it ends: one side works, the other not."""
    found = reported(tmp_path, plan_scenario(read_scenario(PLAN)).to_json())
    message = next(line for line in found.sensitivity.flips if line.startswith("Answers may"))  # pyright: ignore
    tokens = int(message.split(" tokens")[0].split()[-1].replace(",", ""))
    kinds = {k: v for k, v in PLAN.items() if k not in ("output_tokens", "max_devices")} | {"max_devices": 1}
    works, fails = (
        plan_scenario(read_scenario(kinds | {"output_tokens": int(tokens * f), "weights": "fp8", "kv": "fp8"}))
        for f in (0.97, 1.05)
    )
    assert works.plans
    assert not fails.plans


def test_a_plan_that_cannot_be_names_the_smallest_change(tmp_path: Path) -> None:
    answer = plan_scenario(read_scenario(PLAN | {"slo": ["tpot:1"]}))
    found = reported(tmp_path, answer.to_json())
    assert answer.infeasible
    assert not found.is_feasible
    assert found.infeasible == answer.infeasible
    assert found.alternatives
    assert found.alternatives.listed
    assert "The answer" in page(found)


def test_a_simulations_report_is_of_the_run_in_the_file(tmp_path: Path) -> None:
    plain = simulate(**ESTIMATE | {"num_requests": 60, "slo": ["ttft:400"]}).to_json()  # type: ignore[union-attr]
    found = reported(tmp_path, plain)
    assert value_of(found, "p99_ttft_s") == pytest.approx(plain["p99_ttft_ms"] / 1e3, rel=1e-12)
    assert value_of(found, "output_throughput") == plain["output_throughput"]
    direct = simulate(**ESTIMATE | {"num_requests": 60, "slo": ["ttft:400"], "input_tokens": 614}).to_json()
    end = bar(found, "input length").high.values
    assert end["p99_ttft_s"] == pytest.approx(direct["p99_ttft_ms"] / 1e3)
    shared = bar(found, "shared prompt beginnings").high.values
    # The slowest of 60 first tokens are those of the 16 prompts that begin together: nobody's beginning is held yet.
    halves = {"num_requests": 60, "slo": ["ttft:400"], "input_tokens": 256, "prefix_tokens": 256, "prefix_groups": 1}
    direct = simulate(**ESTIMATE | halves).to_json()
    assert shared["p99_ttft_s"] == pytest.approx(direct["p99_ttft_ms"] / 1e3)
    assert shared["p99_tpot_s"] < plain["p99_tpot_ms"] / 1e3
    assert shared["output_throughput"] > 1.03 * plain["output_throughput"]
    titles = [f.title for f in found.where.figures]  # pyright: ignore
    assert {"Latency by share of the requests", "Requests running and waiting", "Cache in use"} <= set(titles)


def test_a_sweeps_best_run_is_the_cheapest_that_holds(tmp_path: Path) -> None:
    settings = {k: v for k, v in ESTIMATE.items() if k != "concurrency"} | {"num_requests": 40, "slo": ["tpot:9"]}
    swept = sweep(**settings, over=["concurrency=4,64,256"])
    found = reported(tmp_path, swept.to_json())
    holds = [r for r in swept.answers if r["slo_is_met"]]
    cheapest = min(holds, key=lambda r: r["usd_per_million_tokens"])
    assert 0 < len(holds) < 3
    assert f"concurrency = {cheapest['varied']['concurrency']} is best" in found.headline
    assert value_of(found, "usd_per_million_tokens") == cheapest["usd_per_million_tokens"]
    assert len(found.alternatives.tables[0].rows) == 3  # pyright: ignore
    assert found.commands[0].line.endswith("--sweep concurrency=4,64,256")


def test_a_training_report_keeps_the_layout(tmp_path: Path) -> None:
    answer = train(**TRAIN)
    assert isinstance(answer, TrainAnswer)
    assert answer.run
    found = reported(tmp_path, answer.to_json())
    assert value_of(found, "step_time_s") == answer.step_time_s
    assert value_of(found, "days") == answer.run.days
    larger = train(**TRAIN | {"global_batch": 128})
    end = bar(found, "sequences in a step").high.values
    assert isinstance(larger, TrainAnswer)
    assert end["step_time_s"] == larger.step_time_s
    assert end["usd"] == larger.run.usd if larger.run else False
    step = answer.intervals()["step_time_s"]
    error = bar(found, "the model's error (80 %)")
    assert error.low.values["days"] == pytest.approx(answer.run.days * step.high_80 / answer.step_time_s)
    assert "10 billion tokens" in found.headline
    assert "One step of the pipeline" in [f.title for f in found.where.figures]  # pyright: ignore


def test_a_training_search_reports_its_fastest_layout(tmp_path: Path) -> None:
    open_layout = {k: v for k, v in TRAIN.items() if k not in ("tp", "pp", "micro_batch", "sharding")}
    answer = train_plan(**open_layout | {"devices": 8, "pp": 1, "cp": 1, "recompute": "none", "sharding": "zero1"})
    found = reported(tmp_path, answer.to_json())
    assert value_of(found, "step_time_s") == answer.plans[0].step_time_s
    assert found.sensitivity
    assert found.sensitivity.base["step_time_s"] == answer.plans[0].step_time_s
    assert str(answer.plans[0].layout) in found.headline
    assert len(found.alternatives.tables[0].rows) == len(answer.plans)  # pyright: ignore


def test_bisection_finds_where_an_answer_ends() -> None:
    assert farthest(lambda ratio: ratio <= 3.7) == pytest.approx(3.7, rel=0.01)
    assert farthest(lambda ratio: True) is None
    assert farthest(lambda ratio: ratio <= 1.0) == pytest.approx(1.0, rel=0.01)


def test_the_content_as_data_is_plain(tmp_path: Path) -> None:
    found = reported(tmp_path, orrery.estimate(**ESTIMATE).to_json())
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["kind"] == "estimate"
    assert plain["sensitivity"]["inputs"][0]["low"]["values"]["ttft_s"] > 0
    assert all(fact["cite"] for fact in plain["facts"])
    assert {f["basis"] for f in plain["facts"]} >= {"measured", "stated"}
    assert "svg" not in json.dumps(plain)

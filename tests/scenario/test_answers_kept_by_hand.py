"""Parts of answers that follow from few numbers: shortages, passes, exchanges, notes, sweeps that share their work."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.calibrate.kernel import kernel
from orrery.scenario import host_attention, resolve
from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.fleet import mixed
from orrery.scenario.host_attention import HostAttentionAnswer
from orrery.scenario.schema import read_scenario
from orrery.scenario.sweep import run as sweep
from orrery.scenario.train_plan import TrainPlanAnswer


def layout(num_devices):
    return SimpleNamespace(deployment=SimpleNamespace(layout=SimpleNamespace(num_devices=num_devices)))


def test_devices_that_are_short_are_those_of_the_thriftiest_types():
    """Sizes that need 1.5 replicas of one device or 1 of four take 1.5; and 2.25 or 0.5 take 2; a second service 3."""
    both = SimpleNamespace(types=[layout(1), layout(4)], loads_ratio=np.array([[1.5, 1.0], [2.25, 0.5]]))
    one = SimpleNamespace(types=[layout(2)], loads_ratio=np.array([[1.5]]))
    found = mixed._short([both, one], {"a": 2, "b": 3})
    assert (found.need, found.have) == (7.0, 5.0)  # 1.5 + 2 + 3, whole devices
    assert mixed._short([one], {"a": 1}).need == 3.0


def test_a_pass_of_a_host_that_attends(monkeypatch):
    """4,000 cached tokens at 2 ms a thousand: 8 ms of attention on the host in every pass."""
    monkeypatch.setattr(host_attention, "price_json", lambda tariff: {})
    monkeypatch.setattr(host_attention, "deployment_json", lambda deployment: {})
    work = SimpleNamespace(weights_s=0.5, cache_tokens=4000.0, attention_s_per_tokens=2e-6)
    names = "limit_tokens_per_s num_requests duration_s output_tokens_per_s closed_s closed_ratio phased_s gain"
    answer = SimpleNamespace(
        **dict.fromkeys((*names.split(), "usd_per_million_tokens", "longest_tokens"), 1.0),
        bound_by="host",
        work=work,
        curve=(),
        tariff=None,
        deployment=None,
        settings={},
        notes=(),
    )
    found = HostAttentionAnswer.to_json(answer)
    assert found["pass"] == {"weights_s": 0.5, "host_attention_s": pytest.approx(8e-3)}
    assert found["kv_capacity_tokens"] == 4000.0


@pytest.mark.parametrize("op", ["all-reduce", "all-gather", "all-to-all"])
def test_an_exchange_computes_nothing(op):
    rows = kernel(op=op, device="h100-sxm", message_bytes=2**20, devices=8).to_json()["results"]
    assert {row["flops"] for row in rows} == {0.0}
    assert all(row["bytes"] > 0.0 for row in rows)


@pytest.mark.parametrize(
    ("version", "asked", "is_said"), [("", None, True), ("0.9", None, False), ("0.11.0", "0.11.0", False)]
)
def test_a_version_that_nobody_names_is_said_where_it_is_the_newest(monkeypatch, version, asked, is_said):
    """An engine may come with the version that a device was measured with."""
    found = resolve.engine_on
    monkeypatch.setattr(resolve, "engine_on", lambda *given: replace(found(*given), version=version))
    given = {"model": "llama-3.1-8b", **({"engine_version": asked} if asked else {})}
    notes = resolve.find(read_scenario(given), "h100-sxm").notes
    assert any(note.startswith("engine_version: the newest known") for note in notes) is is_said


def rejection(constraint, layouts):
    return SimpleNamespace(constraint=constraint, layouts=layouts)


def test_layouts_that_a_constraint_rules_out_are_added_up():
    rejected = (rejection("heads", 5), rejection("memory", 3), rejection("memory", 4))
    assert list(TrainPlanAnswer.why_not(SimpleNamespace(rejected=rejected)).items()) == [("memory", 7), ("heads", 5)]


@pytest.mark.parametrize(
    ("may_stop", "worth_s", "num_run"),
    [
        (True, 35.0, 1),  # one run in 10 s: four are left, 40 s
        (True, 40.0, 5),  # 40 s are no more than that, and then 3 x 10 s, ...
        (False, 35.0, 5),
    ],
)
def test_a_sweep_calls_for_help_where_what_is_left_is_worth_it(monkeypatch, may_stop, worth_s, num_run):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(sweep, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    monkeypatch.setattr(sweep, "TRIED_S", 5.0)
    monkeypatch.setattr(sweep, "WORTH_S", worth_s)
    monkeypatch.setattr(sweep, "run_point", lambda one, finds_capacity: one)
    done = []
    left = sweep._in_turn({n: {} for n in range(5)}, may_stop, False, lambda number, run: done.append(number))
    assert done == list(range(num_run))
    assert list(left) == list(range(num_run, 5))


def test_the_example_of_a_recurrence_is_that_of_its_page():
    page = (Path(__file__).resolve().parents[2] / "docs" / "kernel.md").read_text("utf-8")
    assert f"--state-size {KERNEL_BY_NAME['state_size'].example} " in page

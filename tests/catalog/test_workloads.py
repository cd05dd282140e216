"""Published workloads: every file is read, stands for settings, and gives way to what a user says."""

import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.models import get_model
from orrery.catalog.workloads import get_workload, workload_names
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario


@pytest.mark.parametrize("name", workload_names())
def test_every_workload_is_of_a_known_model_and_fits_its_context(name):
    settings = get_workload(name).settings()
    tokens = settings.get("input_tokens", 0) + settings["output_tokens"]
    assert tokens <= get_model(settings["model"]).max_context_tokens
    assert ("slo" in settings) == (not name.endswith("offline"))


def test_limits_are_those_of_the_load_generator():
    """loadgen/mlperf.conf: llama2-70b Server 2,000 and 200 ms, interactive 450 and 40; llama3_1-405b 6,000 and 175."""
    limits = {
        n: get_workload(f"mlperf-{n}").settings()["slo"]
        for n in ("llama2-70b-server", "llama2-70b-interactive", "llama3.1-405b-server")
    }
    assert limits == {
        "llama2-70b-server": ["p99_ttft:2000", "p99_tpot:200"],
        "llama2-70b-interactive": ["p99_ttft:450", "p99_tpot:40"],
        "llama3.1-405b-server": ["p99_ttft:6000", "p99_tpot:175"],
    }


def test_a_workload_fills_what_a_user_leaves_out():
    requested = {"workload": "mlperf-llama3.1-405b-server", "device": "b200", "tp": 8, "concurrency": 16}
    found = resolve(read_scenario(requested)).workload
    assert (found.input_tokens, found.output_tokens) == (9400, 680)
    assert resolve(read_scenario(requested | {"input_tokens": 2000})).workload.input_tokens == 2000
    assert read_scenario(read_scenario(requested).written()) == read_scenario(requested)


def test_what_the_publisher_does_not_state_is_asked_for():
    requested = {"workload": "mlperf-llama2-70b-server", "device": "h100-sxm", "tp": 8, "concurrency": 16}
    with pytest.raises(ScenarioError, match="input_tokens: is missing"):
        resolve(read_scenario(requested))
    assert resolve(read_scenario(requested | {"input_tokens": 200})).workload.output_tokens == 294


def test_an_unknown_workload_suggests_near_ones():
    with pytest.raises(UnknownName, match="mlperf-mixtral-8x7b-server"):
        get_workload("mlperf-mixtral-8x7b")

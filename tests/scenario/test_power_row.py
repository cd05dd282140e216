"""Replicas of a plan under a power budget: rated draws by hand, caps against none, and refusals."""

import pytest

from orrery import plan
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.fleet.power import POWER_CAPS
from orrery.scenario.power_row import BUSY, Batch, at_clocks

ASK = {
    "model": "llama-3.1-8b",
    "device": "a100-sxm-80gb",
    "rate": 2,
    "input_tokens": 800,
    "output_tokens": 100,
    "slo": "tpot:40",
    "max_devices": 1,
}


@pytest.fixture(scope="module")
def found():
    device = get_device("a100-sxm-80gb")
    rated = device.power_limit_w + device.host_power_w
    return plan(**ASK, power_budget_w=8.5 * rated), rated


def test_rated_draws_are_devices_and_their_hosts(found):
    answer, rated = found
    assert answer.power_row.rated_w == rated
    assert all(fit.fit.num_rated == 8 for fit in answer.power_row.caps)


def test_every_rule_is_compared_and_the_chosen_one_over_busy_shares(found):
    row = found[0].power_row
    assert [fit.cap for fit in row.caps] == list(POWER_CAPS.words)
    assert [fit.busy_frac for fit in row.curve] == list(BUSY)
    assert {fit.cap for fit in row.curve} == {"two-thresholds"}
    plain = row.to_json()
    assert plain["caps"][0]["replicas"] >= plain["caps"][0]["rated_replicas"]
    assert found[0].to_json()["power_row"]["power_budget_w"] == row.power_budget_w
    assert any("orrery fleet simulates every request" in note for note in row.notes)


def test_busier_replicas_never_fit_more(found):
    counts = [fit.fit.num_servers for fit in found[0].power_row.curve]
    assert counts[0] >= counts[-1]


def test_a_server_draws_its_host_beside_its_devices():
    deployment = plan(**ASK).plans[0].operation.deployment
    bare, hosted = (
        at_clocks(deployment, Batch(sequences_ratio=4, input_tokens=800, output_tokens=100, host_w=w))(1.0)
        for w in (0.0, 100.0)
    )
    assert hosted.prompt_w - bare.prompt_w == pytest.approx(100.0)
    assert hosted.idle_w - bare.idle_w == pytest.approx(100.0)
    assert hosted.batch_s == bare.batch_s


def test_without_a_budget_nothing_is_said():
    assert plan(**ASK).power_row is None
    assert "power_row" not in plan(**ASK).to_json()


def test_wrong_input_is_one_message():
    with pytest.raises(ScenarioError, match="write power_budget_w too"):
        plan(**ASK, power_cap="none")
    with pytest.raises(ScenarioError, match="hold 0 replicas"):
        plan(**ASK, power_budget_w=10)
    with pytest.raises(ScenarioError, match="power cap"):
        plan(**ASK, power_budget_w=5000, power_cap="three")

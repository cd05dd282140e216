"""Sentences for fleets that cannot be, that nothing serves, and of which a part has no effect."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.cli.fleet_views import change_text, print_fleet
from orrery.scenario.fleet.ask import simulate_fleet

SMALL = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 100, "output_tokens": 10, "rate": 5.0}
SMALL |= {"usd_per_hour": 3.0, "cold_start_s": 1.0}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"replicas_min": 0, "replicas_max": 3}, "replicas_min: got 0 and no autoscaler, so nothing ever runs"),
        ({"prefill_replicas_min": 0, "prefill_replicas_max": 2}, "prefill_replicas_min: got 0 and no prefill_auto"),
        ({"replicas_min": 0, "replicas_max": 3, "steady": True}, "replicas_min: got 0 and no autoscaler"),
        ({"pool": 3}, r"fleet: pool: got 3; write it as \[\[pool\]\]"),
        ({"faults": "published"}, r"faults: got 'published'; write it as \[faults\]"),
        ({"days": 0.0}, "days: got 0.0; write a number above 0"),
        ({"pool": [{}, {"replicas_min": -1}]}, r"fleet: \[\[pool\]\] 2: replicas_min: got -1"),
        ({"pool": [{"replica_min": 1}]}, r"fleet: \[\[pool\]\] 1: There is no setting 'replica_min'; did you mean"),
        ({"pool": []}, r"fleet: pool: is empty; write a \[\[pool\]\]"),
        ({"tenant": [{"name": "a"}, {"name": "b"}, {"priority": -1}]}, r"fleet: \[\[tenant\]\] 3: priority: got -1"),
        ({"pool": [{}, {"model": "qwen3-8b"}]}, r"pool 2: serves another model; .* a \[\[service\]\]"),
    ],
)
def test_fleets_that_cannot_be(wrong, says):
    with pytest.raises(ScenarioError, match=says):
        simulate_fleet(**{**SMALL, "days": 0.001, **wrong})


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"tenant": [{"name": "paid", "priority": 1}]}, "tenant paid: priority: the queue fcfs does not read it"),
        ({"queue": "fair"}, "queue: fair shares among clients, and all requests are of one"),
        ({"queue": "fair", "tenant": [{"name": "a"}, {"name": "b"}]}, ""),
        ({"queue": "priority", "tenant": [{"name": "a", "priority": 1}, {"name": "b", "priority": 2}]}, ""),
    ],
)
def test_orders_that_nothing_reads_are_noted(given, note):
    notes = simulate_fleet(**SMALL, **given, days=0.001).notes
    about = [text for text in notes if text.startswith(("tenant", "queue"))]
    assert len(about) == bool(note)
    assert all(text.startswith(note) for text in about)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"zones": "a,b"}, "zones: nothing is lost"),
        ({"overlap": "token-split"}, "overlap = token-split: no effect on this deployment: tp is 1"),
        ({"moe_backend": "trtllm-gen"}, "moe_backend = trtllm-gen: no effect on this deployment: the model has no exp"),
        ({"router": "prefix-aware", "replicas": 2}, "router = prefix-aware: no effect on this deployment: no two"),
        ({"same_node": True}, "same_node = True: no effect on this deployment: no cache travels"),
    ],
)
def test_settings_that_change_nothing_are_noted(setting, why):
    plain = simulate_fleet(**SMALL, **{k: v for k, v in setting.items() if k == "replicas"}, days=0.001)
    asked = simulate_fleet(**SMALL, **setting, days=0.001)
    assert [text for text in asked.notes if text.startswith(why)]
    assert not [text for text in plain.notes if "no effect" in text or text.startswith("zones")]
    assert (asked.cost_usd, asked.run.end_s) == (plain.cost_usd, plain.run.end_s)


def test_zones_that_are_lost_are_passed_over_in_silence():
    outage = [{"zone": "a", "start_s": 1.0, "length_s": 5.0}]
    notes = simulate_fleet(**SMALL, zones="a,b", replicas=2, outage=outage, days=0.001).notes
    assert not [text for text in notes if text.startswith("zones")]


def test_padded_drafts_are_refused():
    with pytest.raises(ScenarioError, match="draft_batching: is of one replica's padded batches"):
        simulate_fleet(**SMALL, draft_batching="pool", days=0.001)


def test_what_budgets_shed_no_replica_serves(capsys):
    """Half of the requests are of a tenant with a tenth of a request a second: an objective of 90 % is out of reach."""
    tenants = [{"name": "paid", "share": 0.5}, {"name": "free", "share": 0.5, "budget": 0.1, "burst": 1}]
    answer = simulate_fleet(**SMALL, tenant=tenants, slo=["ttft:1000"], days=0.002)
    assert (answer.is_met, answer.change, answer.has_searched) == (False, None, False)
    assert f"budgets shed {percent(answer.num_shed / answer.num_sent, 2)}" in change_text(answer)
    assert answer.slo["ttft"]["value_s"] == float("inf")  # nine of ten have none
    print_fleet(answer)
    shown = capsys.readouterr().out
    assert next(line for line in shown.splitlines() if line.startswith("free")).split()[2] == f"{answer.num_shed:,}"


def test_a_regret_below_nothing_says_why(capsys):
    """Seldom requests and an autoscaler that starts from none: each waits for its start, which the schedule forbids."""
    answer = simulate_fleet(
        **{**SMALL, "rate": 0.01, "cold_start_s": 40.0},
        days=0.05,
        replicas_min=0,
        replicas_max=1,
        autoscaler="knative-concurrency",
    )
    assert answer.regret.regret_frac < 0.0
    print_fleet(answer)
    shown = " ".join(capsys.readouterr().out.split())  # a narrow terminal breaks the line
    assert "no request waits for a start takes more replica-time" in shown


def test_equal_outputs_under_a_router_that_balances_are_noted():
    """Three replicas at 0.8 of what they sustain: the note stands where outputs are alike and the router balances."""
    rate = 0.8 * 3 * simulate_fleet(**SMALL, days=0.05, steady=True).setup.capacity_requests_per_s
    full = {**SMALL, "rate": rate, "replicas": 3, "days": 0.05, "steady": True}
    for more, is_noted in (({}, True), ({"router": "round-robin"}, False), ({"output_tokens_std": 5.0}, False)):
        assert any("waves" in note for note in simulate_fleet(**full, **more).notes) is is_noted
    assert not any("waves" in note for note in simulate_fleet(**{**full, "rate": rate / 2}).notes)

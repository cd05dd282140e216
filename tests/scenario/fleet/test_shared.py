"""Services whose models share replicas."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.fleet_more_views import print_more
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.serving.simulation.tables import _kernel as tables

TOP = {"device": "h100-sxm", "replicas": 2, "days": 0.003, "seed": 3, "cold_start_s": 60}
CHAT = {"name": "chat", "model": "llama-3.1-8b", "rate": 6.0, "input_tokens": 800, "output_tokens": 60}
DRAFTS = {"name": "drafts", "model": "qwen3-8b", "rate": 2.0, "input_tokens": 300, "output_tokens": 40}
LIMITS = {"slo": ["p99_ttft:2000"]}


def ask(*services, share="time", **top):
    return simulate_fleet(**{**TOP, **top}, share=share, service=list(services))


@pytest.mark.parametrize("share", ["time", "sleep"])
def test_one_model_alone_is_the_fleet_without_sharing(share):
    shared = ask(CHAT, share=share).services["chat"].to_json()
    plain = simulate_fleet(**TOP, service=[CHAT]).services["chat"].to_json()
    for name in ("seconds", "regret", "against_steady", "settings", "notes", "capacity_requests_per_s"):
        shared.pop(name), plain.pop(name)
    assert shared == plain


def test_what_models_share_adds_up():
    answer = ask(CHAT, DRAFTS)
    assert answer.total("cost_usd") == pytest.approx(answer.run.cost_usd, rel=1e-12)
    assert sum(a.run.energy_j for a in answer.services.values()) == pytest.approx(answer.run.energy_j, rel=1e-9)
    assert sum(a.run.busy_s for a in answer.services.values()) == pytest.approx(answer.run.busy_s, rel=1e-9)
    assert answer.run.busy_s <= 2.0 * answer.run.end_s
    assert all(a.run.fates["unfinished"] == 0 for a in answer.services.values())
    assert answer.to_json()["computed_s"]["chat"] == pytest.approx(answer.services["chat"].run.busy_s)
    assert answer.run.wakes == 0


def test_requests_are_slower_in_company_and_slower_still_where_one_is_awake():
    """The same requests: alone on the replicas, beside another model, and waiting for it to sleep."""
    alone = ask(CHAT).services["chat"].run
    beside = ask(CHAT, DRAFTS).services["chat"].run
    asleep = ask(CHAT, DRAFTS, share="sleep", turn_s=5.0)
    assert (beside.requests.arrive_s == alone.requests.arrive_s).all()
    assert alone.ttft_s.mean() < beside.ttft_s.mean() < asleep.services["chat"].run.ttft_s.mean()
    assert asleep.run.wakes > 1
    assert any("come back from the host's memory, of which they hold 16.1 GB a replica" in n for n in asleep.notes)


def test_memory_is_split_as_each_says():
    answer = ask({**CHAT, "gpu_memory_utilization": 0.6}, DRAFTS)
    first, second = (p.deployment for p in answer.run.setup.service.pools)
    assert first.memory_utilization_frac == 0.6
    assert second.memory_utilization_frac == pytest.approx(first.engine.memory_utilization_frac - 0.6)


def test_two_models_that_do_not_fit_are_refused_in_words():
    answer = ask(CHAT, {**DRAFTS, "model": "qwen3-32b"})
    assert isinstance(answer, InfeasibleAnswer)
    assert answer.infeasible.need > answer.infeasible.have
    assert "drafts, one of 2 models on the same devices" in answer.infeasible.smallest_change
    assert 'share = "sleep"' in answer.infeasible.smallest_change
    assert not isinstance(ask(CHAT, {**DRAFTS, "model": "qwen3-32b", "rate": 0.1}, share="sleep"), InfeasibleAnswer)


def test_weights_that_sleep_must_fit_into_the_hosts_memory():
    """8.03 and 8.19 billion weights of 2 bytes: 32.44 GB a replica of one of eight devices, so a node of 8 x 32.44 GB
    holds them and one of 250 GB does not; nor does a tenth more than that with 5 GB of cache beside them."""
    asleep = {"share": "sleep", "days": 0.001}
    need = 2 * (8_030_261_248 + 8_190_735_360)
    enough = ask(CHAT, DRAFTS, **asleep, host_memory_bytes=8.001 * need)
    assert any(n.startswith("host_memory_bytes: 32.4 GB of weights") for n in enough.notes)
    for more in ({"host_memory_bytes": "250GB"}, {"host_memory_bytes": 8.8 * need, "host_cache_bytes": "5GB"}):
        found = ask(CHAT, DRAFTS, **asleep, **more)
        assert isinstance(found, InfeasibleAnswer)
        cache = 5e9 if "host_cache_bytes" in more else 0.0
        assert found.infeasible.need == pytest.approx(need + cache, rel=1e-3)
        assert "write host_memory_bytes" in found.infeasible.smallest_change
    assumed = ask(CHAT, DRAFTS, **asleep)
    assert any("128 GB of the host's memory a replica (assumed" in n for n in assumed.notes)


def test_host_memory_is_of_sleeping_models_alone():
    with pytest.raises(ScenarioError, match='host_memory_bytes: is for weights that sleep; write share = "sleep"'):
        simulate_fleet(**TOP, **{k: v for k, v in CHAT.items() if k != "name"}, host_memory_bytes=1e12)


def test_lost_replicas_give_every_request_back_to_a_replica_of_its_model():
    outage = [{"zone": "a", "start_s": 100.0, "length_s": 60.0}]
    answer = ask(CHAT, DRAFTS, outage=outage, zones="a")
    for one in answer.services.values():
        assert one.run.fates["served"] == one.run.requests.count
        assert (one.run.outcome.was_lost | one.run.outcome.was_parked).any()
    assert (answer.run.outcome.status == tables.DONE).all()


@pytest.mark.parametrize(
    ("services", "top", "word"),
    [
        ((CHAT,), {"share": "space"}, "write time or sleep"),
        ((CHAT, {**DRAFTS, "replicas": 3}), {}, "write it at the top"),
        ((CHAT, {**DRAFTS, "tp": 2}), {}, "the same tp"),
        ((CHAT, DRAFTS), {"turn_s": 3.0}, 'share = "sleep"'),
        ((CHAT, DRAFTS), {"host_memory_bytes": 1e12}, 'share = "sleep"'),
        ((CHAT, {**DRAFTS, "host_memory_bytes": 1e12}), {"share": "sleep"}, "write it at the top"),
        ((CHAT, DRAFTS), {"autoscaler": "slo-planner"}, "keda-queue"),
        ((CHAT, DRAFTS), {"survive": "zone"}, "share replicas"),
        ((CHAT, {**DRAFTS, "turns": 3}), {}, "leave out turns"),
        (({**CHAT, "gpu_memory_utilization": 0.8}, {**DRAFTS, "gpu_memory_utilization": 0.5}), {}, "at most 1 in all"),
        ((CHAT, {**DRAFTS, "router": "round-robin"}), {}, "router differs"),
    ],
)
def test_what_cannot_be_shared_is_refused(services, top, word):
    with pytest.raises(ScenarioError, match=word):
        ask(*services, **top)


def test_sharing_is_of_several_services():
    with pytest.raises(ScenarioError, match="each as"):
        simulate_fleet(**TOP, model="llama-3.1-8b", rate=1.0, share="time")
    with pytest.raises(ScenarioError, match="write share"):
        simulate_fleet(**TOP, model="llama-3.1-8b", rate=1.0, turn_s=3.0)


def test_a_missed_slo_of_models_that_share_offers_no_search_that_sharing_refuses(capsys):
    missed = ask({**CHAT, "slo": ["ttft:0.001"]}, DRAFTS)
    assert missed.is_met is False
    print_more(missed)
    assert "--change" not in capsys.readouterr().out

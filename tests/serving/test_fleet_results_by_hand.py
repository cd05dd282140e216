"""From the loop's tables to a result, and services that cannot be."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.serving.requests import NONE
from orrery.serving.simulation import outcome
from orrery.serving.simulation.result import TIMELINE
from orrery.serving.simulation.service import Filling, Pool, Service, Split
from orrery.serving.simulation.tables import _kernel as k

# --- after it


def ended(end_s=5.0, **given):
    """Two machines with a unit each, from 1 s to 5 s, one request of two refused; bins of 2 s."""
    when = np.full((2, len(k.WHEN)), np.nan)
    when[:, k.ARRIVED_S] = [1.5, 2.5]
    when[0, k.FINISH] = end_s
    totals = np.zeros(len(k.TOTALS))
    totals[[k.WIDTH, k.ENERGY, k.BUSY, k.TOTAL_STEPS]] = [2.0, 70.0, 4.0, 9.0]
    for name, value in given.items():
        totals[k.TOTALS.index(name)] = value
    memory = SimpleNamespace(evictions=np.array([5]))
    req = np.zeros((2, len(k.REQUEST)), np.int64)
    return SimpleNamespace(
        rules=SimpleNamespace(concurrency=0),
        totals=totals,
        when=when,
        req=req,
        timeline=np.zeros((8, 12)),
        gaps=np.zeros(3),
        log=np.zeros((4, 9)),
        memory=memory,
    )


def result(filling=None, **given):
    device = SimpleNamespace(idle_power_w=10.0)
    deployment = SimpleNamespace(cluster=SimpleNamespace(device=device), layout=SimpleNamespace(num_devices=2))
    pools = (SimpleNamespace(deployment=deployment, replicas=2),)
    asked = SimpleNamespace(
        pools=pools,
        own_pools=pools,
        entry_s=lambda tokens: 0.5,
        filling=filling,
        num_devices=4,
    )
    assembled = SimpleNamespace(
        unit_machine=np.array([0, 1]), num_machines=2, capacity=np.array([30, 40]), lanes=np.full((2, 26), 7)
    )
    requests = SimpleNamespace(input_tokens=np.array([3, 3]), arrive_s=np.array([1.0, 2.0]), after=NONE, count=2)
    return outcome.result_of(asked, requests, assembled, ended(**given))


def test_a_result_by_hand():
    """Idle devices draw 40 W for 4 s; two units are busy for 4 of 8 s; three of eight bins are used."""
    found = result(guessed_swaps=8.0, right_guesses=6.0)
    assert (found.duration_s, found.energy_j, found.idle_frac) == (4.0, 70.0 + 160.0, 0.5)
    assert found.arrive_s.tolist() == [1.0, 2.0]
    assert found.timeline_s.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert found.timeline[:, TIMELINE.index("energy_j")].tolist() == [80.0] * 3
    assert (found.num_steps, found.kv_capacity_bytes, found.max_running) == (9, 70.0, 7)
    assert (found.counters["swap_hit_frac"], found.counters["evicted_blocks"]) == (0.75, 5.0)
    assert "width_s" not in found.counters
    assert "swap_hit_frac" not in result().counters
    assert result(end_s=6.0).timeline_s[-1] == 8.0  # what happens at an edge is in the bin behind it


def test_fine_tuned_tokens_are_counted_once():
    assert result(Filling(pass_ratio=2.0), finetune_tokens=10.0).counters["finetune_tokens"] == 5.0
    assert result(finetune_tokens=10.0).counters["finetune_tokens"] == 10.0


def test_a_service_by_its_pools():
    def pool(role, replicas, handover_s, request_s):
        engine = SimpleNamespace(handover_s=handover_s, request_s=request_s, per_prompt_token_s=0.5)
        device = SimpleNamespace(host_power_w=100.0)
        cluster, layout = SimpleNamespace(device=device), SimpleNamespace(num_devices=4)
        return Pool(
            deployment=SimpleNamespace(engine=engine, cluster=cluster, layout=layout), replicas=replicas, role=role
        )

    found = Service(pools=(pool("prompts", 2, 7.0, 1.0), pool("answers", 1, 3.0, 9.0), pool("answers", 1, 2.0, 9.0)))
    assert found.entry_s(10) == 1.0 + 5.0 + 3.0
    assert (found.num_devices, found.host_power_w) == (16, 1600.0)
    assert Service(pools=(pool("all", 1, 7.0, 1.0),)).entry_s(10) == 6.0
    assert (Filling().step_tokens, Filling().pass_ratio, Split().answers_fracs, Split().target_s) == (
        2048,
        2.0,
        (0.5,),
        0.0,
    )


@pytest.mark.parametrize("fracs", [(), (0.0,), (1.0,), (0.5, 1.5)])
def test_parts_of_a_split_lie_between_nothing_and_all(fracs):
    with pytest.raises(ScenarioError, match="between 0 and 1"):
        Split(answers_fracs=fracs)


@pytest.mark.parametrize("roles", [(), ("prompts",), ("answers",), ("all", "prompts", "answers")])
def test_pools_that_cannot_serve(roles):
    with pytest.raises(ScenarioError, match="pools"):
        Service(pools=tuple(Pool(deployment=None, role=role) for role in roles))


def test_a_split_stands_alone():
    pools = (Pool(deployment=None, role="prompts"), Pool(deployment=None, role="answers"))
    with pytest.raises(ScenarioError, match="split"):
        Service(pools=pools, split=Split())

"""Papers about failures, re-run: each mechanism points the right way in its set-up, and the parts fit together."""

import pytest

from orrery.evidence.paper_file import get_paper
from orrery.evidence.prediction import predict, reproduced_keys
from orrery.training.faults.goodput import expected, expected_two_level
from orrery.training.faults.model import FaultModel, RunPlan
from orrery.training.faults.saving import memory_plan, storage_plan
from orrery.training.faults.survival import survival_frac
from orrery.training.faults.techniques import checkpoint_blocking, checkpoint_in_memory
from orrery_papers.c4_communication import predict as c4_communication
from orrery_papers.checkfree import predict as checkfree
from orrery_papers.datastates_llm import predict as datastates_llm
from orrery_papers.reft_in_memory_ft import predict as reft_in_memory_ft

KEYS = ("c4-communication", "checkfree", "datastates-llm", "reft-in-memory-ft")
HOUR = 3600.0


@pytest.mark.parametrize("key", KEYS)
def test_every_paper_is_found_and_every_metric_that_differs_says_why(key):
    assert key in reproduced_keys()
    if key != "checkfree":  # trains for a while
        claims = {claim.id for claim in get_paper(key).claims}
        found = list(predict(get_paper(key)))
        assert {p.claim for p in found} <= claims
        assert all(p.differs and p.because for p in found)


@pytest.mark.parametrize("name", ["7b", "70b"])
def test_saves_that_hide_stop_less_the_seldomer_they_are(name):
    cases = list(datastates_llm.compared(get_paper("datastates-llm").setups[name]))
    assert all(c.lazy_s < c.plain_s for c in cases)
    assert [c.run_ratio for c in cases] == sorted((c.run_ratio for c in cases), reverse=True)
    assert cases[0].lazy_s > 0.0 == cases[-1].lazy_s


def test_errors_take_less_when_they_are_found_by_rhythm():
    setups = get_paper("c4-communication").setups
    before, after = (c4_communication.overhead_frac(setups[name]) for name in ("by-hand", "by-rhythm"))
    assert 0.0 < after < 0.5 * before


def test_collisions_cost_more_where_devices_have_less_to_compute():
    claims = {claim.id: claim.setup for claim in get_paper("c4-communication").claims}
    moderate, large = (c4_communication.by_routing(claims[name]) for name in ("runtime", "gap-512"))
    assert 1.0 < moderate["ecmp"] / moderate["planned"] < large["ecmp"] / large["planned"]
    assert large["planned"] == large["spray"]


def test_memory_with_parity_keeps_what_disk_would_lose():
    """The same failures: snapshots in memory with parity against saves on disk, on the large machine's set-up."""
    frontier = get_paper("reft-in-memory-ft").setups["frontier"]
    state = reft_in_memory_ft.saving(frontier, 20.0)
    job = FaultModel(num_devices=512, device_mtbf_s=5e4 * HOUR, software_mtbf_s=24 * HOUR, restart_s=300.0)
    run = RunPlan(step_s=20.0, num_steps=100_000)
    disk = expected(
        job, storage_plan(state, checkpoint_blocking.rule(state, 180, checkpoint_blocking.BlockingKnobs()), 180), run
    )
    cost = checkpoint_in_memory.rule(state, 180, checkpoint_in_memory.InMemoryKnobs(group_nodes=8))
    groups = job.num_nodes // 8
    retained = survival_frac(
        groups, 8, cost.num_node_losses, cost.rebuild_s + cost.memory_lag_s, 1.0 / (8 / 5e4 / HOUR)
    )
    bare = survival_frac(groups, 8, 0, cost.rebuild_s + cost.memory_lag_s, 1.0 / (8 / 5e4 / HOUR))
    assert retained > bare
    both = expected_two_level(
        job, memory_plan(cost), storage_plan(state, cost, 180), run, storage_only_frac=1.0 - retained
    )
    assert both.lost_frac < 0.2 * disk.lost_frac
    assert both.time_s < disk.time_s


def test_rolling_back_grows_with_the_rate_and_the_claims_follow_the_table():
    paper = get_paper("checkfree")
    setups = [paper.setups[name] for name in ("medium", "medium-10", "medium-16")]
    hours = [checkfree.rows(setup, 4 / 3, 1)["rollback"]["run_s"] for setup in setups]
    assert hours == sorted(hours)
    claims = {claim.id: claim.low for claim in paper.claims}
    redundant = paper.setups["medium"].number("doubled_step_s") * paper.setups["medium"].number("num_steps")
    assert 1.0 - claims["checkfree-plus-5"] / redundant > claims["headline"]
    assert 1.0 - claims["checkfree-plus-10"] / redundant > claims["headline-10"]

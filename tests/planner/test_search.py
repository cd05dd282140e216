"""The search finds what trying everything by hand finds, and says why the rest will not do."""

from dataclasses import replace
from math import ceil, exp, inf, log

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible, memory_of
from orrery.planner.detail import detail, workload_of
from orrery.planner.goal import Goal, Objectives
from orrery.planner.money import Tariff, tariff_of
from orrery.planner.plan import SearchResult
from orrery.planner.rejection_reasons import difference, distance
from orrery.planner.search import ranking, search
from orrery.planner.space import Candidate, Fixed, Option, Space, candidates
from orrery.serving.estimate import estimate
from orrery.serving.online import open_loop
from orrery.serving.steady import batch_limit
from orrery.serving.workload import Traffic


def space(model: str = "llama-3.1-8b", devices: tuple[str, ...] = ("h100-sxm", "l40s"), most: int = 4) -> Space:
    options = [
        Option(
            device=(d := get_device(name)),
            engine=get_engine("vllm", "", d),
            tariff=tariff_of(d, None, None),
            clock_frac=1.0,
        )
        for name in devices
    ]
    return Space(model=get_model(model), options=options, max_devices=most, fixed=Fixed(max_num_batched_tokens=4096))


def goal(rate: float = 6.1, ttft_s: float = 0.5, tpot_s: float = 0.02, most: int = 4) -> Goal:
    traffic = Traffic(input_tokens=600, output_tokens=200, request_rate_per_s=rate)
    return Goal(objectives=Objectives(ttft_s=ttft_s, tpot_s=tpot_s), traffic=traffic, max_devices=most)


def by_hand(goal: Goal, candidate: Candidate) -> tuple[int, float] | None:
    """Devices that one candidate needs, and the highest rate of each replica; None where it cannot.

    A plain loop over a fine ladder of concurrencies, up to the first that misses an objective.
    """
    d, t = candidate.deployment, goal.traffic
    memory = memory_of(d)
    if isinstance(memory, Infeasible) or memory.kv_capacity_tokens < t.fitting_tokens:
        return None
    limit = batch_limit(d, memory, t.input_tokens, t.output_tokens) * d.layout.dp
    ladder = np.array([exp(log(limit) * i / 199) for i in range(200)])
    at = open_loop(d, memory, t.input_tokens, t.output_tokens, ladder)
    best = 0.0
    for ttft_s, tpot_s, rate in zip(at.ttft_s, at.tpot_s, at.requests_per_s, strict=True):
        if ttft_s > goal.objectives.ttft_s or tpot_s > goal.objectives.tpot_s:
            break
        best = float(rate)
    if not best:
        return None
    devices = ceil(t.request_rate_per_s / best) * d.layout.num_devices
    return (devices, best) if devices <= goal.max_devices else None


@pytest.fixture(scope="module")
def found() -> SearchResult:
    return search(goal(), candidates(space()))


def test_search_finds_what_trying_everything_by_hand_finds(found: SearchResult) -> None:
    expected = {key(c): n for c in candidates(space()) if (n := by_hand(goal(), c)) is not None}
    assert {key(p.candidate): p.num_devices for p in found.plans} == {k: n for k, (n, _) in expected.items()}
    for plan in found.plans:
        _, rate = expected[key(plan.candidate)]
        assert plan.highest_requests_per_s == pytest.approx(rate * plan.replicas, rel=0.06)
    assert expected
    rejected = {key(r.candidate) for r in found.rejected}
    assert rejected == {key(c) for c in candidates(space())} - expected.keys()


def key(candidate: Candidate) -> tuple[str, str, str, str]:
    d = candidate.deployment
    return d.cluster.device.name, str(d.layout), d.formats.weights, d.formats.kv


def test_plans_meet_the_objectives_and_carry_the_traffic(found: SearchResult) -> None:
    for plan in found.plans:
        assert plan.ttft_s <= goal().objectives.ttft_s * 1.001
        assert plan.tpot_s <= goal().objectives.tpot_s * 1.001
        assert plan.requests_per_s == pytest.approx(6.1)
        assert plan.highest_requests_per_s >= 5.8 * 0.999
        assert plan.num_devices <= 4
        assert plan.concurrency <= plan.max_concurrency * 1.001


def test_littles_law_holds_in_every_plan(found: SearchResult) -> None:
    for plan in found.plans:
        latency = plan.ttft_s + 199 * plan.tpot_s
        assert plan.concurrency == pytest.approx(plan.requests_per_s / plan.replicas * latency, rel=0.1)


def test_the_first_plan_is_the_cheapest(found: SearchResult) -> None:
    hourly = [p.num_devices * (p.candidate.option.tariff.usd_per_hour or inf) for p in found.plans]
    assert hourly == sorted(hourly)
    assert list(found.plans) == sorted(found.plans, key=ranking(goal()))


def test_a_plan_without_a_price_comes_after_every_plan_with_one(found: SearchResult) -> None:
    """A device whose price nobody knows counts as one dollar an hour among its like, and stands behind the dearest."""
    dearest = found.plans[-1]
    option = dearest.candidate.option
    unpriced, free = (
        replace(dearest, candidate=replace(dearest.candidate, option=replace(option, tariff=tariff)))
        for tariff in (Tariff(usd_per_hour=None), Tariff(usd_per_hour=1e-3))
    )
    hourly = dearest.num_devices * option.tariff.usd_per_hour
    assert hourly > dearest.num_devices * 1.0, "a dollar an hour would win"
    order = sorted((unpriced, *found.plans, free), key=ranking(goal()))
    assert order[0] is free
    assert order[-1] is unpriced


def test_the_front_is_not_beaten_by_any_plan(found: SearchResult) -> None:
    assert found.front
    for plan in found.plans:
        mine = 1 / plan.tpot_s, plan.output_tokens_per_s / plan.num_devices
        better = [
            p
            for p in found.front
            if p.output_tokens_per_s_per_user >= mine[0] * 0.95 and p.output_tokens_per_s_per_device >= mine[1] * 0.95
        ]
        assert better


def test_without_a_rate_throughput_is_ranked() -> None:
    requested = goal(rate=0.0)
    plans = search(requested, candidates(space())).plans
    rates = [p.highest_output_tokens_per_s / p.num_devices for p in plans]
    assert rates == sorted(rates, reverse=True)


def test_looser_objectives_never_need_more_devices(found: SearchResult) -> None:
    loose = search(goal(ttft_s=2.0, tpot_s=0.08), candidates(space()))
    needed = {key(p.candidate): p.num_devices for p in loose.plans}
    for plan in found.plans:
        assert needed[key(plan.candidate)] <= plan.num_devices


def test_rejections_have_numbers_and_a_change_that_works() -> None:
    requested = goal(rate=2.0, ttft_s=2.0, tpot_s=0.1, most=8)
    found = search(requested, candidates(space("llama-3.1-70b", ("h100-sxm",), 8)))
    working = {key(p.candidate) for p in found.plans}
    memory = [r for r in found.rejected if r.reason == "memory"]
    assert memory
    for item in memory:
        assert item.infeasible.need > item.infeasible.have
        near = min((p.candidate for p in found.plans), key=lambda c: distance(item.candidate, c))
        assert item.infeasible.smallest_change == f"{difference(item.candidate, near)} works."
        assert key(near) in working


def test_too_much_traffic_says_how_many_devices() -> None:
    found = search(goal(rate=5000.0), candidates(space()))
    assert not found.plans
    item = min((r for r in found.rejected if r.reason == "devices"), key=lambda r: r.infeasible.need)
    assert item.infeasible.need > item.infeasible.have == 4
    assert f"--max-devices {item.infeasible.need:.0f}" in item.infeasible.smallest_change
    enough = goal(rate=5000.0, most=int(item.infeasible.need))
    assert search(enough, [item.candidate]).plans


def test_details_agree_with_the_search(found: SearchResult) -> None:
    plan = detail(goal(), found.plans[0])
    assert plan.energy_j_per_token == pytest.approx(plan.power_w / plan.output_tokens_per_s)
    assert plan.output_tokens_per_s == pytest.approx(goal().traffic.request_rate_per_s * 200)
    tariff = found.plans[0].candidate.option.tariff
    assert plan.usd_per_hour == pytest.approx((tariff.usd_per_hour or 0) * found.plans[0].num_devices)
    interval = plan.intervals["tpot_s"]
    assert interval.low_95 < found.plans[0].tpot_s < interval.high_95
    for operation in found.plans[::6]:
        alone = estimate(operation.deployment, workload_of(goal(), operation))
        assert not isinstance(alone, Infeasible)
        assert alone.ttft_s == pytest.approx(operation.ttft_s, rel=0.02)
        assert alone.tpot_s == pytest.approx(operation.tpot_s, rel=0.02)


def test_the_default_space_is_searched_in_time() -> None:
    import time

    whole = Space(
        model=get_model("llama-3.1-70b"), options=space("llama-3.1-70b", ("h100-sxm",)).options, max_devices=8
    )
    search(goal(most=8), candidates(whole))
    start = time.process_time()
    search(goal(most=8), candidates(whole))
    assert time.process_time() - start < 2.0


def test_below_the_foot_of_a_curve_littles_law_counts_whole_lives() -> None:
    """0.1 requests a second that last 0.4 + 99 x 0.02 = 2.38 s keep 0.238 in flight, not 0.04 (their first tokens)."""
    from orrery.planner.curve import Curve, concurrency_at

    some = next(iter(candidates(space())))
    memory = memory_of(some.deployment)
    assert not isinstance(memory, Infeasible)
    one = np.ones(2)
    curve = Curve(
        candidate=some,
        memory=memory,
        concurrency=np.array([1.0, 2.0]),
        ttft_s=0.4 * one,
        tpot_s=0.02 * one,
        e2el_s=(0.4 + 99 * 0.02) * one,
        requests_per_s=np.array([1 / 2.38, 2 / 2.38]),
    )
    assert concurrency_at(curve, 0.1, 100) == pytest.approx(0.238)
    assert concurrency_at(curve, 2 / 2.38, 100) == pytest.approx(2.0)

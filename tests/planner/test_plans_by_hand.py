"""Plans by hand: prices, curves between rungs, spaces of layouts, distances between plans, pools and RLHF calls."""

from dataclasses import MISSING, asdict, dataclass, fields, replace
from math import e, log2
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.cost import Interval
from orrery.execution.layout import Layout
from orrery.execution.memory import Infeasible
from orrery.execution.train.layout import TrainingLayout
from orrery.planner import curve as curve_module
from orrery.planner.architecture.policy import PolicyKnobs, by_policy
from orrery.planner.architecture.problem import Choice, Metric, Problem
from orrery.planner.bits.options import Options, perturbation
from orrery.planner.budget import Budget, Weight
from orrery.planner.curve import Curve, concurrency_at, highest_concurrency, in_flight_of, refined
from orrery.planner.detail import _scaled, limited, quality_notes, workload_of
from orrery.planner.goal import Goal, Objectives
from orrery.planner.money import Tariff, idle_notes
from orrery.planner.pareto import front, least
from orrery.planner.plan import Operation
from orrery.planner.pools import Pairing, Worker, pairings, rank_at
from orrery.planner.rejection_reasons import _way_out, difference, distance, nearest_to
from orrery.planner.space import (
    Fixed,
    _budgets,
    _expert_degrees,
    _powers,
    default_caches,
    default_weights,
    layouts,
    tensor_degrees,
    wide_format,
)
from orrery.planner.training import nearby
from orrery.planner.training import space as training_space
from orrery.planner.training.space import Family, FixedSettings
from orrery.serving.workload import Traffic


def test_an_hour_and_a_kilowatt_hour_by_hand():
    """Four devices of 9 $/h are 0.01 $/s; 7.2 kW at 0.5 $/kWh are 0.001 $/s."""
    tariff = Tariff(usd_per_hour=9.0, electricity_usd_per_kwh=0.5)
    assert tariff.usd_per_s(4, 7200.0) == pytest.approx(0.011)
    assert tariff.usd_per_million(4, 7200.0, 2000.0) == pytest.approx(5.5)
    assert tariff.usd_per_million(4, 7200.0, 0.0) is None
    assert Tariff(usd_per_hour=3.6).usd_per_s(1, 1e9) == pytest.approx(0.001)
    unknown = Tariff(usd_per_hour=None)
    assert unknown.usd_per_s(1, 1.0) is unknown.usd_per_million(1, 1.0, 1.0) is None
    assert idle_notes(tariff, 0.5) == idle_notes(unknown, 0.1) == ()
    assert "25 % of the rate" in idle_notes(tariff, 0.25)[0]


def curve(**given):
    """1, e and e^2 in flight; the rate doubles and falls again."""
    usual = {"concurrency": [1.0, e, e**2], "ttft_s": [1.0, 1.0, 4.0], "tpot_s": [0.1, 0.2, 0.4]}
    usual |= {"e2el_s": [2.0, 3.0, 9.0], "requests_per_s": [1.0, 4.0, 2.0]} | given
    return Curve(candidate=None, memory=None, **{name: np.array(values) for name, values in usual.items()})


def test_a_curve_is_read_between_its_rungs_on_logarithms():
    here = curve()
    assert here.at(e**0.5, here.tpot_s) == pytest.approx(0.1 * 2**0.5)
    assert here.at(e**2, here.tpot_s) == pytest.approx(0.4)
    assert here.at(100.0, here.tpot_s) == pytest.approx(0.4)


def test_the_highest_concurrency_is_where_the_first_objective_is_missed():
    here = curve()
    assert highest_concurrency(Objectives(), here) == pytest.approx(e**2)
    assert highest_concurrency(Objectives(tpot_s=0.4), here) == pytest.approx(e**2)
    assert highest_concurrency(Objectives(tpot_s=0.2 * 2**0.5), here) == pytest.approx(e**1.5)
    assert highest_concurrency(Objectives(ttft_s=2.0), here) == pytest.approx(e**1.5)
    assert highest_concurrency(Objectives(ttft_s=2.0, tpot_s=0.1 * 2**0.5), here) == pytest.approx(e**0.5)
    assert highest_concurrency(Objectives(tpot_s=0.05), here) is None
    assert Objectives(ttft_s=1.0, e2el_s=2.0).limits() == (("ttft_s", 1.0), ("e2el_s", 2.0))


def test_requests_in_flight_of_a_rate_and_of_people():
    """Rates 1, 4 and no less afterwards; two at once is half way on logarithms. Below the foot each lives 2 s."""
    here = curve()
    assert concurrency_at(here, 0.5, 10.0) == 1.0
    assert concurrency_at(here, 1.0, 10.0) == 2.0
    assert concurrency_at(here, 2.0, 10.0) == pytest.approx(e**0.5)
    # with pauses of 3 s the foot keeps 1 + 3 people busy; of 2 people each is 2 s of 5 in flight
    assert in_flight_of(here, 2.0, 3.0) == pytest.approx(0.8)
    assert in_flight_of(here, 4.0, 3.0) == pytest.approx(1.6)
    people = (4.0 * (e + 12.0)) ** 0.5
    assert in_flight_of(here, people, 3.0) == pytest.approx(e**0.5)


def test_a_curve_is_finer_where_an_objective_is_missed(monkeypatch):
    asked = []

    def swept(goal, candidate, memory, ladder):
        asked.append(ladder)
        return curve(
            **{f: np.full(ladder.size, 7.0) for f in ("ttft_s", "tpot_s", "e2el_s", "requests_per_s")}
            | {"concurrency": ladder}
        )

    monkeypatch.setattr(curve_module, "swept", swept)
    goal = SimpleNamespace(objectives=Objectives(ttft_s=2.0))
    found = refined(goal, curve())
    assert np.log(asked[0]) == pytest.approx(1 + np.arange(1, 7) / 7)  # six more between e and e^2
    assert found.concurrency.tolist() == [1.0, e, *asked[0], e**2]
    assert found.ttft_s.tolist() == [1.0, 1.0, *[7.0] * 6, 4.0]
    assert found.requests_per_s.tolist() == [1.0, 4.0, *[7.0] * 6, 2.0]
    assert refined(SimpleNamespace(objectives=Objectives()), curve()).concurrency.size == 3
    assert refined(SimpleNamespace(objectives=Objectives(ttft_s=0.5)), curve()).concurrency.size == 3


def test_fronts_by_hand():
    assert front(np.array([1.0, 3.0, 2.0, 3.0]), np.array([5.0, 1.0, 1.0, 2.0])).tolist() == [3, 0]
    assert front(np.array([1.0, 1.0]), np.array([2.0, 2.0])).tolist() == [0]
    rows = np.array([[2.0, 2.0], [1.0, 3.0], [2.0, 3.0], [3.0, 1.0], [1.0, 3.0]])
    assert least(rows).tolist() == [1, 0, 3]


def test_designs_are_ranked_by_what_carries_the_rate_for_least():
    def ranked(usd, demanded):
        return rank_at(6.0, Weight(num_devices=3, usd_per_hour=usd, power_w=1.0), EIGHT, demanded)

    assert ranked(None, 0.0) == (-2.0, 3)
    assert ranked(9.0, 7.0) == (1.0, -6.0)
    assert ranked(9.0, 6.0) == (0.0, 0.0, 9.0, -2.0)
    assert ranked(None, 6.0) == (0.0, 1.0, 3, -2.0)


EIGHT = Budget(max_devices=8)


def worker(rate, tp=1, usd=2.0):
    device = SimpleNamespace(power_limit_w=400.0, host_power_w=100.0)
    option = SimpleNamespace(tariff=SimpleNamespace(usd_per_hour=usd), device=device)
    deployment = SimpleNamespace(layout=Layout(tp=tp))
    return Worker(candidate=SimpleNamespace(option=option, deployment=deployment), requests_per_s=rate)


def test_two_pools_by_hand():
    """Two prefill replicas of two devices at 3/s beside three decode ones at 1.5/s: 4.5/s on seven devices."""
    both = Pairing(prefill=worker(3.0, tp=2), num_prefill=2, decode=worker(1.5, usd=5.0), num_decode=3)
    assert both.requests_per_s == 4.5
    assert both.weight == Weight(num_devices=7, usd_per_hour=23.0, power_w=7 * 500.0)
    assert replace(both, decode=worker(1.5, usd=None)).weight.usd_per_hour is None
    best = pairings([worker(3.0, tp=2)], [worker(1.5)], EIGHT)[
        0
    ]  # 3/s on 2 + 2, 6/s on 4 + 4: as much a device, fewer first
    assert (best.num_prefill, best.num_decode) == (1, 2)
    most = pairings([worker(3.0, tp=2)], [worker(1.5)], EIGHT, rate_per_s=5.0)[0]
    assert (most.num_prefill, most.num_decode) == (2, 4)
    assert pairings([worker(3.0, tp=2)], [worker(1.5, tp=2)], Budget(max_devices=3)) == []


def mixer(heads, cache=1.0):
    return SimpleNamespace(num_heads=heads, cache_elements_per_token=cache)


def model_of(*blocks, layers=4, weights="bf16", experts_format=""):
    parts = [SimpleNamespace(mixer=m, experts=x and SimpleNamespace(num_experts=x)) for m, x in blocks]
    return SimpleNamespace(blocks=parts, num_layers=layers, weights_format=weights, experts_format=experts_format)


def test_degrees_of_a_space():
    dense = model_of((mixer(12), 0), (mixer(8), 0))
    assert tensor_degrees(dense, 8) == (1, 2, 4)
    assert tensor_degrees(dense, 3) == (1, 2)
    assert tensor_degrees(model_of((None, 0)), 8) == (1,)
    assert [_powers(n) for n in (0, 1, 4, 7)] == [(1,), (1,), (1, 2, 4), (1, 2, 4)]
    assert list(_expert_degrees(2, 4, 0, Fixed())) == [(1, 1)]
    assert list(_expert_degrees(2, 4, 8, Fixed())) == [(1, 1), (1, 2), (2, 4), (4, 8)]
    assert list(_expert_degrees(2, 4, 12, Fixed())) == [(1, 1), (1, 2), (2, 4)]
    assert list(_expert_degrees(2, 4, 8, Fixed(dp=2))) == [(2, 1), (2, 4)]
    assert list(_expert_degrees(2, 4, 8, Fixed(ep=2))) == [(1, 2), (2, 2), (4, 2)]
    assert _budgets(Fixed(), SimpleNamespace(max_num_batched_tokens=8192)) == (8192, 2048, 4096, 16384)
    assert _budgets(Fixed(max_num_batched_tokens=100), None) == (100,)
    usual = {f.name: f.default for f in fields(Fixed) if f.default is not MISSING}
    assert usual["cp"] == 1
    assert {v for k, v in usual.items() if isinstance(v, int) and k != "cp"} == {0}


def test_layouts_come_with_the_fewest_devices_first(monkeypatch):
    monkeypatch.setattr("orrery.planner.space.why_not", lambda model, layout, copies: layout.pp == 4)
    device = SimpleNamespace(devices_per_node=2)
    dense = model_of((mixer(12), 0), layers=4)
    found = [(x.tp, x.pp) for x in layouts(dense, device, 4, Fixed())]
    assert found == [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert [(x.tp, x.pp) for x in layouts(dense, device, 4, Fixed(tp=4))] == [(4, 1)]
    mixed = model_of((mixer(4), 0), (mixer(4), 8), layers=4)
    found = [(x.tp, x.pp, x.dp, x.ep) for x in layouts(mixed, device, 2, Fixed())]
    assert found == [(1, 1, 1, 1), (2, 1, 1, 1), (2, 1, 1, 2), (1, 1, 2, 2), (1, 2, 1, 1)]


def test_formats_that_are_tried():
    new, old, tiny = (
        SimpleNamespace(dense_flops_per_s=dict.fromkeys(rates, 1.0))
        for rates in (("bf16", "fp16", "fp8", "int8"), ("fp16", "int8"), ("fp16",))
    )
    plain = model_of((mixer(4), 0))
    assert [default_weights(plain, d) for d in (new, old, tiny)] == [("bf16", "fp8"), ("bf16", "int8"), ("bf16",)]
    assert default_weights(model_of((mixer(4), 0), weights="fp8"), old) == ("fp8",)
    assert default_weights(model_of((mixer(4), 0), experts_format="mxfp4"), new) == ("bf16",)
    assert [default_caches(plain, d) for d in (new, old)] == [("bf16", "fp8"), ("fp16",)]
    assert default_caches(model_of((mixer(4), 0), weights="fp16"), new) == ("fp16", "fp8")
    assert default_caches(model_of((mixer(4, 0.0), 0)), new) == ("bf16",)
    assert [wide_format(d) for d in (new, old)] == ["bf16", "fp16"]


def tried(device="a", weights="bf16", kv="bf16", budget=100, **degrees):
    deployment = SimpleNamespace(
        cluster=SimpleNamespace(device=SimpleNamespace(name=device)),
        layout=Layout(**degrees),
        formats=SimpleNamespace(weights=weights, kv=kv),
        max_num_batched_tokens=budget,
    )
    return SimpleNamespace(deployment=deployment)


def test_how_far_two_plans_are_apart():
    """A format 1, a device 3, a degree 1 and a quarter for each doubling, a token budget a quarter."""
    here = tried()
    assert distance(here, tried()) == 0
    assert distance(here, tried(weights="fp8")) == distance(here, tried(kv="fp8")) == 1
    assert distance(here, tried(device="b")) == 3
    assert distance(here, tried(budget=200)) == 0.25
    assert distance(here, tried(tp=2)) == 1.25
    assert distance(tried(tp=8), tried(tp=2, pp=2)) == 1.5 + 1.25
    assert difference(here, tried(device="b", tp=2, kv="fp8", budget=9)) == "device = b, tp = 2, kv = fp8"
    assert difference(here, tried(budget=9)) == "max_num_batched_tokens = 9"
    assert difference(here, here) == "The same"
    near, far = tried(tp=2), tried(tp=4)
    assert nearest_to(here, [far, near]) is near
    assert nearest_to(here, []) is None


def test_what_to_ask_for_instead():
    missed = Infeasible(what="ttft_s over", need=2.0, have=1.5, unit="s", smallest_change="")
    assert _way_out(None, "objective", missed).startswith("Relax ttft_s to 1.53e+03 ms")
    assert "Allow 2 devices" in _way_out(None, "devices", missed)
    assert "FP8 cache" in _way_out(None, "length", missed)
    assert _way_out(None, "memory", missed) == "Choose another device or format."
    assert _way_out(None, "memory", replace(missed, smallest_change="Wait.")) == "Wait."


def operation(**given):
    usual = {"replicas": 2, "concurrency": 7.6, "max_concurrency": 9.0, "ttft_s": 1.0, "tpot_s": 0.1}
    usual |= {"requests_per_s": 4.0, "highest_requests_per_s": 10.0}
    usual |= {"output_tokens_per_s": 1.0, "highest_output_tokens_per_s": 1.0, "memory": None, "candidate": None}
    return Operation(**(usual | given))


def test_one_replica_takes_its_share_of_the_traffic():
    traffic = Traffic(input_tokens=10, output_tokens=20, request_rate_per_s=4.0)
    goal = Goal(objectives=Objectives(), traffic=traffic, max_devices=8)
    open_ = workload_of(goal, operation())
    assert (open_.mode, open_.request_rate_per_s) == ("open", 2.0)
    full = workload_of(goal, operation(requests_per_s=9.9))
    assert (full.mode, full.concurrency, full.num_requests) == ("closed", 8, 8000)
    still = replace(goal, traffic=replace(traffic, request_rate_per_s=0.0))
    assert workload_of(still, operation()).concurrency == 8
    assert workload_of(still, operation(concurrency=0.2)).concurrency == 1
    assert goal.best == "cost"


@dataclass(frozen=True)
class Deployed:
    layout: Layout
    max_num_seqs: int = 0


def test_the_batch_limit_keeps_a_rank_inside_the_objectives():
    for dp, most, seqs in ((2, 9.0, 4), (1, 9.0, 9), (4, 3.0, 1), (1, 900.0, 64)):
        candidate = SimpleNamespace(deployment=Deployed(layout=Layout(dp=dp)))
        memory = SimpleNamespace(max_num_seqs=64)
        assert limited(operation(candidate=candidate, memory=memory, max_concurrency=most)).max_num_seqs == seqs


def test_formats_that_change_answers_are_said():
    def notes(weights, kv):
        formats = SimpleNamespace(weights=weights, kv=kv)
        model = SimpleNamespace(weights_format="bf16")
        deployment = SimpleNamespace(model=model, formats=formats, expert_placement="")
        return quality_notes(SimpleNamespace(deployment=deployment))

    assert notes("bf16", "bf16") == ()
    assert "the checkpoint holds bf16" in notes("fp8", "bf16")[0]
    assert "cache in fp8" in notes("bf16", "fp8")[0]
    ends = Interval(low_80=2.0, high_80=3.0, low_95=1.0, high_95=4.0, because="x")
    scaled = _scaled(ends, 10.0)
    assert (scaled.low_95, scaled.low_80, scaled.high_80, scaled.high_95) == (10.0, 20.0, 30.0, 40.0)


def test_perturbations_by_format():
    layer = SimpleNamespace(perturbations={"a": 7.0}, weight_ratio=2.0, errors={"b": 3.0}, count=4)
    assert [perturbation(layer, f, {"b": 9.0, "c": 0.5}) for f in "abcd"] == [7.0, 6.0, 4.0, 0.0]


def test_a_policy_finds_the_format_of_the_target():
    table = np.array([[1.0, 2.0], [1.0, 2.0]])
    options = Options(
        layers=(),
        formats=("narrow", "wide"),
        perturbation_ratio=np.array([[4.0, 1.0], [9.0, 1.0]]),
        latency_s=table,
        size_bytes=table,
        energy_j=table,
    )
    assert options.uniform("size").tolist() == [2.0, 4.0]
    assert asdict(PolicyKnobs()) == {
        "steps": 300,
        "draws": 64,
        "step_ratio": 0.3,
        "cost_weight_ratio": 20.0,
        "seed": 0,
    }


def test_a_policy_is_drawn_to_the_formats_that_its_limit_leaves():
    """Two layers: narrow ones take 1 s and harm 4 and 9, wide ones take 2 s and harm nothing."""
    made = Problem(
        choices=tuple(Choice(name=name, alternatives=("narrow", "wide")) for name in "ab"),
        metrics={
            "latency": Metric(table=np.array([[1.0, 2.0], [1.0, 2.0]])),
            "score": Metric(table=np.array([[-4.0, 0.0], [-9.0, 0.0]])),
        },
        reference_name="wide",
        reference={"latency": 4.0},
    )

    def taken(limit):
        return by_policy(made, "score", "latency", {"latency": limit}, PolicyKnobs(steps=150)).best.tolist()

    assert taken(2.0) == [[0, 0]]
    assert taken(4.0) == [[1, 1]]
    assert taken(3.0) == [[0, 1]]  # 4 harms less than 9
    tried = by_policy(made, "score", "latency", {}, PolicyKnobs(steps=30, draws=4))
    assert (tried.best.tolist(), tried.num_evaluated) == ([[1, 1]], 120)


def test_divisors_and_names_of_families():
    assert training_space.divisors(12) == [1, 2, 3, 4, 6, 12]
    assert training_space.divisors(36, 9) == [1, 2, 3, 4, 6, 9]
    assert training_space.divisors(1) == [1]
    assert str(Family(tp=2, cp=1, pp=4, dp=3, ep=1, etp=1)) == "tp2 pp4 dp3"
    assert str(Family(tp=1, cp=1, pp=1, dp=1, ep=1, etp=1)) == "one device"


def family(**given):
    return Family(**({"tp": 1, "cp": 1, "pp": 1, "dp": 16, "ep": 1, "etp": 1} | given))


def test_shards_over_all_ranks_or_within_a_node():
    names = training_space.SHARDINGS

    def shards(per_node=8, fixed=None, **given):
        found = training_space._shards(fixed or FixedSettings(), family(**given), per_node)
        return [(names[kind], group, copy) for kind, group, copy in found]

    assert shards() == [
        ("none", 16, 0),
        ("zero1", 16, 0),
        ("zero1", 8, 0),
        ("zero2", 16, 0),
        ("zero2", 8, 0),
        ("zero3", 16, 0),
        ("zero3", 16, 8),
        ("zero3", 8, 0),
    ]
    assert shards(dp=1) == [("none", 1, 0)]
    assert [s for s in shards(pp=2) if s[0] != "none"] == [
        ("zero1", 16, 0),
        ("zero1", 8, 0),
        ("zero3", 16, 0),
        ("zero3", 8, 0),
    ]
    alone = shards(per_node=1)  # a device a node: no copy is nearer than all, and one with all in a node
    assert alone == shards(per_node=16) == [(name, 16, 0) for name in ("none", "zero1", "zero2", "zero3")]
    assert ("zero1", 4, 0) in shards(tp=2)
    assert ("zero1", 8, 0) not in shards(dp=12)
    assert shards(fixed=FixedSettings(sharding="zero1", sharding_group=4)) == [("zero1", 4, 0)]
    assert shards(dp=4, cp=4)[0] == ("none", 16, 0)


def test_recomputation_of_all_or_of_evenly_spaced_layers():
    names = training_space.RECOMPUTES

    def counts(layers, **fixed):
        return [n for kind, n in training_space._recomputes(FixedSettings(**fixed), layers) if names[kind] == "full"]

    assert counts(4) == [0, 1, 2, 3]
    assert counts(70) == [0, *range(2, 70, 2)]
    assert counts(70, recompute_layers=5) == [0, 5]
    assert counts(70, recompute_layers=0) == [0]
    assert counts(70, recompute="none") == []


def test_chunks_of_a_pipeline():
    def pipes(layers, **given):
        fixed = FixedSettings(**given.pop("fixed", {}))
        return list(training_space._pipes(fixed, family(pp=2, dp=8, **given), layers, ("1f1b", "interleaved")))

    assert pipes(6) == [(1, 0), (2, 1), (3, 1), (6, 1)]
    assert pipes(6, fixed={"vp": 3}) == [(3, 0), (3, 1)]
    assert pipes(6, fixed={"schedule": "1f1b"}) == [(1, 0)]
    assert max(v for v, _ in pipes(40)) <= 16
    assert list(training_space._pipes(FixedSettings(), family(), 6, ("1f1b",))) == [(1, 0)]


def test_layouts_near_one_keep_their_batch_and_lose_chunks_with_their_stages(monkeypatch):
    """Of 32 samples over 8 ranks, micro-batches of 1, 2 and 4: 3 is nearest to 4 by ratio."""
    here = TrainingLayout(tp=1, pp=2, dp=8, vp=3, schedule="interleaved", micro_batch=3, first_stage_layers=5)
    cuts = [family(pp=2, dp=8), family(tp=2, dp=8), family(pp=2, tp=2, dp=4)]
    monkeypatch.setattr(nearby, "families", lambda *_: cuts)
    found = list(nearby._candidates(SimpleNamespace(global_batch=32), here, keeps_choices=True))
    assert {x.micro_batch for x in found if x.dp == 8} == {4}
    assert {(x.vp, x.schedule, x.first_stage_layers) for x in found if x.tp == 1} == {
        (vp, schedule, first) for vp, schedule in ((3, "interleaved"), (1, "1f1b")) for first in (0, 5)
    }
    assert {x.vp for x in found if x.pp == 1} == {1}
    assert {x.first_stage_layers for x in found if x.pp == 1} == {0}


def test_how_near_two_layouts_of_a_job_are():
    here = TrainingLayout(tp=2, dp=4, sharding="zero1", micro_batch=1)
    assert nearby._distance(here, here) == 0.0
    assert nearby._distance(here, replace(here, tp=8, dp=1)) == pytest.approx(2 + 0.2)
    assert nearby._distance(here, replace(here, sharding="zero3", micro_batch=4)) == 1.0
    assert nearby._distance_of(family(tp=4), here) == pytest.approx(log2(2) + 0.2)
    assert nearby.changes(here, replace(here, tp=4, dp=2, micro_batch=2)) == ["tp = 4", "micro_batch = 2"]
    easier = list(nearby._easier(replace(here, recompute="selective", micro_batch=4), [1, 2, 4, 8]))
    assert {x.micro_batch for x in easier} == {1, 2, 4}
    assert {x.recompute for x in easier} == {"selective", "full"}
    assert len(easier) == 2 * 3 * 3

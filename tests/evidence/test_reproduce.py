"""Papers re-run by serving: one small case a paper, whose mechanism must point the right way; and their verdicts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from orrery.evidence.paper_file import Claim, get_paper
from orrery.evidence.prediction import predict
from orrery.evidence.verdict import ratio, verdict
from orrery.execution.memory import Infeasible
from orrery.serving.capacity import highest_rate
from orrery.serving.metrics.latencies import latencies
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.distserve import predict as distserve
from orrery_papers.infinite_llm import predict as infinite_llm
from orrery_papers.layered_prefill import predict as layered_prefill
from orrery_papers.layered_prefill.expert_traffic import distinct_experts
from orrery_papers.sarathi_serve import predict as sarathi_serve
from orrery_papers.semi_pd import predict as semi_pd
from orrery_papers.shared.objectives import attained_frac, gap_s, tightest_scale_ratio
from orrery_papers.shared.setup import all_equal, deployment, layout_of, length_of, requests
from orrery_papers.splitwise import predict as splitwise


def claim_of(**changes: object) -> Claim:
    """A claim to judge."""
    base = get_paper("sarathi-serve").claims[0]
    return replace(base, **{"reading": "value", "tolerance_frac": 0.2, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reading", "low", "high", "predicted", "expected"),
    [
        ("value", 2.0, 2.0, 2.39, "repeats"), ("value", 2.0, 2.0, 2.41, "misses"), ("value", 2.0, 2.0, 1.59, "misses"),
        ("value", 1.5, 1.7, 1.6, "repeats"), ("value", 1.5, 1.7, 1.25, "repeats"), ("value", 1.5, 1.7, 1.1, "misses"),
        ("at least", 2.0, 2.0, 9.0, "repeats"), ("at least", 2.0, 2.0, 1.5, "misses"),
        ("less than", 2.0, 2.0, 0.1, "repeats"), ("less than", 2.0, 2.0, 2.5, "misses"),
        ("up to", 2.0, 2.0, 1.0, "misses"), ("about", 0.0, 0.0, 0.04, "repeats"), ("about", 0.0, 0.0, 0.06, "misses"),
        ("value", -1.0, -1.0, -1.1, "repeats"), ("value", -1.0, -1.0, -1.3, "misses"),
    ],
)  # fmt: skip
def test_verdict(reading: str, low: float, high: float, predicted: float, expected: str) -> None:
    assert verdict(claim_of(reading=reading, low=low, high=high), predicted) == expected


@pytest.mark.parametrize(
    ("reading", "predicted", "expected"),
    [
        ("value", 0.989, "repeats"), ("value", 0.985, "misses"), ("value", 0.995, "misses"),
        ("at least", 0.999, "repeats"), ("at least", 0.95, "misses"), ("less than", 0.95, "repeats"),
    ],
)  # fmt: skip
def test_of_a_large_reduction_what_remains_must_be_met(reading: str, predicted: float, expected: str) -> None:
    claim = claim_of(reading=reading, low=0.99, high=0.99, unit="frac", metric="energy_reduction")
    assert verdict(claim, predicted) == expected
    assert verdict(replace(claim, metric="accuracy"), 0.95) == "repeats"


def test_verdict_without_a_prediction_is_what_was_reported() -> None:
    assert verdict(claim_of(), None) == "reported only"


def test_ratio_is_to_the_nearer_end_of_a_range() -> None:
    claim = claim_of(low=2.0, high=4.0)
    assert [ratio(claim, x) for x in (1.0, 3.0, 8.0)] == [0.5, 1.0, 2.0]
    assert math.isnan(ratio(claim_of(low=0.0, high=0.0), 1.0))


@pytest.mark.parametrize("limit", [0.013, 0.9, 3.7, 70.0])
def test_highest_rate_finds_the_limit_inside_and_outside_its_first_bounds(limit: float) -> None:
    found = highest_rate(lambda r: r, lambda r: r, lambda r: r <= limit, 0.5, 4.0)  # type: ignore[arg-type, return-value]
    assert limit / 1.02 <= found <= limit


def test_highest_rate_is_zero_where_nothing_fits() -> None:
    nothing = Infeasible(what="memory", need=2.0, have=1.0, unit="bytes", smallest_change="Use less.")
    assert highest_rate(lambda r: r, lambda _: nothing, lambda _: True, 0.5, 4.0) == 0.0  # type: ignore[arg-type, return-value]


def test_lengths_have_the_stated_quantiles_and_keep_a_mean_that_is_cut() -> None:
    stated = get_paper("sarathi-serve").setups["mistral-7b-chat"]
    drawn = length_of(stated, "input").draw(40_000, np.random.default_rng(0))
    assert np.percentile(drawn, [50, 90]) == pytest.approx([1730, 5696], rel=0.03)
    cut = length_of(get_paper("distserve").setups["longbench-opt-66b"], "input", sigma=0.9, most_tokens=2048)
    assert cut.draw(40_000, np.random.default_rng(0)).mean() == pytest.approx(1738, rel=0.02)


def test_rates_scale_gaps_and_leave_lengths_alone() -> None:
    stated = get_paper("sarathi-serve").setups["mistral-7b-chat"]
    sides = length_of(stated, "input"), length_of(stated, "output")
    slow, quick = (requests(*sides, rate, 50, most_tokens=8192) for rate in (1.0, 4.0))
    assert (slow.input_tokens == quick.input_tokens).all()
    assert (slow.output_tokens == quick.output_tokens).all()
    assert slow.arrive_s == pytest.approx(4.0 * quick.arrive_s)
    assert (slow.input_tokens + slow.output_tokens).max() <= 8192


def test_deployment_shares_the_link_between_machines_among_their_devices() -> None:
    d = deployment(get_paper("distserve").setups["sharegpt-opt-66b"], layout="tp4 pp2")
    assert str(d.layout) == "tp4 pp2" == str(layout_of("tp4 pp2"))
    assert d.cluster.device.scaleout.each_way_bytes_per_s == pytest.approx(25e9 / 8 / 8)


def test_sarathi_chunks_keep_gaps_short_where_prompts_first_stops_answers() -> None:
    setup = get_paper("sarathi-serve").setups["mistral-7b-chat"]
    sent = sarathi_serve.traffic(setup, 1.2, 150)
    gaps: dict[str, float] = {}
    for system in ("sarathi", "vllm", "orca"):
        run = simulate(sarathi_serve.service(setup, system, 512), sent)
        assert not isinstance(run, Infeasible)
        gaps[system] = gap_s(run, 99.0)
    assert gaps["sarathi"] < setup.number("slo_tbt_s") < min(gaps["vllm"], gaps["orca"])


def test_sarathi_chunks_cost_time_and_less_the_longer_they_are() -> None:
    setup = get_paper("sarathi-serve").setups["mistral-7b-chat"]
    short, long = (sarathi_serve.slower_in_chunks(setup, 8192, chunk) for chunk in (512, 2048))
    assert 0.0 < long < short < 1.0


def test_distserve_apart_serves_more_a_device_than_together() -> None:
    """With devices enough for answers; one alone, whose cache is soon full, holds up four for prompts."""
    trial = distserve.Trial.of(get_paper("distserve").setups["sharegpt-opt-13b"], 300)
    together = trial.rate_per_device(distserve.colocated(trial.setup), 0.1)
    apart, lopsided = (
        trial.rate_per_device(distserve.apart(trial.setup, "tp2", "tp1", counts), 0.1) for counts in ((2, 3), (2, 1))
    )
    assert apart > together > lopsided > 0.0


def test_distserve_instances_stay_within_a_node() -> None:
    setup = get_paper("distserve").setups["sharegpt-opt-66b"]
    for prompts, answers, (n, m) in distserve.placements(setup):
        p, d = layout_of(prompts), layout_of(answers)
        assert n * p.tp + m * d.tp <= 8
        assert p.pp == d.pp


def test_tightest_scale_is_where_attainment_is_just_reached() -> None:
    trial = distserve.Trial.of(get_paper("distserve").setups["sharegpt-opt-13b"], 100)
    run = simulate(distserve.colocated(trial.setup), trial.at(2.0))
    assert not isinstance(run, Infeasible)
    scale = tightest_scale_ratio(run, *trial.limits_s, 0.9)
    assert (
        attained_frac(run, *trial.limits_s, scale * 1.0001) >= 0.9 > attained_frac(run, *trial.limits_s, scale * 0.98)
    )


def test_splitwise_apart_starts_sooner_and_layerwise_copies_hide() -> None:
    setup = get_paper("splitwise").setups["two-machines-a100"]
    sent = all_equal(1500, 13, 1.5, 60)
    runs = [simulate(x, sent) for x in (splitwise.together(setup, splitwise.A100), splitwise.apart(setup))]
    together, apart = (splitwise.times(splitwise.must(x)) for x in runs)
    assert np.percentile(apart["ttft"], 90) < np.percentile(together["ttft"], 90)
    assert apart["tbt"].mean() < together["tbt"].mean()
    serial = splitwise.times(splitwise.must(simulate(splitwise.apart(setup, is_layerwise=False), sent)))
    assert serial["e2e"].mean() - apart["e2e"].mean() > 0.5 * splitwise.moved_s(setup)


def test_splitwise_limits_bind() -> None:
    bench = splitwise.Bench(get_paper("splitwise"), count=60)
    setup = bench.setups["iso-power-aa"]
    served = splitwise.together(setup, splitwise.A100, 2, bench.eager)
    idle, full = (splitwise.must(simulate(served, splitwise.traffic(setup, rate, 60))) for rate in (0.01, 50.0))
    assert bench.meets(setup, idle)
    assert not bench.meets(setup, full)


def test_semi_pd_side_by_side_answers_sooner_than_turns() -> None:
    setup = get_paper("semi-pd").setups["llama-sharegpt"]
    sent = semi_pd.traffic(setup, 10.0, 300)
    turns = simulate(semi_pd.service(setup, "prefill-first"), sent)
    split = simulate(semi_pd.service(setup, "semi-pd"), sent)
    assert not isinstance(turns, Infeasible)
    assert not isinstance(split, Infeasible)
    assert gap_s(split, 99.0) < gap_s(turns, 99.0)
    assert split.num_devices == turns.num_devices == 1


def test_layered_prefill_reads_fewer_experts_and_starts_sooner() -> None:
    setup = get_paper("layered-prefill").setups["qwen-arxiv"]
    layered, chunked = (layered_prefill.seen(setup, 1.3, 40, layered=x) for x in (True, False))
    for metric in ("ttft_mean", "e2e_mean", "energy_per_token", "expert_traffic"):
        assert layered_prefill.READ[metric](layered) < layered_prefill.READ[metric](chunked), metric


def test_experts_touched_grow_with_tokens_to_all_of_them() -> None:
    d = deployment(get_paper("layered-prefill").setups["qwen-arxiv"])
    found = distinct_experts(d, np.array([0.0, 1.0, 16.0, 128.0, 8192.0]))
    assert found[0] == 0.0
    assert found[1] == pytest.approx(8.0, rel=0.01)
    assert found[-1] == pytest.approx(128.0, rel=0.01)
    assert (np.diff(found) > 0).all()


def test_infinite_llm_lends_what_one_instance_lacks() -> None:
    setup = get_paper("infinite-llm").setups["pool"]
    long = all_equal(int(1.3 * infinite_llm.instance_tokens(setup)), 20, 1.0, 1)
    assert isinstance(simulate(infinite_llm.pooled(setup, 2, lends=False), long), Infeasible)
    lent = simulate(infinite_llm.pooled(setup, 2), long)
    assert not isinstance(lent, Infeasible)
    assert np.isfinite(latencies(lent).e2el_s).all()


def test_infinite_llm_pools_are_as_long_as_their_parts() -> None:
    found = {p.claim: p.predicted for p in predict(get_paper("infinite-llm"))}
    setup = get_paper("infinite-llm").setups["pool"]
    assert found["context"] * infinite_llm.instance_tokens(setup) == pytest.approx(found["longest-context"])


def test_services_differ_in_nothing_but_the_mechanism() -> None:
    setup = get_paper("semi-pd").setups["llama-sharegpt"]
    whole = semi_pd.service(setup, "prefill-first")
    chunked = semi_pd.service(setup, "chunked-prefill")
    assert isinstance(whole, Service)
    assert isinstance(whole.pools[0], Pool)
    assert whole.pools[0].deployment.layout == chunked.pools[0].deployment.layout
    assert whole.pools[0].deployment.engine.step_s == chunked.pools[0].deployment.engine.step_s

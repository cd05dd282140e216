"""Capacity: the search is a bisection, the queue's end is told from its beginning, and both agree with theory."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import InfeasibleAnswer, estimate
from orrery.scenario.capacity import TOLERANCE, Capacity, find_capacity
from orrery.serving.capacity import WIDENINGS, bisected, is_sustained
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, GAP_DECADES, STEP, TIMELINE, Simulated

ONE = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 60,
    "max_num_seqs": 32,
    "num_requests": 1000,
}


def capacity(**settings):
    found = find_capacity(**ONE | settings)
    assert isinstance(found, Capacity)
    return found


def queue(rate_per_s, served_per_s=1.0, count=2000, seed=0):
    """A queue with one server, exponential gaps and service times (M/M/1), as a finished run."""
    rng = np.random.default_rng(seed)
    arrive_s, each_s = np.cumsum(rng.exponential(1 / rate_per_s, count)), rng.exponential(1 / served_per_s, count)
    finish_s = np.zeros(count)
    free_s = 0.0
    for i in range(count):
        free_s = max(free_s, arrive_s[i]) + each_s[i]
        finish_s[i] = free_s
    ones = np.ones(count, dtype=np.int64)
    return Simulated(
        requests=Requests(arrive_s=arrive_s, input_tokens=ones, output_tokens=ones),
        arrive_s=arrive_s,
        admitted_s=finish_s - each_s,
        first_token_s=finish_s,
        finish_s=finish_s,
        cached_tokens=0 * ones,
        preemptions=0 * ones,
        machine=0 * ones,
        gap_counts=np.zeros(GAP_BINS_PER_DECADE * GAP_DECADES),
        gap_sum_s=0.0,
        gap_squares_s2=0.0,
        timeline_s=np.zeros(1),
        timeline=np.zeros((0, len(TIMELINE))),
        step_log=np.zeros((0, len(STEP))),
        num_steps=count,
        duration_s=float(finish_s[-1]),
        num_machines=1,
        num_devices=1,
        energy_j=0.0,
        kv_capacity_bytes=1.0,
        idle_frac=0.0,
        max_running=1,
        counters={},
    )


@given(st.floats(1e-2, 1e4), st.floats(1e-2, 1e4), st.floats(1.01, 3.0), st.sampled_from([0.01, 0.05]))
def test_bisection_finds_the_edge_wherever_it_begins(edge, low, ratio, tolerance):
    tried = []

    def is_met(rate_per_s):
        tried.append(rate_per_s)
        return rate_per_s <= edge

    best, missed = bisected(is_met, low, low * ratio, tolerance)
    if edge < low / 2**WIDENINGS:
        assert best == 0.0
    elif edge < low * 2.0 ** (WIDENINGS - 1):
        assert best <= edge < missed <= best * (1 + tolerance)
        assert len(tried) == len(set(tried)) < 30


def test_a_search_that_begins_nowhere_is_refused():
    with pytest.raises(ValueError, match="0 < low < high"):
        bisected(lambda rate: True, 2.0, 1.0, 0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_queue_grows_exactly_when_more_arrive_than_are_served(seed):
    assert is_sustained(queue(0.8, seed=seed, count=8000))
    assert not is_sustained(queue(1.1, seed=seed, count=8000))


def test_requests_that_are_refused_do_not_make_a_queue():
    run = queue(0.5)
    for column in (run.admitted_s, run.first_token_s, run.finish_s):
        column[100:1900:2] = np.nan
    assert is_sustained(run)
    run.finish_s[:] = np.nan
    assert not is_sustained(run)


@pytest.mark.parametrize("more", [{}, {"max_num_seqs": 128, "tp": 2}, {"input_tokens": 2000, "output_tokens": 20}])
def test_without_objectives_it_is_what_the_closed_form_sustains(more):
    inputs = ONE | {"num_requests": 3000} | more
    found = capacity(**inputs)
    infeasible = estimate(**{k: v for k, v in inputs.items() if k != "num_requests"}, rate=1e6)
    assert isinstance(infeasible, InfeasibleAnswer)
    assert found.requests_per_s == pytest.approx(infeasible.infeasible.have, rel=0.1)
    assert found.limited_by in ("token budget / compute", "batch slots", "kv cache")
    assert found.answer.attained.worst == ""


def test_the_probes_bracket_the_answer():
    found = capacity(slo=["ttft:100", "tpot:12"])
    rates = [p.requests_per_s for p in found.probes]
    assert rates == sorted(rates)
    assert max(p.requests_per_s for p in found.probes if p.is_met) == found.requests_per_s
    above = min(p.requests_per_s for p in found.probes if not p.is_met)
    assert found.requests_per_s < above <= found.requests_per_s * (1 + TOLERANCE) * (1 + 1e-9)
    assert found.limited_by in ("ttft", "tpot")
    assert found.answer.scenario.rate == found.requests_per_s


def test_looser_objectives_and_more_replicas_take_at_least_as_much():
    strict, loose = capacity(slo=["tpot:9"]), capacity(slo=["tpot:12"])
    assert strict.requests_per_s < loose.requests_per_s <= capacity().requests_per_s * (1 + TOLERANCE)
    assert strict.limited_by == "tpot"
    all_of_them = capacity(slo=["tpot:9"], attainment=0.99)
    assert all_of_them.requests_per_s <= strict.requests_per_s
    two = capacity(slo=["tpot:9"], replicas=2)
    assert two.requests_per_s > 1.7 * strict.requests_per_s
    assert two.requests_per_s_per_device == two.requests_per_s / 2


def test_a_percentile_is_an_objective():
    found = capacity(slo=["p99_ttft:80"])
    assert found.limited_by == "p99_ttft"
    (one,) = found.answer.attained.percentiles
    assert one.value_s <= 0.08
    assert one.attained_frac >= 0.985
    assert capacity(slo=["p50_ttft:80"]).requests_per_s > found.requests_per_s


def test_traces_and_conversations_have_a_capacity():
    no_lengths = {"input_tokens": None, "output_tokens": None}
    trace = capacity(trace="chat", slo=["ttft:500"], **no_lengths)
    assert 1 < trace.requests_per_s < 200
    arrive_s = trace.answer.simulated.arrive_s
    assert (arrive_s.size - 1) / (arrive_s[-1] - arrive_s[0]) == pytest.approx(trace.requests_per_s, rel=0.05)
    talks = capacity(turns=3, think_s=2)
    assert 1 < talks.requests_per_s < 200


def test_the_json_is_the_run_at_the_capacity_and_the_search():
    found = capacity(slo=["tpot:10"])
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["request_rate"] == plain["capacity"]["requests_per_s"] == found.requests_per_s
    assert plain["slo_attainment"] >= 0.9
    assert plain["slo_is_met"]
    assert plain["capacity"]["limited_by"] == "tpot"
    assert {"requests_per_s", "attained_frac", "goodput_requests_per_s", "p99_ttft_s", "p99_tpot_s"} <= plain[
        "capacity"
    ]["probes"][0].keys()


def test_what_even_a_trickle_misses_is_infeasible_with_numbers():
    found = find_capacity(**ONE, slo=["tpot:1"])
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.need == 0.001
    assert 0.002 < found.infeasible.have < 0.02
    enough = found.infeasible.smallest_change.split()[1]
    assert capacity(slo=[enough]).requests_per_s > 0


def test_a_model_that_does_not_fit_is_infeasible():
    found = find_capacity(**ONE | {"model": "llama-3.1-405b"})
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.unit == "bytes"


def test_requests_that_never_fit_are_named_and_not_waited_for():
    long = {"model": "llama-3.1-70b", "tp": 2, "input_tokens": 18_000, "input_tokens_std": 9000, "num_requests": 200}
    found = find_capacity(**ONE | long, slo=["ttft:90000"])
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.what == "share of the requests that fit into the cache"
    assert found.infeasible.have < found.infeasible.need == 0.9


def test_a_closed_loop_has_no_rate_to_find():
    with pytest.raises(ScenarioError, match="leave concurrency out"):
        find_capacity(**ONE, concurrency=4)


def test_a_given_rate_and_few_requests_are_said():
    found = capacity(rate=3.0, num_requests=100)
    message = "\n".join(found.answer.notes)
    assert "rate: 3 requests/s is not used" in message
    assert "num_requests: 100 do not fill" in message

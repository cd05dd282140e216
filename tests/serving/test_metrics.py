"""What a simulated run tells, on runs small enough to work out, and on queues with a known answer."""

import dataclasses
import json
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.serving.metrics import About, result_json, summary
from orrery.serving.metrics.distribution import CURVE_SHARES, distribution, from_gaps
from orrery.serving.metrics.intervals import mean_bounds, tail_bounds
from orrery.serving.metrics.over_time import over_time
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, GAP_DECADES, GAP_LEAST_S, STEP, TIMELINE, Simulated

VLLM_KEYS = {
    "date",
    "endpoint_type",
    "backend",
    "label",
    "model_id",
    "tokenizer_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "duration",
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "total_token_throughput",
    "max_output_tokens_per_s",
    "max_concurrent_requests",
    *(f"{w}_{m}_ms" for m in ("ttft", "tpot", "itl", "e2el") for w in ("mean", "median", "std", "p50", "p90", "p99")),
}
SERVICE_S, RATE_PER_S = 0.1, 7.0
BINS = GAP_BINS_PER_DECADE * GAP_DECADES


def histogram(gaps_s, weights):
    """Gaps as the simulator counts them."""
    places = np.floor(np.log10(gaps_s / GAP_LEAST_S) * GAP_BINS_PER_DECADE).astype(np.int64)
    return np.bincount(np.clip(places, 0, BINS - 1), weights=weights, minlength=BINS)


def run_of(arrive_s, admitted_s, first_s, finish_s, outputs, **others):
    """A run with those times; idle machines unless ``others`` says more."""
    n = len(arrive_s)
    arrive_s, admitted_s, first_s, finish_s = (
        np.asarray(c, dtype=float) for c in (arrive_s, admitted_s, first_s, finish_s)
    )
    outputs = np.asarray(outputs, dtype=np.int64)
    gaps = np.where(outputs > 1, (finish_s - first_s) / np.maximum(outputs - 1, 1), np.nan)
    has = np.isfinite(gaps) & (gaps > 0)
    weights = (outputs - 1.0)[has]
    zeros, inputs = np.zeros(n, dtype=np.int64), np.full(n, 100, dtype=np.int64)
    fields = {
        "requests": Requests(arrive_s=arrive_s, input_tokens=inputs, output_tokens=outputs),
        "arrive_s": arrive_s,
        "admitted_s": admitted_s,
        "first_token_s": first_s,
        "finish_s": finish_s,
        "cached_tokens": zeros + 25,
        "preemptions": zeros,
        "machine": zeros,
        "gap_counts": histogram(gaps[has], weights),
        "gap_sum_s": float(weights @ gaps[has]),
        "gap_squares_s2": float(weights @ gaps[has] ** 2),
        "timeline_s": np.zeros(1),
        "timeline": np.zeros((0, len(TIMELINE))),
        "step_log": np.zeros((0, len(STEP))),
        "num_steps": 0,
        "duration_s": max([0.0, *(finish_s[np.isfinite(finish_s)] - arrive_s.min())]),
        "num_machines": 1,
        "num_devices": 1,
        "energy_j": 1000.0,
        "kv_capacity_bytes": 1e9,
        "idle_frac": 0.0,
        "max_running": 10,
        "counters": {},
    } | others
    return Simulated(**fields)


def with_timeline(width_s=1.0, **columns):
    """A run whose timeline has those columns, means and not integrals for the ones over time."""
    size = len(next(iter(columns.values())))
    table = np.zeros((size, len(TIMELINE)))
    for name, values in columns.items():
        is_integral = name in ("running", "waiting", "kv_bytes", "busy_s")
        table[:, TIMELINE.index(name)] = np.asarray(values) * (width_s if is_integral else 1.0)
    edges = np.arange(size + 1) * width_s
    return run_of([0.0], [0.0], [0.1], [float(edges[-1])], [10], timeline=table, timeline_s=edges, max_running=10)


@pytest.fixture(scope="module")
def queue():
    """5,000 requests, one at a time, each prompt in exactly 0.1 s: an M/D/1 queue."""
    rng = np.random.default_rng(11)
    n = 5000
    arrive = np.cumsum(rng.exponential(1 / RATE_PER_S, n))
    arrive -= arrive[0]
    turns = np.arange(n) * SERVICE_S
    start = np.maximum.accumulate(arrive - turns) + turns
    outputs = rng.integers(1, 200, n)
    first = start + SERVICE_S
    return run_of(arrive, start, first, first + rng.uniform(0.01, 0.02, n) * (outputs - 1), outputs)


def test_the_wait_is_that_of_theory_within_its_own_interval(queue):
    load = RATE_PER_S * SERVICE_S
    theory_s = load * SERVICE_S / (2 * (1 - load)) + SERVICE_S
    found = summary(queue, {})
    low, high = found.confidence_95["mean_ttft_s"]
    assert low < theory_s < high
    assert found.ttft.mean_s == pytest.approx(theory_s, rel=0.1)


def test_distributions_are_numpys(queue):
    found = summary(queue, {}, percentiles=(50, 90, 99.9))
    ttft, e2el = queue.first_token_s - queue.arrive_s, queue.finish_s - queue.arrive_s
    outputs = queue.requests.output_tokens
    long = outputs > 1
    columns = {
        "ttft": ttft,
        "e2el": e2el,
        "ntpot": e2el / outputs,
        "tpot": (queue.finish_s - queue.first_token_s)[long] / (outputs[long] - 1),
    }
    for name, values in columns.items():
        one = getattr(found, name)
        np.testing.assert_allclose(one.percentiles_s, np.percentile(values, (50, 90, 99.9)), rtol=1e-12)
        assert (one.mean_s, one.std_s) == pytest.approx((values.mean(), values.std()))


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=60), st.floats(0, 100))
def test_percentiles_of_few_values_are_numpys(values, percent):
    found = distribution(np.array(values), (percent,))
    assert found.percentile_s(percent) == pytest.approx(np.percentile(values, percent), rel=1e-9)
    assert found.std_s == pytest.approx(np.std(values), rel=1e-6, abs=1e-9)


@given(st.lists(st.tuples(st.floats(2e-6, 9e3), st.integers(1, 50)), min_size=1, max_size=40))
def test_percentiles_of_counted_gaps_are_right_to_a_bin(pairs):
    gaps, weights = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=float)
    each = np.repeat(gaps, weights.astype(int))
    found = from_gaps(histogram(gaps, weights), float(each.sum()), float(each @ each), (50, 99))
    assert found.count == each.size
    assert found.mean_s == pytest.approx(each.mean())
    width = 10 ** (1 / GAP_BINS_PER_DECADE)
    for percent in (50, 99):
        low, high = (np.percentile(each, percent, method=m) for m in ("lower", "higher"))
        assert low / width**1.01 <= found.percentile_s(percent) <= high * width**1.01


def test_goodput_counts_what_meets_every_limit_of_all_that_was_sent():
    run = run_of([0, 0, 0, 0], [0, 0, 0, np.nan], [0.5, 1.0, 0.2, np.nan], [2.5, 3.0, 9.2, np.nan], [3, 3, 10, 5])
    one = summary(run, {"ttft": 0.5, "tpot": 1.0}).goodput  # tpot of the three: exactly 1 s
    assert (one.attained_frac, one.attained_by_metric) == (0.5, {"ttft": 0.5, "tpot": 0.75})
    assert one.requests_per_s == pytest.approx(2 / 9.2)
    at_one = one.requests_per_s_at_scale[20]
    assert (at_one, one.requests_per_s_at_scale[-1]) == pytest.approx((2 / 9.2, 3 / 9.2))
    assert summary(run, {}).goodput is None
    with pytest.raises(ScenarioError, match="write one of ttft, tpot, e2el"):
        summary(run, {"itl": 1.0})


def test_an_answer_of_one_token_has_no_tpot_but_can_be_good():
    run = run_of([0, 0], [0, 0], [0.1, 0.1], [0.1, 2.1], [1, 3])
    found = summary(run, {"tpot": 0.5})
    assert (found.tpot.count, found.tpot.mean_s, found.goodput.attained_frac) == (1, pytest.approx(1.0), 0.5)


def test_refused_requests_are_failed_and_in_no_latency():
    run = run_of([0, 1], [0, np.nan], [1, np.nan], [3, np.nan], [5, 7])
    found = summary(run, {})
    assert (found.completed, found.failed, found.input_tokens, found.output_tokens) == (1, 1, 100, 5)
    assert (found.e2el.count, found.e2el.mean_s, found.prefix_hit_rate_frac) == (1, 3.0, 0.25)
    answer = result_json(run, found, About(model_id="m"), detailed=True)
    assert (answer["ttfts"], answer["output_lens"], answer["latencies"]) == ([1.0, 0.0], [5, 0], [3.0, 0.0])
    assert [bool(totals) for totals in answer["errors"]] == [False, True]


def test_nothing_finished_is_said_with_nulls():
    run = run_of([0.0], [np.nan], [np.nan], [np.nan], [5])
    answer = result_json(run, summary(run, {"ttft": 1.0}), About(model_id="m", usd_per_s=1.0), detailed=True)
    assert answer["p99_ttft_ms"] is answer["usd_per_million_tokens"] is answer["energy_j_per_output_token"] is None
    assert (answer["completed"], answer["request_throughput"], answer["slo_attainment"]) == (0, 0.0, 0.0)
    json.dumps(answer, allow_nan=False)


def test_warm_up_is_left_out_of_latencies_only(queue):
    whole, late = summary(queue, {"ttft": 0.2}), summary(queue, {"ttft": 0.2}, warmup_frac=0.4)
    ttft = (queue.first_token_s - queue.arrive_s)[2000:]
    assert late.ttft.mean_s == pytest.approx(ttft.mean())
    assert late.goodput.attained_frac == pytest.approx(float((ttft <= 0.2).mean()))
    assert (late.requests_per_s, late.output_tokens) == (whole.requests_per_s, whole.output_tokens)
    with pytest.raises(ValueError, match="from 0 up to 1"):
        summary(queue, {}, warmup_frac=1.0)


def test_the_parts_of_the_latency_add_up(queue):
    parts = summary(queue, {}).breakdown
    assert parts.prefill_s == pytest.approx(SERVICE_S)
    assert parts.queue_s + parts.prefill_s + parts.decode_s == pytest.approx(
        float((queue.finish_s - queue.arrive_s).mean())
    )


def test_the_busiest_second():
    # 10 tokens from 0.5 s to 3.5 s after the first one at 0.5 s; 4 tokens inside second 2; one token in second 5
    run = run_of([0, 1.9, 5], [0, 1.9, 5], [0.5, 2.0, 5.5], [3.5, 2.75, 5.5], [10, 5, 1])
    found = summary(run, {})
    assert found.max_output_tokens_per_s == pytest.approx(3 + 1 + 4)
    assert found.max_concurrent_requests == 2


@given(st.lists(st.tuples(st.floats(0.01, 40), st.floats(0, 9), st.integers(1, 60)), min_size=1, max_size=30))
def test_every_token_lies_in_some_second(rows):
    first = np.array([r[0] for r in rows])
    outputs = np.array([r[2] for r in rows])
    last = np.where(outputs > 1, first + np.array([r[1] for r in rows]), first)
    found = summary(run_of(np.zeros(len(rows)), first, first, last, outputs), {})
    fine = np.concatenate(
        [
            np.append(a, a + (np.arange(400 * (n - 1)) + 0.5) / (400 * (n - 1)) * (b - a))
            for a, b, n in zip(first, last, outputs, strict=True)
        ]
    )
    weights = np.concatenate([np.append(1.0, np.full(400 * (n - 1), 1 / 400)) for n in outputs])
    assert found.max_output_tokens_per_s == pytest.approx(np.bincount(fine.astype(int), weights).max(), abs=0.6)


def test_the_answer_has_vllms_keys(queue):
    found = summary(queue, {"ttft": 0.3})
    answer = result_json(queue, found, About(model_id="m", request_rate_per_s=7.0, usd_per_s=0.002))
    assert answer.keys() >= VLLM_KEYS
    assert answer["mean_ttft_ms"] == pytest.approx(1e3 * found.ttft.mean_s)
    assert answer["request_rate"] == 7.0
    assert result_json(queue, found, About(model_id="m"))["request_rate"] == "inf"
    assert answer["usd_per_million_tokens"] == pytest.approx(0.002 / answer["output_throughput"] * 1e6)
    assert answer["energy_j_per_output_token"] == pytest.approx(1000 / answer["total_output_tokens"])
    assert len(json.dumps(answer, allow_nan=False)) < 40_000
    detailed = result_json(queue, found, About(model_id="m"), detailed=True)
    assert {len(detailed[k]) for k in ("input_lens", "output_lens", "ttfts", "start_times", "latencies")} == {5000}


def mm1_waits(rng, count, load, settling=2000):
    """Waits of an M/M/1 queue with unit service time, by Lindley's recursion."""
    steps = rng.exponential(1.0, count + settling) - rng.exponential(1 / load, count + settling)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return (walk - np.minimum.accumulate(walk))[settling : settling + count]


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng, load, runs = np.random.default_rng(5), 0.5, 300
    mean_s, tail_s = load / (1 - load), math.log(load / 0.01) / (1 - load)
    held = {"mean": 0, "tail": 0, "naive": 0}
    for _ in range(runs):
        waits = mm1_waits(rng, 10_000, load)
        low, high = mean_bounds(waits)
        held["mean"] += low <= mean_s <= high
        low, high = tail_bounds(waits, np.quantile(waits, CURVE_SHARES)) or (math.nan, math.nan)
        held["tail"] += low <= tail_s <= high
        held["naive"] += abs(waits.mean() - mean_s) <= 1.96 * waits.std() / 100
    assert 0.9 <= held["mean"] / runs <= 0.99
    assert 0.85 <= held["tail"] / runs <= 0.99
    assert held["naive"] / runs < 0.6  # what batches are for


def test_too_few_requests_have_no_interval(queue):
    def first(count):
        columns = ("arrive_s", "admitted_s", "first_token_s", "finish_s", "cached_tokens", "preemptions", "machine")
        r = queue.requests
        cut = {c: getattr(queue, c)[:count] for c in columns}
        requests = Requests(
            arrive_s=r.arrive_s[:count], input_tokens=r.input_tokens[:count], output_tokens=r.output_tokens[:count]
        )
        return summary(dataclasses.replace(queue, requests=requests, **cut), {}).confidence_95

    assert first(190) is None
    assert set(first(1000)) == {"mean_ttft_s", "mean_tpot_s", "mean_e2el_s"}
    assert {"p99_tpot_s", "p99_e2el_s"} <= set(first(5000))


@pytest.mark.parametrize(
    ("columns", "limit", "start_s"),
    [
        ({"running": [1, 2, 3]}, "nothing", None),
        ({"kv_bytes": [1e8, 9.6e8, 9.9e8], "running": [1, 9, 9], "waiting": [0, 0, 5]}, "kv cache", 1.0),
        ({"preemptions": [0, 0, 1], "running": [1, 9, 10]}, "kv cache", 2.0),
        ({"kv_bytes": [8e8, 8e8, 8e8], "running": [2, 2, 2], "waiting": [0, 3, 3]}, "kv cache", 1.0),
        ({"kv_bytes": [8e8, 8e8, 8e8], "running": [8, 8, 8], "waiting": [0, 3, 3]}, "nothing", None),
        ({"running": [5, 9.6, 10], "waiting": [0, 0, 9], "busy_s": [0.5, 0.9, 1.0]}, "batch slots", 1.0),
        ({"running": [5, 6, 6], "waiting": [0, 2, 9], "busy_s": [0.5, 0.9, 1.0]}, "token budget / compute", 2.0),
        ({"running": [5, 6, 6], "waiting": [0, 0.5, 0.5], "busy_s": [1.0, 1.0, 1.0]}, "nothing", None),
    ],
)
def test_what_saturated_first(columns, limit, start_s):
    found = summary(with_timeline(**columns), {}).saturated
    assert (found.limit, found.start_s) == (limit, start_s)


def test_means_over_time_and_joining_bins():
    rng = np.random.default_rng(3)
    run = with_timeline(
        width_s=0.5,
        running=rng.uniform(0, 10, 1003),
        kv_bytes=rng.uniform(0, 1e9, 1003),
        steps=rng.integers(1, 9, 1003),
        busy_s=rng.uniform(0, 1, 1003),
        energy_j=rng.uniform(0, 50, 1003),
        decode_tokens=rng.integers(0, 99, 1003),
        arrivals=rng.integers(0, 5, 1003),
        preemptions=rng.integers(0, 2, 1003),
    )
    fine, column = over_time(run), {name: run.timeline[:, i] for i, name in enumerate(TIMELINE)}
    coarse = fine.coarser()
    assert (coarse.start_s.size, coarse.start_s[0]) == (200, 0.0)
    for name, total in (
        ("running_requests", column["running"]),
        ("output_tokens_per_s", column["decode_tokens"]),
        ("power_w", column["energy_j"]),
        ("arrivals_rate_per_s", column["arrivals"]),
        ("busy_frac", column["busy_s"]),
        ("kv_use_frac", column["kv_bytes"] / 1e9),
    ):
        assert getattr(coarse, name) @ coarse.width_s == pytest.approx(total.sum()), name
    assert coarse.num_preemptions.sum() == column["preemptions"].sum()
    assert (coarse.busy_frac * coarse.width_s / coarse.step_s).sum() == pytest.approx(column["steps"].sum())
    found = summary(run, {})
    assert found.kv_use_peak_frac == pytest.approx(fine.kv_use_frac.max())
    assert found.running_mean_requests == pytest.approx(column["running"].sum() / 501.5)


def test_order_of_columns_does_not_matter_to_numbers(queue):
    """Followers stand behind their predecessor and may come later than the next in line."""
    order = np.random.default_rng(2).permutation(5000)
    columns = ("arrive_s", "admitted_s", "first_token_s", "finish_s", "cached_tokens", "preemptions", "machine")
    r = queue.requests
    mixed = dataclasses.replace(
        queue,
        **{c: getattr(queue, c)[order] for c in columns},
        requests=Requests(
            arrive_s=r.arrive_s[order], input_tokens=r.input_tokens[order], output_tokens=r.output_tokens[order]
        ),
    )
    one, two = summary(queue, {"ttft": 0.2}), summary(mixed, {"ttft": 0.2})
    assert one.confidence_95 == two.confidence_95
    assert one.goodput.attained_frac == two.goodput.attained_frac


@pytest.mark.bench
def test_a_million_requests_take_less_than_half_a_second():
    rng, n = np.random.default_rng(1), 1_000_000
    arrive = np.cumsum(rng.exponential(0.1, n))
    outputs = rng.integers(1, 500, n)
    first = arrive + rng.exponential(0.5, n)
    run = run_of(arrive, arrive, first, first + 0.02 * (outputs - 1), outputs)
    took = []
    for _ in range(3):
        start = time.perf_counter()
        result_json(run, summary(run, {"ttft": 1.0, "tpot": 0.05}), About(model_id="m"))
        took.append(time.perf_counter() - start)
    print(f"metrics of a million requests: {min(took):.2f} s")
    assert min(took) < 0.4

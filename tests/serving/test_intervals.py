"""Intervals of one answer hold together, and by how much: small cases by hand, and identities on drawn ones."""

from dataclasses import replace
from itertools import pairwise
from math import exp, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.cost import Interval, Spread
from orrery.catalog.devices import get_device
from orrery.execution.memory import Infeasible
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.extrapolation import ExtrapolationShare, bounds_of, shared_frac, wider_by
from orrery.serving.intervals import (
    ENDS,
    OTHER_END,
    Bounds,
    Factors,
    Figures,
    difference_interval,
    joint,
    queue_ratio,
    quotient,
    ratios_of,
)
from orrery.serving.workload import Workload


def spread(half, far=None):
    """A spread whose 80 % ends are 1 / half and half, and 95 % ends 1 / far and far."""
    far = far or half**2
    return Spread(low_80_ratio=1 / half, high_80_ratio=half, low_95_ratio=1 / far, high_95_ratio=far, because="test")


FACTORS = Factors(pace=spread(1.25), first=spread(2.0), power=spread(1.1))
FIGURES = Figures(ttft_s=0.2, tpot_s=0.01, latency_s=1.19, requests_per_s=8.0, power_w=600.0, steps=99.0)
VALUES = {
    "ttft_s": 0.2,
    "tpot_s": 0.01,
    "latency_s": 1.19,
    "requests_per_s": 8.0,
    "output_tokens_per_s": 800.0,
    "power_w": 600.0,
    "energy_j_per_token": 0.75,
}


def test_two_factors_by_hand():
    found = joint(VALUES, FIGURES, FACTORS, Bounds())
    assert (found["tpot_s"].low_80, found["tpot_s"].high_80) == pytest.approx((0.008, 0.0125))
    assert (found["ttft_s"].low_80, found["ttft_s"].high_80) == pytest.approx((0.1, 0.4))
    # a request: 0.1 + 99 x 0.008 = 0.892 s, and 0.4 + 99 x 0.0125 = 1.6375 s
    assert (found["latency_s"].low_80, found["latency_s"].high_80) == pytest.approx((0.892, 1.6375))
    # Little: 8 x 1.19 = 9.52 in flight whatever the ends are
    assert found["requests_per_s"].low_80 == pytest.approx(9.52 / 1.6375)
    assert found["requests_per_s"].high_80 == pytest.approx(9.52 / 0.892)
    # joules a token: ln 1.1 = 0.09531 and ln(1.6375 / 1.19) = 0.31922 join to 0.33314
    assert found["energy_j_per_token"].high_80 == pytest.approx(0.75 * exp(0.33314), rel=1e-4)


def test_what_waits_for_a_slot_goes_at_the_machines_pace():
    found = ratios_of(replace(FIGURES, waiting_s=0.15), FACTORS, Bounds())
    assert found["ttft_s"].high_80_ratio == pytest.approx((0.15 * 1.25 + 0.05 * 2.0) / 0.2)


def test_bounds_cut_ends_and_never_values():
    bounds = Bounds(least_tpot_s=0.009, least_ttft_s=0.15, least_power_w=590.0, most_power_w=610.0)
    found = joint(VALUES, FIGURES, FACTORS, bounds)
    assert found["tpot_s"].low_80 == pytest.approx(0.009)
    assert found["ttft_s"].low_80 == pytest.approx(0.15)
    assert (found["power_w"].low_80, found["power_w"].high_80) == pytest.approx((590.0, 610.0))
    assert found["latency_s"].low_80 == pytest.approx(0.15 + 99 * 0.009)
    beyond = ratios_of(FIGURES, FACTORS, Bounds(least_tpot_s=0.02, most_power_w=500.0))
    assert beyond["tpot_s"].low_80_ratio == 1.0, "a value below the bound, as speculation makes them, is not moved"
    assert beyond["power_w"].high_80_ratio == 1.0


def test_a_given_rate_has_no_interval_and_a_backlog_has():
    served = ratios_of(replace(FIGURES, load_frac=0.5), FACTORS, Bounds())
    assert not {"requests_per_s", "output_tokens_per_s", "total_tokens_per_s"} & set(served)
    assert served["energy_j_per_token"] == served["power_w"]
    late = ratios_of(replace(FIGURES, load_frac=2.0), FACTORS, Bounds())
    assert late["requests_per_s"].high_80_ratio == pytest.approx(1.25)


def test_a_queue_by_hand():
    # half loaded, a quarter slower: 0.5 / (1 - 0.625) = 1.3333 times the wait, which is half of the time
    assert queue_ratio(0.5, 1.25) == pytest.approx(0.5 + 0.5 * 0.5 / 0.375)
    assert queue_ratio(0.5, 0.8) == pytest.approx(0.5 + 0.5 * 0.5 / 0.6)
    assert queue_ratio(0.9, 1.25) == pytest.approx(0.1 + 0.9 * 30.0), "beyond saturation"
    assert queue_ratio(0.0, 1.25) == queue_ratio(0.7, 1.0) == 1.0
    # twice too many: the backlog's wait goes as 1 - 1 / 2 = 0.5, a quarter slower as 1 - 1 / 2.5 = 0.6
    assert queue_ratio(2.0, 1.25) == pytest.approx(0.6 / 0.5)


@given(load=st.floats(0.05, 0.84), more=st.floats(1.01, 1.15))
def test_ends_move_apart_as_saturation_nears(load, more):
    now, nearer = (ratios_of(replace(FIGURES, load_frac=x), FACTORS, Bounds())["ttft_s"] for x in (load, load * more))
    assert nearer.high_80_ratio > now.high_80_ratio
    assert nearer.low_80_ratio < now.low_80_ratio


def test_a_quotient_adds_half_widths_as_squares():
    found = quotient(spread(exp(0.3)), spread(exp(0.4)))
    assert log(found.high_80_ratio) == pytest.approx(0.5)
    assert log(found.low_80_ratio) == pytest.approx(-0.5)
    lone = Spread(low_80_ratio=1.0, high_80_ratio=exp(0.4), low_95_ratio=1.0, high_95_ratio=exp(0.4))
    assert quotient(spread(1.0), lone).low_80_ratio == pytest.approx(exp(-0.4)), "more tokens, fewer joules"
    assert quotient(spread(1.0), lone).high_80_ratio == 1.0


def test_a_difference_of_designs_that_share_errors_is_narrower_than_either():
    a, b = (spread(exp(0.2), exp(0.4)).around(x) for x in (2.0, 3.0))
    assert [difference_interval(2.0, a, 3.0, b, shared_frac=s).high_80 for s in (0.0, 0.75, 1.0)] == pytest.approx(
        [1.5 * exp(0.2 * sqrt(2.0)), 1.5 * exp(0.2 * sqrt(0.5)), 1.5]
    )
    near = difference_interval(2.0, a, 3.0, b, shared_frac=0.75)
    assert near.high_80 / 1.5 < a.high_80 / 2.0
    assert near.low_80 / 1.5 > a.low_80 / 2.0


def test_the_ends_of_a_difference_are_opposite_ends():
    a = Interval(low_80=1.0, high_80=1.0, low_95=0.5, high_95=1.0)
    b = Interval(low_80=1.0, high_80=2.0, low_95=1.0, high_95=2.0)
    found = difference_interval(1.0, a, 1.0, b, shared_frac=0.0)
    assert (found.low_80, found.high_80) == pytest.approx((1.0, 2.0))
    assert found.high_95 == pytest.approx(exp(log(2.0) * sqrt(2.0))), "b at its highest against a at its lowest"


def test_doubt_widens_by_its_share():
    known = ExtrapolationShare(borrowed_frac=0.0, outside_frac=0.0, examples=())
    assert wider_by(known, has_version=True) == (1.0, "")
    factor, why = wider_by(ExtrapolationShare(borrowed_frac=0.5, outside_frac=0.2, examples=()), has_version=False)
    assert factor == pytest.approx(1.3 * 1.1 * 1.25)
    assert "related devices" in why
    assert "version" in why


def test_weights_are_read_once_a_token(deploy):
    deployment = deploy(device="h100-sxm", tp=4)
    found = bounds_of(deployment, Workload(mode="closed", input_tokens=1000, output_tokens=100, concurrency=4))
    board = get_device("h100-sxm")
    # Llama-3.1-70B: 70.5537e9 parameters in BF16 less the 1.0507e9 of the token table, on four boards
    bandwidth = board.memory_bandwidth_bytes_per_s
    assert found.least_tpot_s == pytest.approx(2 * (70.5537e9 - 1.0507e9) / (4 * bandwidth), rel=1e-4)
    # 2 flops for each of 68.4523e9 parameters of the blocks and each token, at 989.4 Tflop/s on four boards
    assert found.least_ttft_s == pytest.approx(2 * 68.4523e9 * 1000 / (4 * 989.4e12), rel=2e-3)
    assert (found.least_power_w, found.most_power_w) == (4 * board.idle_power_w, 4 * board.power_limit_w)


def test_designs_share_errors_on_one_engine_and_generation_only(deploy):
    one = deploy(tp=4)
    assert shared_frac(one, deploy(tp=8)) == shared_frac(one, deploy(model="meta-llama/Llama-3.1-8B")) > 0.5
    assert shared_frac(one, deploy(engine="sglang", tp=4)) == 0.0
    assert shared_frac(one, deploy(device="b200", tp=4)) == 0.0


def test_an_unsaid_version_is_said_loudly_and_widens(deploy):
    from orrery.catalog.engines import get_engine

    plain = deploy(model="meta-llama/Llama-3.1-8B")
    totals = replace(plain, engine=replace(plain.engine, version="0.14"))
    workload = Workload(mode="closed", input_tokens=500, output_tokens=100, concurrency=8)
    blank, description = estimate(plain, workload), estimate(totals, workload)
    assert isinstance(blank, Estimate)
    assert isinstance(description, Estimate)
    assert get_engine("vllm", "", plain.cluster.device).version == ""
    assert any("ENGINE VERSION NOT GIVEN" in note for note in blank.notes)
    assert not any("VERSION" in note for note in description.notes)
    assert blank.intervals["tpot_s"].high_80 > description.intervals["tpot_s"].high_80


MODES = st.sampled_from(("closed", "static", "offline", "open"))


@settings(max_examples=60)
@given(data=st.data())
def test_no_interval_breaks_an_identity_or_a_bound(deploy_any, data):
    any_interval_holds_together(deploy_any, data)


@pytest.mark.slow
@settings(max_examples=1000)
@given(data=st.data())
def test_no_interval_of_a_thousand_breaks_an_identity_or_a_bound(deploy_any, data):
    any_interval_holds_together(deploy_any, data)


def any_interval_holds_together(deploy_any, data):
    model, weights = data.draw(
        st.sampled_from(
            (
                ("meta-llama/Llama-3.1-8B", "bf16"),
                ("meta-llama/Llama-3.1-70B", "fp8"),
                ("Qwen/Qwen3-30B-A3B", "bf16"),
            )
        )
    )
    device = data.draw(st.sampled_from(("h100-sxm", "b200", "a100-sxm-80gb", "mi300x")))
    engine = data.draw(st.sampled_from(("vllm", "sglang", "tensorrt-llm")))
    deployment = deploy_any(
        model=model, device=device, engine=engine, weights=weights, tp=data.draw(st.sampled_from((1, 2, 4, 8)))
    )
    mode, load = data.draw(MODES), data.draw(st.integers(1, 600))
    workload = Workload(
        mode=mode,
        input_tokens=data.draw(st.integers(16, 8000)),
        output_tokens=data.draw(st.integers(2, 2000)),
        batch_size=load if mode == "static" else 0,
        concurrency=load if mode == "closed" else 0,
        request_rate_per_s=load / 20 if mode == "open" else 0.0,
        num_requests=data.draw(st.sampled_from((0, 500))) if mode in ("open", "offline") else 0,
    )
    found = estimate(deployment, workload)
    if isinstance(found, Infeasible):
        return
    holds_together(found, deployment, workload)


def holds_together(e, deployment, workload):
    around, steps = e.intervals, workload.output_tokens - 1
    for name, interval in around.items():
        value = getattr(e, name)
        ends = interval.low_95, interval.low_80, value, interval.high_80, interval.high_95
        assert all(a <= b * (1 + 1e-9) for a, b in pairwise(ends)), (name, ends)
    plain = e.ttft_s + steps * e.tpot_s
    for end in ENDS:
        ttft_s, tpot_s, latency_s = (getattr(around[m], end) for m in ("ttft_s", "tpot_s", "latency_s"))
        if workload.mode in ("closed", "open"):
            assert latency_s == pytest.approx(ttft_s + steps * tpot_s)
        elif workload.mode == "static":
            assert latency_s / e.latency_s == pytest.approx((ttft_s + steps * tpot_s) / plain)
        if "requests_per_s" in around and workload.mode != "open":
            rate = getattr(around["requests_per_s"], OTHER_END[end])
            assert rate * latency_s == pytest.approx(e.requests_per_s * e.latency_s), "Little"
        if "output_tokens_per_s" in around:
            assert getattr(around["output_tokens_per_s"], end) == pytest.approx(
                workload.output_tokens * getattr(around["requests_per_s"], end)
            )
            power, rate = around["power_w"], around["output_tokens_per_s"]
            assert around["energy_j_per_token"].low_80 >= power.low_80 / rate.high_80 * (1 - 1e-9)
            assert around["energy_j_per_token"].high_80 <= power.high_80 / rate.low_80 * (1 + 1e-9)
    bounds = bounds_of(deployment, workload)
    assert around["tpot_s"].low_95 >= min(e.tpot_s, bounds.least_tpot_s) * (1 - 1e-9)
    assert around["ttft_s"].low_95 >= min(e.ttft_s, bounds.least_ttft_s) * (1 - 1e-9)
    assert around["power_w"].high_95 <= max(e.power_w, bounds.most_power_w) * (1 + 1e-9)
    if workload.mode == "open" and e.requests_per_s == pytest.approx(workload.request_rate_per_s):
        assert "requests_per_s" not in around, "arrivals are given"

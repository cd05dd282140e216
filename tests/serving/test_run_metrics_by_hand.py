"""Busiest seconds, goodput, intervals, limits and sums of runs of a handful of requests."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.serving.metrics import intervals
from orrery.serving.metrics.distribution import CURVE_SHARES, distribution
from orrery.serving.metrics.goodput import SCALES, goodput
from orrery.serving.metrics.latencies import latencies
from orrery.serving.metrics.over_time import OverTime
from orrery.serving.metrics.peaks import MAX_BUCKETS, max_concurrent_requests, max_output_tokens_per_s
from orrery.serving.metrics.result_json import LATENCIES, _curves, _list, _number, _usd, details
from orrery.serving.metrics.saturation import saturated_first
from orrery.serving.metrics.summary import _hit_rate_frac, _rate, _tokens


def one(*values):
    return np.array([float(v) for v in values])


def done(arrive, first, finish, tokens, sent=0):
    arrive, first, finish = one(*arrive), one(*first), one(*finish)
    counts = np.array(tokens)
    tpot = (finish - first) / np.maximum(counts - 1, 1)
    return SimpleNamespace(
        arrive_s=arrive,
        first_token_s=first,
        finish_s=finish,
        output_tokens=counts,
        ttft_s=first - arrive,
        tpot_s=tpot,
        e2el_s=finish - arrive,
        num_sent=sent or arrive.size,
    )


def test_the_busiest_second_of_two_answers():
    """Nine tokens from 0.5 to 3.5 s are three a second; the first token of the other in the third second: 3 + 1 there.
    One that begins and ends within a second has all its tokens there."""
    assert max_output_tokens_per_s(done([0], [0.5], [3.5], [10]), 4.0) == pytest.approx(3.0)
    both = done([0, 0], [0.5, 2.25], [3.5, 2.25], [10, 1])
    assert max_output_tokens_per_s(both, 4.0) == pytest.approx(4.0)
    assert max_output_tokens_per_s(done([0], [0.25], [0.75], [5]), 4.0) == 5.0
    # 1 at once and 1.5 until the end of the second
    assert max_output_tokens_per_s(done([0], [0.5], [1.5], [4]), 4.0) == pytest.approx(2.5)
    assert max_output_tokens_per_s(done([], [], [], []), 4.0) == 0.0
    long = done([0], [0.5], [3.5], [10])
    assert max_output_tokens_per_s(long, 4.0 * MAX_BUCKETS) == pytest.approx(10.0 / 4.0)


def test_requests_of_one_second():
    """Seconds 0 to 2, 2 to 2 and 3 to 4: two in the third second."""
    found = done([0.5, 2.1, 3.5], [1, 2.2, 4], [2.9, 2.3, 4.0], [1, 1, 1])
    assert max_concurrent_requests(found, 5.0) == 2
    assert max_concurrent_requests(done([], [], [], []), 5.0) == 0
    assert max_concurrent_requests(found, 4.0 * MAX_BUCKETS) == 3


def test_goodput_by_hand():
    """Five sent, four done: both limits are met by two; at 0.5/s a fifth each. Ratios to the limits are 1, 0.5, 2 and
    3 at worst."""
    given = done([0] * 4, [1, 0.5, 2, 1], [11, 10.5, 12, 31], [11] * 4, sent=5)
    found = goodput(given, {"ttft": 1.0, "tpot": 1.0}, 0.5)
    assert (found.attained_frac, found.requests_per_s) == (0.4, pytest.approx(0.2))
    assert found.attained_by_metric == {"ttft": 0.6, "tpot": 0.6}
    by_scale = dict(zip(np.round(SCALES, 9).tolist(), (found.requests_per_s_at_scale / 0.1).round(9), strict=True))
    assert by_scale[1.0] == 2
    assert max(n for scale, n in by_scale.items() if scale < 0.5) == 0
    assert [by_scale[s] for s in (0.1, 10.0)] == [0, 4]
    assert (SCALES[0], SCALES[-1], SCALES.size) == (pytest.approx(0.1), pytest.approx(10.0), 41)
    assert goodput(given, {}, 0.5) is None
    with pytest.raises(ScenarioError, match="itl"):
        goodput(given, {"itl": 1.0}, 0.5)


def test_a_distribution_of_four():
    found = distribution(one(4, 1, 3, 2), (25.0,))
    assert (found.count, found.mean_s, found.median_s) == (4, 2.5, 2.5)
    assert (found.std_s, found.percentile_s(25.0)) == (pytest.approx(np.sqrt(1.25)), 1.75)
    assert found.curve_s[[0, -1]].tolist() == [1.0, 4.0]
    near = distribution(one(1e6, 1e6 + 1e-3), ())
    assert near.std_s == pytest.approx(5e-4, rel=1e-6)
    assert np.isnan(distribution(one(), (50.0,)).mean_s)
    assert (CURVE_SHARES.size, CURVE_SHARES[1], CURVE_SHARES[-2]) == (101 + 19 + 8, 0.01, 0.9999)


def test_intervals_of_batches():
    """200 values in 20 batches of ten: half 0 and half 2 by batch; their deviation is 1.026, over the root of 20."""
    values = np.repeat(np.tile([0.0, 2.0], 10), 10)
    half = 2.0930 * np.sqrt(20 / 19) / np.sqrt(20)
    assert intervals.mean_bounds(values) == pytest.approx((1 - half, 1 + half))
    assert intervals.mean_bounds(values[1:]) is None
    odd = np.concatenate([np.full(7, 1e9), values])
    assert intervals.mean_bounds(odd) == pytest.approx((odd.mean() - half, odd.mean() + half))  # dropped: the start
    assert (intervals.BATCHES, intervals.MIN_REQUESTS, intervals.MIN_FOR_TAIL) == (20, 200, 2000)


def test_intervals_of_tails():
    """2000 values, of which one in a hundred of each batch is beyond: no deviation, so the tail is where it is."""
    values = np.tile(np.arange(100.0), 20)
    curve = distribution(values, ()).curve_s
    at = curve[np.searchsorted(CURVE_SHARES, 0.99)]
    assert intervals.tail_bounds(values, curve) == pytest.approx((at, at))
    assert intervals.tail_bounds(values[1:], curve) is None
    found = intervals.confidence({"ttft": values}, {"ttft": distribution(values, ())})
    assert sorted(found) == ["mean_ttft_s", "p99_ttft_s"]
    assert intervals.confidence({"ttft": values[:10]}, {"ttft": distribution(values, ())}) is None


def test_times_of_requests_that_count():
    """Three of four are done; a quarter at the start is left out, in order of arrival."""
    run = SimpleNamespace(
        arrive_s=one(3, 0, 1, 2),
        admitted_s=one(3.5, 0.5, 1.5, np.nan),
        first_token_s=one(4, 1, 2, np.nan),
        finish_s=one(8, 1, 5, np.nan),
        requests=SimpleNamespace(output_tokens=np.array([5, 1, 4, 9])),
    )
    found = latencies(run)
    assert (found.num_sent, found.ttft_s.tolist(), found.e2el_s.tolist()) == (4, [1, 1, 1], [1, 4, 5])
    assert found.tpot_s.tolist() == [0.0, 1.0, 1.0]
    assert (found.long_tpot_s.tolist(), found.ntpot_s.tolist()) == ([1.0, 1.0], [1.0, 1.0, 1.0])
    warm = latencies(run, 0.25)
    assert (warm.num_sent, warm.arrive_s.tolist()) == (3, [1, 3])
    for wrong in (-0.1, 1.0):
        with pytest.raises(ValueError, match="warmup"):
            latencies(run, wrong)


def over(**given):
    usual = dict.fromkeys(OverTime.__slots__, one(0, 0)) | {"start_s": one(0, 2), "width_s": one(2, 2)}
    return OverTime(**(usual | given))


RUN = SimpleNamespace(num_machines=2, max_running=10)


@pytest.mark.parametrize(
    ("given", "limit", "start_s"),
    [
        ({}, "nothing", None),
        ({"num_preemptions": one(0, 1)}, "kv cache", 2.0),
        ({"kv_use_frac": one(0.94, 0.95)}, "kv cache", 2.0),
        # two wait, and one more of half a cache for each of two machines does not fit
        (
            {"waiting_requests": one(1.9, 2), "kv_use_frac": one(0.6, 0.6), "running_requests": one(2, 2)},
            "kv cache",
            2.0,
        ),
        ({"waiting_requests": one(2, 2), "kv_use_frac": one(0.5, 0.5), "running_requests": one(2, 2)}, "nothing", None),
        ({"running_requests": one(18.9, 19)}, "batch slots", 2.0),
        ({"waiting_requests": one(2, 2), "busy_frac": one(0.94, 0.95)}, "token budget / compute", 2.0),
        ({"waiting_requests": one(1.9, 1.9), "busy_frac": one(1, 1)}, "nothing", None),
        ({"num_preemptions": one(0, 1), "running_requests": one(19, 19)}, "batch slots", 0.0),
        ({"num_preemptions": one(1, 1), "running_requests": one(19, 19)}, "kv cache", 0.0),
    ],
)
def test_the_first_limit(given, limit, start_s):
    found = saturated_first(RUN, over(**given))
    assert (found.limit, found.start_s) == (limit, start_s)


def test_bins_that_are_joined():
    """Four bins of a second in two: means by width, sums of preemptions, steps by their number (2, 1, 0 and 4)."""
    four = replace(
        over(),
        **{name: one(1, 3, 5, 7) for name in OverTime.__slots__},
    )
    four = replace(
        four,
        start_s=one(0, 1, 2, 3),
        width_s=one(1, 1, 1, 1),
        busy_frac=one(1, 0.5, 0, 1),
        step_s=np.array([0.5, 0.5, np.nan, 0.25]),
    )
    found = four.coarser(2)
    assert (found.start_s.tolist(), found.width_s.tolist()) == ([0, 2], [2, 2])
    assert (found.running_requests.tolist(), found.num_preemptions.tolist()) == ([2, 6], [4, 12])
    assert (found.busy_frac.tolist(), found.step_s.tolist()) == ([0.75, 0.5], [0.5, 0.25])
    assert four.coarser(4) is four
    assert four.coarser(3).start_s.size == 3


def test_sums_of_a_run():
    """Two of three are done: 30 and 50 prompt tokens, 8 of which were cached."""
    run = SimpleNamespace(
        requests=SimpleNamespace(input_tokens=np.array([30, 70, 50])),
        finish_s=one(1, np.nan, 2),
        cached_tokens=np.array([6, 60, 2]),
    )
    everyone = SimpleNamespace(finish_s=one(1, 2), output_tokens=np.array([3, 4]))
    assert _tokens(run, everyone) == (80, 7)
    assert _hit_rate_frac(run, everyone) == pytest.approx(0.1)
    whole = SimpleNamespace(finish_s=one(1, 2, 3), output_tokens=np.array([3, 4, 5]))
    assert _tokens(run, whole) == (150, 12)
    assert _hit_rate_frac(run, whole) == pytest.approx(68 / 150)
    assert (_rate(6.0, 3.0), _rate(6.0, 0.0)) == (2.0, 0.0)


def test_an_answer_as_json():
    found, about = SimpleNamespace(duration_s=10.0), SimpleNamespace(usd_per_s=0.5)
    assert _usd(found, about, 2_000_000) == 2.5
    assert _usd(found, about, 0) is None
    assert _usd(found, SimpleNamespace(usd_per_s=None), 5) is None
    assert (_number(None), _number(np.inf), _number(2)) == (None, None, 2.0)
    assert _list(one(1.23456789, np.nan), 4) == [1.235, None]
    assert _list(one(1.23456789)) == [1.23457]
    run = SimpleNamespace(
        requests=SimpleNamespace(input_tokens=np.array([3, 4]), output_tokens=np.array([5, 6])),
        arrive_s=one(1, np.nan),
        first_token_s=one(2, np.nan),
        finish_s=one(4, np.nan),
        admitted_s=one(1.5, np.nan),
    )
    told = details(run)
    assert (told["ttfts"], told["latencies"], told["queue_times"]) == ([1.0, 0.0], [3.0, 0.0], [0.5, 0.0])
    assert (told["input_lens"], told["output_lens"], told["start_times"]) == ([3, 4], [5, 0], [1.0, 0.0])
    assert told["errors"][0] == ""
    assert told["errors"][1].startswith("refused")


def test_curves_of_latencies_that_anybody_had():
    """Requests of one token have no time per token: no curve of it, and milliseconds for the others."""
    none, some = SimpleNamespace(count=0, curve_s=np.array([])), SimpleNamespace(count=2, curve_s=np.array([0.5, 2.0]))
    found = SimpleNamespace(**dict.fromkeys((*LATENCIES, "ntpot"), some) | {"tpot": none})
    curves = _curves(found)
    assert curves.keys() == {"share", *(f"{name}_ms" for name in (*LATENCIES, "ntpot") if name != "tpot")}
    assert curves["ttft_ms"] == [500.0, 2000.0]

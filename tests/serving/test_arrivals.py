"""Arrival laws: the rate asked for, the burstiness stated, the same traffic for every design."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.arrivals import ARRIVALS, arrivals

NAMES = list(ARRIVALS.techniques)
every_law = pytest.mark.parametrize("law", NAMES)


def cv(at):
    gaps = np.diff(at)
    return gaps.std() / gaps.mean()


def test_the_laws_are_found():
    assert set(NAMES) >= {"poisson", "gamma", "constant", "mmpp", "diurnal", "ramp"}


@every_law
@settings(max_examples=25, deadline=None)
@given(count=st.integers(0, 200), rate=st.floats(1e-3, 1e4), seed=st.integers(0, 2**40))
def test_times_are_sorted_finite_and_from_0(law, count, rate, seed):
    at = arrivals(law, count, rate, seed)
    assert at.shape == (count,)
    assert np.isfinite(at).all()
    assert (at >= 0).all()
    assert (np.diff(at) >= 0).all()


@every_law
def test_the_long_run_rate_is_the_one_asked_for(law):
    knobs = {"diurnal": {"day_s": 500.0}, "mmpp": {"rates_ratio": (1, 8), "dwells_s": (4, 1)}}.get(law, {})
    at = arrivals(law, 200_000, 20.0, 3, **knobs)
    assert at.size / at[-1] == pytest.approx(20.0, rel=0.02)


@every_law
def test_the_same_seed_draws_the_same_and_another_seed_another(law):
    one, again, other = (arrivals(law, 50, 2.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert law == "constant" or not np.array_equal(one, other)


@pytest.mark.parametrize("law", ["poisson", "gamma", "constant", "ramp"])
def test_another_rate_scales_the_same_gaps(law):
    assert arrivals(law, 100, 2.0, 5) == pytest.approx(arrivals(law, 100, 10.0, 5) * 5.0)


@pytest.mark.parametrize("law", ["poisson", "constant", "mmpp", "diurnal"])
def test_more_arrivals_never_change_the_first_ones(law):
    assert arrivals(law, 1000, 3.0, 7)[:100] == pytest.approx(arrivals(law, 100, 3.0, 7), rel=1e-12)


@pytest.mark.parametrize("burstiness", [0.05, 0.5, 1.0, 4.0, float("inf")])
def test_gamma_is_that_of_the_load_generator(burstiness):
    """Gaps of gamma(b, 1/(rate b)), summed, the last at count/rate, as ``vllm bench serve`` draws them."""
    at = arrivals("gamma", 50_000, 4.0, 2, burstiness=burstiness)
    assert at[-1] == pytest.approx(50_000 / 4.0, rel=1e-12)
    assert at[0] > 0
    assert cv(at) == pytest.approx(burstiness**-0.5, rel=0.06, abs=1e-9)
    if burstiness < 100:
        gaps = stream(2, "arrivals").gamma(burstiness, 1 / (4.0 * burstiness), 50_000)
        assert at == pytest.approx(np.cumsum(gaps) * (50_000 / 4.0 / gaps.sum()))


def test_poisson_counts_vary_as_much_as_they_should():
    counts = np.bincount(arrivals("poisson", 100_000, 10.0, 4).astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.06)


def test_mmpp_spells_have_their_rates_and_shares_of_time():
    """Calm at 1 and busy at 9, a quarter of the time: rates of r/3 and 3 r; counts a second spread as theory says."""
    at = arrivals("mmpp", 300_000, 30.0, 6, rates_ratio=(1, 9), dwells_s=(30, 10))
    counts = np.bincount(at.astype(int))[:-1]
    calm = (counts < 40).mean()  # 10 or 90 a second, seldom both in one
    assert calm == pytest.approx(0.75, abs=0.06)
    assert np.median(counts[counts < 40]) == pytest.approx(10, abs=1)
    assert np.median(counts[counts > 60]) == pytest.approx(90, abs=3)


def test_a_day_has_its_peak_and_its_trough():
    at = arrivals("diurnal", 400_000, 10.0, 8, peak_to_trough_ratio=5.0, day_s=1000.0)
    counts = np.histogram(at % 1000.0, bins=50, range=(0, 1000))[0]
    assert counts.argmax() in range(21, 29)
    assert counts.max() / counts.min() == pytest.approx(5.0, rel=0.1)
    noon = arrivals("diurnal", 4000, 10.0, 8, peak_to_trough_ratio=5.0, day_s=1e4, start_frac=0.5)
    assert (noon < 100).sum() / 100 == pytest.approx(10 * (1 + 2 / 3), rel=0.1)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 9.0])
def test_a_ramp_ends_that_much_busier(ratio):
    at = arrivals("ramp", 100_000, 50.0, 9, end_to_start_ratio=ratio)
    counts = np.histogram(at, bins=100, range=(0, 2000))[0]
    slope = np.polyfit(np.linspace(0.005, 0.995, 100), counts, 1)
    assert (slope[0] + slope[1]) / slope[1] == pytest.approx(ratio, rel=0.1)


def test_an_infinite_rate_is_all_at_once():
    assert arrivals("gamma", 3, float("inf")).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("law", "says", "given"),
    [
        ("poison", "Did you mean 'poisson'", {}),
        ("gamma", "did you mean 'burstiness'", {"burstines": 1.0}),
        ("poisson", "has no knob 'burstiness'; it has nothing", {"burstiness": 1.0}),
        ("gamma", "burstiness: got 0", {"burstiness": 0}),
        ("gamma", "burstiness: got nan", {"burstiness": float("nan")}),
        ("gamma", "burstiness: got 'x'", {"burstiness": "x"}),
        ("mmpp", "got 3 and 2 numbers", {"rates_ratio": (1, 2, 3)}),
        ("mmpp", "all are 0", {"rates_ratio": (0, 0)}),
        ("mmpp", "rates_ratio: got -1", {"rates_ratio": (1, -1)}),
        ("mmpp", "dwells_s: got 0", {"dwells_s": (0, 1)}),
        ("mmpp", "write longer ones", {"dwells_s": (1e-6, 1e-6), "rate_per_s": 1e-4}),
        ("diurnal", "peak_to_trough_ratio: got 0.5", {"peak_to_trough_ratio": 0.5}),
        ("diurnal", "start_frac: got 2", {"start_frac": 2}),
        ("ramp", "end_to_start_ratio: got 0", {"end_to_start_ratio": 0}),
        ("poisson", "rate: got 0", {"rate_per_s": 0.0}),
        ("poisson", "rate: got nan", {"rate_per_s": float("nan")}),
        ("poisson", "count: got -1", {"count": -1}),
        ("poisson", "seed: got -1", {"seed": -1}),
    ],
)
def test_what_makes_no_sense_is_refused(law, says, given):
    with pytest.raises(ScenarioError, match=says):
        arrivals(law, **{"count": 10, "rate_per_s": 1.0, **given})


def test_a_million_arrivals_are_quick():
    arrivals("poisson", 10, 1.0)
    start = time.process_time()
    arrivals("poisson", 1_000_000, 1.0)
    assert time.process_time() - start < 0.1


def test_streams_are_independent():
    assert stream(0, "arrivals").random() != stream(0, "lengths").random()
    assert stream(0, "arrivals").random() != stream(1, "arrivals").random()

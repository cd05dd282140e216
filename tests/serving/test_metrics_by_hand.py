"""Percentiles, spreads and timelines of a handful of values, worked out on paper."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.experiment import Run
from orrery.catalog.devices import get_device
from orrery.serving.metrics.distribution import from_gaps
from orrery.serving.metrics.over_time import over_time
from orrery.serving.metrics.percentiles import PercentileLimit, percentiles_found
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, GAP_LEAST_S, TIMELINE
from orrery.serving.studies import image_server


def test_a_percentile_counts_refused_requests_as_never_done():
    """Five sent, four done in 1, 2, 3 and 5 s, one refused: the median is 3 s, three of five are within 3 s, and the
    90th percentile lies between 5 s and never."""
    done = SimpleNamespace(num_sent=5, finish_s=np.zeros(4), ttft_s=np.array([5.0, 1.0, 3.0, 2.0]))
    done.tpot_s = done.e2el_s = done.long_tpot_s = done.ttft_s
    limits = [PercentileLimit(metric="ttft", share_frac=share, limit_s=3.0) for share in (0.5, 0.625, 0.9)]
    half, between, most = percentiles_found(done, limits)
    assert (half.value_s, half.attained_frac, half.is_met, half.limit.name) == (3.0, 0.6, True, "p50_ttft")
    assert between.value_s == 4.0  # at 2.5 of 0 to 4: between 3 and 5 s
    assert (most.value_s, most.attained_frac, most.is_met) == (np.inf, 0.6, False)


def test_gaps_of_one_bin_are_spread_evenly_over_its_logarithm():
    """Four gaps in bin 30, at 1/8, 3/8, 5/8 and 7/8 of it: the median is its middle, 0th and 100th the outer ones."""
    counts = np.zeros(100)
    counts[30] = 4
    found = from_gaps(counts, sum_s=8.0, squares_s2=18.0, percentiles=(0.0, 100.0))
    at = [GAP_LEAST_S * 10 ** ((30 + part) / GAP_BINS_PER_DECADE) for part in (0.5, 0.125, 0.875)]
    assert found.median_s == pytest.approx(at[0])
    assert list(found.percentiles_s) == pytest.approx(at[1:])
    assert (found.mean_s, found.std_s) == (2.0, pytest.approx(np.sqrt(0.5)))


def test_two_machines_are_busy_half_of_the_time():
    """One window of 4 s: each of two machines works 2 s, in 8 steps; 40 tokens, 6 joules, integrals over 4 s."""
    row = dict.fromkeys(TIMELINE, 0.0) | {
        "steps": 8.0,
        "busy_s": 4.0,
        "decode_tokens": 40.0,
        "running": 12.0,
        "kv_bytes": 100.0,
        "energy_j": 6.0,
        "arrivals": 2.0,
    }
    run = SimpleNamespace(
        timeline=np.array([list(row.values())]),
        timeline_s=np.array([1.0, 5.0]),
        num_machines=2,
        kv_capacity_bytes=50.0,
    )
    found = over_time(run)
    assert (found.start_s[0], found.width_s[0], found.busy_frac[0]) == (1.0, 4.0, 0.5)
    assert (found.running_requests[0], found.kv_use_frac[0], found.step_s[0]) == (3.0, 0.5, 0.5)
    assert (found.output_tokens_per_s[0], found.power_w[0], found.arrivals_rate_per_s[0]) == (10.0, 1.5, 0.5)


def test_an_image_is_unpacked_at_the_rate_of_a_core_or_of_the_device():
    """A million pixels at 1e8 a second of a core and 1e9 of the device: 10 ms and 1 ms."""
    sizes = image_server.Sizes(image_px="1000000")
    rows = image_server.run(
        Run(seed=0, steps=1, progress=lambda done, total: None, sizes=sizes, device=get_device("rtx-4090"))
    )
    assert {row["unpacked_on"]: row["unpacking_s"] for row in rows} == {
        "host": pytest.approx(0.01),
        "device": pytest.approx(0.001),
    }

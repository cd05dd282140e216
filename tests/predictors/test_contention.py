"""Tenants of one host: bytes and bandwidth are conserved, nobody gains from company, and limits are as they must be."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.predictors.tenants.contention import (
    Host,
    Tenants,
    alone,
    copies,
    miss_frac,
    occupancy_bytes,
    share,
    speed_frac,
    stacked,
)

HOST = Host(
    num_cores=48,
    clock_hz=3e9,
    last_level_cache_bytes=100e6,
    memory_bandwidth_bytes_per_s=260e9,
    cache_hit_s=34e-9,
    memory_s=123e-9,
)
FIGURES = {
    "num_active_threads": (1.0, 24.0),
    "num_cycles_per_instruction": (0.3, 1.0),
    "num_accesses_per_instruction": (1e-3, 0.05),
    "working_set_bytes": (1e6, 200e6),
    "streaming_frac": (0.01, 0.95),
    "num_parallel_misses": (1.0, 12.0),
    "written_frac": (0.0, 0.6),
}


def drawn(num_hosts: int, num_tenants: int, seed: int = 0) -> Tenants:
    rng = np.random.default_rng(seed)
    return Tenants(**{n: rng.uniform(*limits, (num_hosts, num_tenants)) for n, limits in FIGURES.items()})


def test_who_is_alone_loses_nothing() -> None:
    np.testing.assert_allclose(speed_frac(HOST, drawn(50, 1)), 1.0, rtol=1e-9)


def test_nobody_goes_faster_for_neighbours() -> None:
    assert np.all(speed_frac(HOST, drawn(200, 5)) <= 1.0 + 1e-9)


def test_more_neighbours_of_the_same_kind_slow_a_tenant_more() -> None:
    both = drawn(100, 2)
    speeds = [speed_frac(HOST, both.of(..., [0] + [1] * num))[:, 0] for num in range(5)]
    for fewer, more in pairwise(speeds):
        assert np.all(more <= fewer + 1e-9)
    assert float(speeds[-1].mean()) < 0.8


def test_a_neighbour_that_does_nothing_costs_nothing() -> None:
    two = drawn(50, 2)
    idle = two.num_active_threads * np.array([1.0, 0.0])
    np.testing.assert_allclose(speed_frac(HOST, replace(two, num_active_threads=idle))[:, 0], 1.0, rtol=1e-6)


def test_the_cache_is_held_whole_and_by_nobody_twice() -> None:
    tenants = drawn(100, 4)
    np.testing.assert_allclose(occupancy_bytes(HOST, tenants).sum(axis=1), HOST.last_level_cache_bytes, rtol=1e-6)
    more = occupancy_bytes(HOST, tenants)[:, :3], occupancy_bytes(HOST, tenants.of(..., slice(0, 3)))
    assert np.all(more[0] <= more[1] * (1.0 + 1e-6))


def test_equal_tenants_share_equally() -> None:
    same = drawn(20, 1).of(..., [0, 0, 0, 0])
    np.testing.assert_allclose(occupancy_bytes(HOST, same), 25e6, rtol=1e-6)


def test_what_passes_is_what_is_used_and_never_more_than_there_is() -> None:
    found = share(HOST, drawn(200, 12))
    passed = found.traffic_bytes_per_s.sum(axis=1)
    np.testing.assert_allclose(passed, found.utilisation_frac[:, 0] * 260e9, rtol=1e-6)
    assert np.all(found.utilisation_frac < 1.0)
    assert found.utilisation_frac.max() > 0.8


def test_a_footprint_grows_by_what_misses() -> None:
    """The window's derivative is the miss curve: one access more touches 64 bytes x the share that misses."""
    one = drawn(1, 1, seed=3)
    sizes = np.linspace(1e6, 90e6, 20)
    touched: list[float] = []
    for size in sizes:  # by small steps, where the model has a closed form
        held, accesses, step = 0.0, 0.0, 2e3
        while held < size:
            held, accesses = held + 64.0 * step * float(miss_frac(one, np.array([[held]]))[0, 0]), accesses + step
        touched.append(accesses)
    two = drawn(1, 1, seed=4)
    both = Tenants(**{n: np.hstack([getattr(one, n), getattr(two, n)]) for n in Tenants.__slots__})
    held = occupancy_bytes(HOST, both)[0]
    solo = alone(replace(HOST, bank_busy_s=1e-15), both)
    pace = (both.num_active_threads * both.num_accesses_per_instruction / solo.instruction_s)[0]
    window = float(np.interp(float(held[0]), sizes, np.array(touched))) / float(pace[0])
    other, accesses = 0.0, 0.0
    while accesses < window * pace[1]:
        other += 64.0 * 2e3 * float(miss_frac(two, np.array([[other]]))[0, 0])
        accesses += 2e3
    assert other == pytest.approx(held[1], rel=0.02)


def test_threads_pair_only_where_cores_run_out() -> None:
    counts: NDArray[np.float64] = np.array([1.0, 48.0, 72.0, 96.0, 192.0])
    factors = HOST.thread_factor(counts)
    np.testing.assert_allclose(factors[[0, 1, 3, 4]], [1.0, 1.0, 1 / 0.62, 2 / 0.62])
    assert 1.0 < factors[2] < factors[3]
    assert replace(HOST, num_threads_per_core=1.0).thread_factor(counts)[3] == pytest.approx(2.0)


def test_hosts_side_by_side_answer_as_each_by_itself() -> None:
    small = replace(HOST, num_cores=16, last_level_cache_bytes=40e6)
    tenants = drawn(2, 3)
    together = speed_frac(stacked([HOST, small]), tenants)
    np.testing.assert_allclose(together[0], speed_frac(HOST, tenants.of([0]))[0], rtol=1e-9)
    np.testing.assert_allclose(together[1], speed_frac(small, tenants.of([1]))[0], rtol=1e-9)


def test_copies_bring_their_own_working_sets() -> None:
    one = drawn(1, 1)
    many = copies(one, np.array([[8.0]]))
    assert many.working_set_bytes == pytest.approx(8.0 * one.working_set_bytes)
    assert many.num_active_threads == pytest.approx(8.0 * one.num_active_threads)
    assert many.streaming_frac == pytest.approx(one.streaming_frac)


def test_a_host_without_bandwidth_is_refused() -> None:
    with pytest.raises(ScenarioError, match="memory_bandwidth_bytes_per_s"):
        replace(HOST, memory_bandwidth_bytes_per_s=0.0)

"""Lanes: work in the order it comes, and layers that are fetched ahead of their use."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.execution.offload.lanes import Lanes, walk
from orrery.execution.offload.tiers import MemoryUse, Tiers, shortage

TIERS = Tiers(
    gpu_bytes=100.0,
    gpu_memory_bytes_per_s=1000.0,
    host_bytes=1000.0,
    host_memory_bytes_per_s=100.0,
    host_link_each_way_bytes_per_s=10.0,
    nvme_bytes=10_000.0,
    nvme_read_bytes_per_s=5.0,
    nvme_write_bytes_per_s=2.0,
)
times = st.integers(0, 20).map(float)


def nothing(_: float) -> None:
    """A layer that leaves nothing."""


def test_work_starts_when_its_lane_is_free_and_its_inputs_are_there():
    lanes = Lanes(TIERS)
    assert lanes.run("gpu", 3.0) == 3.0
    assert lanes.run("gpu", 2.0, 1.0) == 5.0
    assert lanes.run("gpu", 2.0, 9.0) == 11.0
    assert lanes.run("cpu", 4.0, 5.0, 6.0) == 10.0
    assert lanes.end_s == 11.0
    assert lanes.busy_s["gpu"] == 7.0


def test_no_work_takes_no_lane():
    lanes = Lanes(TIERS)
    lanes.run("to_gpu", 5.0)
    assert lanes.to_gpu(0.0, 1.0) == 1.0
    assert lanes.busy_s["to_gpu"] == 5.0


def test_rates_are_those_of_the_tiers():
    lanes = Lanes(replace(TIERS, num_ranks=4, collective_bytes_per_s=3.0))
    assert lanes.to_gpu(20.0) == 2.0
    assert lanes.to_host(20.0) == 2.0
    assert lanes.read(20.0) == 4.0
    assert lanes.write(20.0) == 10.0
    assert lanes.share(8.0) == 2.0  # three quarters of 8 bytes at 3 a second
    assert lanes.host_update(5.0, 20.0) == 1.0
    assert lanes.device_update(5.0, 20.0) == 0.1


def test_a_host_update_is_the_slower_of_its_cores_and_the_memory_that_it_shares():
    assert Lanes(TIERS).host_update(5.0, 20.0, beside=20.0) == 2.0
    assert Lanes(replace(TIERS, update_bytes_per_s=25.0)).host_update(5.0, 20.0, beside=20.0) == 4.0


def test_one_way_at_a_time_where_the_link_is_not_duplex():
    lanes = Lanes(replace(TIERS, is_link_duplex=False))
    assert lanes.to_gpu(20.0) == 2.0
    assert lanes.to_host(20.0) == 4.0


@given(copy=times, compute=times, layers=st.integers(1, 12))
def test_two_buffers_show_the_longer_of_copy_and_compute(copy, compute, layers):
    lanes = Lanes(TIERS)
    end = walk(lanes, layers, compute, lambda free: lanes.run("to_gpu", copy, free), nothing)
    assert end == copy + (layers - 1) * max(copy, compute) + compute


@given(copy=times, compute=times, out=times, layers=st.integers(1, 12), depth=st.integers(1, 4), start=times)
def test_a_walk_is_what_its_recursion_says(copy, compute, out, layers, depth, start):
    lanes = Lanes(TIERS)
    end = walk(
        lanes,
        layers,
        compute,
        lambda free: lanes.run("to_gpu", copy, free),
        lambda done: lanes.run("to_host", out, done) and None,
        depth=depth,
        start_s=start,
    )
    here, done, gone = [], [], []
    for i in range(layers):
        free = done[i - depth] if i >= depth else start
        here.append(max(here[-1] if here else 0.0, free) + copy if copy else free)
        done.append(max(done[-1] if done else start, here[i]) + compute)
        gone.append(max(gone[-1] if gone and out else 0.0, done[i]) + out)
    assert end == done[-1]
    assert lanes.end_s >= max(done[-1] if compute else 0.0, gone[-1] if out else 0.0)
    assert max(lanes.busy_s.values()) <= lanes.end_s <= start + sum(lanes.busy_s.values())


def test_a_sink_may_hold_the_device_up():
    lanes = Lanes(TIERS)
    end = walk(lanes, 3, 2.0, lambda free: free, lambda done: done + 1.0)
    assert end == 9.0


@pytest.mark.parametrize(
    ("held", "where", "need"),
    [
        (MemoryUse(gpu_bytes=101.0), "device", 101.0),
        (MemoryUse(gpu_bytes=99.0, host_bytes=2000.0), "host memory", 2000.0),
        (MemoryUse(gpu_bytes=99.0, host_bytes=5.0, nvme_bytes=20_000.0), "NVMe drives", 20_000.0),
    ],
)
def test_what_does_not_fit_is_said_with_numbers(held, where, need):
    missing = shortage(held, TIERS, "a step")
    assert missing is not None
    assert where in missing.what
    assert missing.need == need > missing.have


def test_what_fits_lacks_nothing():
    assert shortage(MemoryUse(gpu_bytes=100.0, host_bytes=1000.0, nvme_bytes=10_000.0), TIERS) is None


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(ScenarioError, match="nvme_read_bytes_per_s = 0"):
        replace(TIERS, nvme_read_bytes_per_s=0.0)

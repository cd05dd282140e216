"""Data with gaps: one form for equal types, and the two ways to pack it."""

import pytest

from orrery.catalog.devices import get_device
from orrery_papers.tempi.strided import canonical, copied_s, packed_s, packed_to_host_s, sent_by_copies_s, sent_s

V100 = get_device("v100-sxm-16gb")


def test_types_that_touch_the_same_bytes_have_one_form():
    """A row of 16 floats in each of 8 rows of 1024 bytes, said in three ways."""
    ways = [(4, [(16, 4), (8, 1024)]), (64, [(8, 1024)]), (4, [(4, 4), (4, 16), (8, 1024)])]
    forms = {canonical(size, levels) for size, levels in ways}
    assert forms == {canonical(64, [(1, 0), (8, 1024)])}
    (form,) = forms
    assert (form.run_bytes, form.num_runs, form.total_bytes) == (64, 8, 512)


def test_without_gaps_there_is_one_run():
    whole = canonical(8, [(16, 8), (32, 128)])
    assert (whole.run_bytes, whole.num_runs) == (4096, 1)


def test_copies_pay_for_every_run_and_a_kernel_once():
    data = canonical(1, [(1_000_000, 1024)])
    assert copied_s(data, V100, 10e-6) == pytest.approx(10.0, rel=0.01)
    moved = 1_000_000 * (32 + 1) / V100.memory_bandwidth_bytes_per_s
    assert packed_s(data, V100, 10e-6) == pytest.approx(10e-6 + moved)


def test_near_runs_share_their_sectors():
    near, far = canonical(4, [(1000, 8)]), canonical(4, [(1000, 1024)])
    gap = packed_s(far, V100, 0.0) - packed_s(near, V100, 0.0)
    assert gap == pytest.approx(1000 * (32 - 8) / V100.memory_bandwidth_bytes_per_s)


def test_a_large_object_goes_by_the_device_and_copies_lose_to_both_ways():
    data = canonical(64, [(100_000, 4096)])
    assert packed_s(data, V100, 10e-6) < packed_to_host_s(data, V100, 10e-6)
    assert sent_by_copies_s(data, V100, 10e-6) > 1000 * sent_s(data, V100, 10e-6)


def test_one_message_by_hand():
    """1000 runs of 40 bytes, 4096 apart: 2 sectors of 32 each, so 64 kB in and 40 kB out at 900 GB/s; to the host the
    slower of reading and the host's link. Both sides pack, and 40 kB cross the network once.
    """
    data, rate = canonical(40, [(1000, 4096)]), V100.memory_bandwidth_bytes_per_s
    device_s = 1e-5 + (64_000 + 40_000) / rate
    host_s = 1e-5 + max(64_000 / rate, 40_000 / V100.host.each_way_bytes_per_s)
    wire_s = V100.scaleout.latency_s + 40_000 / V100.scaleout.each_way_bytes_per_s
    assert packed_s(data, V100, 1e-5) == pytest.approx(device_s)
    assert packed_to_host_s(data, V100, 1e-5) == pytest.approx(host_s)
    assert sent_s(data, V100, 1e-5) == pytest.approx(2 * min(device_s, host_s) + wire_s)
    assert sent_by_copies_s(data, V100, 1e-5) == pytest.approx(2 * 1000 * (1e-5 + 40 / rate) + wire_s)

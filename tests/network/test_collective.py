"""What must hold for every collective, whatever its constants."""

import time

import numpy as np
import pytest
from battery import over
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, UnknownName
from orrery.catalog.devices import device_names, get_device
from orrery.network import Collective, calibration, predict, spread
from orrery.network.group import KINDS

LIBRARIES = ("nccl", "vllm", "")
libraries = st.sampled_from(LIBRARIES)
kinds = st.sampled_from(KINDS)
counts = st.integers(2, 64)
sizes = st.floats(1.0, 1e11)


def ask(kind="all_reduce", n=8, size=1e6, **more):
    return Collective(kind=kind, num_devices=n, message_bytes=size, **more)


@given(kind=kinds, n=counts, size=sizes, factor=st.floats(1.0, 100.0), library=libraries)
def test_more_bytes_never_take_less_time(make_device, kind, n, size, factor, library):
    device = make_device()
    few, many = (predict(ask(kind, n, s, library=library), device) for s in (size, size * factor))
    assert many.time_s >= few.time_s


@given(kind=kinds, n=counts, size=sizes)
def test_twice_the_rate_is_never_slower_and_no_rate_is_exceeded(make_device, kind, n, size):
    slow, fast = predict(ask(kind, n, size), make_device()), predict(ask(kind, n, size), make_device(rate_ratio=2.0))
    assert fast.time_s <= slow.time_s
    assert slow.time_s >= slow.wire_s
    assert slow.time_s >= slow.latency_s


@given(kind=kinds, n=counts, size=sizes, power=st.integers(-8, 8))
def test_a_change_of_the_second_changes_every_answer_alike(make_device, kind, n, size, power):
    ratio = 2.0**power
    one, other = predict(ask(kind, n, size), make_device()), predict(ask(kind, n, size), make_device(time_ratio=ratio))
    assert (other.time_s, other.wire_s, other.latency_s) == tuple(
        ratio * x for x in (one.time_s, one.wire_s, one.latency_s)
    )
    assert other.sent_bytes == one.sent_bytes


@given(size=sizes, n=st.integers(2, 8))
def test_an_all_reduce_is_at_least_a_reduce_scatter(make_device, size, n):
    """In a node, where both are rings; between many nodes a tree may sum a small buffer before a ring scatters it."""
    device = make_device(has_reduction=False)
    assert predict(ask("all_reduce", n, size), device).time_s >= predict(ask("reduce_scatter", n, size), device).time_s


@given(kind=kinds, size=sizes, n=st.integers(2, 8))
def test_one_node_is_flat(make_device, kind, size, n):
    device = make_device()
    flat = predict(ask(kind, n, size, devices_per_node=n), device)
    assert predict(ask(kind, n, size), device).time_s == flat.time_s
    assert "hierarchical" not in str(flat.algorithm)


@pytest.mark.parametrize("kind", KINDS)
def test_alone_or_with_nothing_to_say_is_free(make_device, kind):
    device = make_device()
    assert predict(ask(kind, 1, 1e9), device).time_s == 0.0
    assert predict(ask(kind, 8, 0), device).time_s == 0.0
    assert predict(ask(kind, 8, np.array([0.0, 1e6])), device).time_s[0] == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_say_what_numbers_say(make_device, kind):
    device = make_device()
    size, n = np.array([256, 10_000, 10**6, 10**8, 10**9]), np.array([2, 4, 8, 16, 3])
    together = predict(ask(kind, n, size), device)
    for i in range(len(size)):
        alone = predict(ask(kind, int(n[i]), int(size[i])), device)
        for name in ("time_s", "wire_s", "latency_s", "sent_bytes"):
            assert getattr(together, name)[i] == pytest.approx(getattr(alone, name), rel=1e-12)
        assert together.algorithm[i] == alone.algorithm


def test_each_way_wins_where_it_is_known_to(make_device):
    device = make_device()
    assert predict(ask(size=1e3), device).algorithm == "ring, low latency"
    assert predict(ask(size=1e3, library="vllm"), device).algorithm == "one-shot"
    assert predict(ask(size=1e7, library="vllm"), make_device(has_reduction=False)).algorithm == "two-shot"
    assert predict(ask(size=1e9), device).algorithm == "in-switch-reduction, in switch"
    assert predict(ask(size=1e9), make_device(has_reduction=False)).algorithm == "ring, bulk"
    assert predict(ask(n=256, size=1e5), device).algorithm.startswith(("tree", "in-switch"))


def test_a_mesh_uses_only_the_links_to_members(make_device):
    mesh = make_device(topology="mesh", has_reduction=False)
    switch = make_device(has_reduction=False)
    ratio = {n: predict(ask(n=n, size=1e10), mesh).time_s / predict(ask(n=n, size=1e10), switch).time_s for n in (2, 8)}
    assert ratio[8] == pytest.approx(1.0)
    assert 4.0 < ratio[2] <= 7.0


def test_a_torus_uses_all_its_dimensions(make_device):
    torus = make_device(topology="torus-3d", num_devices=4096, has_reduction=False)
    assert predict(ask(n=64, size=1e9), torus).algorithm.startswith("torus-ring")


def test_a_bus_without_peer_access_crowds(make_device):
    bus = make_device(topology="bus", has_reduction=False)
    crowded, direct = (predict(ask(size=1e8, library="vllm", has_peer_to_peer=p), bus) for p in (False, True))
    assert crowded.time_s > 3 * direct.time_s
    assert "shot" not in crowded.algorithm
    assert predict(ask(n=2, size=1e8), bus).time_s == pytest.approx(
        predict(ask(n=2, size=1e8, has_peer_to_peer=True), bus).time_s, rel=1.0
    )


def test_a_rack_of_links_has_no_node_borders(make_device):
    rack = make_device(num_devices=72)
    assert predict(ask(n=64, devices_per_node=4), rack).time_s == predict(ask(n=64, devices_per_node=72), rack).time_s


def test_the_interval_is_wider_between_nodes(make_device):
    device = make_device()
    near, far = spread(ask(n=8), device), spread(ask(n=16), device)
    assert far.high_80_ratio > near.high_80_ratio > 1.0 > near.low_80_ratio > far.low_80_ratio
    assert far.because
    assert calibration(ask(library="vllm"), device).spread == near
    assert calibration(ask(library="sglang"), device).spread.high_80_ratio > near.high_80_ratio


def test_unknown_kinds_and_devices_without_measurements_say_so(make_device):
    with pytest.raises(UnknownName, match="all_reduce"):
        predict(ask("all_reduc"), make_device())
    bare = make_device()
    bare.calibrations.clear()
    with pytest.raises(OutOfRange, match="all_reduce by nccl"):
        predict(ask(), bare)


def test_the_interval_is_wider_beyond_what_was_measured():
    rack = get_device("gb200")
    measured, beyond = spread(ask(n=4), rack), spread(ask(n=64), rack)
    assert beyond.high_80_ratio > measured.high_80_ratio
    assert "4 devices" in beyond.because


@over(device_names())
def test_every_device_of_the_catalogue_has_an_answer(name):
    device = get_device(name)
    for kind in KINDS:
        found = predict(ask(kind, np.array([2, 4, 8, 16]), 1e6), device)
        assert np.all(np.isfinite(found.time_s))
        assert np.all(found.time_s >= found.wire_s)


@pytest.mark.bench
def test_a_million_messages_take_less_than_a_second():
    device, work = get_device("h100-sxm"), ask(size=np.linspace(1.0, 1e9, 1_000_000), library="vllm")
    predict(work, device)
    start = time.process_time()
    predict(work, device)
    assert time.process_time() - start < 1.0

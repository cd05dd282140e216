"""Schedules of offloading: steps worked by hand, and what holds for every schedule."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offloads import SCHEDULES, TIERS, WORK, step

from orrery.base.errors import ScenarioError
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work

every = pytest.mark.parametrize("name", SCHEDULES)

RATES = tuple(f.name for f in fields(Tiers) if f.name.endswith("_bytes_per_s"))


@st.composite
def works(draw):
    """Small works of every shape."""
    size, seconds = st.floats(0.5, 50.0), st.floats(0.01, 5.0)
    backward, retained = draw(seconds), draw(size)
    return replace(
        WORK,
        num_layers=draw(st.integers(1, 6)),
        num_layer_parameters=draw(size),
        num_outer_parameters=draw(size),
        forward_s=draw(seconds),
        backward_s=backward,
        weight_gradient_s=backward / 2,
        recompute_s=draw(seconds),
        boundary_bytes=retained / 4,
        kept_bytes=retained,
        activation_bytes=2 * retained,
        outer_forward_s=draw(seconds),
        outer_backward_s=draw(seconds),
        num_micro_batches=draw(st.integers(1, 3)),
    )


@st.composite
def tierss(draw):
    """Tiers of every rate."""
    rate = st.floats(1.0, 100.0)
    return replace(
        TIERS, num_ranks=draw(st.integers(1, 4)), is_link_duplex=draw(st.booleans()), **{n: draw(rate) for n in RATES}
    )


def test_all_on_device_by_hand():
    found = step("all-on-device")
    assert found.step_s == 4 * 1.0 + 4 * 3.0 + 40 * 28 / 1120
    assert found.held.gpu_bytes == 16 * 40 + 4 * 4 + 50
    retained = step("all-on-device", recomputes=False)
    assert retained.step_s == 4 * 1.0 + 4 * 2.0 + 1.0
    assert retained.held.gpu_bytes == 16 * 40 + 4 * 50 + 30
    assert step("all-on-device", has_buckets=True).held.gpu_bytes == 18 * 40 + 4 * 4 + 50


def test_zero_offload_by_hand():
    found = step("zero-offload")
    # forward 4, backward 12, the last layer's gradient 2; five chunks of 8 s on the host, the last one's copy 1.6
    assert found.step_s == pytest.approx(4 + 12 + 2 + 40 + 1.6)
    assert found.held.gpu_bytes == 2 * 40 + 2 * 2 * 10 + 4 * 4 + 50
    assert found.held.host_bytes == 14 * 40
    assert step("zero-offload", is_delayed=True).step_s == pytest.approx(41.6)
    held_up = step("zero-offload", tiers=replace(TIERS, pageable_bytes_per_s=5.0), is_pinned=False)
    assert held_up.step_s == pytest.approx(4 + 4 * (3 + 4) + 41.6)


def test_zero_offload_shares_the_host_work_between_ranks():
    four = step("zero-offload", tiers=replace(TIERS, num_ranks=4))
    assert four.held.host_bytes == 14 * 40 / 4
    assert four.choices["update_s"] == pytest.approx(10 + 1.6 / 4)


def test_zero_infinity_updates_in_turn_or_in_a_pipeline():
    given = {"num_subgroup_parameters": 10.0, "activations": "gpu", "parameters": "gpu"}
    turns = step("zero-infinity", **given)
    # four subgroups: 160 bytes read at 8, 280 moved at 28, 120 written at 4, parameters up beside the write
    assert turns.choices["update_s"] == pytest.approx(4 * (20 + 10 + 30))
    piped = step("zero-infinity", pipelines_update=True, **given)
    assert piped.choices["update_s"] == pytest.approx(20 + 10 + 4 * 30)
    assert piped.held.host_bytes == 2 * turns.held.host_bytes == 2 * 160


def test_zero_infinity_fetches_layers_under_the_computing():
    """Reading 20 bytes takes 2.5 s and copying them 2 s: forward shows the reads, backward (3 s a layer) hides them."""
    found = step("zero-infinity", activations="gpu", states="gpu")
    assert found.choices["passes_s"] == pytest.approx((2.5 + 2.0 + 3 * 2.5 + 1.0) + (2.5 + 2.0 + 4 * 3.0))


def test_zero_infinity_refuses_a_place_that_is_none():
    with pytest.raises(ScenarioError, match="write one of gpu, host, nvme"):
        step("zero-infinity", states="disk")


def test_overlapped_update_searches_the_best_share():
    fast = replace(TIERS, nvme_read_bytes_per_s=1e3, nvme_write_bytes_per_s=1e3, host_memory_bytes_per_s=1e4)
    found = step("overlapped-update", tiers=fast)
    fixed = [step("overlapped-update", tiers=fast, swapped_frac=x).step_s for x in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert found.step_s <= min(fixed)
    assert 0.0 <= found.choices["swapped_frac"] <= 1.0
    slow_link = step("overlapped-update", tiers=replace(fast, host_link_each_way_bytes_per_s=2.0))
    assert (
        slow_link.choices["swapped_frac"]
        < step("overlapped-update", tiers=replace(fast, host_link_each_way_bytes_per_s=1e3)).choices["swapped_frac"]
        == 1.0
    )


@settings(max_examples=50)
@given(work=works(), tiers=tierss())
def test_an_update_under_the_backward_pass_is_not_slower_than_one_behind_it(work, tiers):
    """At equal recomputation: the same bytes over the same lanes, without waiting."""
    work = replace(work, recompute_s=work.forward_s, num_outer_parameters=0.0)
    tiers = replace(tiers, host_bytes=1e9)
    overlapped = step("overlapped-update", work, tiers, swapped_frac=0.0)
    behind = step("zero-infinity", work, tiers, num_subgroup_parameters=1e9)
    reads_behind = work.num_parameters / tiers.num_ranks * 4.0 / tiers.nvme_read_bytes_per_s
    assert overlapped.step_s <= behind.step_s + reads_behind + 1e-9


@settings(max_examples=50)
@given(work=works(), tiers=tierss())
def test_interleaving_takes_the_best_stride(work, tiers):
    size = work.num_parameters / 7.0
    best = step("interleaved-update", work, tiers, num_subgroup_parameters=size)
    for stride in (1, 2, 3, 100):
        fixed = step("interleaved-update", work, tiers, num_subgroup_parameters=size, stride=stride)
        assert best.step_s <= fixed.step_s * (1 + 1e-9)


def test_interleaving_by_hand():
    """Two subgroups of 20: the host's takes 20 x (30 + 2 + 24) / 28 = 40 s, the device's 24 + 0.5 + 24."""
    found = step("interleaved-update", num_subgroup_parameters=20.0, stride=2)
    assert found.choices["update_s"] == pytest.approx(24 + 0.5 + 24)
    alone, off = step("interleaved-update", num_subgroup_parameters=20.0, stride=99), step("zero-offload")
    assert (alone.step_s, alone.held, alone.busy_s) == (off.step_s, off.held, off.busy_s)


def test_interleaving_is_dropped_where_the_link_makes_it_slower():
    """Copies of 12 bytes a parameter both ways take longer than all that the host's update saves."""
    slow, quick = (replace(TIERS, host_link_each_way_bytes_per_s=rate) for rate in (0.5, 50.0))
    by_link = {
        tiers: (step("interleaved-update", tiers=tiers, num_subgroup_parameters=5.0), step("zero-offload", tiers=tiers))
        for tiers in (slow, quick)
    }
    assert by_link[slow][0].step_s == by_link[slow][1].step_s
    assert by_link[quick][0].step_s < 0.8 * by_link[quick][1].step_s


def test_layerwise_update_holds_one_group():
    found = step("layerwise-update", num_groups=4)
    assert found.held.gpu_bytes == 2 * 40 + 10 * 14 + 4 * 50 + 30
    whole = step("layerwise-update", num_groups=1)
    assert whole.held.gpu_bytes == step("all-on-device", recomputes=False).held.gpu_bytes
    sizes = [step("layerwise-update", num_groups=k).held.gpu_bytes for k in (1, 2, 4)]
    assert sizes == sorted(sizes, reverse=True)


def test_layerwise_update_goes_back_only_as_far_as_the_group():
    """Forward 4; gradients of inputs of 1, 2, 3 and 4 layers, of weights of one; states 12 s up and down; update."""
    found = step("layerwise-update", num_groups=4)
    passes = [4 + above + 1 for above in (1, 2, 3, 4)]
    assert found.step_s == pytest.approx(sum(max(12, p) + 10 * 28 / 1120 + 12 for p in passes) / 4)


def test_zeroth_order_streaming_hides_a_link_that_keeps_up():
    retained = step("zeroth-order-streaming", is_offloaded=False)
    quick = replace(TIERS, host_link_each_way_bytes_per_s=20.0 / 2.0)  # a block in 2 s, two passes take more
    streamed = step("zeroth-order-streaming", tiers=quick)
    assert streamed.step_s == pytest.approx(retained.step_s + 2.0 + 2.0)  # the first block's way in, the last one's out
    slow = step("zeroth-order-streaming", tiers=replace(TIERS, host_link_each_way_bytes_per_s=5.0))
    assert slow.step_s >= 4 * 4.0 > retained.step_s
    assert streamed.held.gpu_bytes == 3 * 20 + 8 + 50 + 8
    assert retained.held.gpu_bytes == 4 * 20 + 8 + 50 + 8


def test_adapters_only():
    lora, qlora = step("adapters-only", rank=8), step("adapters-only", rank=8, is_4bit=True)
    extra = 16 * 8 * 2 + 4 * 4 + 50
    assert lora.held.gpu_bytes == 2 * 40 + extra
    assert qlora.held.gpu_bytes == pytest.approx(40 * 0.51587 + 20 + extra, rel=1e-5)
    assert lora.step_s == pytest.approx(4 * 1 + 4 * (3 - 1) + 16 * 28 / 1120)
    assert qlora.step_s > lora.step_s


@every
@settings(max_examples=25, deadline=None)
@given(work=works(), tiers=tierss(), faster=st.sampled_from(RATES))
def test_a_faster_rate_never_makes_a_step_longer(name, work, tiers, faster):
    if name == "overlapped-update":
        knobs = {"swapped_frac": 0.5}
    else:
        knobs = {"stride": 2, "num_subgroup_parameters": 3.0} if name == "interleaved-update" else {}
    before = step(name, work, tiers, **knobs)
    after = step(name, work, replace(tiers, **{faster: 2.0 * getattr(tiers, faster)}), **knobs)
    assert after.step_s <= before.step_s * (1 + 1e-12)
    assert after.held == before.held


@every
@settings(max_examples=25, deadline=None)
@given(work=works(), tiers=tierss())
def test_time_scales_with_all_seconds(name, work, tiers):
    slow = replace(work, **{f.name: 2.0 * getattr(work, f.name) for f in fields(Work) if f.name.endswith("_s")})
    halved = replace(tiers, **{n: getattr(tiers, n) / 2.0 for n in RATES})
    assert step(name, slow, halved).step_s == 2.0 * step(name, work, tiers).step_s


@every
@settings(max_examples=25, deadline=None)
@given(work=works(), tiers=tierss())
def test_a_step_takes_at_least_its_busiest_lane_and_its_kernels(name, work, tiers):
    found = step(name, work, tiers)
    if name != "layerwise-update":  # whose lanes count a whole round of steps
        assert found.step_s >= max(found.busy_s.values()) * (1 - 1e-12)
    assert found.step_s >= work.num_micro_batches * work.num_layers * work.forward_s
    assert found.held.gpu_bytes > 0.0


@every
def test_every_schedule_but_adapters_holds_less_or_moves_nothing(name):
    found, plain = step(name), step("all-on-device")
    moved = found.busy_s["to_gpu"] + found.busy_s["to_host"]
    assert (moved > 0.0) == (found.held.host_bytes + found.held.nvme_bytes > 0.0)
    if moved:
        assert found.held.gpu_bytes < plain.held.gpu_bytes

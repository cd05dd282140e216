"""What every schedule of offloading moves over each lane and holds in each tier, whatever its order: bytes by hand.

Four layers of 10 parameters and 6 around them are 46, of which each of four ranks has 11.5 (2.5 of a layer); two
micro-batches a step. Lanes: 10 bytes a second up and down the link, 8 from the drives, 4 to them, 16 between ranks.
"""

from dataclasses import fields, replace

import offloads
import pytest

from orrery.execution.offload.knobs import OffloadKnobs

WORK = replace(
    offloads.WORK,
    num_outer_parameters=6.0,
    weight_gradient_s=0.75,
    outer_forward_s=0.25,
    outer_backward_s=0.5,
    num_largest_parameters=5.0,
    num_adapter_parameters=3.0,
    num_micro_batches=2,
)
TIERS = replace(offloads.TIERS, num_ranks=4, collective_bytes_per_s=16.0)
PASSES = 2 * (4 * 1 + 0.25 + 0.5 + 4 * 2)
"""Both micro-batches forward and back, without anything computed again."""
SHARED = 0.75 / 16
"""Seconds of a byte between ranks: each passes on all but its own quarter."""
LAYER, PART = 20.0, 11.5
"""Bytes of a layer's parameters (and of its gradients), and parameters of a rank."""


def step(name, work=WORK, tiers=TIERS, **knobs):
    return offloads.step(name, work, tiers, **knobs)


def check(found, held, **busy):
    """Bytes on the device, on the host and on drives; seconds by lane."""
    assert (found.held.gpu_bytes, found.held.host_bytes, found.held.nvme_bytes) == pytest.approx(held)
    want = dict.fromkeys(found.busy_s, 0.0) | busy
    assert dict(found.busy_s) == pytest.approx(want)


def test_all_on_device():
    """Gradients are summed in the last micro-batch alone: twice 20 bytes a layer."""
    found = step("all-on-device")
    check(
        found,
        (16 * 46 + 4 * 4 + 50, 0, 0),
        gpu=PASSES + 2 * 4 * 1 + 46 * 28 / 1120,
        network=4 * 2 * LAYER * SHARED,
    )
    kept = step("all-on-device", recomputes=False, has_buckets=True)
    check(kept, (18 * 46 + 4 * 50 + 30, 0, 0), gpu=PASSES + 46 * 28 / 1120, network=4 * 2 * LAYER * SHARED)


def test_zero_offload():
    """Gradients of a rank's part go down in both micro-batches, and are summed there (6 bytes each); new parameters
    come up once and are gathered."""
    found = step("zero-offload")
    check(
        found,
        (2 * 46 + 2 * LAYER + 4 * 4 + 50, PART * 14, 0),
        gpu=PASSES + 2 * 4 * 1,
        network=(8 * LAYER + 2 * 46) * SHARED,
        to_host=(8 * 5 + 6 / 4 * 2) / 10,
        cpu=8 * 2.5 * 6 / 28 + PART * 28 / 28,
        to_gpu=PART * 2 / 10,
    )
    alone = step("zero-offload", replace(WORK, num_micro_batches=1), recomputes=False)
    assert alone.busy_s["cpu"] == pytest.approx(PART)
    assert alone.busy_s["gpu"] == pytest.approx(PASSES / 2)
    pageable = step("zero-offload", tiers=replace(TIERS, pageable_bytes_per_s=2.0), is_pinned=False)
    assert pageable.busy_s["to_host"] == pytest.approx(8 * 5 / 2 + 0.3)
    late = step("zero-offload", is_delayed=True)
    passes_s, update_s = found.step_s - found.choices["update_s"], found.choices["update_s"]
    assert late.step_s == pytest.approx(max(passes_s, update_s, *found.busy_s.values()))


def test_zero_infinity_with_all_on_drives():
    """Every pass reads each rank's quarter of a layer and gathers it; backward passes bring layers' inputs up and
    write gradients in FP32; the update reads 16 bytes a parameter and writes 14."""
    found = step("zero-infinity")
    check(
        found,
        (3 * LAYER / 3 + 2 * 4 + 50, 4 * 4 + 2 * LAYER / 4 + PART * 16, PART * (2 + 16)),
        gpu=PASSES + 2 * 4 * 1,
        read=2 * 8 * 5 / 8 + PART * 16 / 8,
        write=2 * 4 * 2.5 * 4 / 4 + PART * 14 / 4,
        to_gpu=2 * (4 * 5 + 4 * (5 + 4)) / 10,
        to_host=2 * (4 * 4 + 4 * 5) / 10,
        network=2 * (8 + 4) * LAYER * SHARED,
        cpu=PART * 28 / 28,
    )


def test_zero_infinity_with_activations_on_drives_and_all_else_near():
    found = step("zero-infinity", parameters="host", states="host", activations="nvme", num_pieces=6)
    check(
        found,
        (3 * LAYER / 6 + 2 * 4 + 50, PART * (2 + 16), 4 * 4),
        gpu=PASSES + 2 * 4 * 1,
        read=2 * 4 * 4 / 8,
        write=2 * 4 * 4 / 4,
        to_gpu=2 * (4 * 5 + 4 * (5 + 4)) / 10,
        to_host=2 * (4 * 4 + 4 * 5) / 10,
        network=2 * (8 + 4) * LAYER * SHARED,
        cpu=PART * 28 / 28,
    )


def test_zero_infinity_with_all_on_the_device():
    """Nothing but the ranks' exchanges; the device updates."""
    found = step("zero-infinity", parameters="gpu", states="gpu", activations="gpu")
    check(
        found,
        (LAYER + 2 * 4 + 50 + PART * 18 + 4 * 4, 0, 0),
        gpu=PASSES + 2 * 4 * 1 + PART * 28 / 1120,
        network=2 * (8 + 4) * LAYER * SHARED,
    )
    near = step("zero-infinity", parameters="gpu", states="host", activations="gpu")
    assert near.busy_s["to_gpu"] == pytest.approx(PART * 2 / 10)
    assert near.busy_s["to_host"] == pytest.approx(2 * 4 * 5 / 10)


def test_subgroups_of_an_update_share_its_bytes():
    """11.5 parameters in subgroups of 4 are three; two of them lie on the host at once where they overlap."""
    turns, piped = (step("zero-infinity", num_subgroup_parameters=4.0, pipelines_update=x) for x in (False, True))
    assert turns.busy_s == pytest.approx(piped.busy_s)
    assert turns.held.host_bytes == pytest.approx(16 + 10 + 4 * 16)
    assert piped.held.host_bytes == pytest.approx(16 + 10 + 2 * 4 * 16)
    assert turns.choices["update_s"] == pytest.approx(PART * (16 / 8 + 28 / 28 + 14 / 4))
    each = PART / 3
    assert piped.choices["update_s"] == pytest.approx(each * 2 + each + PART * 14 / 4)


def test_interleaved_update():
    """Two subgroups of 5.75 parameters, the second through the device: 12 bytes each up and down, beside 26 bytes a
    parameter of other traffic on the host (its own 2, and 24 of the device's)."""
    found = step("interleaved-update", num_subgroup_parameters=6.0, stride=2)
    states, gradients = 5.75 * 12, 2 * 4 * 2.5 * 4
    check(
        found,
        (PART * 4 + 2 * states + 2 * LAYER + 4 * 4 + 50, PART * (12 + 4), 0),
        gpu=PASSES + 2 * 4 * 1 + 5.75 * 28 / 1120,
        network=2 * 12 * LAYER * SHARED,
        to_gpu=(states + 5.75 * 2) / 10,
        to_host=(states + gradients) / 10,
        cpu=5.75 * (28 + 2 + 26) / 28,
    )
    none = step("interleaved-update", num_subgroup_parameters=6.0, stride=3)
    off = step("zero-offload")
    assert (none.step_s, none.held, none.busy_s) == (off.step_s, off.held, off.busy_s)
    every = step("interleaved-update", num_subgroup_parameters=6.0, stride=1, recomputes=False)
    assert every.busy_s["cpu"] == 0
    assert every.busy_s["gpu"] == pytest.approx(PASSES + PART * 28 / 1120)
    assert every.busy_s["to_host"] == pytest.approx((2 * states + gradients) / 10)
    alone = step("interleaved-update", tiers=replace(TIERS, num_ranks=1), num_subgroup_parameters=25.0, stride=2)
    assert alone.held.gpu_bytes == 46 * 4 + 2 * 23 * 12 + 4 * 4 + 50  # no layer is gathered
    assert alone.busy_s["network"] == 0


def test_layerwise_update():
    """Six groups, of 10 parameters at most; above them 4/6, 8/6, … layers go back, all four from the last on."""
    found = step("layerwise-update")
    assert found.choices["groups"] == 6
    above = sum(min(4, (g + 1) * 4 / 6) for g in range(6))
    passes = 6 * (4 + 0.25 + 0.5 + 4 / 6 * 0.75) + above * (2 - 0.75)
    check(
        found,
        (46 * 2 + 10 * 14 + 4 * 50 + 30, 46 * 12, 0),
        gpu=2 * passes + 6 * 10 * 28 / 1120,
        to_gpu=6 * 10 * 12 / 10,
        to_host=6 * 10 * 12 / 10,
    )
    again = step("layerwise-update", recomputes=True)
    assert again.busy_s["gpu"] == pytest.approx(2 * (passes + above * 1) + 6 * 10 * 28 / 1120)
    assert again.held.gpu_bytes == 46 * 2 + 10 * 14 + 4 * 4 + 50


@pytest.mark.parametrize(("groups", "size"), [(1, 46), (2, 23), (3, 23), (4, 13)])
def test_parameters_of_the_largest_group(groups, size):
    """Layers are dealt out, rounded up; the outer weights are one half at the bottom and one at the top."""
    found = step("layerwise-update", num_groups=groups)
    assert found.held.gpu_bytes == 46 * 2 + size * 14 + 4 * 50 + 30
    wide = step("layerwise-update", replace(WORK, num_outer_parameters=60.0))
    assert wide.held.gpu_bytes == 100 * 2 + 30 * 14 + 4 * 50 + 30


def test_overlapped_update_with_a_host_that_holds_a_part():
    """Of four layers' 12 bytes (4 and half of 16 more) a host of 90 bytes holds 10 beside 80 of buffers; the states of
    a layer's part are read and written once a step, behind the last micro-batch."""
    found = step("overlapped-update", tiers=replace(TIERS, host_bytes=90.0), swapped_frac=0.5)
    swapped, away = 12, 1 - 10 / 48
    check(
        found,
        (2 * 2 * LAYER + 50 + 2 * swapped + 12, 80 + 10, away * 48 + PART * 14),
        gpu=PASSES + 2 * 4 * 0.5 * 0.5,
        read=(2 * (8 * 5 + 4 * away * swapped) + 4 * 2.5 * 12) / 8,
        write=(2 * 4 * away * swapped + 4 * 2.5 * 14) / 4,
        to_gpu=2 * (8 * 5 + 4 * swapped) / 10,
        to_host=2 * (4 * swapped + 4 * 5) / 10,
        network=2 * 12 * LAYER * SHARED,
        cpu=4 * 2.5 * 28 / 28,
    )
    assert {k: found.choices[k] for k in ("swapped_frac", "swapped_bytes")} == {
        "swapped_frac": 0.5,
        "swapped_bytes": 48,
    }
    full = step("overlapped-update", swapped_frac=1.0, num_buffers=3)
    assert full.held.host_bytes == 80 + 4 * 20
    assert full.held.nvme_bytes == PART * 14
    assert full.held.gpu_bytes == 2 * 3 * LAYER + 50 + 2 * 20 + 12
    assert full.busy_s["gpu"] == pytest.approx(PASSES)


def test_an_update_in_turn():
    """After the passes 16 bytes a parameter come from the drives and 14 go back, a layer's 2.5 parameters at a time."""
    in_turn = {"tiers": replace(TIERS, host_bytes=90.0), "swapped_frac": 0.5, "is_overlapped": False}
    found, under = step("overlapped-update", **in_turn), step("overlapped-update", **in_turn | {"is_overlapped": True})
    assert found.choices["update_s"] == pytest.approx(4 * 2.5 * (16 / 8 + 28 / 28 + 14 / 4))
    assert found.busy_s["read"] == pytest.approx(under.busy_s["read"] + 4 * 2.5 * 4 / 8)
    assert found.busy_s["write"] == pytest.approx(under.busy_s["write"] + 4 * 2.5 * 4 / 4)
    assert found.held.nvme_bytes == pytest.approx(under.held.nvme_bytes + 4 * 2.5 * 4)
    assert found.step_s > under.step_s


def test_nothing_overlapped_and_nothing_swapped_is_zero_infinity():
    """Layers alone, computed again in whole, one micro-batch, in subgroups of one layer: the same step and lanes."""
    work = replace(WORK, num_outer_parameters=0.0, num_micro_batches=1, recompute_s=WORK.forward_s)
    off = step("overlapped-update", work, swapped_frac=0.0, is_overlapped=False)
    other = step("zero-infinity", work, num_subgroup_parameters=2.5)
    assert off.step_s == pytest.approx(other.step_s)
    assert dict(off.busy_s) == pytest.approx(dict(other.busy_s))
    assert off.choices["update_s"] == pytest.approx(other.choices["update_s"])


def test_overlap_gains_nothing_where_an_update_takes_no_time():
    quick = replace(TIERS, nvme_read_bytes_per_s=1e12, nvme_write_bytes_per_s=1e12, host_memory_bytes_per_s=1e12)
    steps = [step("overlapped-update", tiers=quick, swapped_frac=0.5, is_overlapped=x).step_s for x in (True, False)]
    assert steps[0] == pytest.approx(steps[1])


def test_an_update_follows_the_last_micro_batch():
    """One micro-batch: the same update; its step is no longer than two, and states move behind its gradients."""
    one = step("overlapped-update", replace(WORK, num_micro_batches=1), swapped_frac=0.5)
    two = step("overlapped-update", swapped_frac=0.5)
    assert one.busy_s["cpu"] == two.busy_s["cpu"] == pytest.approx(4 * 2.5)
    assert one.busy_s["gpu"] == pytest.approx(two.busy_s["gpu"] / 2)
    assert one.step_s < two.step_s


def test_zeroth_order_streaming():
    """Two forward passes and four sweeps of a layer, read and written, a visit; no backward pass."""
    found = step("zeroth-order-streaming")
    visit_s = 2 * 1 + 4 * 2 * LAYER / 1120
    check(
        found,
        (6 * 2 + 3 * LAYER + 5 * 2 + 50 + 2 * 4, 4 * LAYER, 0),
        gpu=2 * (4 * visit_s + 2 * 0.25),
        to_gpu=2 * 4 * LAYER / 10,
        to_host=2 * 4 * LAYER / 10,
    )
    many = step("zeroth-order-streaming", num_buffers=9)
    assert many.held.gpu_bytes == 12 + 4 * LAYER + 10 + 50 + 8
    here = step("zeroth-order-streaming", is_offloaded=False)
    check(here, (12 + 4 * LAYER + 10 + 50 + 8, 0, 0), gpu=2 * (4 * visit_s + 2 * 0.25))


def test_adapters_only():
    """Rank 16 on three parameters each is 48, of 16 bytes; weights of 4 bits are widened in every visit of a layer."""
    nf4 = 0.5 + 1 / 64 + 4 / 16384
    plain = PASSES - 2 * 4 * 0.75
    found = step("adapters-only")
    check(
        found,
        (46 * 2 + 16 * 48 + 4 * 4 + 50, 0, 0),
        gpu=plain + 2 * 4 * 1 + 48 * 28 / 1120,
    )
    widened = (LAYER + 10 * nf4) / 1120
    narrow = step("adapters-only", is_4bit=True, recomputes=False, rank=8)
    check(
        narrow,
        (40 * nf4 + LAYER + 12 + 16 * 24 + 4 * 50 + 30, 0, 0),
        gpu=plain + 2 * 2 * 4 * widened + 24 * 28 / 1120,
    )
    again = step("adapters-only", is_4bit=True)
    assert again.busy_s["gpu"] == pytest.approx(plain + 8 + 2 * 3 * 4 * widened + 48 * 28 / 1120)
    assert found.choices["adapter_parameters"] == 48


def test_what_schedules_say_of_themselves():
    """Which share states, go back, fetch, and where they stand among those that learn as on the device."""
    told = {
        name: (k.shares_states, k.has_backward, k.num_forward, k.rung, k.fetches_from, k.trains)
        for name, k in ((name, technique.knobs) for name, technique in offloads.SCHEDULES.items())
    }
    assert told == {
        "all-on-device": (False, True, 1, 0, "device", "all weights"),
        "adapters-only": (False, True, 1, 0, "device", "adapters"),
        "layerwise-update": (False, True, 1, 0, "device", "all weights"),
        "zero-offload": (True, True, 1, 1, "device", "all weights"),
        "interleaved-update": (True, True, 1, 2, "device", "all weights"),
        "overlapped-update": (True, True, 1, 3, "nvme", "all weights"),
        "zero-infinity": (True, True, 1, 4, "nvme", "all weights"),
        "zeroth-order-streaming": (False, False, 2, 0, "host", "all weights"),
    }
    assert not fields(OffloadKnobs)


@pytest.mark.parametrize(
    ("name", "knob", "wrong"),
    [
        ("zero-infinity", "num_pieces", 0),
        ("zero-infinity", "num_subgroup_parameters", 0.0),
        ("interleaved-update", "num_subgroup_parameters", 0.0),
        ("interleaved-update", "stride", -1),
        ("layerwise-update", "num_groups", -1),
        ("layerwise-update", "num_groups", 10_001),
        ("overlapped-update", "num_buffers", 0),
        ("overlapped-update", "swapped_frac", 1.01),
        ("zeroth-order-streaming", "num_buffers", 0),
        ("adapters-only", "rank", 0),
    ],
)
def test_knobs_out_of_range_are_refused(name, knob, wrong):
    knobs = offloads.SCHEDULES[name].knobs
    with pytest.raises(Exception, match=knob):
        knobs(**{knob: wrong})
    assert getattr(knobs(**{knob: 1}), knob) == 1

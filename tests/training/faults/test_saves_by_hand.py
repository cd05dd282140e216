"""Ways to save on links of round rates, and what outlives lost nodes."""

from dataclasses import replace
from math import e, inf

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.faults.erasure import FIELD, INVERSE, PRODUCT, code_matrix, decode, encode
from orrery.training.faults.saving import SaveCost, Saving, memory_plan, storage_plan, streamed
from orrery.training.faults.survival import mean_time_to_loss_s, survival_frac, survived_losses_frac
from orrery.training.faults.techniques import (
    checkpoint_blocking,
    checkpoint_in_memory,
    checkpoint_lazy,
    checkpoint_snapshot,
)

SAVING = Saving(
    shard_bytes=100.0,
    num_devices=8,
    devices_per_node=4,
    forward_s=1.0,
    backward_s=2.0,
    update_s=0.5,
    device_to_host_bytes_per_s=50.0,
    storage_bytes_per_s=160.0,
)


def test_links_are_shared_by_who_uses_them():
    """Storage 160 / 8 = 20 bytes/s a device; a node's disk 40 / 4, its memory 100 / 4, its buffer 480 / 4."""
    assert (SAVING.step_s, SAVING.immutable_s) == (3.5, 3.0)
    assert (SAVING.copy_bytes_per_s, SAVING.write_bytes_per_s, SAVING.buffer_bytes) == (50.0, 20.0, inf)
    narrow = replace(SAVING, node_storage_bytes_per_s=40.0, host_memory_bytes_per_s=100.0, host_buffer_bytes=480.0)
    assert (narrow.copy_bytes_per_s, narrow.write_bytes_per_s, narrow.buffer_bytes) == (25.0, 10.0, 120.0)


def test_blocking_saves():
    """2 s of copy and 5 s of write."""
    rule, knobs = checkpoint_blocking.rule, checkpoint_blocking.BlockingKnobs
    assert not knobs().is_streamed
    found = rule(SAVING, 1, knobs())
    assert (found.blocked_s, found.durable_lag_s, found.load_s) == (7.0, 0.0, 7.0)
    assert rule(SAVING, 1, knobs(is_streamed=True)).blocked_s == 5.0


def test_snapshot_saves():
    """The next of every 3.5 s finds 5 - 3.5 s of the write before it; every 7 s none. Memory holds 4 x 100 bytes."""
    rule, knobs = checkpoint_snapshot.rule, checkpoint_snapshot.SnapshotKnobs
    assert knobs().waits_for_write
    seldom = rule(SAVING, 2, knobs())
    assert (seldom.blocked_s, seldom.durable_lag_s, seldom.load_s, seldom.host_bytes) == (2.0, 3.0, 7.0, 400.0)
    tight = rule(replace(SAVING, storage_bytes_per_s=80.0), 1, knobs())
    # a write takes 10 s: in the steady state 3.5 s of steps and the stop make up for it
    assert tight.blocked_s == pytest.approx(10.0 - 3.5)
    small = replace(SAVING, host_buffer_bytes=240.0)
    assert rule(small, 2, knobs()).host_bytes == 240.0
    free = rule(SAVING, 1, knobs(waits_for_write=False))
    assert free.durable_lag_s >= 3.0


def test_a_snapshot_behind_another_is_durable_later():
    """Saves every 3.5 s of steps bring 100 bytes, of which 20 x 5.5 s are written: nothing is left. At 10 bytes/s 45
    more are left each time, until a buffer of 150 bytes is full and holds saves up."""
    slow = replace(SAVING, storage_bytes_per_s=80.0, host_buffer_bytes=600.0)
    knobs = checkpoint_snapshot.SnapshotKnobs(waits_for_write=False)
    found = checkpoint_snapshot.rule(slow, 1, knobs)
    # steady: 100 = 10 (3.5 + stop)
    assert found.blocked_s == pytest.approx(6.5)
    left = 150.0 - 100.0 + 65.0
    assert found.durable_lag_s == pytest.approx(left / 10 + 10 - 2)


def test_lazy_saves_hide_behind_passes():
    """2 s of copy are less than 3 s of passes; of 12 s (a slow link) 9 show; where half of them is free, 10.5."""
    rule, knobs = checkpoint_lazy.rule, checkpoint_lazy.LazyKnobs
    assert knobs().hidden_frac == 1.0
    quick = rule(SAVING, 2, knobs())
    assert (quick.blocked_s, quick.durable_lag_s, quick.load_s, quick.host_bytes) == (0.0, 5.0, 7.0, 400.0)
    slow = replace(SAVING, device_to_host_bytes_per_s=100 / 12)
    assert rule(slow, 9, knobs()).blocked_s == pytest.approx(9.0)
    assert rule(slow, 9, knobs(hidden_frac=0.5)).blocked_s == pytest.approx(10.5)
    assert rule(slow, 9, knobs()).durable_lag_s == pytest.approx(12.0 - 9.0)


def test_a_stream_through_a_buffer():
    """Of 100 bytes 40 find no room in a buffer of 60 and wait for 2 s of writing; a copy takes 2 s as well. All is out
    before the next save. At 10 bytes/s, copies hide behind 2 s, but a write of 10 s is waited for again and again."""
    small = replace(SAVING, host_buffer_bytes=240.0)
    found = streamed(small, 1, 0.0, waits_for_write=False)
    assert (found.first_s, found.steady_s, found.left_bytes) == (pytest.approx(2.0), pytest.approx(2.0), 0.0)
    found = streamed(replace(SAVING, storage_bytes_per_s=80.0), 1, 2.0, waits_for_write=True)
    assert (found.first_s, found.steady_s) == (0.0, pytest.approx(6.5))


def test_in_memory_saves():
    """Two replicas copy 50 bytes each in 1 s, behind 3 s of passes. Two parities of a node's 200 bytes go out at 40
    bytes/s in 10 s, and pass memory at 200 bytes/s twice in 4 s: every third step. A lost node reads 2 pieces."""
    rule, knobs = checkpoint_in_memory.rule, checkpoint_in_memory.InMemoryKnobs
    saving = replace(SAVING, num_replicas=2, node_link_bytes_per_s=40.0, host_memory_bytes_per_s=200.0)
    found = rule(saving, 9, knobs(group_nodes=4, num_parity=2))
    assert (found.blocked_s, found.memory_lag_s, found.durable_lag_s) == (0.0, 10.0, 10.0)
    assert (found.load_s, found.memory_load_s, found.rebuild_s) == (2.5 + 1.0, 2.0, 10.0)
    assert (found.num_node_losses, found.node_link_bytes, found.host_bytes) == (2, 400.0, 2 * 200.0 * 4 / 2)
    assert found.memory_interval_s == pytest.approx(3 * 3.5)
    thin = rule(replace(saving, host_memory_bytes_per_s=80.0), 9, knobs(group_nodes=4, num_parity=2))
    assert (thin.blocked_s, thin.memory_lag_s) == (0.0, 10.0)
    # 0.5 s of stop within a hundredth of the time: 50 s, 15 steps
    slow = rule(replace(saving, device_to_host_bytes_per_s=50 / 3.5), 9, knobs(group_nodes=4, num_parity=1))
    assert slow.blocked_s == pytest.approx(0.5)
    assert slow.memory_interval_s == pytest.approx(15 * 3.5)
    none = rule(saving, 9, knobs(group_nodes=4, num_parity=0))
    assert (none.memory_interval_s, none.memory_lag_s, none.durable_lag_s) == (3.5, 0.0, 2.5)
    assert (knobs().group_nodes, knobs().num_parity, knobs().budget_frac) == (6, 1, 0.01)
    exact = rule(replace(saving, node_link_bytes_per_s=400 / 7.0), 9, knobs(group_nodes=4, num_parity=2))
    assert exact.memory_interval_s == pytest.approx(7.0)  # two steps, not three for a rounding
    knobs(group_nodes=2, num_parity=1)
    with pytest.raises(ScenarioError, match="fewer"):
        knobs(group_nodes=2, num_parity=2)


def test_saves_as_a_run_sees_them():
    cost = SaveCost(blocked_s=1.0, durable_lag_s=2.0, load_s=3.0)
    plan_of = storage_plan(SAVING, cost, 4)
    assert (plan_of.interval_s, plan_of.blocked_s, plan_of.lag_s, plan_of.load_s) == (14.0, 1.0, 2.0, 3.0)
    assert (cost.num_node_losses, cost.host_bytes, cost.node_link_bytes) == (0, 0.0, 0.0)
    with pytest.raises(ScenarioError, match="nothing in memory"):
        memory_plan(cost)
    kept = memory_plan(replace(cost, memory_lag_s=0.5, memory_load_s=0.25, memory_interval_s=7.0))
    assert (kept.interval_s, kept.blocked_s, kept.lag_s, kept.load_s) == (7.0, 1.0, 0.5, 0.25)


def test_groups_of_nodes_that_lose_some():
    """Two groups of three with one parity; a node is lost with 1 - 1/e. Of two losses 9 of 15 ways are survived."""
    lost = 1 - 1 / e
    one = (1 - lost) ** 3 + 3 * lost * (1 - lost) ** 2
    assert survival_frac(2, 3, 1, 10.0, 10.0) == pytest.approx(one**2)
    assert survived_losses_frac(2, 3, 1, 2) == pytest.approx(9 / 15)
    assert [survived_losses_frac(2, 3, 1, k) for k in (0, 1, 3)] == [1.0, 1.0, 0.0]
    assert survived_losses_frac(2, 3, 2, 4) == pytest.approx(9 / 15)
    # no parity: the first of six lives; one: up at 3/10, down at 1/2, up at 2/10, of two groups
    assert mean_time_to_loss_s(2, 3, 0, 10.0, 2.0) == pytest.approx(10 / 6)
    up, again, down = 0.3, 0.2, 0.5
    assert mean_time_to_loss_s(2, 3, 1, 10.0, 2.0) == pytest.approx((up + again + down) / (up * again) / 2)


def test_the_field_of_256_elements():
    """x * x = x^2; x^7 * x = x^8 = x^4 + x^3 + x^2 + 1; every element times its inverse is 1."""
    assert (PRODUCT[2, 2], PRODUCT[0x80, 2], PRODUCT[3, 7]) == (4, 0x1D, 9)
    elements = np.arange(1, FIELD)
    assert (PRODUCT[elements, INVERSE[elements]] == 1).all()
    assert (INVERSE[0], PRODUCT[0].any(), PRODUCT[:, 0].any()) == (0, False, False)


def test_first_parities_are_plain_sums():
    matrix = code_matrix(3, 2)
    assert matrix[0].tolist() == [1, 1, 1]
    assert matrix[:, 0].tolist() == [1, 1]
    assert len({*matrix[1].tolist()}) == 3
    assert code_matrix(3, 0).shape == (0, 3)
    assert code_matrix(200, 56).shape == (56, 200)
    for data, parity in ((0, 1), (1, -1), (200, 57)):
        with pytest.raises(ScenarioError, match="code"):
            code_matrix(data, parity)


def test_lost_pieces_come_back_from_any_parity():
    data = np.array([[1, 2], [3, 4], [250, 9]], np.uint8)
    parity = encode(data, 2)
    assert parity[0].tolist() == [1 ^ 3 ^ 250, 2 ^ 4 ^ 9]
    for pieces in ({0: data[0], 3: parity[0], 4: parity[1]}, {0: data[0], 1: data[1], 4: parity[1]}):
        assert decode(pieces, 3, 2).tolist() == data.tolist()
    assert decode(dict(enumerate(data)), 3, 2).tolist() == data.tolist()
    with pytest.raises(OutOfRange, match="2 pieces"):
        decode({0: data[0], 3: parity[0]}, 3, 2)

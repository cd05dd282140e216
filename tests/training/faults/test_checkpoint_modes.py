"""Four ways of saving: what each stops, against hand-worked numbers and a buffer that is filled bit by bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.base.technique import discover
from orrery.training.faults import techniques
from orrery.training.faults.goodput import expected, expected_two_level
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan
from orrery.training.faults.saving import Saving, memory_plan, storage_plan, streamed
from orrery.training.faults.techniques import checkpoint_in_memory as in_memory
from orrery.training.faults.techniques.checkpoint_blocking import BlockingKnobs
from orrery.training.faults.techniques.checkpoint_blocking import rule as blocking
from orrery.training.faults.techniques.checkpoint_in_memory import InMemoryKnobs
from orrery.training.faults.techniques.checkpoint_lazy import LazyKnobs
from orrery.training.faults.techniques.checkpoint_lazy import rule as lazy
from orrery.training.faults.techniques.checkpoint_snapshot import SnapshotKnobs
from orrery.training.faults.techniques.checkpoint_snapshot import rule as snapshot

GB = 1e9
STATE = Saving(
    shard_bytes=10 * GB,
    num_devices=32,
    devices_per_node=4,
    forward_s=1.0,
    backward_s=2.0,
    update_s=0.5,
    device_to_host_bytes_per_s=20 * GB,
    storage_bytes_per_s=64 * GB,
    node_storage_bytes_per_s=10 * GB,
    host_memory_bytes_per_s=160 * GB,
    node_link_bytes_per_s=25 * GB,
)


def test_all_four_are_found_at_the_seam():
    found = [t.name for t in discover(techniques) if t.extension_point == "training.checkpoint"]
    assert found == ["checkpoint-blocking", "checkpoint-in-memory", "checkpoint-lazy", "checkpoint-snapshot"]


def test_rates_are_shared_by_who_uses_them():
    assert STATE.copy_bytes_per_s == 20 * GB
    assert STATE.write_bytes_per_s == 2 * GB
    assert replace(STATE, host_memory_bytes_per_s=40 * GB).copy_bytes_per_s == 10 * GB
    assert replace(STATE, node_storage_bytes_per_s=4 * GB).write_bytes_per_s == GB
    with pytest.raises(ScenarioError, match="shard_bytes"):
        replace(STATE, shard_bytes=0.0)


def test_stops_worked_by_hand():
    assert blocking(STATE, 10, BlockingKnobs()).blocked_s == pytest.approx(0.5 + 5.0)
    assert blocking(STATE, 10, BlockingKnobs(is_streamed=True)).blocked_s == pytest.approx(5.0)
    assert snapshot(STATE, 10, SnapshotKnobs()).blocked_s == pytest.approx(0.5)
    assert lazy(STATE, 10, LazyKnobs()).blocked_s == 0.0
    assert lazy(replace(STATE, shard_bytes=80 * GB), 30, LazyKnobs()).blocked_s == pytest.approx(4.0 - 3.0)
    assert lazy(replace(STATE, shard_bytes=80 * GB), 30, LazyKnobs(hidden_frac=0.5)).blocked_s == pytest.approx(2.5)


def test_when_storage_is_slower_than_saves_it_sets_the_pace():
    """A save each step writes 5 s of data every 3.5 s: whatever the way, the rest is waited for."""
    bounded = replace(STATE, host_buffer_bytes=40 * GB)
    assert lazy(bounded, 1, LazyKnobs()).blocked_s == pytest.approx(5.0 - 3.5)
    assert snapshot(STATE, 1, SnapshotKnobs()).blocked_s == pytest.approx(5.0 - 3.5)
    late = snapshot(replace(STATE, update_s=0.9), 1, SnapshotKnobs())
    assert late.blocked_s == pytest.approx(5.0 - 3.9)


def test_the_first_save_finds_the_buffer_empty():
    found = streamed(replace(STATE, host_buffer_bytes=60 * GB), 1, 3.0, waits_for_write=False)
    assert found.first_s == 0.0
    assert found.steady_s == pytest.approx(1.5)
    assert found.left_bytes > 0.0


def filled_bit_by_bit(saving, interval_steps, hidden_s, saves, dt):
    """The stop of each save: copies and writes in small steps of time."""
    held, stops = 0.0, []
    for _ in range(saves):
        copied, now = 0.0, 0.0
        while copied < saving.shard_bytes - 1.0:
            held = max(0.0, held - saving.write_bytes_per_s * dt)
            more = min(saving.copy_bytes_per_s * dt, saving.shard_bytes - copied, saving.buffer_bytes - held)
            copied, held, now = copied + max(0.0, more), held + max(0.0, more), now + dt
        stop = max(0.0, now - hidden_s)
        held = max(0.0, held - saving.write_bytes_per_s * (interval_steps * saving.step_s + stop - now))
        stops.append(stop)
    return stops


@settings(deadline=None, max_examples=20)
@given(st.floats(2.0, 30.0), st.floats(4.0, 60.0), st.floats(0.5, 4.0), st.integers(1, 4), st.floats(0.0, 2.0))
def test_the_stream_through_a_buffer_is_as_if_filled_bit_by_bit(shard, buffer, write, steps, hidden):
    saving = replace(
        STATE,
        shard_bytes=shard * GB,
        host_buffer_bytes=4 * buffer * GB,
        node_storage_bytes_per_s=4 * write * GB,
        storage_bytes_per_s=1e15,
    )
    kept = saving.shard_bytes - saving.write_bytes_per_s * (steps * saving.step_s + shard / 20.0)
    assume(abs(kept) > 0.05 * saving.shard_bytes)  # else the buffer takes for ever to fill
    saves = 30 + int(saving.buffer_bytes / kept if kept > 0.0 else 0.0)
    requested = filled_bit_by_bit(saving, steps, hidden, saves, 0.01)
    found = streamed(saving, steps, hidden, waits_for_write=False)
    assert found.first_s == pytest.approx(requested[0], abs=0.25)  # small steps of time miss when the buffer is full
    assert found.steady_s == pytest.approx(requested[-1], abs=0.25)


@settings(deadline=None)
@given(st.floats(0.5, 60.0), st.integers(1, 20), st.floats(8.0, 400.0))
def test_each_way_stops_no_longer_than_the_one_before_it(shard, steps, buffer):
    saving = replace(STATE, shard_bytes=shard * GB, host_buffer_bytes=buffer * GB)
    plain = blocking(saving, steps, BlockingKnobs()).blocked_s
    copied = snapshot(saving, steps, SnapshotKnobs()).blocked_s
    hidden = lazy(saving, steps, LazyKnobs()).blocked_s
    assert hidden <= copied + 1e-6
    assert copied <= plain + max(0.0, saving.shard_bytes / saving.write_bytes_per_s - steps * saving.step_s) + 1e-6


def test_in_memory_saves_share_the_snapshot_among_replicas():
    cost = in_memory.rule(replace(STATE, num_replicas=8), 100, InMemoryKnobs(group_nodes=4, num_parity=1))
    assert cost.blocked_s == 0.0
    assert cost.node_link_bytes == pytest.approx(5 * GB)
    assert cost.memory_lag_s == pytest.approx(0.2)
    assert cost.memory_interval_s == STATE.step_s
    assert cost.host_bytes == pytest.approx(2 * 5 * GB * 4 / 3)
    assert cost.rebuild_s == pytest.approx(3 * 5 / 25)


def test_in_memory_saves_keep_to_their_budget():
    saving = replace(STATE, shard_bytes=100 * GB)
    for budget in (0.01, 0.1, 1.0):
        cost = in_memory.rule(saving, 100, InMemoryKnobs(budget_frac=budget))
        assert cost.blocked_s == pytest.approx(2.0)
        assert cost.blocked_s <= budget * cost.memory_interval_s
        assert cost.memory_interval_s >= cost.memory_lag_s
    with pytest.raises(ScenarioError, match="fewer than the group"):
        InMemoryKnobs(group_nodes=2, num_parity=2)


def test_memory_loses_less_than_storage_at_the_same_failures():
    job = FaultModel(num_devices=32, devices_per_node=4, device_mtbf_s=3e6, software_mtbf_s=2e5, restart_s=60.0)
    run, saving = RunPlan(step_s=STATE.step_s, num_steps=50_000), replace(STATE, num_replicas=2)
    disk = expected(job, storage_plan(saving, blocking(saving, 200, BlockingKnobs()), 200), run)
    cost = in_memory.rule(saving, 200, InMemoryKnobs())
    both = expected_two_level(
        job, memory_plan(cost), storage_plan(saving, replace(cost, blocked_s=0.0), 200), run, storage_only_frac=0.01
    )
    assert both.lost_frac < 0.1 * disk.lost_frac
    assert both.time_s < disk.time_s
    with pytest.raises(ScenarioError, match="keeps nothing in memory"):
        memory_plan(blocking(saving, 200, BlockingKnobs()))


def test_two_levels_agree_with_runs_played_out():
    job = FaultModel(num_devices=1, device_mtbf_s=3000.0, detection_s=20.0, restart_s=30.0)
    memory = CheckpointPlan(interval_s=50.0, blocked_s=1.0, load_s=5.0)
    storage = CheckpointPlan(interval_s=1000.0, blocked_s=20.0, load_s=60.0)
    run = RunPlan(step_s=10.0, num_steps=2000)
    found = expected_two_level(job, memory, storage, run, storage_only_frac=0.3)
    draws, times = np.random.default_rng(5), []
    for _ in range(300):
        now, retained, deep, left = 0.0, 0.0, 0.0, draws.exponential(3000.0)

        def passes(span):
            nonlocal now, left
            if left >= span:
                now, left = now + span, left - span
                return True
            now, left = now + left + 20.0, draws.exponential(3000.0)
            return False

        while retained < run.work_s:
            ends_deep = (retained + 50.0) % 1000.0 == 0.0
            if passes(51.0 + 20.0 * ends_deep):
                retained += 50.0
                deep = retained if ends_deep else deep
                continue
            is_deep = draws.random() < 0.3
            while True:
                retained = deep if is_deep else retained
                if passes(30.0 + (60.0 if is_deep else 5.0)):
                    break
                is_deep = draws.random() < 0.3
        times.append(now)
    assert np.mean(times) == pytest.approx(found.time_s, rel=0.02)
    assert found.useful_frac + found.checkpoint_frac + found.lost_frac + found.recovery_frac == pytest.approx(1.0)

"""Responses of unequal lengths in an engine's slots, and engines that write ahead: counted by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.planner.rlhf.asynchronous import asynchronous, period_s, splits
from orrery.planner.rlhf.dataflow import PPO, RlhfJob, calls_of
from orrery.planner.rlhf.generation import Generation
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.registry import PLACEMENTS
from orrery.planner.rlhf.slots import in_slots, slowest
from orrery.planner.rlhf.ways import train_ways

DEVICE = get_device("h100-sxm")


def job(num_devices=8, **given):
    return RlhfJob(
        models=dict.fromkeys(("actor", "critic", "reference", "reward"), get_model("llama-3.2-1b")),
        cluster=Cluster(device=DEVICE, num_devices=num_devices, devices_per_node=8),
        framework=get_framework("megatron-lm", DEVICE),
        recipe=get_recipe("bf16"),
        engine=get_engine("vllm", "", DEVICE),
        batch=32,
        prompt_tokens=128,
        **{"output_tokens": 129, **given},
    )


def test_two_slots_by_hand():
    """Steps of 4, 1, 2 and 3: the second slot takes 1 and then 2; the first one is free at 4, the second at 3."""
    found = in_slots(np.array([4, 1, 2, 3]), 2)
    assert found.start.tolist() == [0, 0, 1, 3]
    assert found.end.tolist() == [4, 1, 3, 6]
    assert found.num_steps == 6
    counts, written = found.active(np.array([0.5, 2.5, 3.5, 5.0]))
    assert counts.tolist() == [2.0, 2.0, 2.0, 1.0]
    assert written.tolist() == [1.0, 2.5 + 1.5, 3.5 + 0.5, 2.0]
    # just before 4 one has written 4 and the other 1; before 3: 3 and 2
    assert found.fullest == (2.0, 5.0)


def test_equal_responses_are_waves():
    found = in_slots(np.full(8, 10), 4)
    assert found.num_steps == 20
    assert found.active(np.array([5.0, 15.0]))[0].tolist() == [4.0, 4.0]
    assert found.fullest == (4.0, 40.0)


def test_the_replica_with_the_longest_response_decides():
    """A response of n tokens takes n - 1 steps after the pass over its prompt."""
    assert slowest(np.array([5, 5, 9, 2]), 2, 2).num_steps == 8
    assert slowest(np.array([5, 5, 9, 2]), 2, 1).num_steps == 9
    assert slowest(np.array([1, 1]), 2, 4).num_steps == 0


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.integers(1, 6))
def test_slots_write_every_token(steps, num_slots):
    found = in_slots(np.array(steps), num_slots)
    assert max(max(steps), -(-sum(steps) // num_slots)) <= found.num_steps <= sum(steps)
    at = np.arange(found.num_steps) + 0.5
    counts, written = found.active(at)
    assert counts.sum() == sum(steps)
    assert (counts <= num_slots).all()
    slow = [sum(t - s for s, e in zip(found.start, found.end, strict=True) if s <= t < e) for t in at]
    assert written == pytest.approx(slow)


def test_drawn_responses_of_one_length_cost_what_equal_ones_cost():
    equal, drawn = (Generation(job(responses=r), "actor") for r in ((), (129,) * 32))
    for waves in (1, 2):
        a, b = equal.run(1, 1, 32 // waves, waves), drawn.run(1, 1, 32 // waves, waves)
        assert b.time_s == pytest.approx(a.time_s, rel=2e-3)
        assert (b.num_steps, b.work_bytes) == (a.num_steps, pytest.approx(a.work_bytes))


def test_a_long_response_is_waited_for_with_few_beside_it():
    short = Generation(job(), "actor").run(1, 1, 32)
    tail = Generation(job(responses=(129,) * 31 + (1025,)), "actor").run(1, 1, 32)
    assert tail.num_steps == 1024
    assert 1.0 < tail.time_s / short.time_s < 8.0  # eight times the steps, most of them of one sequence
    assert tail.step_s < short.step_s


def test_periods_by_hand():
    assert [period_s(6.0, 4.0, k) for k in (0, 1, 5)] == [10.0, 6.0, 6.0]
    assert period_s(4.0, 6.0, 1) == 6.0


def test_splits_are_powers_of_two_and_what_they_leave():
    assert list(splits(job(8))) == [1, 2, 4, 6, 7]
    assert list(splits(job(1))) == []


def test_writing_ahead_hides_the_shorter_pool():
    in_turn, ahead = (asynchronous(job(), k, 100, 0) for k in (0, 1))
    assert isinstance(in_turn, Plan)
    assert isinstance(ahead, Plan)
    assert ahead.time_s < in_turn.time_s <= 2.0 * ahead.time_s
    writes, rest = ahead.turns[0].end_s, max(t.end_s for t in ahead.turns[1:])
    assert ahead.time_s == max(writes, rest)
    first = ahead.placed[0].mesh
    assert not any(first.overlaps(p.mesh) for p in ahead.placed[1:])
    alone = asynchronous(job(1), 1, 100, 0)
    assert isinstance(alone, Infeasible)
    assert (alone.need, alone.have) == (2.0, 1.0)


def test_calls_of_algorithms():
    assert calls_of() == PPO
    group = calls_of(has_critic=False, has_reward=False, has_logprobs=True)
    assert [c.name for c in group] == ["generate", "reference", "log-probabilities", "train actor"]
    assert group[-1].needs == ("reference", "log-probabilities")
    least = calls_of(has_critic=False, has_reward=False, has_reference=False)
    assert [c.needs for c in least] == [(), ("generate",)]


def test_epochs_repeat_updates_alone():
    once, twice = (train_ways(replace(job(), num_epochs=n), "actor", [(1, 1, 8)])[0] for n in (1, 2))
    assert twice.time_s == pytest.approx(2.0 * once.time_s)
    assert twice.peak_bytes == once.peak_bytes


def test_placements_by_name():
    assert set(PLACEMENTS.words) >= {"searched", "symmetric", "zero3", "disjoint", "asynchronous"}

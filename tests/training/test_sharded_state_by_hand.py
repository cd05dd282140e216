"""Sharded parameters worked by hand: what their gathering takes, and how many bytes each collective carries."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.training import sync
from orrery.training.columns import columns_of
from orrery.training.step import ends_s, step_of
from orrery.training.sync import Stage, copy_s, sync_of

HIDDEN = 2048
LAYER = 4 * HIDDEN**2 + 8 * HIDDEN**2 + (3 + 1 + 4 + 1) * HIDDEN + 4 * HIDDEN
"""Parameters of a layer of GPT-3 1.3B: attention, feed-forward, their biases, and two norms with weight and bias."""

DENSE, EXPERT = 3e9, 5e8
"""Parameters of one layer in the tests of collectives: round numbers."""

EMBEDDING, HEAD = 7e9, 2e9

PER_BYTE_S = {"all_reduce": 1.0, "reduce_scatter": 1e-3, "all_gather": 1e3}
"""A network in which only the bytes count, and every kind of collective is told by its weight."""


def job_of(framework="megatron-lm", **given):
    device = get_device("a100-sxm-80gb")
    return TrainingJob(
        model=get_model("gpt3-1.3b"),
        cluster=Cluster(device=device, num_devices=64, devices_per_node=8),
        framework=replace(get_framework(framework, device, "bf16"), **given),
        recipe=get_recipe("bf16"),
        seq_len=2048,
        global_batch=64,
    )


class BytesAsSeconds:
    """Stands in for the times of collectives; a group of one rank sends nothing."""

    def __init__(self, job, ranks, stride):
        self.ranks = ranks

    def time_s(self, kind, message_bytes):
        return np.where(self.ranks > 1, PER_BYTE_S[kind] * message_bytes, 0.0)


@pytest.fixture
def bytes_are_seconds(monkeypatch):
    monkeypatch.setattr(sync, "Groups", BytesAsSeconds)


def stage(dense=DENSE, expert=0.0):
    one = np.ones(1)
    return Stage(
        dense_parameters=24 * dense * one,
        expert_parameters=24 * expert * one,
        trained_parameters=0.0 * one,
        layer_dense_parameters=dense * one,
        layer_expert_parameters=expert * one,
        embedding_parameters=EMBEDDING * one,
        head_parameters=HEAD * one,
    )


def test_two_layers_are_gathered_and_one_layers_gradients_wait_to_be_summed():
    """ZeRO-3 holds the layer at work and the next, in BF16, beside one layer's gradients in FP32: 2 x 2 + 4 bytes; the
    head is the embedding, so only what stands behind the layers is beside them at the loss."""
    job = job_of()
    for group in (0, 8):
        layout = TrainingLayout(dp=64, sharding="zero3", sharding_group=group)
        held = step_of(job, columns_of([layout])).first.parts["buffers"][0]
        assert held == pytest.approx((2 * 2 + 4) * LAYER, rel=1e-9)


def test_one_group_of_both_ends_stays_through_the_forward_pass():
    """Embedding and positions in BF16 beside layers, and 16-bit gradients beside the FP32 ones they are copied to."""
    plain, rooted = job_of(), job_of(gathers_ends_apart=False, shard_copies="both")
    held = [
        step_of(job, columns_of([TrainingLayout(dp=64, sharding="zero3")])).first.parts["buffers"][0]
        for job in (plain, rooted)
    ]
    ends = plain.model.embedding_parameters
    assert held[1] - held[0] == pytest.approx(2 * ends + 2 * LAYER, rel=1e-6)


def test_frozen_layers_have_no_gradients_that_wait():
    """Of rank 16 beside queries, keys and values: 16 (2048 + 3 x 2048) FP32 gradients of a layer."""
    job = replace(job_of(), task="lora")
    held = step_of(job, columns_of([TrainingLayout(dp=64, sharding="zero3")])).first.parts["buffers"][0]
    assert held == pytest.approx(2 * 2 * LAYER + 4 * 16 * 4 * 2048, rel=1e-9)


def test_a_nearer_copy_adds_its_share_of_all_parameters():
    """ZeRO++ keeps a BF16 copy of every parameter, cut over the eight devices of a node."""
    job = job_of()
    plain, near = (
        step_of(job, columns_of([TrainingLayout(dp=64, sharding="zero3", secondary_group=g)])).first.parts["buffers"][0]
        for g in (0, 8)
    )
    assert near - plain == pytest.approx(2 * job.model.num_parameters / 8, rel=2e-3)


def test_copies_of_a_sharded_layer_sum_only_their_shard(bytes_are_seconds):
    """HSDP, 64 ranks in groups of 8: scatter a whole layer of FP32 gradients inside, then sum an eighth outside."""
    job = job_of()
    layout = TrainingLayout(dp=64, sharding="zero3", sharding_group=8)
    found = sync_of(job, columns_of([layout]), stage())
    assert found.layer_reduce_s[0] == pytest.approx(1e-3 * 4 * DENSE + 1.0 * 4 * DENSE / 8)
    assert found.layer_gather_s[0] == pytest.approx(1e3 * 2 * DENSE)
    assert found.reduce_s[0] == found.gather_s[0] == found.layer_copy_s[0] == 0


def test_a_head_of_its_own_travels_beside_layers_and_the_embedding_before_and_after_them(bytes_are_seconds):
    """BF16 parameters once, FP32 gradients once: the head's beside layers, or with the embedding's at the very ends."""
    layout = columns_of([TrainingLayout(dp=64, sharding="zero3")])
    apart, rooted = (sync_of(job_of(gathers_ends_apart=is_apart), layout, stage()) for is_apart in (True, False))
    assert apart.start_s[0] == pytest.approx(1e3 * 2 * EMBEDDING)
    assert apart.end_s[0] == pytest.approx(1e-3 * 4 * EMBEDDING)
    assert apart.apart_s[0] == pytest.approx(1e3 * 2 * HEAD + 1e-3 * 4 * HEAD)
    assert rooted.start_s[0] == pytest.approx(1e3 * 2 * (EMBEDDING + HEAD))
    assert rooted.end_s[0] == pytest.approx(1e-3 * 4 * (EMBEDDING + HEAD))
    assert rooted.apart_s[0] == 0
    frozen = sync_of(replace(job_of(), task="lora"), layout, stage())
    assert frozen.end_s[0] == 0
    assert frozen.apart_s[0] == pytest.approx(1e3 * 2 * HEAD)


def test_waits_at_the_ends_slow_products_only_where_they_run_beside_layers():
    hidden, shown = (
        SimpleNamespace(framework=SimpleNamespace(overlaps_parameters=hides, contention_ratio=1.25))
        for hides in (True, False)
    )
    waits = SimpleNamespace(start_s=np.array([3.0]), end_s=np.array([5.0]), apart_s=np.array([8.0]))
    assert ends_s(hidden, waits)[0] == 3 + 5 + 0.25 * 8
    assert ends_s(shown, waits)[0] == 3 + 5 + 8


@pytest.mark.parametrize(
    ("copies", "wire", "gathers", "task", "each_bytes"),
    [
        ("nothing", 4.0, 2, "pretrain", 0),
        ("gradients", 2.0, 2, "pretrain", 4),  # 16-bit gradients of views are joined
        ("gradients", 4.0, 2, "pretrain", 4 + 6),  # and widened
        ("both", 4.0, 2, "pretrain", 2 * 4 + 6),  # read and written after each gather, widened on their way
        ("both", 2.0, 1, "pretrain", 4 + 4),
        ("both", 4.0, 2, "lora", 2 * 4),
    ],
)
def test_bytes_that_move_between_tensors_and_what_travels(monkeypatch, copies, wire, gathers, task, each_bytes):
    monkeypatch.setattr(sync, "_stream_s", lambda job, moved_bytes: moved_bytes)
    job = replace(job_of(shard_copies=copies, gradient_bytes=wire), task=task)
    ranks = columns_of([TrainingLayout(dp=64, ep=64, sharding="zero3"), TrainingLayout(dp=64, ep=8, sharding="zero3")])
    found = copy_s(job, ranks, np.array([1000.0, 1000.0]), np.array([50.0, 50.0]), gathers)
    assert found.tolist() == [each_bytes * 1000, each_bytes * 1050], "experts on one rank alone do not travel"


def test_sharded_over_every_rank_leaves_no_copies_to_sum(bytes_are_seconds):
    found = sync_of(job_of(), columns_of([TrainingLayout(dp=64, sharding="zero3")]), stage())
    assert found.layer_reduce_s[0] == pytest.approx(1e-3 * 4 * DENSE)


def test_a_sharded_optimizer_sums_its_shard_between_copies_once_a_step(bytes_are_seconds):
    """ZeRO-1 in groups of 8: the stage's gradients scattered inside, an eighth summed outside, parameters gathered."""
    layout = TrainingLayout(dp=64, sharding="zero1", sharding_group=8)
    found = sync_of(job_of(), columns_of([layout]), stage())
    assert found.reduce_s[0] == pytest.approx(24 * (1e-3 * 4 * DENSE + 1.0 * 4 * DENSE / 8))
    assert found.gather_s[0] == pytest.approx(24 * 1e3 * 2 * DENSE)


def test_experts_meet_only_the_ranks_that_hold_the_same_ones(bytes_are_seconds):
    """Unsharded gradients are summed whole: dense ones over all 64 ranks, those of experts over the 8 copies."""
    layout = TrainingLayout(dp=64, ep=8)
    found = sync_of(job_of(), columns_of([layout]), stage(expert=EXPERT))
    assert found.reduce_s[0] == pytest.approx(24 * 4 * (DENSE + EXPERT))
    alone = sync_of(job_of(), columns_of([TrainingLayout(dp=64, ep=64)]), stage(expert=EXPERT))
    assert alone.reduce_s[0] == pytest.approx(24 * 4 * DENSE), "each expert is on one rank: nothing to sum"


def test_a_pipeline_gathers_sharded_parameters_once_a_step_and_sums_gradients_once(bytes_are_seconds):
    """ZeRO-3 over 16 ranks of each of 4 stages: the whole stage's parameters in BF16, its gradients in FP32, once."""
    found = sync_of(job_of(), columns_of([TrainingLayout(pp=4, dp=16, sharding="zero3")]), stage())
    assert found.gather_s[0] == pytest.approx(24 * 1e3 * 2 * DENSE)
    assert found.reduce_s[0] == pytest.approx(24 * 1e-3 * 4 * DENSE)
    assert found.layer_gather_s[0] == found.layer_regather_s[0] == found.layer_reduce_s[0] == 0


def test_a_pipeline_keeps_what_it_gathered_beside_its_shard():
    """Six layers and the embedding of a stage: BF16 whole, FP32 gradients whole until summed, shards of 1/16."""
    job = job_of()
    held = step_of(job, columns_of([TrainingLayout(pp=4, dp=16, sharding="zero3")])).first.parts
    mine = 6 * LAYER + job.model.embedding_parameters
    assert held["buffers"][0] == pytest.approx(2 * mine, rel=1e-3)
    assert held["gradients"][0] == pytest.approx(4 * mine, rel=1e-3)
    assert held["weights"][0] == pytest.approx(2 * mine / 16, rel=1e-3)
    assert held["optimizer"][0] == pytest.approx(12 * mine / 16, rel=1e-3)

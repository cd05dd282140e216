"""Sharded parameters worked by hand: what their gathering takes, and how many bytes each collective carries."""

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
from orrery.training.step import step_of
from orrery.training.sync import Stage, sync_of

HIDDEN = 2048
LAYER = 4 * HIDDEN**2 + 8 * HIDDEN**2 + (3 + 1 + 4 + 1) * HIDDEN + 4 * HIDDEN
"""Parameters of a layer of GPT-3 1.3B: attention, feed-forward, their biases, and two norms with weight and bias."""

DENSE, EXPERT = 3e9, 5e8
"""Parameters of one layer in the tests of collectives: round numbers."""

PER_BYTE_S = {"all_reduce": 1.0, "reduce_scatter": 1e-3, "all_gather": 1e3}
"""A network in which only the bytes count, and every kind of collective is told by its weight."""


def job_of():
    device = get_device("a100-sxm-80gb")
    return TrainingJob(
        model=get_model("gpt3-1.3b"),
        cluster=Cluster(device=device, num_devices=64, devices_per_node=8),
        framework=get_framework("megatron-lm", device, "bf16"),
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
    )


def test_two_layers_are_gathered_and_one_layers_gradients_wait_to_be_summed():
    """ZeRO-3 holds the layer at work and the next, in BF16, beside one layer's gradients in FP32: 2 x 2 + 4 bytes."""
    job = job_of()
    for group in (0, 8):
        layout = TrainingLayout(dp=64, sharding="zero3", sharding_group=group)
        held = step_of(job, columns_of([layout])).first.parts["buffers"][0]
        assert held == pytest.approx((2 * 2 + 4) * LAYER, rel=1e-9)


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
    assert found.reduce_s[0] == found.gather_s[0] == 0


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

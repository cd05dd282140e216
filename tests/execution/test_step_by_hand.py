"""What a step sends, and what a stage holds, worked out from the shapes of the model."""

from dataclasses import replace

import numpy as np
import pytest
from batches import decodes

from orrery import network
from orrery.execution.shard import shard
from orrery.execution.step import step


def part_of(deployment, batch, name):
    return next(p for p in step(deployment, batch).parts if p.name == name)


def sent_s(deployment, num_bytes, kind="send_recv", n=2, library="nccl"):
    work = network.Collective(
        kind=kind,
        num_devices=n,
        message_bytes=np.array([num_bytes]),
        library=library,
        has_peer_to_peer=True,
        devices_per_node=deployment.cluster.devices_per_node,
    )
    return float(network.predict(work, deployment.cluster.device).time_s[0])


@pytest.mark.parametrize(("tp", "pp"), [(1, 2), (2, 2), (4, 2), (2, 4)])
def test_each_device_hands_over_its_own_part_of_a_token(deploy, tp, pp):
    """Llama 70B is 8192 wide: a token is 16,384 bytes in BF16, and each of tp devices sends its share to its twin.

    There are pp - 1 borders. 4096 tokens make messages that bytes dominate, so that a message not divided shows.
    """
    deployment = deploy(tp=tp, pp=pp)
    found = part_of(deployment, decodes(4096), "hand over").time_s[0]
    assert found == pytest.approx((pp - 1) * sent_s(deployment, 4096 * 8192 * 2 / tp), rel=1e-12)


def test_every_reduction_carries_whole_tokens(deploy):
    """Two all-reduces a layer, each of all tokens x 8192 x 2 bytes; 80 layers."""
    deployment = deploy(tp=4)
    parts = [p for p in step(deployment, decodes(64)).parts if p.name == "all-reduce"]
    each_s = sent_s(deployment, 64 * 8192 * 2.0, "all_reduce", 4, deployment.engine.kernels)
    assert sum(float(p.time_s[0]) for p in parts) == pytest.approx(160 * each_s, rel=1e-12)


def test_norms_over_all_heads_sum_two_numbers_of_a_token(deploy):
    """MiniMax-M2.5: one more all-reduce in each of 62 layers, of 64 tokens x 2 sums x 4 bytes; none on one device, and
    none where every head has its own norm."""
    deployment = deploy(tp=4, model="MiniMaxAI/MiniMax-M2.5")
    each_s = sent_s(deployment, 64 * 2 * 4.0, "all_reduce", 4, deployment.engine.kernels)
    found = part_of(deployment, decodes(64), "sums of norms")
    assert float(found.time_s[0]) == pytest.approx(62 * each_s, rel=1e-12)
    for other in (deploy(tp=1, model="MiniMaxAI/MiniMax-M2.5"), deploy(tp=4), deploy(tp=4, model="Qwen/Qwen3-32B")):
        assert "sums of norms" not in [p.name for p in step(other, decodes(64)).parts]


@pytest.mark.parametrize("tp", [1, 4])
def test_embedding_and_head_are_on_the_first_and_the_last_stage(deploy, tp):
    """Llama 3.1 70B, BF16, untied: embedding and head are 128,256 x 8192 each and never on one stage of a pipeline.

    One layer: q 8192 x 8192, k and v 8192 x 1024 each, o 8192 x 8192, three of 8192 x 28,672; norms, whole on every
    device: two of 8192 a layer and one more at the end.
    """
    layer = 8192 * 8192 * 2 + 8192 * 1024 * 2 + 3 * 8192 * 28_672
    table, norms = 128_256 * 8192, 80 * 2 * 8192 + 8192
    one, two = shard(deploy(tp=tp)).weight_bytes, shard(deploy(tp=tp, pp=2)).weight_bytes
    assert one == pytest.approx(2 * ((80 * layer + 2 * table) / tp + norms), rel=1e-9)
    assert two == pytest.approx(2 * ((40 * layer + table) / tp + norms / 2), rel=1e-9)


def test_gaps_between_kernels_are_in_every_step_with_a_token(deploy):
    """80 layers of a second each, once there is one token; none in a step without."""
    deployment = deploy()
    engine = replace(deployment.engine, per_layer_s=1.0)
    assert part_of(replace(deployment, engine=engine), decodes(0, 1, 64), "launch gaps").time_s.tolist() == [0, 80, 80]

"""Hyper-connections in a serving step, counted by hand for DeepSeek-V4."""

import numpy as np
import pytest
from batches import decodes

from orrery.catalog.devices import get_device
from orrery.execution.shard import num_kernels, shard
from orrery.execution.step import step
from orrery.kernels import predict
from orrery.kernels.ops import Elementwise

FLASH = "deepseek-v4-flash"
LAYERS, HIDDEN, STREAMS = 43, 4096, 4


def connection_parts(deployment, batch):
    return [p for p in step(deployment, batch).parts if "stream" in p.name]


def test_a_layer_has_two_and_each_moves_nine_hidden_sizes_in_and_out(deploy):
    """Four streams read twice and one result written before a half: 4 + 4 + 1; one result and four streams read, four
    written behind it: the same. Two bytes each, for 32 tokens, in 43 layers of two halves."""
    deployment = deploy(model=FLASH, device="b200", tp=4)
    parts = connection_parts(deployment, decodes(32))
    assert [p.count for p in parts] == [2 * LAYERS] * 2
    for p in parts:
        assert p.work(0)[1] == pytest.approx(2 * LAYERS * 32 * 9 * HIDDEN * 2)
    assert shard(deployment).connection_width == (2 * STREAMS + 1) * HIDDEN


def test_their_seconds_are_those_of_the_measured_kernels(deploy):
    deployment = deploy(model=FLASH, device="b200", tp=4)
    for p, kind in zip(connection_parts(deployment, decodes(32)), ("mhc_pre", "mhc_post"), strict=True):
        op = Elementwise(kind=kind, tokens=np.array([32]), width=9 * HIDDEN)
        once = predict(op, get_device("b200"), deployment.engine.kernels).time_s
        assert p.time_s == pytest.approx(2 * LAYERS * once)
        assert once[0] > 2e-6  # twenty rounds on a small matrix, one after the other


def test_models_without_have_none(deploy):
    plain = deploy(model="qwen3-30b-a3b", device="b200")
    assert not connection_parts(plain, decodes(32))
    assert shard(plain).connection_width == 0


def test_every_connection_is_two_kernels(deploy):
    cut = shard(deploy(model=FLASH, device="b200", tp=4))
    assert cut.num_connections == 2 * LAYERS
    assert num_kernels(deploy(model=FLASH, device="b200", tp=4)) > 4 * LAYERS

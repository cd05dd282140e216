"""Shared experts on a second stream, by hand: what the two show together, and where nothing is saved."""

from dataclasses import replace

import numpy as np
import pytest
from batches import decodes

from orrery.execution.batch import part
from orrery.execution.experts.beside import beside
from orrery.execution.shard import shard
from orrery.execution.step import step
from orrery.kernels.ops import Timing

R1 = "deepseek-r1-0528"


def timing(time_s, memory_s, compute_s):
    one = np.array([1.0])
    return Timing(
        time_s=time_s * one,
        compute_s=compute_s * one,
        memory_s=memory_s * one,
        overhead_s=0 * one,
        flops=one,
        bytes=one,
    )


def shown(deploy, routed, shared, tokens=8, **how):
    """Seconds that one repetition of the shared product shows beside the routed experts."""
    deployment = deploy(model=R1, device="b200", tp=8, engine="tensorrt-llm", engine_version="1.2", **how)
    cut = shard(deployment)
    block = cut.experts[0].block
    name = next(x.name for x in cut.linears if x.is_shared and x.block == block)
    both = [
        part("experts", block, timing(*routed), 1, "moe", "fp8"),
        part(name, block, timing(*shared), 1, "gemm", "fp8"),
    ]
    return float(beside(deployment, cut, decodes(tokens), both)[1].time_s[0])


def test_a_short_one_hides_behind_the_routed_ones(deploy):
    """10 us routed of which 3 us are bytes, 4 us shared of which 1 us: 10 us together, so the shared ones show 0."""
    assert shown(deploy, (10e-6, 3e-6, 1e-6), (4e-6, 1e-6, 1e-6)) == pytest.approx(0.0, abs=1e-15)


def test_bytes_of_both_share_one_memory(deploy):
    """9 us of bytes and 3 us of bytes take 12 us however they are started: 2 of 10 + 4 us are saved, 2 us show."""
    assert shown(deploy, (10e-6, 9e-6, 1e-6), (4e-6, 3e-6, 1e-6)) == pytest.approx(2e-6)


def test_operations_of_both_share_the_units(deploy):
    """8 us and 3 us at the peak: 11 us together, 1 us shows."""
    assert shown(deploy, (10e-6, 1e-6, 8e-6), (4e-6, 1e-6, 3e-6)) == pytest.approx(1e-6)


def test_a_long_one_shows_what_outlasts_the_routed_ones(deploy):
    assert shown(deploy, (4e-6, 1e-6, 1e-6), (10e-6, 1e-6, 1e-6)) == pytest.approx(6e-6)


def test_steps_beyond_the_limit_run_them_one_after_the_other(deploy):
    assert shown(deploy, (10e-6, 3e-6, 1e-6), (4e-6, 1e-6, 1e-6), tokens=4096) == pytest.approx(4e-6)


def test_a_step_is_as_long_as_without_less_what_is_saved(deploy):
    """All else in a step is as it was; without the second stream every part is longer or the same."""
    deployment = deploy(model=R1, device="b200", tp=8, engine="tensorrt-llm", engine_version="1.2")
    alone = replace(deployment, engine=replace(deployment.engine, shared_beside_tokens=0))
    both, one = step(deployment, decodes(16)), step(alone, decodes(16))
    saved_s = 0.0
    for p, q in zip(both.parts, one.parts, strict=True):
        assert p.time_s[0] <= q.time_s[0]
        if not p.name.startswith("shared"):
            assert p.time_s[0] == q.time_s[0]
        saved_s += float(q.time_s[0] - p.time_s[0])
    assert saved_s > 0
    assert one.time_s[0] - both.time_s[0] == pytest.approx(saved_s)


def test_models_without_shared_experts_save_nothing(deploy):
    deployment = deploy(model="qwen3-30b-a3b", device="b200", engine="tensorrt-llm", engine_version="1.2")
    alone = replace(deployment, engine=replace(deployment.engine, shared_beside_tokens=0))
    assert step(deployment, decodes(16)).time_s[0] == step(alone, decodes(16)).time_s[0]

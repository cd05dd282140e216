"""Routed blocks against a slow, plain second opinion, and against what must hold for any constants."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import device_names, get_device
from orrery.hardware.device import Device
from orrery.kernels.moe import RANDOM, _kernel, predict
from orrery.kernels.moe.rule import activation_bytes, columns, constants_vector
from orrery.kernels.ops import MoE
from orrery.kernels.residual import CAP
from orrery.kernels.resolve import find
from orrery.numerics.registry import get_format

FORMATS = ("bf16", "fp8", "fp8_block", "nvfp4", "mxfp4_weight_only", "mxfp4_mxfp8", "int4_weight_only")


@cache
def bare(name: str) -> Device:
    """A device with its measured constants, without what trees learned on top."""
    device = get_device(name)
    return replace(device, calibrations={k: replace(c, residual=None) for k, c in device.calibrations.items()})


def oracle(op: MoE, device: Device, engine: str) -> float:
    """The rule written down again for evenly dealt assignments: a list of loads, one tile at a time."""
    c = find(device, "moe", op.format, engine).constants
    number = get_format(op.format)
    peak, bandwidth = device.peak_flops_per_s(number.rates)[1], device.memory_bandwidth_bytes_per_s
    experts, ffn, ups = op.num_experts // op.ep, op.ffn_size / op.tp, 2 if op.is_gated else 1
    loads = [0] * experts
    for i in range(math.ceil(op.tokens * op.experts_per_token / op.ep)):
        loads[i % experts] += 1
    rows, hit = sum(loads), sum(load > 0 for load in loads)
    wasted = max(0, min(op.tokens, rows) * op.experts_per_token - rows) if c["runs_all"] else 0

    def products(height: int) -> float:
        tiles = sum(math.ceil(load / height) for load in loads) + wasted / height
        total = 0.0
        for width, depth in ((ups * ffn, op.hidden_size), (op.hidden_size, ffn)):
            waves = max(1.0, tiles * math.ceil(width / 128) / device.num_compute_units)
            work = 2 * height * 128 * (depth + c["fill_elements"])
            total += waves * work * device.num_compute_units / (c["peak_frac"] * peak)
        return total

    if c["sees_all"]:
        num_chosen = op.tokens * op.experts_per_token / experts
        time = products(next(h for h in (8, 16, 32, 64, 128, 256) if h >= num_chosen or h == 256))
    else:
        time = min(products(h) for h in (16, 32, 64, 128, 256))
    weights = hit * (ups + 1) * op.hidden_size * ffn * number.bytes_per_element
    retained = min(1, max(0, 1.5 - weights / (c["cache_ratio"] * device.last_level_cache_bytes)))
    dram = weights * (1 - 0.5 * retained) / (c["bandwidth_frac"] * bandwidth)
    act = activation_bytes(number)
    passed = op.tokens * op.experts_per_token if c.get("passes_all") else rows
    row_bytes = passed * (op.hidden_size * (2 + 2 * act) + ffn * (2 * ups + act))
    token_bytes = op.tokens * op.hidden_size * (4 + act)
    return (
        c["overhead_s" if op.is_gated else "plain_overhead_s"]
        + c["expert_s"] * experts
        + row_bytes / (c["row_ratio"] * bandwidth)
        + token_bytes / (c["token_ratio"] * bandwidth)
        + (time**1.5 + dram**1.5) ** (2 / 3)
    )


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 5000),
    hidden=st.sampled_from([1024, 2880, 7168]),
    ffn=st.sampled_from([512, 2880, 16384]),
    experts=st.sampled_from([8, 64, 256]),
    topk=st.integers(1, 8),
    tp=st.sampled_from([1, 2, 8]),
    ep=st.sampled_from([1, 4, 8]),
    is_gated=st.booleans(),
    format=st.sampled_from(FORMATS),
    device=st.sampled_from(["h100-sxm", "b200", "l40s"]),
)
def test_the_kernel_says_what_the_oracle_says(tokens, hidden, ffn, experts, topk, tp, ep, is_gated, format, device):
    op = MoE(
        tokens=tokens,
        hidden_size=hidden,
        ffn_size=ffn,
        num_experts=experts,
        experts_per_token=topk,
        tp=tp,
        ep=ep,
        is_gated=is_gated,
        format=format,
    )
    found = bare(device)
    assert predict(op, found, "tensorrt-llm").time_s == pytest.approx(oracle(op, found, "tensorrt-llm"), rel=1e-9)


def block(tokens, **other) -> MoE:
    """A Qwen3-235B block."""
    sizes = {"hidden_size": 4096, "ffn_size": 1536, "num_experts": 128, "experts_per_token": 8, "format": "bf16"}
    return MoE(tokens=tokens, **(sizes | other))


def test_rows_of_other_ranks_are_passed_over_where_a_kernel_does_so():
    """256 tokens to 8 of 128 experts over 8 ranks: 256 rows land here, and 2048 are gathered, activated and combined.

    A row moves hidden x (2 + 2 x 2) + ffn x (2 x 2 + 2) = 4096 x 6 + 1536 x 6 bytes through ``row_ratio`` of 3.35 TB/s.
    """
    constants = dict.fromkeys(_kernel.CONSTANTS, 1.0) | {"sees_all": 0.0, "runs_all": 0.0, "passes_all": 0.0}
    machine = np.array([132.0, 989e12, 3.35e12, 50e6, 2.0, 2.0])
    none, every = (
        columns(block(256, ep=8), constants_vector(constants | {"passes_all": x}), machine)[_kernel.TIME]
        for x in (0.0, 1.0)
    )
    assert every - none == pytest.approx((2048 - 256) * (4096 * 6 + 1536 * 6) / 3.35e12, rel=1e-9)


def test_arrays_and_single_numbers_agree():
    device = get_device("h200-sxm")
    tokens = np.array([1, 7, 100, 5000])
    for skew in (0.0, 1.2, RANDOM):
        many = predict(block(tokens, ep=4, skew=skew), device).time_s
        single = [float(predict(block(int(t), ep=4, skew=skew), device).time_s) for t in tokens]
        assert many.tolist() == single


def test_no_tokens_take_no_time():
    timing = predict(block(np.array([0, 1])), get_device("h100-sxm"))
    assert timing.time_s[0] == 0.0
    assert timing.time_s[1] > 0.0


@pytest.mark.parametrize("skew", [0.0, 1.01, RANDOM])
@pytest.mark.parametrize("format", FORMATS)
def test_more_tokens_take_longer(format: str, skew: float):
    """Octaves apart: a kernel that picks its tile by the token count may be a little faster just past a step."""
    time = predict(block(2 ** np.arange(21), format=format, skew=skew), bare("b200")).time_s
    assert (time[1:] >= 0.98 * time[:-1]).all()
    assert (time[4:] > time[:-4]).all()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["a100-sxm-80gb", "h100-sxm", "b200", "l40s"])
def test_never_faster_than_the_datasheet_allows(name: str, format: str):
    """The compute roof holds; the memory roof may be beaten by what the last-level cache keeps."""
    device = get_device(name)
    timing = predict(block(np.logspace(0, 6, 60).astype(np.int64), format=format), device)
    assert (timing.time_s >= timing.compute_s).all()
    in_cache_s = device.last_level_cache_bytes / device.memory_bandwidth_bytes_per_s
    assert (timing.time_s >= timing.memory_s - 4 * in_cache_s).all()
    assert (timing.time_s >= timing.overhead_s).all()


def test_a_slower_clock_slows_everything_alike():
    """Seconds four times as long: every rate a quarter, every constant in seconds four times; bit for bit."""
    device = bare("h100-sxm")
    slow = replace(
        device,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s / 4,
        dense_flops_per_s={k: v / 4 for k, v in device.dense_flops_per_s.items()},
        calibrations={
            key: replace(c, constants={n: v * (4 if n.endswith("_s") else 1) for n, v in c.constants.items()})
            for key, c in device.calibrations.items()
        },
    )
    tokens = np.array([1, 5, 64, 900, 20000])
    for skew in (0.0, 1.2):
        ours, theirs = (predict(block(tokens, skew=skew, ep=2), d) for d in (device, slow))
        assert (4 * ours.time_s == theirs.time_s).all()
        assert (4 * ours.overhead_s == theirs.overhead_s).all()


def test_every_device_of_the_catalogue_answers():
    for name in device_names():
        timing = predict(block(np.array([1, 4096]), format="fp8"), get_device(name))
        assert np.isfinite(timing.time_s).all()
        assert (timing.time_s > 0).all()


def test_what_trees_learned_stays_within_its_cap_and_ends_where_measurements_end():
    tokens = np.logspace(0, 7, 80).astype(np.int64)
    learned, physical = (predict(block(tokens), d).time_s for d in (get_device("h200-sxm"), bare("h200-sxm")))
    assert (np.abs(np.log(learned / physical)) <= CAP + 1e-9).all()
    assert (learned != physical).any()
    assert (learned == physical)[tokens > 2 * 16384].all()


def test_spreading_experts_over_ranks_leaves_each_less_to_do():
    device = get_device("h200-sxm")
    time = [float(predict(block(256, ep=ep), device).time_s) for ep in (1, 2, 4, 8, 16)]
    assert time == sorted(time, reverse=True)


def test_uneven_routing_is_slower_than_even_where_compute_binds():
    device = get_device("h200-sxm")
    even, uneven = (float(predict(block(16384, ep=8, skew=s), device).time_s) for s in (0.0, 1.2))
    assert uneven > 1.5 * even

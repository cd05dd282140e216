"""Rotations as a model serves, and features that stay in 16 bits: operations and bytes by hand, off, and limits."""

from dataclasses import replace
from math import log2

import numpy as np
import pytest

from orrery import estimate, kernels, plan, quantize, simulate
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.batch import decodes_of
from orrery.execution.layout import OnlineRotation
from orrery.execution.online_rotation import additions, rotated
from orrery.execution.shard import shard
from orrery.execution.step import step
from orrery.kernels.ops import Elementwise
from orrery.numerics.registry import get_format

B200 = get_device("b200")
FP4 = {"model": "llama-3.1-8b", "device": "b200", "weights": "mxfp4", "batch": 8, "input_tokens": 512}
INT8 = {"model": "llama-3.2-1b", "device": "h100-sxm", "weights": "int8", "batch": 8, "input_tokens": 512}
MORE = {"output_tokens": 32}


def parts_of(**settings):
    deployment = estimate(**settings).estimate.deployment
    found = step(deployment, decodes_of(np.array([8]), 512)).parts
    return deployment, {p.name: p for p in found if p.op == "rotation"}


def test_operations_of_a_rotation_by_hand():
    rows, width = np.array([4096]), 4096
    plain = kernels.predict(Elementwise(kind="quantise", tokens=rows, width=width, format="mxfp4"), B200)
    blocks = rotated(OnlineRotation(block_features=32), rows, width, "mxfp4", B200)
    assert blocks.flops[0] == 2 * 32 * 4096 * 4096
    assert blocks.bytes[0] == plain.bytes[0] == 4096 * 4096 * (2 + 4.25 / 8)
    roof_s = blocks.flops[0] / B200.dense_flops_per_s["bf16"]
    assert blocks.time_s[0] == pytest.approx(max(plain.time_s[0], plain.overhead_s[0] + roof_s))
    whole = rotated(OnlineRotation(), rows, width, "mxfp4", B200)
    assert whole.flops[0] == log2(4096) * 4096 * 4096
    assert whole.compute_s[0] == pytest.approx(2 * whole.flops[0] / B200.vector_flops_per_s)
    assert (additions(12), additions(1), additions(14336)) == (2 + 3, 0, 11 + 7)


def test_blocks_turn_every_product_and_folded_ones_the_down_projections():
    deployment, blocks = parts_of(**FP4, **MORE, online_rotation="32")
    _, folded = parts_of(**FP4, **MORE, online_rotation="folded")
    _, cached = parts_of(**FP4, **MORE, online_rotation="folded", kv="fp8")
    assert set(blocks) == {f"{x.name} rotation" for x in shard(deployment).linears if not x.is_head}
    assert set(folded) == {"down rotation"}
    assert set(cached) == {"down rotation", "query and key rotation"}
    assert blocks["qkv rotation"].count == 32
    assert float(blocks["qkv rotation"].once.flops[0]) == 2 * 32 * 8 * 4096
    assert float(cached["query and key rotation"].once.flops[0]) == 7 * 8 * (32 + 8) * 128


def test_experts_turn_what_enters_them_once_and_what_lies_between():
    _, found = parts_of(**FP4 | {"model": "mixtral-8x7b"}, **MORE, online_rotation="32")
    assert float(found["experts rotation"].once.flops[0]) == 2 * 32 * 8 * 4096
    assert float(found["experts down rotation"].once.flops[0]) == 2 * 32 * (8 * 2) * 14336


def test_without_it_nothing_turns_and_with_it_a_step_takes_its_kernels_longer():
    plain, turned = (estimate(**FP4, **MORE, **more).estimate for more in ({}, {"online_rotation": "32"}))
    deployment = replace(turned.deployment, online_rotation=None)
    batch = decodes_of(np.array([8]), 512)
    without, with_it = step(deployment, batch), step(turned.deployment, batch)
    extra = sum(p.time_s[0] for p in with_it.parts if p.op == "rotation")
    assert with_it.time_s[0] == pytest.approx(without.time_s[0] + extra)
    assert plain.tpot_s < turned.tpot_s < 1.3 * plain.tpot_s
    assert plain.memory == turned.memory


def test_wide_features_are_a_product_of_their_own():
    plain, mixed = (estimate(**INT8, **MORE, **more).estimate.deployment for more in ({}, {"wide_frac": 0.25}))
    whole = {x.name: x for x in shard(plain).linears}
    pieces = {x.name: x for x in shard(mixed).linears}
    narrow, wide = pieces["down"], pieces["down wide"]
    assert (narrow.k, wide.k, whole["down"].k) == (6144, 2048, 8192)
    assert (narrow.format, wide.format) == ("int8", "bf16")
    assert narrow.weight_bytes == 0.75 * whole["down"].weight_bytes
    assert wide.weight_bytes == 2 * 2048 * 2048
    assert "head wide" not in pieces


def test_no_wide_features_are_the_format_and_all_of_them_are_sixteen_bits():
    none, narrow, some, every = (
        estimate(**INT8, **MORE, **more).estimate
        for more in ({}, {"wide_frac": 0.0}, {"wide_frac": 0.05}, {"wide_frac": 1.0})
    )
    wide = estimate(**INT8 | {"weights": "bf16"}, **MORE).estimate
    assert none.tpot_s == narrow.tpot_s
    assert every.tpot_s == pytest.approx(wide.tpot_s, rel=1e-9)
    assert every.memory.weights_bytes == wide.memory.weights_bytes
    assert none.memory.weights_bytes < some.memory.weights_bytes < wide.memory.weights_bytes


def test_four_bits_with_eight_bit_features_keep_their_weights_in_four():
    settings = INT8 | {"device": "t4", "weights": "int4_int4"}
    plain, mixed = (
        shard(estimate(**settings, **MORE, **more).estimate.deployment)
        for more in ({}, {"wide_frac": 0.25, "wide_format": "int4_int8"})
    )
    whole, pieces = ({x.name: x for x in cut.linears} for cut in (plain, mixed))
    assert (pieces["down"].format, pieces["down wide"].format) == ("int4_int4", "int4_int8")
    each = get_format("int4_int8").bytes_per_element  # four bits, and a scale for 128 of them
    assert pieces["down wide"].weight_bytes == each * 2048 * 2048
    assert pieces["down"].weight_bytes == 0.75 * whole["down"].weight_bytes


def test_simulate_and_plan_take_both():
    traffic = {"concurrency": 4, "num_requests": 16, "input_tokens": 128, "output_tokens": 8}
    settings = {"model": "llama-3.2-1b", "device": "h100-sxm", "weights": "fp8"}
    free, both = (
        simulate(**settings, **traffic, **more).to_json()["output_throughput"]
        for more in ({}, {"online_rotation": "64", "wide_frac": 0.1})
    )
    assert both < free
    best = [
        plan(**settings, max_devices=1, input_tokens=128, output_tokens=64, **more).plans[0]
        for more in ({}, {"online_rotation": "64"})
    ]
    assert best[0] != best[1]


def test_quantize_measures_the_share_of_wide_columns():
    x = np.random.default_rng(0).normal(size=(256, 100)).astype(np.float32)
    x[:, 7] *= 50.0
    x[:, 9] *= 40.0
    whole, split = quantize(x, formats="int8"), quantize(x, formats="int8", wide_above=20.0)
    assert whole.results[0].wide_frac == 0.0
    assert split.results[0].wide_frac == pytest.approx(0.02)
    assert split.results[0].size_bytes == 256 * (98 + 2 * 2) + 256 * 4  # codes, two wide columns, a scale a row
    assert split.results[0].bits_per_element == split.totals[0].bits_per_element
    assert split.results[0].error.max_abs_error < 0.1 * whole.results[0].error.max_abs_error
    assert quantize(x, formats="int8", wide_above=1e9).results[0].error == whole.results[0].error


def test_refusals():
    for change, words in (
        ({"weights": "bf16", "online_rotation": "32"}, "no product is narrow in bf16"),
        ({"online_rotation": "7"}, "write features of a block"),
        ({"online_rotation": "wide"}, "write features of a block"),
        ({"weights": "bf16", "wide_frac": 0.1}, "no product is narrow"),
        ({"model": "mixtral-8x7b", "wide_frac": 0.1}, "experts of"),
        ({"wide_format": "bf16"}, "no features are wide"),
        ({"wide_frac": 0.1, "wide_format": "int8"}, "the format of the weights"),
    ):
        with pytest.raises(ScenarioError, match=words):
            estimate(**INT8 | change, **MORE)
    with pytest.raises(ScenarioError, match="larger wide_above"):
        quantize("normal", formats="int8", wide_above=0.001, rows=64, columns=64)

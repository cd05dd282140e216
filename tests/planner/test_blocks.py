"""Blocks of a model: the parent comes back from its own blocks, and parts add up."""

import numpy as np
import pytest

from orrery.catalog.models import get_model
from orrery.planner.blocks.library import Variant, costs, rebuilt, variants
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario
from orrery.serving.clock import steps_of, tick

PARENT = get_model("llama-3.1-8b")


def test_whole_blocks_are_the_parent_again():
    whole = rebuilt(PARENT, variants()[:1] * 32, "same")
    assert whole.num_parameters == PARENT.num_parameters
    assert whole.blocks[0].count == 32


def test_half_the_width_is_half_the_feed_forward_parameters():
    half = rebuilt(PARENT, (Variant(kv_share_frac=1.0, ffn_share_frac=0.5),) * 32, "half")
    assert PARENT.num_parameters - half.num_parameters == 32 * 3 * 4096 * 14336 // 2
    fewer = rebuilt(PARENT, (Variant(kv_share_frac=0.25, ffn_share_frac=1.0),) * 32, "fewer")
    assert PARENT.num_parameters - fewer.num_parameters == 32 * 2 * 4096 * 128 * 6


def test_damage_is_what_is_left_out():
    assert Variant(kv_share_frac=1.0, ffn_share_frac=1.0).damage_ratio == 0.0
    assert Variant(kv_share_frac=0.0, ffn_share_frac=0.5).damage_ratio == 1.25


def test_parts_of_a_block_add_up_to_the_whole_models_step():
    at = resolve(
        read_scenario(
            {
                "model": "llama-3.1-8b",
                "device": "h100-sxm",
                "engine": "vllm",
                "batch": 1,
                "input_tokens": 1,
                "output_tokens": 1,
            }
        )
    ).deployment
    found = {c.variant: c for c in costs(at, 32, 512)}
    whole = found[variants()[0]]
    assert whole.num_parameters * 32 == pytest.approx(sum(b.num_parameters for b in PARENT.blocks), rel=1e-6)
    assert whole.cache_bytes == 2 * 8 * 128 * 2
    fewer = found[Variant(kv_share_frac=0.5, ffn_share_frac=0.5)]
    assert fewer.cache_bytes == whole.cache_bytes / 2
    assert 0.4 < fewer.step_s / whole.step_s < 0.8
    step = tick(at, steps_of(0.0, 0.0, 0.0, np.array([32.0]), 512)).done
    inside = sum(float(p.time_s[0]) for p in step.parts if p.name not in ("head", "sampling", "launch gaps"))
    assert whole.step_s * 32 == pytest.approx(inside, rel=0.02)

"""Blocks of a model: the parent comes back from its own blocks, and the program finds what trying every count finds."""

import itertools

import numpy as np
import pytest

from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.planner.blocks.choose import Limits, chosen
from orrery.planner.blocks.library import BlockCost, Variant, costs, rebuilt, variants
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario
from orrery.serving.clock import steps_of, tick

PARENT = get_model("llama-3.1-8b")
FREE = float("inf")


def cost(kv, ffn, parameters, weights, cache, step_s):
    return BlockCost(
        variant=Variant(kv_share_frac=kv, ffn_share_frac=ffn),
        num_parameters=parameters,
        weight_bytes=weights,
        cache_bytes=cache,
        step_s=step_s,
    )


LIBRARY = (cost(1, 1, 10, 10, 4, 5), cost(1, 0.5, 7, 7, 4, 4), cost(0.5, 1, 9, 9, 2, 4.5), cost(0, 0.5, 4, 4, 0, 1))


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


@pytest.mark.parametrize("limit", [22.0, 27.0, 31.0, 40.0])
def test_the_program_finds_what_trying_everything_finds(limit):
    found = chosen(LIBRARY, 4, Limits(num_parameters=limit, memory_bytes=44.0, cached_tokens=1.0, step_s=FREE))
    assert not isinstance(found, Infeasible)
    tried = [
        sum(c.variant.damage_ratio for c in some)
        for some in itertools.combinations_with_replacement(LIBRARY, 4)
        if sum(c.num_parameters for c in some) <= limit and sum(c.weight_bytes + c.cache_bytes for c in some) <= 44.0
    ]
    assert sum(v.damage_ratio for v in found) == pytest.approx(min(tried))


def test_more_tokens_in_the_cache_cost_heads():
    few, many = (
        chosen(LIBRARY, 4, Limits(num_parameters=FREE, memory_bytes=60.0, cached_tokens=tokens, step_s=FREE))
        for tokens in (1.0, 4.0)
    )
    assert not isinstance(few, Infeasible)
    assert not isinstance(many, Infeasible)
    assert sum(v.kv_share_frac for v in many) < sum(v.kv_share_frac for v in few) == 4


def test_what_no_block_meets_is_said_with_numbers():
    found = chosen(LIBRARY, 4, Limits(num_parameters=15.0, memory_bytes=FREE, cached_tokens=0.0, step_s=FREE))
    assert isinstance(found, Infeasible)
    assert (found.need, found.have, found.unit) == (16.0, 15.0, "parameters")

"""The router by KV cost: by hand, at its limits, and on traffic that shares prompts."""

import numpy as np
import pytest

from orrery.scenario.simulate import simulate
from orrery.serving.techniques.kv_cost import route

TOKENS = np.array([3000.0, 1000.0, 2500.0])
BLOCKS = np.array([120.0, 0.0, 20.0])


def chosen(weight, temperature=0.0, draw=0.5, tokens=TOKENS, blocks=BLOCKS):
    return route(np.zeros(3), tokens, blocks, -1, 0, draw, 0.0, np.array([weight, temperature, 16.0]))


def test_costs_by_hand():
    """Costs 3000 - 1920 = 1080, 1000, 2500 - 320 = 2180: the idle one; at weight 1.1 888 wins."""
    assert chosen(1.0) == 1
    assert chosen(1.1) == 0


def test_without_weight_it_is_the_fewest_tokens_to_come():
    draws = np.random.default_rng(0)
    for _ in range(100):
        tokens, blocks = draws.integers(0, 5, 3) * 100.0, draws.integers(0, 9, 3) * 1.0
        assert chosen(0.0, tokens=tokens, blocks=blocks) == int(np.argmin(tokens))


def test_a_high_temperature_is_even_and_a_low_one_is_the_best():
    draws = (np.arange(300) + 0.5) / 300
    even = np.bincount([chosen(1.0, 1e6, d) for d in draws], minlength=3)
    assert even.tolist() == pytest.approx([100, 100, 100], abs=1)
    assert {chosen(1.0, 1e-3, d) for d in draws} == {1}
    scaled = np.array([80.0, 0.0, 1180.0]) / 1180.0
    weights = np.exp(-scaled / 0.5)
    found = np.bincount([chosen(1.0, 0.5, d) for d in draws], minlength=3) / 300
    assert found == pytest.approx(weights / weights.sum(), abs=0.005)


def test_it_computes_fewer_prompt_tokens_than_a_router_that_sees_no_cache():
    load = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "replicas": 4,
        "rate": 20.0,
        "num_requests": 400,
        "prefix_tokens": 4096,
        "prefix_groups": 200,
        "input_tokens": 100,
        "output_tokens": 20,
    }
    blind = simulate(**load, router="kv-cost", knob=["router.overlap_weight_ratio=0"]).simulated
    seeing = simulate(**load, router="kv-cost").simulated
    assert seeing.cached_tokens.sum() > blind.cached_tokens.sum()
    some = simulate(**load, router="kv-cost", knob=["router.temperature_ratio=0.5"]).simulated
    assert not np.array_equal(some.machine, seeing.machine)

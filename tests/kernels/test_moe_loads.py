"""Who gets the tokens: dealt evenly, drawn from a power law, or at random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange
from orrery.kernels.moe import RANDOM
from orrery.kernels.moe.routing import NUM_OCTAVES, load_table
from orrery.kernels.moe.rule import loads
from orrery.kernels.ops import MoE

SHAPE = {"hidden_size": 4096, "ffn_size": 1536, "format": "bf16"}


def test_a_token_hits_as_many_experts_as_it_is_sent_to():
    rows, hit = loads(MoE(tokens=1, num_experts=128, experts_per_token=8, **SHAPE))
    assert (rows, hit) == (8, 8)


def test_dealing_out_evenly_rounds_up_on_the_busiest_rank():
    rows, hit = loads(MoE(tokens=np.array([1, 3, 1000]), num_experts=128, experts_per_token=8, ep=16, **SHAPE))
    assert rows.tolist() == [1, 2, 500]
    assert hit.tolist() == [1, 2, 8]


@pytest.mark.parametrize(("tokens", "ep"), [(4, 1), (16, 1), (64, 4), (256, 8), (1024, 1)])
def test_random_routing_hits_what_a_monte_carlo_hits(tokens: int, ep: int):
    """Every token picks 8 of 128 without replacement; the rank with most assignments counts."""
    generator = np.random.default_rng(5)
    hit, rows = [], []
    for _ in range(200):
        chosen = np.argsort(generator.random((tokens, 128)), axis=1)[:, :8]
        load = np.bincount(chosen.ravel(), minlength=128).reshape(ep, -1)
        busiest = load[load.sum(axis=1).argmax()]
        hit.append((busiest > 0).sum())
        rows.append(busiest.sum())
    got_rows, got_hit = loads(MoE(tokens=tokens, num_experts=128, experts_per_token=8, ep=ep, skew=RANDOM, **SHAPE))
    assert got_hit == pytest.approx(np.mean(hit), rel=0.04)
    assert got_rows == pytest.approx(np.mean(rows), rel=0.06)


@pytest.mark.parametrize("skew", [1.01, 1.2])
@pytest.mark.parametrize(("tokens", "ep"), [(64, 1), (512, 8), (4096, 32)])
def test_power_law_loads_match_a_monte_carlo(tokens: int, ep: int, skew: float):
    """Shares drawn on [1, 0.8 tokens], scaled, rounded, capped at one visit a token."""
    generator = np.random.default_rng(9)
    power = 1 - skew
    share = ((0.8 * tokens) ** power - 1) * generator.random((400, 256)) + 1
    share = share ** (1 / power)
    load = np.minimum(np.round(share / share.sum(axis=1, keepdims=True) * tokens * 8), tokens).reshape(400, ep, -1)
    busiest = load[np.arange(400), load.sum(axis=2).argmax(axis=1)]
    rows, hit = loads(MoE(tokens=tokens, num_experts=256, experts_per_token=8, ep=ep, skew=skew, **SHAPE))
    assert hit == pytest.approx((busiest > 0).sum(axis=1).mean(), rel=0.06)
    assert rows == pytest.approx(busiest.sum(axis=1).mean(), rel=0.08)


@settings(deadline=None)
@given(
    experts=st.sampled_from([8, 16, 64, 256]),
    topk=st.integers(1, 8),
    ep=st.sampled_from([1, 2, 4, 8]),
    skew=st.sampled_from([0.0, RANDOM, 0.5, 1.0, 1.01, 1.2]),
)
def test_loads_grow_with_tokens_and_stay_within_what_there_is(experts: int, topk: int, ep: int, skew: float):
    tokens = np.unique(np.logspace(0, 6, 40).astype(np.int64))
    rows, hit = loads(
        MoE(tokens=tokens, num_experts=experts, experts_per_token=topk, ep=ep, skew=np.float64(skew), **SHAPE)
    )
    assert (np.diff(rows) >= -1e-9 * rows[1:]).all()
    assert (np.diff(hit) >= -1e-9).all()
    assert (hit <= experts / ep + 1e-9).all()
    assert (rows >= 0.9 * np.minimum(tokens * topk / ep, 1e12)).all()


def test_beyond_the_table_loads_grow_in_proportion():
    far = 2**NUM_OCTAVES
    rows, hit = loads(
        MoE(tokens=np.array([far, 4 * far]), num_experts=64, experts_per_token=4, ep=8, skew=1.2, **SHAPE)
    )
    assert rows[1] == pytest.approx(4 * rows[0])
    assert hit[1] == hit[0]


def test_a_table_is_the_same_every_time():
    first = load_table(64, 4, 8, 1.2)
    load_table.cache_clear()
    assert np.array_equal(first, load_table(64, 4, 8, 1.2))


def test_a_skew_that_means_nothing_is_refused_with_what_to_write():
    with pytest.raises(OutOfRange, match="write 0"):
        loads(MoE(tokens=4, num_experts=64, experts_per_token=4, skew=-0.5, **SHAPE))

"""Loads by a law of popularity, against enumeration and against what was reported of real traffic."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange
from orrery.kernels.moe.routing import GRID_PER_OCTAVE, NUM_OCTAVES, chosen_fracs, popular_table
from orrery.kernels.moe.rule import loads
from orrery.kernels.ops import MoE, Popularity

SHAPE = {"hidden_size": 4096, "ffn_size": 1536, "format": "bf16"}


def test_two_tokens_over_four_experts_by_enumeration():
    """One expert a token, shares 4 : 3 : 2 : 1. Of the 16 pairs of choices, the mean number of different ones."""
    shares = (0.4, 0.3, 0.2, 0.1)
    mean = sum(shares[a] * shares[b] * len({a, b}) for a, b in product(range(4), repeat=2))
    assert mean == pytest.approx(2 - (0.16 + 0.09 + 0.04 + 0.01))  # 1.7: two, less the chance of meeting
    op = MoE(tokens=2, num_experts=4, experts_per_token=1, popularity=Popularity(shares=shares), **SHAPE)
    assert loads(op)[1] == pytest.approx(mean, rel=1e-12)
    assert loads(op)[0] == 2


def test_two_experts_a_token_by_enumeration():
    """All alike: each of the 6 pairs is chosen as often; two tokens touch 2, 3 or 4 experts."""
    pairs = list(combinations(range(4), 2))
    mean = np.mean([len({*a, *b}) for a in pairs for b in pairs])
    op = MoE(tokens=2, num_experts=4, experts_per_token=2, popularity=Popularity(), **SHAPE)
    assert mean == pytest.approx(3.0)
    assert loads(op)[1] == pytest.approx(mean, rel=1e-12)


def test_nobody_is_chosen_twice_by_one_token():
    """Shares 7 : 1 : 1 : 1, two a token: 1.4 for the first is cut to 1, the rest is a third each."""
    chosen = chosen_fracs(4, 2, Popularity(shares=(0.7, 0.1, 0.1, 0.1)))
    assert chosen == pytest.approx([1.0, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize(("exponent", "hit_frac"), [(1.1, 0.55), (0.5, 0.80)])
def test_thirty_two_tokens_hit_what_was_reported(exponent: float, hit_frac: float):
    """Real chat: 55 % of 128 experts, 8 a token; random words of load generators: 80 %."""
    op = MoE(tokens=32, num_experts=128, experts_per_token=8, popularity=Popularity(exponent=exponent), **SHAPE)
    assert loads(op)[1] / 128 == pytest.approx(hit_frac, abs=0.025)


@pytest.mark.parametrize(("tokens", "ep"), [(4, 4), (64, 4), (200, 8), (1024, 16)])
def test_the_busiest_rank_is_that_of_a_monte_carlo(tokens: int, ep: int):
    law = Popularity(exponent=0.6)
    chosen, generator = chosen_fracs(128, 8, law), np.random.default_rng(3)
    rows, hit = [], []
    for _ in range(300):
        load = (generator.random((tokens, 128)) < generator.permutation(chosen)).sum(axis=0).reshape(ep, -1)
        busiest = load[load.sum(axis=1).argmax()]
        rows.append(busiest.sum())
        hit.append((busiest > 0).sum())
    found = loads(MoE(tokens=tokens, num_experts=128, experts_per_token=8, ep=ep, popularity=law, **SHAPE))
    assert found[0] == pytest.approx(np.mean(rows), rel=0.06)
    assert found[1] == pytest.approx(np.mean(hit), rel=0.05)


@settings(deadline=None, max_examples=30)
@given(
    experts=st.sampled_from([8, 64, 128]),
    topk=st.integers(1, 8),
    ep=st.sampled_from([1, 2, 8]),
    exponent=st.floats(0.0, 2.0),
)
def test_loads_rise_smoothly(experts: int, topk: int, ep: int, exponent: float):
    """Never fewer, and never more than in proportion: no batch is slower for each of its tokens than a smaller one."""
    tokens = np.arange(1, 400)
    law = Popularity(exponent=round(exponent, 1))
    rows, hit = loads(MoE(tokens=tokens, num_experts=experts, experts_per_token=topk, ep=ep, popularity=law, **SHAPE))
    assert (np.diff(rows) >= -1e-9).all()
    assert (np.diff(hit) >= -1e-9).all()
    assert (hit[1:] / tokens[1:] <= 1.01 * hit[:-1] / tokens[:-1]).all()
    assert (hit <= experts / ep + 1e-9).all()


def test_dealt_out_is_even():
    rows, hit = loads(
        MoE(tokens=3, num_experts=128, experts_per_token=8, ep=16, popularity=Popularity(is_dealt=True), **SHAPE)
    )
    assert (rows, hit) == (2, 2)


def test_arrays_and_single_numbers_agree():
    law = Popularity(exponent=0.5)
    tokens = np.array([1, 3, 50, 5000])
    sizes = {"num_experts": 64, "experts_per_token": 4, "ep": 2}
    many = loads(MoE(tokens=tokens, popularity=law, **sizes, **SHAPE))[1]
    assert many.tolist() == [float(loads(MoE(tokens=int(t), popularity=law, **sizes, **SHAPE))[1]) for t in tokens]


def test_a_table_is_the_same_every_time():
    first = popular_table(64, 4, 8, Popularity(exponent=0.5))
    popular_table.cache_clear()
    assert np.array_equal(first, popular_table(64, 4, 8, Popularity(exponent=0.5)))


def test_shares_of_another_number_of_experts_are_refused():
    with pytest.raises(OutOfRange, match="3 shares for 64 experts"):
        loads(MoE(tokens=4, num_experts=64, experts_per_token=4, popularity=Popularity(shares=(1, 1, 1)), **SHAPE))


@pytest.mark.parametrize("ep", [2, 4])
def test_the_fullest_rank_has_the_mean_at_least(ep):
    """Alike experts: with many tokens hardly more, with one token the whole of it where it goes to one expert."""
    table = popular_table(8, 2, ep, Popularity(exponent=0.0))
    for step, row in enumerate(table):
        assert row[0] >= 2.0 ** (step / GRID_PER_OCTAVE) * 2 / ep * (1 - 1e-12)
    assert table[-1][0] == pytest.approx(2.0 ** (NUM_OCTAVES) * 2 / ep, rel=0.05)

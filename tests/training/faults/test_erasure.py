"""Erasure codes: real bytes lost and brought back; and the odds that they can be."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.faults.erasure import INVERSE, PRODUCT, code_matrix, decode, encode
from orrery.training.faults.survival import mean_time_to_loss_s, survival_frac, survived_losses_frac


def slow_product(a, b):
    """Carry-less product of two bytes, reduced by the polynomial bit by bit."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= 0x11D << (bit - 8)
    return product


def test_products_and_inverses_are_those_of_the_field():
    for a, b in itertools.product(range(0, 256, 5), range(256)):
        assert PRODUCT[a, b] == slow_product(a, b)
    assert (PRODUCT[np.arange(1, 256), INVERSE[1:]] == 1).all()


@st.composite
def lost_pieces(draw):
    """Data, parities, and which pieces are lost: at most as many as there are parities."""
    k, m, size = draw(st.integers(1, 12)), draw(st.integers(0, 6)), draw(st.integers(0, 40))
    data = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 256, (k, size), dtype=np.uint8)
    lost = draw(st.sets(st.integers(0, k + m - 1), max_size=m))
    return data, m, lost


@settings(deadline=None)
@given(lost_pieces())
def test_any_losses_up_to_the_parities_are_brought_back_exactly(case):
    data, m, lost = case
    pieces = dict(enumerate([*data, *encode(data, m)]))
    left = {place: piece for place, piece in pieces.items() if place not in lost}
    assert (decode(left, data.shape[0], m) == data).all()


def test_every_square_part_can_be_inverted_small():
    weights = code_matrix(5, 3)
    for rows in itertools.combinations(range(3), 2):
        for columns in itertools.combinations(range(5), 2):
            (a, b), (c, d) = weights[np.ix_(rows, columns)]
            assert PRODUCT[a, d] ^ PRODUCT[b, c] != 0


def test_the_first_parity_is_the_xor_and_brings_back_one():
    data = np.random.default_rng(0).integers(0, 256, (7, 1000), dtype=np.uint8)
    parity = encode(data, 3)[0]
    assert (parity == np.bitwise_xor.reduce(data, axis=0)).all()
    assert (np.bitwise_xor.reduce(np.vstack([data[:4], data[5:], parity[None]]), axis=0) == data[4]).all()
    assert encode(data, 0).shape == (0, 1000)


def test_too_many_losses_and_too_many_pieces_are_refused():
    data = np.zeros((4, 8), dtype=np.uint8)
    with pytest.raises(OutOfRange, match="3 pieces are left and 4 are needed"):
        decode({0: data[0], 1: data[1], 4: encode(data, 2)[0]}, 4, 2)
    with pytest.raises(ScenarioError, match="at most 256"):
        code_matrix(250, 7)


def test_survival_of_one_group_worked_by_hand():
    p = 1.0 - math.exp(-0.1)
    assert survival_frac(1, 3, 1, 0.1, 1.0) == pytest.approx((1 - p) ** 3 + 3 * p * (1 - p) ** 2)
    assert survival_frac(4, 3, 0, 0.1, 1.0) == pytest.approx(math.exp(-1.2))


@pytest.mark.parametrize(("groups", "size", "parity", "lost"), [(2, 3, 1, 2), (3, 2, 1, 3), (2, 4, 2, 4), (1, 5, 1, 2)])
def test_survived_losses_are_counted_as_by_hand(groups, size, parity, lost):
    nodes = [g for g in range(groups) for _ in range(size)]
    retained = [max(map(chosen.count, chosen)) <= parity for chosen in itertools.combinations(nodes, lost)]
    assert survived_losses_frac(groups, size, parity, lost) == pytest.approx(sum(retained) / len(retained))


def test_limits_of_survived_losses():
    assert survived_losses_frac(8, 6, 1, 0) == survived_losses_frac(8, 6, 1, 1) == 1.0
    assert survived_losses_frac(8, 6, 1, 9) == 0.0
    with pytest.raises(ScenarioError, match="from 0 to the 48 nodes"):
        survived_losses_frac(8, 6, 1, 49)


@given(st.integers(1, 6), st.integers(2, 8), st.floats(1e-3, 2.0))
def test_parity_only_helps_and_the_mix_of_losses_is_the_whole(groups, size, time):
    few, more = (survival_frac(groups, size, m, time, 1.0) for m in (0, 1))
    assert few <= more <= 1.0
    p, nodes = 1.0 - math.exp(-time), groups * size
    mixed = sum(
        math.comb(nodes, k) * p**k * (1 - p) ** (nodes - k) * survived_losses_frac(groups, size, 1, k)
        for k in range(nodes + 1)
    )
    assert mixed == pytest.approx(more)


def test_mean_time_to_loss_of_mirrors_and_of_nothing():
    assert mean_time_to_loss_s(5, 4, 0, 1e6, 1.0) == pytest.approx(1e6 / 20)
    up, down = 1e-6, 1e-3
    assert mean_time_to_loss_s(1, 2, 1, 1e6, 1e3) == pytest.approx((3 * up + down) / (2 * up * up))


def test_groups_without_sense_are_refused():
    with pytest.raises(ScenarioError, match="fewer parities than nodes"):
        survival_frac(1, 2, 2, 1.0, 1.0)

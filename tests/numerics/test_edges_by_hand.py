"""Edges of small rules: zeros, saturated sums, ends of formats, wide codes, and tables with few numbers."""

import numpy as np
import pytest

from orrery.numerics.arithmetic.channel_blocks import (
    BlockKnobs,
    clustered_order,
    outlier_channels,
    round_block,
    wide_blocks,
)
from orrery.numerics.arithmetic.computed import check_input
from orrery.numerics.arithmetic.dyadic import Dyadic, nearest_dyadic, requantise
from orrery.numerics.arithmetic.matmul import FewBitWeights
from orrery.numerics.arithmetic.techniques.matmul_group_scaled import GroupScaledKnobs
from orrery.numerics.arithmetic.techniques.matmul_group_scaled import rule as group_scaled
from orrery.numerics.arithmetic.techniques.matmul_mixed_blocks import rule as mixed_blocks
from orrery.numerics.codec.rounding import as_floats, decode, encode
from orrery.numerics.crest import blocks_of_crest
from orrery.numerics.experiments.losses import cross_entropy
from orrery.numerics.experiments.networks import Perceptron
from orrery.numerics.families.lookup import learned
from orrery.numerics.laws.coefficients import coefficients
from orrery.numerics.laws.quartet import CHOICES, Method, known_method, least_tokens, loss, speedups
from orrery.numerics.names import get_element
from orrery.numerics.rotations.learned import lighter_tails

# --- blocks of channels


def test_blocks_with_outliers_keep_eight_bits():
    """Peaks of 1, 2, 4 and 17: the median is 3, so from 24 on an outlier at a ratio of 8; at 5, above 15."""
    x = np.array([[1.0, -2.0, 4.0, -17.0], [0.5, 1.0, 0.0, 3.0]])
    two = BlockKnobs(block_elements=2, outlier_ratio=5.0)
    assert outlier_channels(x, two).tolist() == [False, False, False, True]
    assert not outlier_channels(x, BlockKnobs(block_elements=2)).any()
    assert not outlier_channels(x, BlockKnobs(outlier_ratio=17 / 3)).any()  # not above it
    assert clustered_order(x, two).tolist() == [3, 0, 1, 2]
    assert wide_blocks(x, two).tolist() == [False, True]
    # every token's block on 7 steps, or on 127
    np.testing.assert_allclose(round_block(np.array([[7.0, -2.4], [0.0, 0.0]]), 4), [[7, -2], [0, 0]])
    np.testing.assert_allclose(round_block(np.array([[12.7, 0.06]]), 8), [[12.7, 0.1]])
    weights = FewBitWeights(codes=np.ones((3, 4), int), scales=np.ones((3, 1)), zeros=np.zeros((3, 1)), bits=4)
    found = mixed_blocks(x, weights, two)
    counts = found.counts
    assert (counts.num_multiplies, counts.num_adds, counts.num_scalings) == (2 * 12, 2 * 12, 2 * 3 * 2)
    row = np.rint(1 * 7 / 2) * 2 / 7 - 2 + np.rint(4 * 127 / 17) * 17 / 127 - 17
    assert found.values[0] == pytest.approx([row] * 3)
    with pytest.raises(Exception, match="write a divisor"):
        wide_blocks(x, BlockKnobs(block_elements=3))


# --- dyadic scales


def test_dyadic_scales_and_what_they_cut():
    """3 / 8 of 10 is 3.75, of -4 is -1.5, rounded up to -1; codes are cut symmetrically."""
    three_eighths = Dyadic(multiplier=3, shift=3)
    assert three_eighths.value_ratio == 0.375
    assert requantise(np.array([10, -4, 4, 400, -400]), three_eighths).tolist() == [4, -1, 2, 127, -127]
    assert nearest_dyadic(0.375, 2) == three_eighths
    assert nearest_dyadic(0.99999, 4) == Dyadic(multiplier=8, shift=3)
    assert nearest_dyadic(2.0**-40, 31).value_ratio == 2.0**-40
    for wrong in ({"multiplier": -1, "shift": 1}, {"multiplier": 1 << 31, "shift": 1}):
        with pytest.raises(Exception, match="write 0 <= b"):
            Dyadic(**wrong)
    for shift in (0, 63):
        with pytest.raises(Exception, match="write 0 <= b"):
            Dyadic(multiplier=1, shift=shift)
    assert Dyadic(multiplier=0, shift=62).value_ratio == 0
    with pytest.raises(Exception, match="scale the operands"):
        nearest_dyadic(2.0**31)
    with pytest.raises(Exception, match="write more than 0"):
        nearest_dyadic(0.0)


# --- formats


@pytest.mark.parametrize(
    ("kind", "computed"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i1", "f4"), ("i2", "f4"), ("i4", "f8"), ("i8", "f8"), ("?", "f4")],
)
def test_numbers_are_computed_in_the_narrowest_float_that_holds_them(kind, computed):
    assert as_floats(np.zeros(3, kind)).dtype == np.dtype(computed)
    with pytest.raises(Exception, match="give floats or integers"):
        as_floats(np.array(["a"]))


def test_symmetric_integers_leave_the_lowest_code_out():
    for name, is_symmetric in (("int4", False), ("int4sym", True), ("fixed8_6", False), ("fixed8_6sym", True)):
        element = get_element(name)
        assert element.is_symmetric == is_symmetric
        assert element.lowest_code == -element.highest_code - (not is_symmetric)
    assert get_element("uint4").lowest_code == 0
    assert get_element("fixed8_6").fraction_bits == 6


@pytest.mark.parametrize("name", ["posit2_0", "posit16_4", "e4m3b-944", "e4m3b957", "e10m5", "int32"])
def test_last_formats_that_there_are(name):
    assert get_element(name).name == name


@pytest.mark.parametrize("name", ["posit1_0", "posit17_1", "posit8_5", "e4m3b-945", "e4m3b958", "e11m5", "int33"])
def test_first_formats_that_there_are_not(name):
    with pytest.raises(Exception, match=name):
        get_element(name)


@pytest.mark.parametrize("name", ["fp32", "e5m14ieee", "e8m23ieee"])
def test_wide_codes_keep_what_is_no_number(name):
    """Largest exponent: infinity without a mantissa, else no number; zeros and subnormals are themselves."""
    x = np.array([1.5, -2.0, 0.0, np.inf, -np.inf, np.nan, 2.0**-14, 3 * 2.0**-16])
    element = get_element(name)
    found = decode(encode(x, element, saturates=False), element)
    np.testing.assert_array_equal(found, x.astype(np.float32))


def test_a_learned_table_moves_to_the_means_of_its_numbers():
    """Of 0, 1, 10 and 12 two values: 0.5 and 11; of -5 and three ones: each its own."""
    assert learned([0.0, 1.0, 10.0, 12.0], 1).table == (0.5, 11.0)
    assert learned([-5.0, 1.0, 1.0, 1.0], 1).table == (-5.0, 1.0)
    with pytest.raises(Exception, match="or more"):
        learned([1.0], 1)


def test_layers_of_a_plain_perceptron():
    assert dict(Perceptron().shapes) == {"layer0": (128, 64), "layer1": (128, 128), "layer2": (16, 128)}


# --- the law of training in four bits


def test_the_law_of_four_bits_by_hand():
    c, own = coefficients("quartet"), known_method()
    want = (c["a"] / (1e9 * 0.5) ** c["alpha"] + c["b"] / (2e10 * 0.25) ** c["beta"]) ** c["gamma"] + c["e"]
    assert loss(1e9, 2e10, 0.5, 0.25) == pytest.approx(want)
    assert own(CHOICES[0]) == (c["fp8_parameters_frac"], c["fp8_tokens_frac"])
    assert own(CHOICES[1]) == (c["fp4_parameters_frac"], c["fp8_tokens_frac"])
    assert own(CHOICES[2]) == (c["fp8_parameters_frac"], c["fp4_tokens_frac"])
    share = c["forward_frac"]
    assert speedups(CHOICES[3], 2.0) == pytest.approx((2, 2))
    assert speedups(CHOICES[1], 2.0) == pytest.approx((2, 1 / (share / 2 + 1 - share)))
    assert speedups(CHOICES[2], 2.0) == pytest.approx((1, 1 / (share + (1 - share) / 2)))


def test_from_where_to_where_four_bits_win():
    """Lossless at twice the speed they win from the first amount of data to the last: 1 and 10^6 tokens a parameter."""
    c = coefficients("quartet")
    lossless = Method(parameters_frac=c["fp8_parameters_frac"], tokens_frac=c["fp8_tokens_frac"])
    assert least_tokens(1e9, 2.0, lossless, is_resized=False) == pytest.approx((1e9, 1e15))
    assert np.isnan(least_tokens(1e9, 1.0, known_method(), is_resized=False)).all()


# --- checks and counts


def test_codes_that_registers_hold():
    """Up to 2^19 in magnitude, on either side; one code too large among small ones is enough."""
    for codes in ([0, 2**19 - 1], [-(2**19) + 1, 3]):
        check_input(np.array(codes), 0.5, is_integer=True)
    for codes in ([0, 2**19, 0], [-(2**19), 3]):
        with pytest.raises(Exception, match="requantise first"):
            check_input(np.array(codes), 0.5, is_integer=True)


def test_additions_and_shifts_of_group_scaled_products():
    """Two tokens by three outputs of eight inputs in two groups: 48 products, two additions for each of 12 groups."""
    rng = np.random.default_rng(0)
    weights = FewBitWeights(codes=rng.integers(0, 4, (3, 8)), scales=np.ones((3, 2)), zeros=np.zeros((3, 2)), bits=2)
    for has_multipliers in (True, False):
        found = group_scaled(rng.standard_normal((2, 8)), weights, GroupScaledKnobs(has_multipliers=has_multipliers))
        counts, shifts = found.counts, 0 if has_multipliers else 48 * 2  # two bits a code
        assert (counts.num_multiplies, counts.num_shifts) == (48 * has_multipliers, shifts)
        assert (counts.num_adds, counts.num_scalings) == ((shifts or 48) + 2 * 12, 12)


def test_blocks_are_spread_over_an_octave():
    """All have the same largest element but for a factor from 1 up to 2."""
    blocks = blocks_of_crest(2.0, 16, 400, 0)
    size = np.sqrt((blocks.astype(float) ** 2).mean(axis=1))
    assert 1 <= size.min() < 1.1
    assert 1.9 < size.max() <= 2


def test_logits_that_are_far_apart_do_not_overflow():
    """The far larger logit takes all: 2000 is lost where the other one is the target."""
    value, slope = cross_entropy(np.array([[2000.0, 0.0]]), np.array([1]))
    assert (value, slope.tolist()) == (2000, [[1, -1]])
    assert cross_entropy(np.array([[-2000.0, 0.0]]), np.array([1]))[0] == 0


def test_codes_of_unsigned_floats():
    """Five bits of the exponent with a bias of 15 and two of the mantissa, no sign: 1 is 15 steps of four."""
    codes = encode(np.array([1.0, 1.25, 2.0, 0.0]), "ue5m2")
    assert codes.tolist() == [60, 61, 64, 0]
    assert decode(codes, "ue5m2").tolist() == [1, 1.25, 2, 0]


def test_one_row_is_learned_from_and_judged_by():
    """Of two rows the first judges and the second teaches; a row alone does both. Either way a rotation comes out."""
    rng = np.random.default_rng(0)
    for rows in (1, 2, 9):
        found = lighter_tails(rng.standard_t(3, (rows, 16)), num_steps=3, turn_ratio=0.1, seed=0)
        np.testing.assert_allclose(found @ found.T, np.eye(16), atol=1e-9)
    with pytest.raises(Exception, match="all zero"):
        lighter_tails(np.zeros((2, 16)), num_steps=1, turn_ratio=0.1, seed=0)

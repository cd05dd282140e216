"""Every way of multiplying few-bit weights against the plain product, and what it counts."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.arithmetic.channel_blocks import BlockKnobs, clustered_order, wide_blocks
from orrery.numerics.arithmetic.matmul import FewBitWeights, exact
from orrery.numerics.arithmetic.techniques import (
    matmul_bit_decomposed,
    matmul_element_scaled,
    matmul_group_scaled,
    matmul_lookup,
    matmul_mixed_blocks,
    matmul_ternary,
)
from orrery.numerics.arithmetic.techniques.matmul_bit_decomposed import BitDecomposedKnobs, bipolar
from orrery.numerics.arithmetic.techniques.matmul_element_scaled import ElementScaledKnobs
from orrery.numerics.arithmetic.techniques.matmul_group_scaled import GroupScaledKnobs
from orrery.numerics.arithmetic.techniques.matmul_lookup import LookupKnobs

BITS = range(1, 9)


def affine_weights(weights, bits, group_elements=0):
    """Weights (outputs, inputs) on 2^bits evenly spaced values from the least to the greatest of each group.

    ``group_elements``: inputs that share a scale; 0 = all of an output.
    """
    outputs, inputs = weights.shape
    size = group_elements or inputs
    grouped = weights.astype(np.float64).reshape(outputs, inputs // size, size)
    low, high = grouped.min(axis=-1), grouped.max(axis=-1)
    steps = (1 << bits) - 1
    scales = np.where(high > low, (high - low) / steps, 1.0)
    zeros = np.rint(-low / scales)
    codes = np.clip(np.rint(grouped / scales[..., None] + zeros[..., None]), 0, steps)
    return FewBitWeights(codes=codes.astype(np.int64).reshape(outputs, inputs), scales=scales, zeros=zeros, bits=bits)


def ternary_weights(weights):
    """Weights as -1, 0 or 1 times the mean of their absolute values (BitNet b1.58, arXiv 2402.17764)."""
    scale = max(float(np.abs(weights).mean()), np.finfo(np.float64).tiny)
    signs = np.clip(np.rint(weights / scale), -1, 1)
    one = np.ones((len(weights), 1))
    return FewBitWeights(codes=(signs + 1).astype(np.int64), scales=scale * one, zeros=one, bits=2)


def whole(shape, bits, seed=0):
    """Whole numbers of ``bits`` bits, every one possible."""
    return np.random.default_rng(seed).integers(-(1 << (bits - 1)), 1 << (bits - 1), shape).astype(np.float64)


def weights(bits, outputs=6, inputs=96, groups=3, seed=1):
    """Any codes, with scales that are powers of two, so that exact arithmetic stays exact in floats."""
    rng = np.random.default_rng(seed)
    return FewBitWeights(
        codes=rng.integers(0, 1 << bits, (outputs, inputs)),
        scales=2.0 ** rng.integers(-3, 4, (outputs, groups)),
        zeros=rng.integers(0, 1 << bits, (outputs, groups)).astype(np.float64),
        bits=bits,
    )


def plain(activations, w):
    """The product one weight at a time, in Python's whole numbers."""
    out = np.zeros((len(activations), len(w.codes)))
    for t, row in enumerate(activations):
        for n, codes in enumerate(w.codes):
            for k, code in enumerate(codes):
                group = k // w.group_elements
                out[t, n] += row[k] * w.scales[n, group] * (int(code) - w.zeros[n, group])
    return out


def ways(bits):
    """Every rule that does not round, on activations of 8 bits."""
    return {
        "each": matmul_element_scaled.rule(whole((4, 96), 8), weights(bits), ElementScaledKnobs()),
        "group": matmul_group_scaled.rule(whole((4, 96), 8), weights(bits), GroupScaledKnobs(has_multipliers=True)),
        "shifts": matmul_group_scaled.rule(whole((4, 96), 8), weights(bits), GroupScaledKnobs()),
        "bits": matmul_bit_decomposed.rule(whole((4, 96), 8), weights(bits), BitDecomposedKnobs()),
        "tables": matmul_lookup.rule(whole((4, 96), 8), weights(bits), LookupKnobs()),
    }


@pytest.mark.parametrize("bits", BITS)
def test_every_way_gives_the_same_bits_as_the_plain_product(bits):
    expected = plain(whole((4, 96), 8), weights(bits))
    for name, product in ways(bits).items():
        np.testing.assert_array_equal(product.values, expected, err_msg=name)


@pytest.mark.parametrize(("p", "q"), [(p, q) for p in (1, 2, 3, 4, 8) for q in (1, 2, 3, 4, 8)])
def test_single_bits_recombine_for_any_pair_of_widths(p, q):
    a, w = whole((5, 64), q, seed=q), weights(p, inputs=64, groups=1, seed=p)
    product = matmul_bit_decomposed.rule(a, w, BitDecomposedKnobs(activation_bits=q))
    np.testing.assert_array_equal(product.values, plain(a, w))
    assert product.counts.num_one_bit_passes == p * q
    assert product.counts.num_one_bit_multiply_adds == p * q * 5 * 6 * 64
    assert product.counts.num_shifts == p * q * 5 * 6


@pytest.mark.parametrize("bits", BITS)
def test_bipolar_codes_are_the_odd_numbers_and_symmetric(bits):
    values = bipolar(np.arange(1 << bits), bits)
    assert values.tolist() == list(range(-(1 << bits) + 1, 1 << bits, 2))
    planes = (np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1
    np.testing.assert_array_equal(((2 * planes - 1) << np.arange(bits)).sum(axis=1), values)


def test_activations_that_do_not_fit_their_bits_are_refused():
    with pytest.raises(ScenarioError, match="whole numbers from -8 to 7"):
        matmul_bit_decomposed.rule(np.full((1, 96), 8.0), weights(2), BitDecomposedKnobs(activation_bits=4))
    with pytest.raises(ScenarioError, match="whole numbers"):
        matmul_bit_decomposed.rule(np.full((1, 96), 0.5), weights(2), BitDecomposedKnobs(activation_bits=4))


@pytest.mark.parametrize("inputs", [1, 2, 4, 8])
def test_half_the_patterns_are_stored_and_all_are_read(inputs):
    a, w = np.random.default_rng(3).standard_normal((3, 96)), weights(3)
    product = matmul_lookup.rule(a, w, LookupKnobs(table_inputs=inputs))
    np.testing.assert_allclose(product.values, exact(a, w), rtol=1e-12, atol=1e-10)
    assert product.counts.num_table_entries == 3 * 96 // inputs * 2 ** (inputs - 1)
    assert product.counts.num_lookups == 3 * 3 * 6 * 96 // inputs
    assert product.counts.num_multiplies == 0


def test_tables_must_divide_groups():
    with pytest.raises(ScenarioError, match="do not divide groups"):
        matmul_lookup.rule(whole((1, 96), 8), weights(2), LookupKnobs(table_inputs=5))


def test_scaling_groups_needs_fewer_scalings_than_scaling_elements_by_the_length_of_a_group():
    """For as many tokens as share a dequantised weight, one scaling a group and token against one an element."""
    made = ways(4)
    each, group = made["each"].counts, made["shifts"].counts
    assert each.num_scalings == 6 * 96
    assert group.num_scalings == 4 * 6 * 3
    one = matmul_element_scaled.rule(whole((4, 96), 8), weights(4), ElementScaledKnobs(tile_tokens=1)).counts
    assert one.num_scalings == group.num_scalings * weights(4).group_elements
    assert (group.num_multiplies, group.num_shifts) == (0, 4 * each.num_multiplies)


def test_ternary_products_only_add_and_skip_zeros():
    w = ternary_weights(np.random.default_rng(5).standard_normal((8, 64)))
    a = whole((3, 64), 8)
    product = matmul_ternary.rule(a, w, matmul_ternary.TECHNIQUE.knobs())
    signs = w.codes - 1
    assert set(np.unique(signs)) == {-1, 0, 1}
    np.testing.assert_array_equal(product.values, (a.astype(np.int64) @ signs.T) * w.scales[:, 0])
    assert product.counts.num_multiplies == 0
    assert product.counts.num_adds == 3 * np.count_nonzero(signs) < 3 * signs.size


def test_ternary_refuses_other_weights():
    with pytest.raises(ScenarioError, match="not ternary"):
        matmul_ternary.rule(whole((1, 96), 8), weights(2), matmul_ternary.TECHNIQUE.knobs())


def outlying(channels=512, outliers=5, seed=7):
    """Activations of which a few scattered channels are far larger, and those channels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((16, channels))
    large = rng.choice(channels, outliers, replace=False)
    x[:, large] *= 60.0
    return x, large


def test_sorted_outliers_fill_the_fewest_blocks():
    x, large = outlying()
    knobs = BlockKnobs(block_elements=32)
    order = clustered_order(x, knobs)
    assert sorted(order) == list(range(512))
    assert set(order[:5]) == set(large)
    assert wide_blocks(x, knobs).sum() == len({int(c) // 32 for c in large}) > 1
    assert wide_blocks(x[:, order], knobs).sum() == 1


def test_eight_bits_for_outliers_come_near_eight_bits_for_all():
    x, _ = outlying()
    knobs = BlockKnobs(block_elements=32)
    x = x[:, clustered_order(x, knobs)]
    w = affine_weights(np.random.default_rng(2).standard_normal((24, 512)), 4, 32)
    truth = exact(x, w)

    def error(outlier_ratio):
        mixed = matmul_mixed_blocks.rule(x, w, BlockKnobs(block_elements=32, outlier_ratio=outlier_ratio)).values
        return float(((mixed - truth) ** 2).mean())

    narrow, mixed, wide = error(1e9), error(8.0), error(1.0 + 1e-9)
    assert wide < mixed < narrow / 10


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_affine_weights_are_within_half_a_step(bits):
    x = np.random.default_rng(0).standard_normal((5, 64))
    w = affine_weights(x, bits, 16)
    assert np.all(np.abs(w.dequantised() - x) <= np.repeat(w.scales, 16, axis=1) * (1.0 + 1e-9))
    assert w.group_elements == 16


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ScenarioError, match="write \\(tokens, 96\\)"):
        exact(np.zeros((2, 95)), weights(2))
    with pytest.raises(ScenarioError, match="groups that divide"):
        FewBitWeights(codes=np.zeros((2, 5), dtype=int), scales=np.ones((2, 2)), zeros=np.zeros((2, 2)), bits=2)
    with pytest.raises(ScenarioError, match="0 to 2\\^2"):
        FewBitWeights(codes=np.full((2, 4), 4), scales=np.ones((2, 2)), zeros=np.zeros((2, 2)), bits=2)

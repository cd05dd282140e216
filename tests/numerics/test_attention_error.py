"""Eight-bit attention on inputs with outliers: what scales and rotations save."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.arithmetic.attention import (
    AttentionFormat,
    attention,
    rms_error,
    rounded_attention,
    scaled_round,
)
from orrery.numerics.arithmetic.extension_point import rounded_attention as by_name
from orrery.numerics.rotations.hadamard import matrix, signs

TENSOR, BLOCK = AttentionFormat(), AttentionFormat(block_rows=64)


def with_outliers(shape, random):
    """Standard normal entries, one in a thousand with a normal outlier ten times as large on top."""
    return random.normal(0.0, 1.0, shape) + random.normal(0.0, 10.0, shape) * (random.random(shape) < 0.001)


def operands(seed=0, shape=(2, 512, 64)):
    rng = np.random.default_rng(seed)
    return tuple(with_outliers(shape, rng) for _ in range(3))


def rotation(size, seed=1):
    return signs(size, seed)[:, None] * matrix(size)


def test_attention_is_a_weighted_mean():
    q, k, _ = operands()
    np.testing.assert_allclose(attention(q, k, np.ones_like(k)), 1.0)
    np.testing.assert_allclose(
        attention(q * 0, k, k), np.broadcast_to(k.mean(axis=1, keepdims=True), k.shape), atol=1e-12
    )


def test_a_rotation_alone_changes_nothing():
    q, k, v = operands()
    r = rotation(64)
    np.testing.assert_allclose(attention(q @ r, k @ r, v), attention(q, k, v), atol=1e-9)


def test_a_rotation_cuts_the_error_of_rare_outliers_and_blocks_do_not_hurt():
    q, k, v = operands(3, (2, 2048, 128))
    q = q[:, :1024]
    exact, r = attention(q, k, v), rotation(128)
    plain, block = (rms_error(exact, rounded_attention(q, k, v, f)) for f in (TENSOR, BLOCK))
    turned, both = (rms_error(exact, rounded_attention(q, k, v, f, r)) for f in (TENSOR, BLOCK))
    assert plain > 1.4 * both
    assert turned < 0.7 * plain
    assert block < 1.05 * plain
    assert both < 1.1 * turned


def test_without_outliers_a_rotation_buys_next_to_nothing():
    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(size=(1, 512, 64)) for _ in range(3))
    exact = attention(q, k, v)
    plain, turned = (rms_error(exact, rounded_attention(q, k, v, TENSOR, r)) for r in (None, rotation(64)))
    assert turned == pytest.approx(plain, rel=0.15)


def test_wider_elements_err_less():
    q, k, v = operands(5)
    exact = attention(q, k, v)
    half = AttentionFormat(element="fp16", largest_ratio=448.0)
    two = AttentionFormat(element="e5m2", largest_ratio=57344.0)
    errors = [rms_error(exact, rounded_attention(q, k, v, f)) for f in (half, TENSOR, two)]
    assert errors[0] < 0.05 * errors[1] < errors[1] < errors[2]


def test_a_block_has_its_own_scale():
    x = np.ones((1, 128, 8)) * 0.3
    x[0, 0, 0] = 3e5  # under one scale the rest falls below the smallest number
    assert scaled_round(x, TENSOR)[0, 64:].max() < 0.5 * x[0, 64:].max()
    np.testing.assert_allclose(scaled_round(x, BLOCK)[0, 64:], 0.3, rtol=0.04)
    assert not scaled_round(np.zeros((1, 4, 4)), BLOCK).any()


def test_techniques_are_the_same_mechanism_by_name():
    q, k, v = operands(6, (1, 128, 64))
    np.testing.assert_array_equal(
        by_name("scaled-attention", q, k, v, block_rows=64), rounded_attention(q, k, v, BLOCK)
    )
    turned = rounded_attention(q, k, v, BLOCK, rotation(64, 5))
    np.testing.assert_array_equal(by_name("rotated-attention", q, k, v, block_rows=64, seed=5), turned)


def test_blocks_of_fewer_rows_than_none_are_refused():
    with pytest.raises(ScenarioError, match="block_rows"):
        AttentionFormat(block_rows=-1)

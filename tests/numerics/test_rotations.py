"""Hadamard transforms and orthogonal matrices keep lengths and products; tails are measured as they are defined."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.rotations.hadamard import has_matrix, inverse, matrix, signs, transform
from orrery.numerics.rotations.orthogonal import nearest_by_qr, random_orthogonal, tangent

ORDERS = (1, 2, 4, 8, 64, 128, 12, 20, 28, 36, 24, 40, 48, 56, 60, 80, 108, 112, 140, 1280)


@pytest.mark.parametrize("order", ORDERS)
def test_a_matrix_has_equal_magnitudes_and_orthonormal_rows(order: int):
    h = matrix(order)
    assert np.allclose(np.abs(h), 1.0 / np.sqrt(order))
    assert np.allclose(h @ h.T, np.eye(order))


@pytest.mark.parametrize("order", ORDERS)
def test_the_transform_is_the_product_with_the_matrix_and_its_inverse_undoes_it(order: int):
    x = np.random.default_rng(0).standard_normal((3, 2, order))
    assert np.allclose(transform(x), x @ matrix(order))
    assert np.allclose(inverse(transform(x)), x)


def test_blocks_are_rotated_each_by_itself():
    x = np.random.default_rng(0).standard_normal((4, 96))
    for block in (1, 2, 4, 32, 12, 48):
        expected = np.concatenate([part @ matrix(block) for part in np.split(x, 96 // block, axis=1)], axis=1)
        assert np.allclose(transform(x, block), expected)
        assert np.allclose(inverse(transform(x, block), block), x)


def test_sylvester_matches_the_recursive_definition():
    h = np.ones((1, 1))
    for _ in range(5):
        h = np.block([[h, h], [h, -h]])
    assert np.allclose(matrix(32) * np.sqrt(32), h)


def test_float32_stays_float32_and_float16_becomes_float64():
    assert transform(np.ones((2, 8), dtype=np.float32)).dtype == np.float32
    assert transform(np.ones((2, 8), dtype=np.float16)).dtype == np.float64


def test_a_rotation_of_both_operands_keeps_their_product():
    rng = np.random.default_rng(3)
    x, w, s = rng.standard_normal((5, 56)), rng.standard_normal((7, 56)), signs(56, 4)
    assert np.allclose(transform(x * s) @ transform(w * s).T, x @ w.T)


def test_signs_are_fixed_by_the_seed():
    assert set(np.unique(signs(256, 1))) == {-1.0, 1.0}
    assert np.array_equal(signs(256, 1), signs(256, 1))
    assert not np.array_equal(signs(256, 1), signs(256, 2))


@pytest.mark.parametrize("order", [0, 3, 6, 7, 10, 52, 172])
def test_orders_without_a_known_matrix_are_refused_with_what_to_write(order: int):
    assert not has_matrix(order)
    with pytest.raises(ScenarioError, match="write"):
        matrix(order)


def test_a_block_that_does_not_divide_the_row_is_refused():
    with pytest.raises(ScenarioError, match="divisor"):
        transform(np.ones((2, 24)), 16)


def test_random_orthogonal_matrices_are_orthogonal_and_evenly_drawn():
    drawn = [random_orthogonal(6, seed) for seed in range(400)]
    assert all(np.allclose(q @ q.T, np.eye(6)) for q in drawn)
    # An entry of a Haar matrix has mean 0 and variance 1/n; without the sign correction the diagonal has a mean.
    assert np.allclose(np.mean(drawn, axis=0), 0.0, atol=5 * np.sqrt(1 / 6 / 400))
    assert np.mean(np.square(drawn)) == pytest.approx(1 / 6)


def test_the_retraction_leaves_orthogonal_matrices_alone():
    q = random_orthogonal(8, 0)
    assert np.allclose(nearest_by_qr(q), q)


def test_a_tangent_keeps_the_matrix_orthogonal_to_first_order():
    q, g = random_orthogonal(8, 0), np.random.default_rng(1).standard_normal((8, 8))
    t = tangent(q, g)
    assert np.allclose(q.T @ t + t.T @ q, 0.0)
    assert np.allclose(tangent(q, t), t)

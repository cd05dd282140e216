"""Sparse products: counts against dense matrices, and which order moves least."""

import numpy as np
import pytest

from orrery.kernels.sparse.products import (
    ENTRY_BYTES,
    Sparse,
    by_rows,
    inner,
    num_partial_products,
    num_results,
    outer,
    recursive,
)


def drawn(scale=5, each=3, seed=0):
    random = np.random.default_rng(seed)
    return recursive(scale, each, random), recursive(scale, each, random)


def dense(matrix):
    found = np.zeros((matrix.num_rows, matrix.num_rows), dtype=np.int64)
    found[matrix.rows, matrix.columns] += 1
    return found


def diagonal(size):
    places = np.arange(size, dtype=np.int64)
    return Sparse(num_rows=size, rows=places, columns=places)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("each", [1, 3, 9])
def test_counts_are_those_of_the_dense_product(each, seed):
    left, right = drawn(each=each, seed=seed)
    product = dense(left) @ dense(right)
    assert num_partial_products(left, right) == product.sum()
    assert num_results(left, right) == np.count_nonzero(product)


def test_entries_are_kept_once_and_gather_in_a_corner():
    matrix, _ = drawn(scale=9, each=8)
    assert dense(matrix).max() == 1
    assert matrix.num_entries < 8 * 512
    first = np.count_nonzero((matrix.rows < 256) & (matrix.columns < 256))
    assert 0.4 < first / matrix.num_entries < 0.57  # 0.57 less those drawn twice


def test_a_diagonal_costs_an_entry_a_row_and_the_inner_order_all_pairs():
    one = diagonal(64)
    assert by_rows(one, one).memory_bytes == ENTRY_BYTES * 3 * 64
    assert outer(one, one).memory_bytes == ENTRY_BYTES * 5 * 64
    assert inner(one, one).memory_bytes == ENTRY_BYTES * (64 + 64 * 64 + 64)
    assert by_rows(one, one).num_atomics == 64


def test_row_by_row_saves_the_partial_products_that_outer_writes():
    left, right = drawn(scale=8, each=8)
    saved = outer(left, right).memory_bytes - by_rows(left, right).memory_bytes
    assert saved == ENTRY_BYTES * (right.num_entries + num_partial_products(left, right))
    assert by_rows(left, right).memory_bytes < outer(left, right).memory_bytes < inner(left, right).memory_bytes

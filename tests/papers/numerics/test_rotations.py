"""Crest factors and kurtosis: measured as they are defined, and flattened by rotations."""

import numpy as np
import pytest

from orrery.numerics.rotations.hadamard import transform
from orrery_papers.shared.tails import crest_factor, kurtosis


def test_one_outlier_is_spread_evenly():
    x = np.zeros((1, 64))
    x[0, 5] = 8.0
    assert crest_factor(x)[0] == pytest.approx(8.0)
    assert crest_factor(transform(x))[0] == pytest.approx(1.0)


def test_kurtosis_of_known_laws():
    rng = np.random.default_rng(0)
    assert kurtosis(rng.standard_normal(400_000)) == pytest.approx(3.0, rel=0.02)
    assert kurtosis(rng.random(400_000)) == pytest.approx(1.8, rel=0.01)
    assert kurtosis(rng.laplace(size=400_000)) == pytest.approx(6.0, rel=0.06)
    assert kurtosis(np.repeat([1.0, -1.0], 8)) == 1.0
    assert kurtosis(np.ones(4)) == 1.0
    assert kurtosis(rng.standard_normal((5, 30)), axis=-1).shape == (5,)


def test_crest_factor_of_known_rows():
    assert np.allclose(crest_factor(np.array([[3.0, -4.0], [0.0, 0.0]])), [4 / np.sqrt(12.5), 1.0])

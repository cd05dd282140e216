"""FlashAttention-3's inputs with outliers."""

import numpy as np
import pytest

from orrery_papers.flashattention_3.outliers import with_outliers


def test_outliers_are_as_rare_and_as_large_as_asked():
    x = with_outliers((1000, 1000), np.random.default_rng(2))
    assert x.std() == pytest.approx(np.sqrt(1.0 + 0.001 * 100.0), rel=0.01)
    assert np.abs(x).max() > 25.0
    assert with_outliers((500, 500), np.random.default_rng(2), outlier_frac=0.0).std() == pytest.approx(1.0, rel=0.01)

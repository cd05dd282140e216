"""The error of a group of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.evidence.score import relative_error, score_errors


def test_errors_are_relative_to_what_was_measured():
    error = relative_error(np.array([1.5, 0.5]), np.array([1.0, 1.0]))
    assert error.tolist() == [0.5, -0.5]


def test_a_score_by_hand():
    found = score_errors(np.array([-0.1, 0.2, 0.3]), np.array([1.0, 0.0, np.nan]))
    assert found.rows == 3
    assert found.median_abs_error_frac == pytest.approx(0.2)
    assert found.mean_abs_error_frac == pytest.approx(0.2)
    assert found.p90_abs_error_frac == pytest.approx(0.28)
    assert found.bias_frac == pytest.approx(0.2)
    assert found.covered_80_frac == pytest.approx(0.5), "rows without an interval do not count"
    assert found.covered_95_frac is None


@given(st.lists(st.floats(-0.99, 9.0), min_size=1, max_size=50))
def test_median_and_p90_are_in_order(errors):
    found = score_errors(np.array(errors))
    assert 0 <= found.median_abs_error_frac <= found.p90_abs_error_frac + 1e-12
    assert abs(found.bias_frac) <= max(abs(e) for e in errors)

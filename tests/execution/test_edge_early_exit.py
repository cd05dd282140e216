"""Early exits: expected cost by hand, and at both ends of how easy inputs are."""

import pytest
from orrery.execution.edge.early_exit import Runtime, exiting_s, run_s

RUNTIME = Runtime(flops_per_s=100.0, call_s=0.1)


def test_layers_cost_their_calls_and_their_arithmetic():
    assert run_s((50.0, 150.0), RUNTIME) == pytest.approx(2.2)


@pytest.mark.parametrize(("easy", "expected"), [(1.0, 0.7), (0.0, 3.8), (0.5, 2.25)])
def test_expected_cost_lies_between_all_easy_and_all_hard(easy, expected):
    assert exiting_s((50.0,), (200.0, 90.0), easy, RUNTIME) == pytest.approx(expected)

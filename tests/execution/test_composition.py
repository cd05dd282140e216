"""Many experts on one node: how many fit, what a switch takes, how often one is needed."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.execution.composition import Node, missed_frac, nodes_to_hold, popularity

NODE = Node(fast_bytes=100.0, switch_bytes_per_s=50.0, switch_latency_s=0.5)


def test_a_switch_is_a_copy():
    assert NODE.switch_s(10.0) == pytest.approx(0.7)
    assert NODE.fast_experts(9.0) == 11


def test_nodes_are_counted_in_whole_experts():
    assert nodes_to_hold(111, 9.0, NODE) == 11
    assert nodes_to_hold(110, 9.0, NODE) == 10
    with pytest.raises(OutOfRange, match="does not fit"):
        nodes_to_hold(1, 101.0, NODE)


def test_alike_experts_are_missed_as_often_as_they_do_not_fit():
    assert missed_frac(150, 37) == pytest.approx(1 - 37 / 150, abs=0.02)
    assert missed_frac(30, 37) == 0.0


def test_popular_experts_stay():
    assert missed_frac(150, 37, skew=1.2) < 0.5 * missed_frac(150, 37)
    assert popularity(4, 0.0).tolist() == [0.25] * 4

"""A cut between device and server: by hand, its two ends, and choosing a width."""

import pytest

from orrery.execution.edge.split import Board, Radio, SplitPoint, filtered, trip, widest_within

BOARD = Board(flops_per_s=100.0, busy_w=5.0, sending_w=3.0, idle_w=1.0)
RADIO = Radio(each_way_bytes_per_s=10.0, way_s=0.5)


def test_by_hand():
    found = trip(SplitPoint(head_flops=50.0, sent_bytes=20.0, tail_flops=400.0), BOARD, RADIO, 1000.0)
    assert (found.head_s, found.sending_s, found.waiting_s) == (0.5, 2.0, 0.9)
    assert found.delay_s == pytest.approx(3.4)
    assert found.energy_j == pytest.approx(2.5 + 6.0 + 0.9)


def test_all_on_the_device_never_waits_for_the_radio():
    found = trip(SplitPoint(head_flops=450.0, sent_bytes=0.0, tail_flops=0.0), BOARD, RADIO, 1000.0)
    assert found.delay_s == 4.5
    assert found.energy_j == 22.5


def test_a_filter_costs_every_input_and_spares_some_the_way():
    cut = filtered(SplitPoint(head_flops=10.0, sent_bytes=20.0, tail_flops=40.0), 5.0, 0.25)
    assert (cut.head_flops, cut.sent_bytes, cut.tail_flops) == (15.0, 5.0, 10.0)


def test_the_widest_that_keeps_the_limit():
    trips = [
        trip(SplitPoint(head_flops=0.0, sent_bytes=b, tail_flops=0.0), BOARD, RADIO, 1.0) for b in (10.0, 20.0, 40.0)
    ]
    assert [widest_within(trips, limit) for limit in (9.0, 2.6, 2.4, 1.0)] == [2, 1, 0, 0]

"""A network cut between a device and a server, by hand: delays, best cuts by link rate, early exits, sessions."""

from math import inf

import numpy as np
import pytest

from orrery.execution.edge.cuts import BestRange, Cut, best_ranges
from orrery.execution.edge.exits import Exit, expected_s, reach
from orrery.execution.edge.placement import Ends, converted, cuts_of, filtered
from orrery.execution.edge.session import Frames, Watts, delays_s, followed, policy, sampled

HERE = Cut(name="device", head_s=10.0, tail_s=0.0, sent_bytes=0.0)
MIDDLE = Cut(name="middle", head_s=4.0, tail_s=1.0, sent_bytes=30.0, passed_frac=0.5)
THERE = Cut(name="server", head_s=0.0, tail_s=2.0, sent_bytes=100.0)
WAY_S = 0.5
WATTS = Watts(busy_w=6.0, sending_w=3.0, idle_w=2.0)


def test_delays_and_joules_of_cuts():
    """Half of the inputs pass the middle: 4 + 0.5 (1 + 0.5) and 15 bytes on average."""
    assert [c.fixed_s(WAY_S) for c in (HERE, MIDDLE, THERE)] == [10, 4.75, 2.5]
    assert [c.mean_bytes for c in (HERE, MIDDLE, THERE)] == [0, 15, 100]
    assert [c.delay_s(10.0, WAY_S) for c in (HERE, MIDDLE, THERE)] == [10, 6.25, 12.5]
    joules = [c.energy_j(10.0, WAY_S, 6.0, 3.0, 2.0) for c in (HERE, MIDDLE, THERE)]
    assert joules == [60, 24 + 0.5 * (3 * 3 + 2 * 1.5), 3 * 10 + 2 * 2.5]


def test_best_cuts_meet_where_their_delays_are_equal():
    """2.5 + 100 x = 4.75 + 15 x at x = 2.25 / 85; 4.75 + 15 x = 10 at x = 0.35."""
    found = best_ranges((THERE, MIDDLE, HERE), WAY_S)
    assert [r.index for r in found] == [0, 1, 2]
    edges = [inf, 85 / 2.25, 1 / 0.35, 0.0]
    for r, high, low in zip(found, edges, edges[1:], strict=False):
        assert (r.to_bytes_per_s, r.from_bytes_per_s) == pytest.approx((high, low))
    assert best_ranges((HERE,), WAY_S) == (BestRange(index=0, from_bytes_per_s=0.0, to_bytes_per_s=inf),)


def test_of_cuts_as_quick_on_an_endless_link_the_one_that_sends_less_is_best():
    more = Cut(name="more", head_s=0.0, tail_s=2.0, sent_bytes=200.0)
    assert [r.index for r in best_ranges((more, THERE), WAY_S)] == [1]


def test_exits_answer_a_share_of_what_comes_to_them():
    """A quarter leaves behind the first unit, half of the rest behind the third."""
    exits = [Exit(index=0, easy_frac=0.25), Exit(index=2, easy_frac=0.5)]
    reached = reach(4, exits)
    assert reached == [1, 0.75, 0.75, 0.375, 0.375]
    assert expected_s([1.0, 2.0, 4.0, 8.0], {0: 0.5, 2: 1.0}, reached) == [0, 1.5, 3, 6.75, 9.75]
    assert reach(2, []) == [1, 1, 1]


class Unit:
    """A unit of the toy network: so many results."""

    def __init__(self, name, num_results, layers):
        self.name, self.num_results, self.layers = name, num_results, layers


class Toy:
    """Three units of 1, 2 and 4 seconds on a device and half of it on a server; a branch takes 0.25."""

    def __init__(self):
        self.units = [Unit("a", 10, [1.0]), Unit("b", 20, [2.0]), Unit("c", 5, [3.0, 1.0])]
        self.input_bytes, self.num_macs = 40.0, 70

    def branch_behind(self, index):
        return [0.25]


ENDS = Ends(device=1.0, server=0.5, format="bf16", sent_bytes=2.0)


@pytest.fixture
def toy(monkeypatch):
    from orrery.execution.edge import placement

    def layers_s(layers, device, format):
        return [device * (sum(x) if isinstance(x, tuple) else x) for x in layers]

    monkeypatch.setattr(placement, "layer_times_s", layers_s)
    monkeypatch.setattr(
        placement, "unit_times_s", lambda network, device, format: [device * sum(u.layers) for u in network.units]
    )
    return Toy()


def test_cuts_lie_behind_every_unit_but_the_last(toy):
    cuts = cuts_of(toy, ENDS)
    assert [c.name for c in cuts] == ["server", "a", "b", "device"]
    assert [c.head_s for c in cuts] == [0, 1, 3, 7]
    assert [c.tail_s for c in cuts] == [3.5, 3, 2, 0]
    assert [c.sent_bytes for c in cuts] == [40, 20, 40, 0]
    assert [c.passed_frac for c in cuts] == [1, 1, 1, 1]
    assert cuts_of(toy, ENDS, input_bytes=7.0)[0].sent_bytes == 7


def test_exits_shorten_the_tail_and_send_less(toy):
    """A quarter is answered behind the first unit: its branch takes 0.25 on the device, 0.125 on the server."""
    cuts = cuts_of(toy, ENDS, exits=[Exit(index=0, easy_frac=0.25)])
    assert [c.head_s for c in cuts] == [0, 1.25, 2.75, 5.75]
    assert [c.passed_frac for c in cuts] == [1, 0.75, 0.75, 1]
    assert [c.tail_s for c in cuts] == [2.875, 3, 2, 0]
    gone = cuts_of(toy, ENDS, exits=[Exit(index=0, easy_frac=1.0)])
    assert [c.tail_s for c in gone] == [0.625, 0, 0, 0]


def test_a_filter_behind_the_head_costs_its_operations_and_lets_a_share_pass(toy):
    """7 of 70 multiply-adds at the device's pace: 0.7 s for each input that comes."""
    cuts = filtered(cuts_of(toy, ENDS, exits=[Exit(index=0, easy_frac=0.25)]), toy, 7.0, 0.4)
    assert [c.head_s for c in cuts] == pytest.approx([0, 1.25 + 0.75 * 0.575, 2.75 + 0.75 * 0.575, 5.75])
    assert [c.passed_frac for c in cuts] == pytest.approx([1, 0.3, 0.3, 1])


def test_converted_inputs_end_at_the_first_exit(toy, monkeypatch):
    from orrery.execution.edge import placement

    monkeypatch.setattr(
        placement, "Convolution", lambda positions, inputs, outputs: 0.01 * positions * inputs * outputs
    )
    cut = converted(toy, ENDS, [10, 2, 10], Exit(index=1, easy_frac=1.0))
    assert cut.head_s == pytest.approx(0.2 + 0.2 + 1 + 2 + 0.25)
    assert (cut.name, cut.tail_s, cut.sent_bytes) == ("converted", 0, 0)


RATES = np.array([10.0, 100.0, 2.0])
CUTS = (THERE, MIDDLE, HERE)


def test_a_session_by_hand():
    """Delays: 2.5 + 100 / rate, 4.75 + 15 / rate, 10."""
    frames = Frames(link_bytes_per_s=RATES, way_s=WAY_S, watts=WATTS)
    delays = delays_s(CUTS, frames)
    np.testing.assert_allclose(delays, [[12.5, 6.25, 10], [3.5, 4.9, 10], [52.5, 12.25, 10]])
    picked = followed(delays, np.array([0.9, 0.5, 0.1]))
    assert picked.tolist() == [1, 0, 2]
    found = policy("follow", CUTS, picked, frames, reload_s=[3.0, 5.0, 7.0])
    assert found.mean_s == pytest.approx((6.25 + 3.5 + 3 + 10 + 7) / 3)
    assert (found.num_switches, found.in_time_frac) == (2, 1)
    assert dict(found.shares) == pytest.approx({"server": 1 / 3, "middle": 1 / 3, "device": 1 / 3})
    joules = [24 + 0.5 * 9 + 0.5 * 2 * 1.5, 3 * 1 + 2 * 2.5 + 6 * 3, 60 + 6 * 7]
    assert found.mean_energy_j == pytest.approx(sum(joules) / 3)
    free = policy("follow", CUTS, picked, frames)
    assert free.mean_s == pytest.approx((6.25 + 3.5 + 10) / 3)
    assert free.p95_s == pytest.approx(6.25 + 0.9 * 3.75)


def test_within_a_limit_the_best_quality_then_the_quickest():
    delays = np.array([[12.5, 6.25, 10.0], [3.5, 4.9, 10.0], [52.5, 12.25, 11.0], [9.0, 8.0, 7.0]])
    quality = np.array([0.5, 0.9, 0.9])
    assert followed(delays, quality, 10.0).tolist() == [1, 1, 2, 2]
    assert followed(delays, quality, 4.0).tolist() == [1, 0, 2, 2]
    frames = Frames(link_bytes_per_s=RATES, way_s=WAY_S, watts=WATTS, limit_s=10.0)
    found = policy("fixed", CUTS, np.array([2, 2, 1]), frames)
    assert (found.in_time_frac, found.num_switches) == (pytest.approx(2 / 3), 1)


def test_a_signal_holds_until_the_next_value():
    times, values = np.array([1.0, 3.0]), np.array([5.0, 7.0])
    assert sampled(times, values, np.array([0.0, 1.0, 2.9, 3.0, 9.0])).tolist() == [5, 5, 5, 7, 7]

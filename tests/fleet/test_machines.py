"""Sums through the host, switches, owning machines, placing stages, and drawing from the wall."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.fleet.fabric import num_switches
from orrery.fleet.ownership import Owned, Terms
from orrery.fleet.reduction import HostedNode, host_reduce, memory_passes, ring_reduce
from orrery.fleet.stages import Stage, Work, cheapest

NODE = HostedNode(
    num_devices=8,
    bus_bytes_per_s=24e9,
    num_devices_per_port=1,
    port_bytes_per_s=60e9,
    host_memory_bytes_per_s=1e12,
    card_bytes_per_s=25e9,
    peer_bytes_per_s=10e9,
    step_s=1e-5,
)


def test_a_sum_through_the_host_sends_twice_over_the_card():
    done = host_reduce(NODE, 64, 1e9)
    assert done.bound_by == "network card"
    assert done.pace_bytes_per_s == 12.5e9
    assert done.time_s == pytest.approx(1e9 / 12.5e9 + 12 * 1e-5)
    assert host_reduce(NODE, 1, 1e9).bound_by == "bus"


def test_a_ring_sends_twice_over_the_slowest_hop_and_waits_for_every_device():
    done = ring_reduce(NODE, 64, 1e9)
    assert done.bound_by == "peer to peer"
    assert done.time_s == pytest.approx(1e9 * 2 * 511 / 512 / 10e9 + 2 * 511 * 1e-5)
    assert ring_reduce(NODE, 1, 1e9).bound_by != "peer to peer"


def test_the_gain_of_the_host_grows_with_the_machines():
    gains = [ring_reduce(NODE, n, 1e8).time_s / host_reduce(NODE, n, 1e8).time_s for n in (4, 16, 128, 1024)]
    assert gains == sorted(gains)
    assert gains[-1] > 2 * gains[0]


def test_memory_is_crossed_three_times_a_device():
    assert memory_passes(8, 1) == 25.0
    assert memory_passes(8, 64) == 25.0 + 4.0 + 3.0


def test_fat_trees():
    assert num_switches(800, 40, 2) == 60
    assert num_switches(16000, 40, 3) == 800 + 800 + 400
    with pytest.raises(OutOfRange, match="they hold 800"):
        num_switches(801, 40, 2)
    with pytest.raises(OutOfRange, match="they hold 16000"):
        num_switches(16001, 40, 3)
    with pytest.raises(OutOfRange, match="write 2 or 3"):
        num_switches(8, 40, 4)


def test_owning_is_capital_and_electricity():
    terms = Terms(life_s=1e8, upkeep_frac=0.25, cooling_ratio=1.5, electricity_usd_per_j=2e-8)
    machine = Owned(name="m", price_usd=8e4, power_w=1000.0)
    assert machine.usd_per_s(terms) == pytest.approx(1e-3 + 3e-5)


STAGES = (
    Stage(name="prompt", work={"a": Work(busy_s=1.0, wait_s=1.0), "b": Work(busy_s=3.0, wait_s=3.0)}, passed_bytes=2e9),
    Stage(name="answer", work={"a": Work(busy_s=1.0, wait_s=9.0), "b": Work(busy_s=0.5, wait_s=9.0)}, passed_bytes=0.0),
)


def test_each_stage_goes_where_it_is_cheapest():
    best = cheapest(STAGES, {"a": 2.0, "b": 1.0}, 1e9, 100.0, ("a", "b"))
    assert best is not None
    assert (best.machines, best.usd, best.latency_s) == (("a", "b"), 2.5, 12.0)


def test_a_limit_changes_the_place_and_an_impossible_one_leaves_none():
    best = cheapest(STAGES, {"a": 2.0, "b": 1.0}, 1e9, 11.0, ("a", "b"))
    assert best is not None
    assert best.machines == ("a", "a")
    assert cheapest(STAGES, {"a": 2.0, "b": 1.0}, 1e9, 5.0, ("a", "b")) is None

"""Data parallelism that meets less often: rounds worked by hand, limits, and the run that converges."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.job import Islands, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.training.columns import columns_of
from orrery.training.local_updates import LOCAL_UPDATES, replica_of
from orrery.training.replica import Replica, scaling_efficiency
from orrery.training.small import stale_outer_descent
from orrery.training.step import step_of

DEVICE = get_device("a100-sxm-80gb")


def replica(rate=1e9, **changes):
    """A step of 3 s, 2 of them backward; 1e9 parameters, 2 bytes as gradients and 4 as weights."""
    base = Replica(
        step_s=3.0,
        backward_s=2.0,
        num_parameters=1e9,
        gradient_bytes=2.0,
        weight_bytes=4.0,
        all_reduce_s=lambda size: size / rate,
        inside_s=lambda size: size / (10 * rate),
        neighbour_s=lambda size: size / (2 * rate),
    )
    return replace(base, **changes)


def round_of(name, one, **knobs):
    technique = LOCAL_UPDATES.get(name)
    return technique.rule(one, technique.knobs(**knobs))


def test_rounds_by_hand():
    # gradients: 2 s at 1 GB/s, behind 2 s of backward; parameters: 4 s among all, 0.4 s inside, 2 s to a neighbour
    one = replica()
    assert round_of("synchronous", one).time_s == 3.0
    assert round_of("synchronous", replace(one, last_frac=0.1)).time_s == pytest.approx(3.2)
    assert round_of("synchronous", replica(rate=0.5e9)).time_s == pytest.approx(3.0 + 4.0 - 2.0)
    assert round_of("local-sgd", one, num_steps=5).time_s == pytest.approx(5 * 3.0 + 4.0)
    assert round_of("co2", one, num_steps=1).time_s == pytest.approx(4.0)
    assert round_of("co2", one, num_steps=2).time_s == pytest.approx(6.0)
    assert round_of("diloco", one, num_steps=10).time_s == pytest.approx(10 * 3.0 + 4.0)
    assert round_of("gossip", one).time_s == pytest.approx(4.0)
    assert round_of("gossip", one, num_neighbours=1).time_s == pytest.approx(3.0)


def test_co2_pays_for_the_collective_beside_its_kernels():
    one = replica(contention_ratio=1.1)
    assert round_of("co2", one, num_steps=2).time_s == pytest.approx(6.0 + 0.1 * 4.0)


def test_what_is_kept_and_how_stale_it_is():
    one = replica()
    assert round_of("co2", one).num_rounds_stale == 1
    assert round_of("co2", one).extra_bytes == 12e9
    assert round_of("local-sgd", one).extra_bytes == 0.0
    assert round_of("diloco", one, num_steps=3).sent_bytes == 3 * 2e9 + 4e9


@given(rate=st.floats(1e7, 1e12), tau=st.integers(1, 200))
def test_a_round_of_co2_is_the_longer_of_compute_and_network(rate, tau):
    one = replica(rate=rate)
    found = round_of("co2", one, num_steps=tau)
    assert found.time_s == pytest.approx(max(tau * 3.0, 4e9 / rate))
    assert found.time_s <= round_of("local-sgd", one, num_steps=tau).time_s
    assert 0.0 < scaling_efficiency(one, found) <= 1.0 + 1e-12
    more = round_of("co2", one, num_steps=tau + 1)
    assert scaling_efficiency(one, more) >= scaling_efficiency(one, found) - 1e-12


@given(rate=st.floats(1e7, 1e12))
def test_local_sgd_of_one_step_waits_for_everything(rate):
    one = replica(rate=rate, weight_bytes=2.0)
    assert round_of("local-sgd", one, num_steps=1).time_s >= round_of("synchronous", one).time_s


def job(gigabits, dp=128, framework="pytorch"):
    link = replace(DEVICE.scaleout, each_way_bytes_per_s=gigabits * 1e9 / 8 / 8)
    return TrainingJob(
        model=get_model("gpt3-1.3b"),
        framework=get_framework(framework, DEVICE),
        recipe=get_recipe("bf16"),
        cluster=Cluster(device=replace(DEVICE, scaleout=link), num_devices=dp, devices_per_node=8),
        seq_len=2048,
        global_batch=4 * dp,
    )


LAYOUT = TrainingLayout(dp=128, micro_batch=4, recompute="full")


def test_synchronous_rounds_are_the_training_floors_step():
    found = replica_of(job(800), LAYOUT)
    step = float(step_of(job(800), columns_of([LAYOUT])).time_s[0])
    assert round_of("synchronous", found).time_s == pytest.approx(step, rel=1e-6)


def test_128_devices_on_both_networks():
    efficiency = {}
    for gigabits in (80, 800):
        one = replica_of(job(gigabits), LAYOUT)
        for name in ("synchronous", "local-sgd", "co2", "gossip"):
            efficiency[name, gigabits] = scaling_efficiency(one, round_of(name, one))
    assert efficiency["synchronous", 80] < 0.7
    assert efficiency["synchronous", 800] > efficiency["synchronous", 80] + 0.15
    assert min(efficiency["co2", 80], efficiency["co2", 800]) > 0.9
    assert efficiency["synchronous", 80] < efficiency["local-sgd", 80] < efficiency["co2", 80]


def test_islands_put_the_slow_link_between_and_not_inside():
    slow = replace(DEVICE.scaleout, each_way_bytes_per_s=1e7)
    islands = replace(job(800), islands=Islands(num_devices=64, link=slow))
    one, plain = replica_of(islands, LAYOUT), replica_of(job(800), LAYOUT)
    assert one.all_reduce_s(1e9) > 20 * plain.all_reduce_s(1e9)
    assert one.inside_s(1e9) <= plain.all_reduce_s(1e9)
    diloco = scaling_efficiency(one, round_of("diloco", one, num_steps=500))
    assert diloco > 5 * scaling_efficiency(one, round_of("synchronous", one))
    assert 1.0 < one.neighbour_s(1e9) / (1e9 / 1e7) < 2.0


def test_the_stale_outer_update_converges():
    found = stale_outer_descent(local_steps=4, rounds=40)
    assert found.losses_ratio[-1] < 0.3 * found.losses_ratio[0]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ScenarioError, match="num_steps"):
        LOCAL_UPDATES.get("co2").knobs(num_steps=0)
    with pytest.raises(ScenarioError, match="sharding"):
        replica_of(job(80), replace(LAYOUT, sharding="zero3"))
    with pytest.raises(UnknownName, match="co2"):
        LOCAL_UPDATES.get("co3")

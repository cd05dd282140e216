"""Where state lies, what it travels in and how long that takes, on levels of round links."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from round_jobs import job

from orrery.base.errors import ScenarioError
from orrery.hardware.device import Link
from orrery.training import levels
from orrery.training.levels import Level, Topology
from orrery.training.partition import step as planned
from orrery.training.partition import traffic as exchanging
from orrery.training.partition.traffic import Exchange, _casts_s, _gradients, exchange_s, traffic_of
from orrery.training.state_plan import WIDE, Plan, Wire, WireKnobs


def link(rate):
    return Link(name="x", each_way_bytes_per_s=rate, latency_s=0.0)


def test_formats_on_the_way():
    """4 bits an element and 4 bytes for 64 of them: 0.5625 bytes."""
    assert Wire(element_bytes=0.5, block_elements=64).sent_bytes(64) == 36.0
    assert (WIDE.sent_bytes(10), WIDE.is_quantised, Wire(block_elements=1).is_quantised) == (20.0, False, True)
    knobs = WireKnobs()
    assert (knobs.weight_bits, knobs.gradient_bits, knobs.block_elements) == (8, 4, 256)
    assert (knobs.weight_wire.element_bytes, knobs.gradient_wire.element_bytes) == (1.0, 0.5)
    assert knobs.weight_wire.block_elements == 256
    for name, low, high in (("weight_bits", 2, 16), ("gradient_bits", 2, 16), ("block_elements", 16, 65536)):
        WireKnobs(**{name: low})
        WireKnobs(**{name: high})
        for wrong in (low - 1, high + 1):
            with pytest.raises(ScenarioError, match=name):
                WireKnobs(**{name: wrong})


INSIDE, OUTSIDE = link(9.0), link(2.0)
TOPOLOGY = Topology(
    levels=(
        Level(name="die", num_devices=2, link=INSIDE),
        Level(name="node", num_devices=8, link=INSIDE),
        Level(name="system", num_devices=32, link=OUTSIDE, is_network=True),
    )
)


def a_plan(**given):
    usual = {"name": "p", "weights": "die", "gradients": "node", "optimizer": "node"}
    return Plan(**(usual | given))


def shapes(found):
    return [(e.kind, e.num_devices, e.stride, e.elements) for e in found]


def test_collectives_of_a_plan():
    """Weights over 2, gradients over 8, the optimizer over 16 of 32 devices would be a level between; over all: sums
    go outwards to four groups of 8 that stand 8 apart, and 16 groups of 2 bring weights back, 2 apart."""
    wide = traffic_of(a_plan(optimizer="system"), TOPOLOGY, 80.0, 960.0)
    assert shapes(wide.forward) == shapes(wide.backward) == [("all_gather", 2, 1, 80.0)]
    assert shapes(wide.gradients) == [("reduce_scatter", 8, 1, 80.0)]
    assert shapes(wide.step) == [("reduce_scatter", 4, 8, 120.0), ("all_gather", 16, 2, 480.0)]
    near = traffic_of(a_plan(), TOPOLOGY, 80.0, 960.0)
    assert shapes(near.step) == [("all_reduce", 4, 8, 120.0), ("all_gather", 4, 2, 480.0)]
    second = traffic_of(a_plan(weights="system", optimizer="system", secondary="node"), TOPOLOGY, 80.0, 960.0)
    assert (shapes(second.forward)[0][1], shapes(second.backward)[0][1]) == (32, 8)
    alone = traffic_of(a_plan(weights="device", gradients="device", optimizer="device"), TOPOLOGY, 80.0, 960.0)
    assert alone.forward == alone.gradients == ()
    assert shapes(alone.step) == [("all_reduce", 32, 1, 960.0)]


def test_gradients_in_two_hops():
    """Pieces to their owners in the node of 8, sums of an eighth to four nodes."""
    hops = _gradients(a_plan(exchanges_gradients=True), TOPOLOGY, 32, 80.0)
    assert shapes(hops) == [("all_to_all", 8, 1, 80.0), ("all_to_all", 4, 8, 10.0)]
    assert shapes(_gradients(a_plan(exchanges_gradients=True), TOPOLOGY, 2, 80.0)) == [
        ("all_to_all", 2, 1, 80.0),
        ("all_to_all", 1, 2, 40.0),
    ]


def test_bytes_that_reach_a_device():
    """Three quarters of 20 bytes among four, twice for an all-reduce."""
    gather = Exchange(what="x", kind="all_gather", num_devices=4, stride=1, elements=10.0, wire=WIDE)
    assert (gather.message_bytes, gather.received_bytes) == (20.0, 15.0)
    assert replace(gather, kind="all_reduce").received_bytes == 30.0


def test_seconds_of_an_exchange(monkeypatch):
    """Inside a node 1.5 times as long as measured, between nodes three times; narrowing and widening comes on top."""
    told = []

    def predict(work, device):
        told.append((work.num_devices, work.devices_per_node, work.stride, work.message_bytes))
        return SimpleNamespace(time_s=2.0)

    monkeypatch.setattr(exchanging.network, "predict", predict)
    monkeypatch.setattr(exchanging, "view", lambda topology, device, level: (device, 10 + level))
    gather = Exchange(what="x", kind="all_gather", num_devices=4, stride=2, elements=10.0, wire=WIDE)
    assert exchange_s(job(), TOPOLOGY, gather) == 3.0
    assert exchange_s(job(), TOPOLOGY, replace(gather, stride=8)) == 6.0
    assert told == [(4, 11, 2, 20.0), (4, 12, 8, 20.0)]
    assert exchange_s(job(), TOPOLOGY, replace(gather, stride=1, num_devices=2)) == 3.0
    assert told[2][1] == 10


def test_seconds_of_narrowing(monkeypatch):
    """Rows of 1024: a gather of 8192 elements among four narrows two rows and widens eight, an exchange eight and
    eight; twice as long as measured."""
    told = []

    def predict(op, device, library):
        told.append((op.kind, int(op.tokens[0]), op.width))
        return SimpleNamespace(time_s=np.array([0.5]))

    monkeypatch.setattr(exchanging.kernels, "predict", predict)
    quantised = Wire(element_bytes=1.0, block_elements=256)
    gather = Exchange(what="x", kind="all_gather", num_devices=4, stride=1, elements=8192.0, wire=quantised)
    assert _casts_s(job(), gather) == 1.0
    _casts_s(job(), replace(gather, kind="all_to_all"))
    _casts_s(job(), replace(gather, elements=1.0))
    assert told == [("quantise", 10, 1024), ("quantise", 16, 1024), ("quantise", 1, 1024)]
    assert _casts_s(job(), replace(gather, wire=WIDE)) == 0.0


def test_collectives_beside_work():
    assert planned._exposed(job(), 8.0, 6.0, False) == 8.0
    assert planned._exposed(job(), 8.0, 6.0, True) == pytest.approx(2.0 + 0.6)
    assert planned._exposed(job(), 4.0, 6.0, True) == pytest.approx(0.4)


def test_bytes_of_a_device_under_a_plan():
    """Weights of 2 + 1 bytes over 2 devices, gradients of 4 over 8, 4 + 8 of the optimizer over 8; 960 elements in six
    layers; two layers of whole weights and one of gradients on the way; a tenth of what is loose in pieces."""
    framework = SimpleNamespace(
        gradient_bytes=4.0, weights_bytes=2.0, master_bytes=4.0, moments_bytes=8.0, fragmentation_ratio=1.1
    )
    recipe = SimpleNamespace(
        gradient_bytes=0.0, weights_bytes=0.0, weight_copy_bytes=1.0, master_bytes=-1.0, moments_bytes=0.0
    )
    of = SimpleNamespace(framework=framework, recipe=recipe)
    held = {name: np.array([x]) for name, x in (("activations", 50.0), ("logits", 20.0), ("fixed", 5.0))}
    steps = SimpleNamespace(first=SimpleNamespace(parts=held))
    found = planned._held(of, TOPOLOGY, a_plan(), steps, 960.0, 6)
    assert found["weights"] == 3 * 960 / 2
    assert found["gradients"] == 4 * 960 / 8
    assert found["optimizer"] == 12 * 960 / 8
    assert found["buffers"] == 2 * 3 * 160 + 4 * 160
    assert found["fragmentation"] == pytest.approx(0.1 * (50 + 20 + 1600))
    assert (found["second copy of weights"], found["activations"], found["fixed"]) == (0.0, 50.0, 5.0)
    second = planned._held(
        of, TOPOLOGY, a_plan(weights="system", secondary="node", optimizer="system"), steps, 960.0, 6
    )
    assert second["second copy of weights"] == 3 * 960 / 8
    alone = a_plan(weights="device", gradients="device", optimizer="device")
    assert planned._held(of, TOPOLOGY, alone, steps, 960.0, 6)["buffers"] == 0.0
    recipe.master_bytes, recipe.moments_bytes, recipe.gradient_bytes, recipe.weights_bytes = 0.0, 2.0, 1.0, 1.0
    lean = planned._held(of, TOPOLOGY, a_plan(), steps, 960.0, 6)
    assert (lean["weights"], lean["gradients"], lean["optimizer"]) == (960.0, 120.0, 240.0)


# --- levels


def test_levels_of_groups():
    assert (TOPOLOGY.num_devices, TOPOLOGY.names) == (32, ("device", "die", "node", "system"))
    assert [TOPOLOGY.size(x) for x in TOPOLOGY.names] == [1, 2, 8, 32]
    assert [TOPOLOGY.level_of(n) for n in (1, 2, 3, 8, 9, 32)] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(ScenarioError, match="33 devices"):
        TOPOLOGY.level_of(33)
    with pytest.raises(ScenarioError, match="rack"):
        TOPOLOGY.size("rack")
    for sizes, says in (((2, 3), "no whole number"), ((2, 2), "no whole number"), ((1,), "no whole number")):
        with pytest.raises(ScenarioError, match=says):
            Topology(levels=tuple(Level(name=f"l{n}", num_devices=n, link=INSIDE) for n in sizes))


def test_levels_of_a_cluster():
    device = SimpleNamespace(scaleup=INSIDE, scaleout=OUTSIDE)

    def of(devices, per_node):
        found = levels.of_cluster(SimpleNamespace(device=device, num_devices=devices, devices_per_node=per_node))
        return [(x.name, x.num_devices, x.is_network) for x in found.levels]

    assert of(32, 8) == [("node", 8, False), ("system", 32, True)]
    assert of(4, 8) == of(4, 4) == [("node", 4, False)]
    assert of(4, 1) == [("system", 4, True)]

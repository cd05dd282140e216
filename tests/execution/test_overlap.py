"""Overlapped passes: bounded by every resource, compiled as written, in any unit of time, idle where nothing waits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.compiled import callable_rule
from orrery.base.errors import ScenarioError
from orrery.execution.overlap import OVERLAPS, knob_array, norm_frac
from orrery.serving.simulation.tables import _kernel as tables

NAMES = sorted(OVERLAPS.techniques)
each = pytest.mark.parametrize("name", NAMES)

parts = st.one_of(st.just(0.0), st.floats(1e-12, 1.0))  # seconds; none below a float's precision
extras = st.floats(0.0, 0.3, allow_subnormal=False)
passes = st.tuples(parts, parts, parts, extras, extras, st.integers(1, 100))


def seconds(name, compute=0.0, memory=0.0, network=0.0, extra=0.0, wire_extra=0.0, layers=80, scale=1.0, **knobs):
    technique = OVERLAPS.get(name)
    total = compute + memory + network
    times = (scale * t for t in (total, network, memory, extra, wire_extra))
    return technique.rule(*times, float(layers), knob_array(technique, **knobs))


def test_the_known_ways_are_found():
    assert {"sequential", "ladder-residual", "token-split", "nano-batches"} <= set(NAMES)


@each
@given(drawn=passes)
def test_between_the_scarcest_resource_and_the_sum(name, drawn):
    compute, memory, network, *rest = drawn
    found = seconds(name, compute, memory, network, *rest)
    assert found <= compute + memory + network
    assert found >= max(compute, memory, network) * (1 - 1e-9) - 1e-300


@each
@given(drawn=passes)
def test_compiled_says_the_same(name, drawn):
    compute, memory, network, extra, wire, layers = drawn
    knobs = knob_array(OVERLAPS.get(name))
    sizes = (compute + memory + network, network, memory, extra, wire, float(layers))
    rule = OVERLAPS.get(name).rule
    compiled = callable_rule(rule, tables.__name__, "OverlapRule")
    assert compiled(*sizes, knobs) == rule(*sizes, knobs)


@each
@given(drawn=passes, power=st.integers(-8, 8))
def test_another_unit_of_time_gives_the_same_bits(name, drawn, power):
    assert seconds(name, *drawn, scale=2.0**power) == 2.0**power * seconds(name, *drawn)


@each
@given(compute=parts, extra=st.floats(0.0, 0.1))
def test_nothing_to_overlap_nothing_to_gain(name, compute, extra):
    assert seconds(name, compute=compute, extra=extra) == compute


@pytest.mark.parametrize("name", ["ladder-residual", "token-split"])
@given(compute=st.floats(0.1, 1.0), memory=parts)
def test_faster_links_leave_nothing_to_hide(name, compute, memory):
    gains = []
    for network in (0.3, 0.03, 0.003, 0.0):
        sequential = compute + memory + network
        gains.append(sequential - seconds(name, compute, memory, network))
        assert gains[-1] <= network
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] == 0.0


def test_a_ladder_hides_all_but_one_all_reduce_of_a_decode_step():
    found = seconds("ladder-residual", memory=1.0, network=0.6, layers=80)
    assert found == pytest.approx(1.0 + 0.6 / 160)
    assert seconds("ladder-residual", memory=0.6, network=1.0, layers=80) == pytest.approx(1.0 + 0.6 / 160)


def test_a_collective_takes_units_only_from_kernels_that_compute():
    free = seconds("ladder-residual", compute=1.0, network=0.5, communication_units=0)
    held = seconds("ladder-residual", compute=1.0, network=0.5, communication_units=33)
    assert held - free == pytest.approx(0.25 * 0.5, rel=0.01), "a quarter of the units for half of the time"
    assert seconds("ladder-residual", memory=1.0, network=0.5, communication_units=33) == pytest.approx(free)


def test_halves_pay_only_when_they_gain():
    assert seconds("token-split", compute=1.0, network=0.3, extra=0.05, wire_extra=0.02) < 1.3 - 0.2
    assert seconds("token-split", compute=1.0, network=0.3, extra=0.4) == 1.3, "rather whole"


def test_norms_shared_between_devices_can_beat_a_pass_without_links():
    plain = {"compute": 0.8, "memory": 0.2, "network": 0.1, "extra": 0.01}
    assert seconds("token-split", **plain, norm_frac=0.75) < 1.0 < seconds("token-split", **plain)


def exhaustive(compute, memory, network, knobs, steps=400):
    """The least time over a grid of shares, by the definition."""
    nodes = np.array([0, 0.1, 0.2, 0.4, 0.8, 0.9, 1])
    share = np.arange(1, steps) / steps
    of_memory, of_network = (np.interp(share, nodes, [0, *knobs[i : i + 5], 1]) for i in (1, 6))
    first, second = np.meshgrid(np.arange(steps - 1), np.arange(steps - 1), indexing="ij")
    left = 1 - share[first] - share[second]
    ok = left > 0
    time = np.maximum(memory / of_memory[first], network / of_network[second])[ok]
    return np.maximum(time, compute / left[ok]).min()


@settings(max_examples=10)
@given(compute=st.floats(0.3, 1.0), memory=st.floats(0.05, 1.0), network=st.floats(0.05, 1.0))
def test_shares_are_the_best_that_a_search_finds(compute, memory, network):
    knobs = knob_array(OVERLAPS.get("nano-batches"))
    flowing = seconds("nano-batches", compute, memory, network, layers=10**9)
    best = min(compute + memory + network, exhaustive(compute, memory, network, knobs))
    assert flowing <= best * (1 + 1e-9)
    assert flowing == pytest.approx(best, rel=0.02)


def test_fewer_turns_overlap_less():
    many, few = (seconds("nano-batches", 1.0, 0.4, 0.3, layers=n) for n in (100, 2))
    assert many < few < 1.7


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("nano-batches", {"memory_at_20_frac": 0.1}, "memory_at_20_frac"),
        ("nano-batches", {"network_at_80_frac": 0.99, "network_at_90_frac": 0.95}, "never slower"),
        ("token-split", {"communication_units": 132}, "write 0 to 131"),
        ("token-split", {"comunication_units": 4}, "did you mean 'communication_units'"),
        ("sequential", {"units": 1}, "nothing to set"),
    ],
)
def test_a_knob_that_makes_no_sense_is_refused(name, given, says):
    with pytest.raises(ScenarioError, match=says):
        knob_array(OVERLAPS.get(name), **given)


def test_an_unknown_name_brings_the_nearest():
    with pytest.raises(ScenarioError, match="ladder-residual"):
        OVERLAPS.get("ladder")


def test_norms_are_part_of_what_waits_for_memory(deploy):
    found = norm_frac(deploy(tp=8), 4096)
    assert 0.1 < found < 1.0

"""Rules from outside the house: through Python, or compiled where numba is installed; the same numbers either way."""

import sys
import time

import numpy as np
import pytest

from orrery.base.compiled import callable_rule
from orrery.serving.simulation import plug
from orrery.serving.simulation.tables import _kernel as tables

KNOBS = np.array([3.0, 0.5])
RULES = {
    "GrantRule": (lambda left, budget, taken, step, knobs: min(left, budget - taken) + int(knobs[0]), (9, 7, 2, 64)),
    "OrderRule": (
        lambda entered, priority, given, requested, tag, knobs: entered - priority * knobs[1] + tag,
        (1.0,) * 5,
    ),
    "RouteRule": (
        lambda requests, tokens, prefixes, home, turn, one, two, knobs: int(np.argmin(tokens)) + home,
        (np.array([3.0, 1.0, 2.0]), np.array([5.0, 4.0, 1.0]), np.zeros(3), 4, 1, 0.25, 0.75),
    ),
    "OverlapRule": (lambda total, wire, memory, more, extra, layers, knobs: total - wire * knobs[1], (2.0,) * 6),
    "TransferRule": (lambda moved, rate, latency, knobs: moved / rate + latency * knobs[0], (8.0, 2.0, 1e-3)),
}
each = pytest.mark.parametrize("kind", sorted(RULES))


def test_every_kind_of_rule_is_here():
    assert set(RULES) == set(tables.SEAMS.values())


@each
def test_python_is_called_with_what_the_loop_has(kind):
    rule, given = RULES[kind]
    assert callable_rule(rule, tables.__name__, kind)(*given, KNOBS) == rule(*given, KNOBS)


@each
def test_numba_says_the_same(kind):
    pytest.importorskip("numba")
    rule, given = RULES[kind]
    plugged = plug.compiled_by_numba(rule, kind)
    held = callable_rule(rule, tables.__name__, kind, plugged.address)
    assert held(*given, KNOBS) == rule(*given, KNOBS)


def test_what_only_python_can_do_stays_python():
    pytest.importorskip("numba")
    seen = []

    def rule(moved, rate, latency, knobs):
        seen.append({"moved": moved})
        return moved / rate

    assert plug.compiled_by_numba(rule, "TransferRule") is None
    assert callable_rule(rule, tables.__name__, "TransferRule")(8.0, 2.0, 0.0, KNOBS) == 4.0
    assert seen == [{"moved": 8.0}]


def test_without_numba_nothing_is_compiled(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(plug, "find_spec", lambda name: None)
    plug.compiled_by_numba.cache_clear()
    assert plug.compiled_by_numba(RULES["OrderRule"][0], "OrderRule") is None


def test_a_rule_that_fails_says_so():
    def rule(moved, rate, latency, knobs):
        raise ValueError("no such link")

    with pytest.raises(ValueError, match="no such link"):
        callable_rule(rule, tables.__name__, "TransferRule")(8.0, 2.0, 0.0, KNOBS)


@pytest.mark.bench
def test_what_a_call_costs():
    rule, given = RULES["OrderRule"]
    ways = {"python": 0}
    if plugged := plug.compiled_by_numba(rule, "OrderRule"):
        ways["numba"] = plugged.address
    for name, address in ways.items():
        held = callable_rule(rule, tables.__name__, "OrderRule", address)
        start = time.perf_counter()
        for _ in range(100_000):
            held(*given, KNOBS)
        print(f"{name}: {(time.perf_counter() - start) * 10:.2f} us a call, with the way in from Python")

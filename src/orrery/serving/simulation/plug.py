"""Rules from outside the house: compiled where numba is installed (the extra ``plug``), else called through Python.

A rule of the house is compiled with the loop. One from another package or a user's script costs about a microsecond a
call through Python; compiled by numba, some nanoseconds. Arrays reach it as views of the loop's own.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

HOUSE = "orrery."


@cache
def compiled_by_numba(rule: Callable[..., Any], kind: str) -> Any:
    """numba's form of a rule of a ``kind`` of ``tables.SEAMS``, with an ``address``; None where it cannot be had."""
    if rule.__module__.startswith(HOUSE) or find_spec("numba") is None:
        return None
    from numba import carray, cfunc, njit, types  # pyright: ignore[reportPrivateImportUsage]
    from numba.core.errors import NumbaError

    body, whole, number, row = njit(rule), types.int64, types.float64, (types.CPointer(types.float64), types.int64)

    def grant(left: int, budget: int, taken: int, step: int, at: Any, size: int) -> int:
        return body(left, budget, taken, step, carray(at, (size,)))

    def order(entered: float, priority: float, given: float, requested: float, tag: float, at: Any, size: int) -> float:
        return body(entered, priority, given, requested, tag, carray(at, (size,)))

    def route(
        requests: Any,
        n: int,
        tokens: Any,
        m: int,
        prefixes: Any,
        k: int,
        home: int,
        turn: int,
        one: float,
        two: float,
        at: Any,
        size: int,
    ) -> int:
        found = carray(requests, (n,)), carray(tokens, (m,)), carray(prefixes, (k,))
        return body(found[0], found[1], found[2], home, turn, one, two, carray(at, (size,)))

    def overlap(
        total: float, network: float, memory: float, more: float, wire: float, layers: float, at: Any, size: int
    ) -> float:
        return body(total, network, memory, more, wire, layers, carray(at, (size,)))

    def transfer(moved: float, rate: float, latency: float, at: Any, size: int) -> float:
        return body(moved, rate, latency, carray(at, (size,)))

    forms = {
        "GrantRule": (grant, whole(*[whole] * 4, *row)),
        "OrderRule": (order, number(*[number] * 5, *row)),
        "RouteRule": (route, whole(*row, *row, *row, whole, whole, number, number, *row)),
        "OverlapRule": (overlap, number(*[number] * 6, *row)),
        "TransferRule": (transfer, number(*[number] * 3, *row)),
    }
    form, signature = forms[kind]
    try:
        return cfunc(signature)(form)
    except NumbaError:  # it does what only Python can
        return None

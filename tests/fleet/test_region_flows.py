"""Steady flows between origins and regions, each dealt by hand."""

import numpy as np
import pytest

from orrery.fleet.regions.fluid import flows
from orrery.fleet.regions.routing import RegionCosts
from orrery.serving.simulation.regions._kernel import LAST_RESORT

INF = np.inf


def dealt(cost, rates, limits, capacities=(10.0, 10.0), weight=()):
    table = np.array(cost, dtype=np.float64)
    found = RegionCosts(
        cost_ratio=table,
        full_requests=np.zeros(table.shape[1]),
        weight_ratio=np.array(weight).reshape(-1, table.shape[1]),
    )
    return flows(found, np.array(rates), np.array(limits, dtype=np.float64), np.array(capacities))


@pytest.mark.parametrize(
    ("cost", "rates", "limits", "expected"),
    [
        ([[1, 2]], [5.0], (INF, INF), [[5, 0]]),  # the cheaper one, whatever its load
        ([[1, 2]], [5.0], (3, INF), [[3, 2]]),  # up to its limit
        ([[1, 2]], [9.0], (3, 4), [[4, 5]]),  # what finds no room is spread by capacity: 3 + 1, 4 + 1
        ([[1, 1]], [6.0], (INF, INF), [[3, 3]]),  # equal costs share
        ([[1, 1]], [6.0], (1, INF), [[1, 5]]),
        ([[1, INF]], [6.0], (2, INF), [[6, 0]]),  # not allowed elsewhere
        ([[1, LAST_RESORT]], [6.0], (2, INF), [[6, 0]]),  # beyond the limit on TTFT: only where nobody else is up
        ([[LAST_RESORT, LAST_RESORT * 2]], [6.0], (9, 9), [[3, 3]]),
        ([[1, 2], [1, 2]], [2.0, 2.0], (3, INF), [[2, 0], [1, 1]]),  # the second origin finds less room
        ([[1, 2]], [0.0], (3, 4), [[0, 0]]),
    ],
)
def test_flows_by_hand(cost, rates, limits, expected):
    assert dealt(cost, rates, limits) == pytest.approx(np.array(expected, dtype=float))


def test_weights_and_capacities_split():
    assert dealt([[1, 1]], [8.0], (INF, INF), weight=[[3.0, 1.0]]) == pytest.approx(np.array([[6.0, 2.0]]))
    assert dealt([[1, 1]], [8.0], (INF, INF), capacities=(30.0, 10.0)) == pytest.approx(np.array([[6.0, 2.0]]))
    assert dealt([[1, 1]], [8.0], (0.0, 0.0), capacities=(0.0, 0.0)) == pytest.approx(np.array([[4.0, 4.0]]))

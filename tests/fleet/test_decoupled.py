"""Two clocks against rounds: the graph's numbers and the flow by hand, and how the counts grow."""

from math import exp, log

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.decentral.decoupled import (
    Quadratics,
    chis,
    decoupled,
    exponential,
    flow,
    laplacian,
    quadratics,
    tracking,
)
from orrery.fleet.studies.decoupled_descent import edges_of
from orrery.scenario.experiment import run_experiment


def test_a_ring_of_four_by_hand():
    """Eigenvalues of a ring of four are 0, 2, 2, 4, over its four edges 0, 1/2, 1/2, 1.

    An edge of resistance one beside three in a row has 3/4, times four for its weight, and half of that.
    """
    edges = edges_of("ring", 4)
    assert sorted(np.linalg.eigvalsh(laplacian(edges, 4))) == pytest.approx([0.0, 0.5, 0.5, 1.0], abs=1e-12)
    assert chis(edges, 4) == pytest.approx((2.0, 1.5))
    assert chis(edges_of("complete", 3), 3) == pytest.approx((1.0, 1.0))
    assert edges_of("path", 3) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("size", [0.0, 0.1, 3.0, 40.0])
def test_the_exponential_by_hand(size):
    """A turn and a decay."""
    found = exponential(np.array([[0.0, -size], [size, 0.0]]))
    assert found == pytest.approx(np.array([[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]]), abs=1e-7)
    assert exponential(np.diag([-size, 0.0])) == pytest.approx(np.diag([exp(-size), 1.0]), abs=1e-9)


def test_the_flow_keeps_the_mean_of_a_vector_and_its_shadow():
    """x and x' draw near at the rate that L over mu sets: (1/8) sqrt(nu / L) each way."""
    law = flow(0.5, 8.0)
    assert law[0] == pytest.approx([-1 / 32, 1 / 32, 0, 0, 0, 0])
    assert law[:2].sum(axis=0) == pytest.approx(np.zeros(6))
    assert law[3] == pytest.approx([0, -1.0, -2.0, 0, -2.0, 0])


def test_a_gradient_step_by_hand():
    """From zero, a of 2 and 4 and a target of 3: nu = 1, the gradient is -6 and -12; x moves by a quarter over L of it,
    x' by a quarter over sqrt(L nu), y' by one and a quarter of sqrt(nu / L) of it."""
    from orrery.fleet.decentral.decoupled import _Nodes

    nodes = _Nodes(Quadratics(steepness_ratio=np.array([2.0, 4.0]), targets_ratio=np.array([[3.0, 3.0]] * 3)), 1.0, 1.0)
    nodes.take_gradient(0, 5.0)
    assert nodes.state[0, [0, 1, 3]] == pytest.approx(np.array([[0.375, 0.75], [0.75, 1.5], [-6.75, -13.5]]))
    before = nodes.state[0].copy()
    nodes.exchange(0, 1, 5.0)
    assert nodes.state[0, :4] == pytest.approx(before[:4])
    assert nodes.state[0, 4:] == pytest.approx(-nodes.state[1, 4:])


def test_both_ways_find_the_solution():
    of, edges = quadratics(4, 4, 10.0, 0), edges_of("ring", 4)
    clocks = decoupled(of, edges, most_time=2000.0, target_frac=1e-4, seed=0)
    rounds = tracking(of, edges, most_rounds=2000, target_frac=1e-4)
    assert np.isfinite([clocks.num_gradients, clocks.num_messages, rounds.num_gradients]).all()
    assert rounds.num_messages == 2 * rounds.num_gradients, "both neighbours in every round"
    assert not np.isfinite(tracking(of, edges, most_rounds=2, target_frac=1e-4).num_gradients)


def test_gradients_grow_like_the_root_of_the_condition_number_and_rounds_like_the_number():
    rows = run_experiment("decoupled-descent", sizes=("nodes=4", "condition=10,100")).rows
    found = {(row["method"], row["condition"]): row["gradients_per_node"] for row in rows}
    for method, exponent in (("two clocks", 0.5), ("rounds", 1.0)):
        assert log(found[method, 100] / found[method, 10]) / log(10) == pytest.approx(exponent, abs=0.1)
    assert found["two clocks", 10] > found["rounds", 10], "acceleration does not pay where a round is enough"


@pytest.mark.parametrize("size", ["graph=star", "nodes=2", "target_frac=1", "condition=0.5"])
def test_what_makes_no_sense_is_refused(size):
    with pytest.raises(ScenarioError):
        run_experiment("decoupled-descent", steps=1, sizes=(size,))

"""Searches of a space of six networks, whose metrics and answers are worked out by hand."""

from dataclasses import replace
from math import inf, log

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.planner.architecture import exact
from orrery.planner.architecture.assign import assigned
from orrery.planner.architecture.evolution import (
    PARAMETERS,
    EvolutionKnobs,
    _bred,
    _costs,
    _ranked,
    by_evolution,
    first_generation,
)
from orrery.planner.architecture.exact import best_of, by_enumeration, by_program, pareto, signed
from orrery.planner.architecture.gradient import GradientKnobs, _run, by_gradient, drawn_from, shares_of
from orrery.planner.architecture.policy import Policy, PolicyKnobs, fines
from orrery.planner.architecture.problem import SCORE, Choice, Metric, Problem, sign
from orrery.planner.architecture.together import often
from orrery.planner.deploy.files import _others
from orrery.planner.pareto import reached
from orrery.planner.space import _unequal

NONE = np.nan
ALL = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
SCORES = [11.0, 13.0, 16.0, 13.0, 15.0, 18.0]
LATENCIES = [2.5, 3.5, 7.5, 5.5, 6.5, 10.5]
SPACE = Problem(
    choices=(
        Choice(name="depth", alternatives=("one", "two")),
        Choice(name="width", alternatives=("thin", "mid", "wide")),
    ),
    metrics={
        SCORE: Metric(table=np.array([[1.0, 3.0, NONE], [0.0, 2.0, 5.0]]), constant=10.0),
        "latency": Metric(table=np.array([[1.0, 4.0, NONE], [1.0, 2.0, 6.0]]), constant=0.5),
        PARAMETERS: Metric(table=np.array([[1.0, 2.0, NONE], [0.0, 1.0, 2.0]])),
        "peak": Metric(exact=lambda networks: networks.max(axis=1).astype(float)),
    },
    reference_name="one-thin",
    reference={SCORE: 11.0, "latency": 2.5},
)


def test_metrics_are_sums_over_choices_or_exact():
    assert (SPACE.num_alternatives, SPACE.num_networks) == ((2, 3), 6)
    assert SPACE.metrics[SCORE].of(ALL).tolist() == SCORES
    assert SPACE.metrics["latency"].of(ALL).tolist() == LATENCIES
    assert SPACE.metrics["peak"].of(ALL).tolist() == [0, 1, 2, 1, 1, 2]
    with pytest.raises(OutOfRange, match="without a table"):
        SPACE.metrics["peak"].added(ALL)
    with pytest.raises(ScenarioError, match="no sum over choices"):
        signed(SPACE, "peak")
    assert SPACE.words(ALL[5]) == {"depth": "two", "width": "wide"}
    drawn = SPACE.draw(600, np.random.default_rng(0))
    assert sorted({tuple(line) for line in drawn.tolist()}) == [tuple(line) for line in ALL.tolist()]


def test_more_is_better_of_the_score_alone():
    assert (sign(SCORE), sign("latency")) == (-1.0, 1.0)
    assert SPACE.cost(SCORE, ALL).tolist() == [-score for score in SCORES]
    assert SPACE.cost("latency", ALL).tolist() == LATENCIES
    assert signed(SPACE, SCORE)[1].tolist() == [0.0, -2.0, -5.0]


@pytest.mark.parametrize(
    ("limits", "fit"),
    [
        ({}, 6),
        ({"latency": inf, SCORE: -inf}, 6),
        ({"latency": 6.5}, 4),  # what is at its limit keeps it, and what rounding puts beside it
        ({"latency": 6.5 * (1 - 5e-10)}, 4),
        ({"latency": 6.5 * (1 - 5e-9)}, 3),
        ({SCORE: 13.0}, 5),
        ({SCORE: 13.0 * (1 + 5e-10)}, 5),
        ({SCORE: 13.0 * (1 + 5e-9)}, 3),
        ({"latency": 6.0, SCORE: 13.0}, 2),
        ({"peak": 0.0}, 1),  # a limit of nothing too
    ],
)
def test_limits_are_kept_to_a_rounding(limits, fit):
    assert int(SPACE.are_within(ALL, limits).sum()) == fit


SEARCHES = (by_enumeration, by_program)


@pytest.mark.parametrize("search", SEARCHES)
def test_the_best_score_within_a_latency(search):
    """Below 7: 15 of depth two and mid width. Depth two of thin ones takes 5.5 for the 13 that 3.5 give."""
    found = search(SPACE, SCORE, "latency", {"latency": 7.0})
    assert found.best.tolist() == [[1, 1]]
    assert found.bound == pytest.approx(15.0)
    assert found.is_proven
    assert found.front.tolist() == [[0, 0], [0, 1], [1, 1]]


@pytest.mark.parametrize("search", SEARCHES)
def test_the_least_latency_of_a_score(search):
    found = search(SPACE, "latency", SCORE, {SCORE: 15.5})
    assert found.best.tolist() == [[0, 2]]
    assert found.bound == pytest.approx(7.5)
    assert search(SPACE, "latency", SCORE, {}).best.tolist() == [[0, 0]]


@pytest.mark.parametrize("search", SEARCHES)
def test_where_no_network_keeps_the_limits(search):
    found = search(SPACE, SCORE, "latency", {"latency": 2.4})
    assert (found.best.shape, found.front.shape) == ((0, 2), (0, 2))
    assert found.is_proven
    assert found.bound is None


def test_enumeration_tries_all_in_parts_and_no_more_than_it_says(monkeypatch):
    monkeypatch.setattr(exact, "PART", 4)
    found = by_enumeration(SPACE, SCORE, "latency", {})
    assert (found.num_evaluated, found.best.tolist(), found.bound) == (6, [[1, 2]], 18.0)
    assert found.front.tolist() == [[0, 0], [0, 1], [1, 1], [0, 2], [1, 2]]
    monkeypatch.setattr(exact, "MAX_TRIED", 6)
    assert by_enumeration(SPACE, SCORE, "latency", {}).num_evaluated == 6
    monkeypatch.setattr(exact, "MAX_TRIED", 5)
    with pytest.raises(ScenarioError, match="6 networks, and at most 5"):
        by_enumeration(SPACE, SCORE, "latency", {})


def test_fronts_and_the_best_of_some():
    assert pareto(SPACE, SCORE, "latency", ALL[:0]).shape == (0, 2)
    assert best_of(SPACE, SCORE, ALL[:0]).shape == (0, 2)
    assert best_of(SPACE, SCORE, ALL[:4]).tolist() == [[0, 2]]
    assert pareto(SPACE, SCORE, "latency", ALL[[3, 1]]).tolist() == [[0, 1]]


def test_alike_choices_are_counted():
    """Three that gain 1 for 1 within 2 in all: two of them, the last ones; the fourth has nothing to choose."""
    goal = np.array([[1.0, 0.0]] * 3 + [[5.0, NONE]])
    cost = np.array([[0.0, 1.0]] * 3 + [[0.0, NONE]])
    found = assigned(goal, {"c": cost}, {"c": 2.0})
    assert found.choice.tolist() == [0, 1, 1, 0]
    assert (found.cost, found.is_proven) == (6.0, True)
    assert found.bound == pytest.approx(6.0)
    assert assigned(goal, {"c": cost}, {"c": 1.99}).cost == 7.0
    assert assigned(goal, {"c": cost}, {}).cost == 5.0
    assert assigned(goal, {"c": cost}, {"c": -1.0}) is None


def test_a_limit_of_nothing_is_a_limit():
    goal, cost = np.array([[3.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 4.0], [0.0, 0.0]])
    assert assigned(goal, {"c": cost}, {"c": 0.0}).choice.tolist() == [0, 1]
    assert assigned(goal, {"c": 0 * cost}, {"c": 0.0}).choice.tolist() == [1, 1]
    assert assigned(0 * goal, {"c": cost}, {"c": 0.0}).cost == 0.0
    below = np.array([[-1.0, -5.0], [-1.0, -3.0]])  # at least 4 of a score
    assert assigned(np.array([[0.0, 9.0], [0.0, 7.0]]), {"s": below}, {"s": -4.0}).choice.tolist() == [0, 1]


def test_a_step_of_a_policy_by_hand():
    """Of two equal alternatives one was worth 1 and the other -1: half of the step each way. Where all that is drawn
    is worth 3, the running mean is 0.9 x 0 + 0.1 x 3, and the drawn one grows by 2.7 (1 - p)."""
    policy = Policy((2, 1), 0.4, np.random.default_rng(0))
    assert policy.logits.tolist() == [[0.0, 0.0], [0.0, -inf]]
    policy.learn(np.array([[0, 0], [1, 0]]), np.array([1.0, -1.0]))
    assert policy.logits[0] == pytest.approx([0.2, -0.2])
    share = 1 / (1 + np.exp(-0.4))
    policy.learn(np.array([[0, 0]]), np.array([3.0]))
    assert policy.logits[0] == pytest.approx([0.2 + 0.4 * 2.7 * (1 - share), -0.2 - 0.4 * 2.7 * (1 - share)])
    assert policy.likeliest.tolist() == [[0, 0]]
    assert policy.draw(50)[:, 1].tolist() == [0] * 50


def test_fines_by_hand():
    """Half below 5: half a fine; 0.3 above: 0.6. Of a score less than the limit is the excess."""
    knobs = PolicyKnobs(cost_weight_ratio=10.0)
    some = ALL[[0, 4]]
    assert fines(SPACE, some, {"latency": 5.0}, knobs) == pytest.approx([5.0, 6.0])
    assert fines(SPACE, some, {SCORE: 12.5}, knobs) == pytest.approx([20 * 1.5 / 12.5, 10 * 2.5 / 12.5])
    assert fines(SPACE, some, {"latency": 5.0, SCORE: 12.5}, knobs) == pytest.approx([5 + 2.4, 6 + 2.0])
    assert fines(SPACE, some, {"latency": 0.0}, knobs).tolist() == [0.0, 0.0]


def test_chances_and_draws_of_alternatives():
    shares = shares_of(np.array([[0.0, log(3.0)], [700.0, -inf]]))
    assert shares == pytest.approx(np.array([[0.25, 0.75], [1.0, 0.0]]))
    drawn = drawn_from(shares, 4000, np.random.default_rng(1))
    assert drawn[:, 0].mean() == pytest.approx(0.75, abs=0.03)
    assert drawn[:, 1].max() == 0


def test_searches_that_prove_nothing_find_the_same():
    limits = {"latency": 7.0}
    slope = by_gradient(SPACE, SCORE, "latency", limits, GradientKnobs(runs=2, steps=40))
    assert slope.best.tolist() == [[1, 1]]
    assert slope.num_evaluated <= 6
    assert not slope.is_proven
    bred = by_evolution(SPACE, SCORE, "latency", limits, EvolutionKnobs(population=6, generations=5))
    assert (bred.best.tolist(), bred.num_evaluated, bred.evaluated.shape) == ([[1, 1]], 30, (30, 2))


def test_a_run_along_the_gradient_passes_two_networks_a_step():
    passed = _run(SPACE, "latency", {}, GradientKnobs(steps=30), 0)
    assert passed.shape == (60, 2)
    assert passed[-2].tolist() == [0, 0]
    limited = _run(SPACE, SCORE, {"latency": 3.5}, GradientKnobs(steps=60), 0)
    assert SPACE.are_within(limited[-20::2], {"latency": 3.5}).all()
    assert _run(SPACE, SCORE, {}, GradientKnobs(steps=30), 0)[-2].tolist() == [1, 2]


def test_a_goal_that_no_choice_changes_moves_nothing():
    alike = replace(SPACE, metrics={"latency": Metric(table=np.array([[2.0, 2.0, NONE], [3.0, 3.0, 3.0]]))})
    first, *_, last = _run(alike, "latency", {}, GradientKnobs(steps=20), 0)[::2].tolist()
    assert first == last


def test_children_are_of_both_parents_and_seldom_of_neither():
    """Parents (0, 0) and (1, 2): a choice is one parent's or the other's, and half of the choices are drawn anew, a
    third of them each width: 0.5 x 0.5 + 0.5 / 3 of a parent's width, 0.5 / 3 of the one that neither has."""
    parents = np.array([[0, 0], [1, 2]])
    children = _bred(SPACE, parents, 6000, np.random.default_rng(3))
    assert children[:, 0].mean() == pytest.approx(0.5, abs=0.03)
    thin, mid, wide = (float((children[:, 1] == i).mean()) for i in range(3))
    assert thin == pytest.approx(0.25 + 0.5 / 3, abs=0.03)
    assert (mid, wide) == (pytest.approx(0.5 / 3, abs=0.03), pytest.approx(thin, abs=0.03))


def test_rows_that_some_row_reaches():
    values = np.array([[1.0, 5.0], [2.0, 2.0], [0.5, 9.0], [3.0, 2.0]])
    assert reached(values, np.array([[2.0, 2.0]])).tolist() == [False, True, False, True]
    assert reached(values, np.array([[9.0, 9.0], [1.0, 4.0]])).tolist() == [True, False, False, False]
    assert reached(values, values[:0]).tolist() == [False] * 4


def test_ranks_of_a_generation_by_hand():
    """Nothing beats (1, 4) and (3, 1), of which the first has the better goal; one beats (3, 4); what is outside of the
    limits comes last, however good."""
    costs = np.array([[3.0, 4.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 4.0, 0.0]])
    assert _ranked(costs).tolist() == [3, 1, 0, 2]
    found = _costs(SPACE, (SCORE, "latency"), {"latency": 3.0}, ALL[:2])
    assert found.tolist() == [[-11.0, 2.5, 0.0], [-13.0, 3.5, 1.0]]


def test_a_filter_draws_until_all_are_small():
    rng = np.random.default_rng(2)
    small = first_generation(SPACE, EvolutionKnobs(population=40, first_parameters=1.0), rng)
    assert small.tolist() == [[0, 0]] * 40
    with pytest.raises(OutOfRange, match="higher limit"):
        first_generation(SPACE, EvolutionKnobs(population=40, first_parameters=0.5), rng)


def test_what_is_drawn_most_comes_first():
    assert often(np.array([[1, 0], [0, 2], [1, 0], [1, 1]])).tolist() == [[1, 0], [0, 2], [1, 1]]


def test_unequal_cuts_of_a_replica_by_hand():
    """Attention on 4 devices, once or twice; experts neither whole (etp 1) nor cut like it (etp 4)."""
    found = {(x.dp, x.ep, x.etp) for x in _unequal(4, 1, 2, 8, 1)}
    assert found == {(1, 2, 2), (2, 1, 8), (2, 4, 2)}
    assert {(x.dp, x.ep, x.etp) for x in _unequal(4, 1, 2, 6, 1)} == {(1, 2, 2), (2, 1, 8)}  # 4 does not divide 6
    assert {(x.tp, x.pp, x.cp) for x in _unequal(4, 3, 2, 8, 5)} == {(4, 3, 5)}


def test_degrees_of_a_manifest_stand_once():
    words = ("--tensor-parallel-size", "4", "--max-num-seqs", "8", "--data-parallel-size", "2", "--enforce-eager")
    assert _others(words) == ["--max-num-seqs", "8", "--enforce-eager"]

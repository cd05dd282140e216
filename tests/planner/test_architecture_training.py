"""Small networks that are trained for a search: by hand where possible, and what has to come out of it."""

import numpy as np
import pytest

from orrery.numerics.experiments.steps import Pass
from orrery.planner.architecture import together
from orrery.planner.architecture.gradient import drawn_from
from orrery.planner.architecture.policy import PolicyKnobs
from orrery.planner.architecture.problem import Choice, Metric, Problem
from orrery.planner.architecture.together import _Gated, _gates, by_gated_paths, by_policy_and_weights
from orrery.planner.architecture.toys import FormatLayers, Twin, twin_of
from orrery.planner.architecture.training import Alone, Shared, TrainingKnobs, even, shared_weights

QUICK = TrainingKnobs(steps=40, held_out=256)
TWIN = twin_of(np.array([[0.0, 1.0], [0.0, 1.0]]))


def problem(cost):
    return Problem(
        choices=(Choice(name="a", alternatives=("none", "wide")), Choice(name="b", alternatives=("none", "wide"))),
        metrics={"latency": Metric(table=np.array(cost, dtype=float)), "score": Metric(table=np.zeros((2, 2)))},
        reference_name="none",
        reference={"latency": 0.0},
    )


def test_branches_are_as_wide_as_their_share():
    assert twin_of(np.array([[0.0, 0.01, 0.5, 1.0, np.nan]])).hidden.tolist() == [[0, 1, 16, 32, 0]]


def test_a_branch_that_is_there_learns_more_than_none_and_is_trained_once():
    alone = Alone(toy=TWIN, knobs=TrainingKnobs(steps=150))
    none, both, again = alone(np.array([[0, 0], [1, 1], [1, 1]]))
    assert both > none
    assert again == both
    assert alone.num_trained == 2


def test_a_format_that_rounds_more_loses_more():
    toy = FormatLayers(formats=("fp32", "mxfp4"))
    exact, rounded = Alone(toy=toy, knobs=QUICK)(np.array([[0] * 4, [1] * 4]))
    assert exact > rounded


def test_shared_weights_say_what_replacing_one_alternative_changes():
    shared = Shared(toy=TWIN, knobs=QUICK, weights=shared_weights(TWIN, QUICK, even((2, 2))))
    table = shared.replaced(np.array([1, 1]), (2, 2))
    scores = shared(np.array([[1, 1], [0, 1], [1, 0]]))
    assert table[:, 1].tolist() == [0.0, 0.0]
    assert table[0, 0] == pytest.approx(scores[1] - scores[0])
    assert table[1, 0] == pytest.approx(scores[2] - scores[0])


def test_a_gates_slope_is_the_change_of_the_loss_when_it_opens():
    twin = Twin(hidden=np.array([[3, 5]]))
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) * 0.3 for name, shape in twin.shapes.items()}
    paths = np.array([[0], [1]])
    task = twin.task(0)
    x, targets = task.draw(16, rng)

    def loss(opened):
        """The loss where the second branch is added so much, through a copy whose way back is not used."""
        run = Pass(weights=weights, rule_of=twin.rule_of(paths[0]), rng=rng)
        h = run.linear("in")(x.astype(np.float64))[0]
        first, second = (twin.branch(run, 0, a)(h)[0] for a in (0, 1))
        from orrery.numerics.experiments.steps import rms_norm

        logits = run.linear("out")(rms_norm(h + first + opened * second)[0])[0]
        return task.loss(logits, targets)[0]

    gated = _Gated(twin=twin, paths=paths, slopes=np.zeros((2, 1)))
    run = Pass(weights=weights, rule_of=twin.rule_of(paths[0]), rng=rng)
    said, back = gated.step(run)(x.astype(np.float64))
    back(task.loss(said, targets)[1])
    step = 1e-5
    assert gated.slopes[1, 0] == pytest.approx((loss(step) - loss(-step)) / (2 * step), rel=1e-4)


def test_gates_of_one_alternative_twice_have_no_gradient_and_others_add_up_to_none():
    shares = np.array([[0.25, 0.75]])
    slopes = np.array([[2.0], [1.0]])
    assert _gates(shares, np.array([[1], [1]]), slopes).tolist() == [[0.0, 0.0]]
    found = _gates(shares, np.array([[0], [1]]), slopes)
    # mean slope 0.25 * 2 + 0.75 * 1 = 1.25: 0.25 * 0.75 and 0.75 * -0.25
    assert found.tolist() == [[0.1875, -0.1875]]


def test_what_costs_nothing_and_helps_is_learnt_and_a_limit_closes_it():
    knobs = TrainingKnobs(steps=60)
    free = by_gated_paths(problem([[0, 1], [0, 1]]), TWIN, {}, knobs)
    assert [1, 1] in free.tolist()
    tight = by_gated_paths(problem([[0, 1], [0, 1]]), TWIN, {"latency": 0.5}, knobs)
    assert [0, 0] in tight.tolist()


def test_paths_are_drawn_evenly_until_the_weights_are_warm(monkeypatch):
    """In the first quarter of the steps weights alone are trained; from then on every step moves the gates."""
    seen = []

    def drawn(shares, count, rng):
        seen.append(shares.copy())
        return drawn_from(shares, count, rng)

    monkeypatch.setattr(together, "drawn_from", drawn)
    knobs = TrainingKnobs(steps=40)
    by_gated_paths(problem([[0, 1], [0, 1]]), TWIN, {}, knobs)
    steps = len(seen)
    assert steps == knobs.plan(together.SHARED_RATIO).steps
    moved = [step for step, shares in enumerate(seen) if (shares != 0.5).any()]
    assert moved[0] == steps // 4 + 2, "the step after the first that moves them"
    assert moved == [*range(moved[0], steps)]


def test_a_policy_learns_with_its_weights_and_repeats():
    runs = [
        by_policy_and_weights(problem([[0, 1], [0, 1]]), TWIN, {}, QUICK, PolicyKnobs(seed=1)).tolist()
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0][0] == [1, 1]


def test_a_schedule_of_three_times_the_steps():
    plan = TrainingKnobs().plan(3)
    assert (plan.steps, plan.points, plan.held_out, plan.learning_rate, plan.seed) == (180, 64, 512, 0.01, 0)

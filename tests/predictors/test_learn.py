"""The kit for learning: gradients against differences, training that stops at its best, scores by definition."""

import numpy as np
import pytest

from orrery.base.errors import OrreryError
from orrery.predictors.learn import extra
from orrery.predictors.learn.embedding import Adaptive
from orrery.predictors.learn.network import Perceptron
from orrery.predictors.learn.scores import score
from orrery.predictors.learn.train import Plan, train, value_and_gradients

NETWORK = Perceptron(widths=(3, 8, 8, 1))


def squared(parameters, x, y):
    return ((NETWORK(parameters, x)[:, 0] - y) ** 2).mean()


def rows(count, seed=0):
    x = np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32)
    return x, (np.abs(x[:, 0]) - x[:, 1]).astype(np.float32)


def as_doubles(parameters):
    return {name: a.astype(np.float64) for name, a in parameters.items()}


def slope_along(loss, parameters, gradients, rng):
    """(from differences, from the gradients) along one random direction."""
    way = {name: rng.standard_normal(a.shape) for name, a in parameters.items()}
    there, back = ({n: a + sign * 1e-6 * way[n] for n, a in parameters.items()} for sign in (1, -1))
    return (loss(there) - loss(back)) / 2e-6, sum(float(np.sum(gradients[n] * way[n])) for n in parameters)


def test_gradients_are_those_of_differences():
    rng = np.random.default_rng(1)
    parameters = as_doubles(NETWORK.start(rng))
    x, y = rows(20)
    value, gradients = value_and_gradients(squared)(parameters, x, y)
    assert value == squared(parameters, x, y)
    measured, description = slope_along(lambda p: squared(p, x, y), parameters, gradients, rng)
    assert description == pytest.approx(measured, rel=1e-5)


def test_gradients_pass_through_the_steps_of_adaptation():
    rng = np.random.default_rng(2)
    regressor = Adaptive(inputs=5, references=4, hidden=6, updates=2)
    parameters = as_doubles(regressor.start(rng))
    x, more_x = rng.standard_normal((3, 4, 5)), rng.standard_normal((3, 7, 5))
    y, more_y = rng.standard_normal((3, 4)), rng.standard_normal((3, 7))
    data = (y, x, y, more_x, more_y)
    _, gradients = value_and_gradients(regressor.loss)(parameters, *data)
    measured, description = slope_along(lambda p: regressor.loss(p, *data), parameters, gradients, rng)
    assert description == pytest.approx(measured, rel=1e-4)
    assert np.abs(gradients["rate trunk w0"]).max() > 0.0
    assert np.abs(gradients["scales w1"]).max() > 0.0


def test_devices_of_a_batch_do_not_see_each_other():
    rng = np.random.default_rng(3)
    regressor = Adaptive(inputs=5, references=4, hidden=6, updates=2)
    parameters = regressor.start(rng)
    z, x = rng.standard_normal((3, 4)), rng.standard_normal((3, 4, 5))
    together = regressor.predict(regressor.adapted(parameters, z, x, z), z, x)
    for i in range(3):
        one = slice(i, i + 1)
        alone = regressor.predict(regressor.adapted(parameters, z[one], x[one], z[one]), z[one], x[one])
        assert alone[0] == pytest.approx(together[i], rel=1e-4, abs=1e-5)


def test_training_learns_and_repeats_itself_and_counts_its_steps():
    description = []
    plan = Plan(steps=300, batch=64, learning_rate=1e-2)
    start = NETWORK.start(np.random.default_rng(4))
    found = train(squared, start, rows(2000), plan, lambda: description.append(1))
    x, y = rows(500, seed=9)
    assert squared(found.parameters, x, y) < 0.02 * squared(start, x, y)
    assert len(description) == 300
    again = train(squared, start, rows(2000), plan)
    assert all(np.array_equal(again.parameters[name], a) for name, a in found.parameters.items())


def test_training_stops_where_other_rows_stop_gaining():
    x, _ = rows(200)
    noise = np.random.default_rng(5).standard_normal(200).astype(np.float32)
    description = []
    plan = Plan(steps=2000, batch=64, learning_rate=1e-2, check_steps=10, patience_checks=5, validation_frac=0.5)
    found = train(squared, NETWORK.start(np.random.default_rng(6)), (x, noise), plan, lambda: description.append(1))
    assert found.num_steps < 1000
    assert len(description) == 2000


def test_scores_are_those_of_their_definitions():
    found = score(np.array([1.1, 1.8, 3.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert found.median_error_frac == pytest.approx(0.1)
    assert found.mean_error_frac == pytest.approx((0.1 + 0.1 + 0.0 + 0.25) / 4)
    assert found.r2 == pytest.approx(1.0 - (0.01 + 0.04 + 1.0) / 5.0)
    assert found.rank_correlation == pytest.approx(1.0)
    assert score(np.array([3.0, 2.0, 1.0]), np.array([0.1, 0.2, 0.3])).rank_correlation == pytest.approx(-1.0)


def test_a_missing_extra_is_said_in_words():
    with pytest.raises(OrreryError, match=r"need no_such_package.*pip install 'orrery-ai\[learn\]'"):
        extra.learning_package("no_such_package.numpy")

"""Small networks: gradients against finite differences, losses against closed forms."""

import math

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.experiments.fitting import Plan, all_alike, fit, loss_and_gradients
from orrery.numerics.experiments.losses import cross_entropy, sharpness_frac, squared_error
from orrery.numerics.experiments.networks import Decoder, Perceptron, start
from orrery.numerics.experiments.tasks import classification, regression, text
from orrery.numerics.learning import linear

EXACT = all_alike(linear("exact-linear"))


def slopes(network, x, targets, loss, rng, step=1e-5):
    """Of the loss along a random direction of every weight: from gradients, and from differences."""
    weights = {name: w.astype(np.float64) for name, w in start(network, rng).items()}

    def value(changed):
        return loss_and_gradients(network, weights | changed, x, targets, loss, EXACT, rng)[0]

    gradients = loss_and_gradients(network, weights, x, targets, loss, EXACT, rng)[1]
    assert gradients.keys() == weights.keys()
    for name, w in weights.items():
        way = rng.standard_normal(w.shape)
        rise = value({name: w + step * way}) - value({name: w - step * way})
        yield float(np.sum(gradients[name] * way)), rise / (2.0 * step)


def test_gradients_of_the_decoder_are_slopes_of_its_loss():
    rng = np.random.default_rng(0)
    network = Decoder(vocabulary=7, tokens=5, width=8, num_heads=2, num_blocks=2)
    x, targets = rng.integers(7, size=(3, 5)).astype(float), rng.integers(7, size=(3, 5))
    for found, differences in slopes(network, x, targets, cross_entropy, rng):
        assert found == pytest.approx(differences, rel=1e-5, abs=1e-7)


def test_gradients_of_the_perceptron_are_slopes_of_its_loss():
    rng = np.random.default_rng(1)
    x, targets = rng.standard_normal((6, 5)), rng.standard_normal((6, 3))
    for found, differences in slopes(Perceptron(widths=(5, 7, 4, 3)), x, targets, squared_error, rng):
        assert found == pytest.approx(differences, rel=1e-5, abs=1e-8)


def test_the_decoder_does_not_see_the_future():
    rng = np.random.default_rng(2)
    network = Decoder(vocabulary=7, tokens=6, width=8, num_heads=2)
    weights, x = start(network, rng), rng.integers(7, size=(2, 6)).astype(np.float32)
    later = x.copy()
    later[:, 4:] = (later[:, 4:] + 1) % 7
    from orrery.numerics.experiments.steps import Pass

    message = [network.step(Pass(weights=weights, rule_of=EXACT, rng=rng))(tokens)[0] for tokens in (x, later)]
    np.testing.assert_array_equal(message[0][:, :4], message[1][:, :4])
    assert not np.array_equal(message[0][:, 4:], message[1][:, 4:])


def test_cross_entropy_of_equal_logits_is_the_logarithm_of_their_number():
    loss, gradient = cross_entropy(np.zeros((4, 3, 8), np.float32), np.zeros((4, 3), np.int64))
    assert loss == pytest.approx(math.log(8))
    assert gradient.shape == (4, 3, 8)
    np.testing.assert_allclose(gradient.sum(axis=-1), 0.0, atol=1e-7)


def test_sharpness_is_the_largest_rise_in_the_box():
    rng = np.random.default_rng(3)
    logits, targets, reach = rng.standard_normal((1, 4)), np.array([2]), 0.01
    here = cross_entropy(logits, targets)[0]
    found = sharpness_frac(logits, targets, reach)
    tried = [
        cross_entropy(logits + reach * (1 + np.abs(logits)) * rng.uniform(-1, 1, (1, 4)), targets)[0]
        for _ in range(500)
    ]
    assert max(tried) - here <= found * (1 + here)
    assert max(tried) - here > 0.5 * found * (1 + here)
    assert sharpness_frac(10.0 * logits, targets, reach) > found


def test_text_cannot_be_told_better_than_its_entropy_and_learning_comes_near():
    task = text(0, vocabulary=4, tokens=8)
    assert 0.0 < task.least_loss < math.log(4)
    network = Decoder(vocabulary=4, tokens=8, width=16, num_heads=2, num_blocks=1)
    found = fit(network, task, EXACT, Plan(steps=150, points=16, learning_rate=1e-2))
    assert found.is_finite
    assert task.least_loss - 0.05 < found.held_out_loss < 0.5 * (task.least_loss + found.losses[0])


@pytest.mark.parametrize("task", [regression(0), classification(0, num_inputs=64)])
def test_learning_lowers_the_loss(task):
    found = fit(Perceptron(widths=(64, 32, 16)), task, EXACT, Plan(steps=80, points=64, learning_rate=1e-2))
    assert found.held_out_loss < 0.7 * found.losses[0]


def test_the_same_seed_gives_the_same_run_and_another_one_another():
    task, network = regression(0), Perceptron(widths=(64, 32, 16))
    rule_of = all_alike(linear("nvfp4-linear"))
    runs = [fit(network, task, rule_of, Plan(steps=5, points=32, seed=s)).losses for s in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_run_that_explodes_stops_and_says_so():
    found = fit(Perceptron(widths=(64, 32, 16)), regression(0), EXACT, Plan(steps=50, points=8, learning_rate=1e30))
    assert not found.is_finite
    assert len(found.losses) < 50


def test_the_learning_rate_warms_up_and_falls_to_a_tenth():
    plan = Plan(steps=100, learning_rate=1.0)
    assert plan.rate(0) == pytest.approx(0.2, rel=0.01)
    assert plan.rate(4) > 0.99
    assert plan.rate(99) == pytest.approx(0.1, abs=0.01)


def test_widths_that_do_not_divide_among_heads_are_refused():
    with pytest.raises(ScenarioError, match="3 heads"):
        Decoder(width=32, num_heads=3)

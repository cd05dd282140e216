"""Small real training: rules that learn what no plane can tell apart, right gradients, and prices that add up."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.training.small import Settings, Sizes, clusters, layerwise_descent, price, stale_outer_descent
from orrery.training.small import backpropagation as bp
from orrery.training.small import cascaded_forward as cafo
from orrery.training.small import forward_forward as ff
from orrery.training.small import mono_forward as mf
from orrery.training.small.learning import Adam, until_no_better
from orrery.training.small.network import Layer, accuracy_frac, layers
from orrery.training.small.pricing import mean
from orrery.training.small.stale import OuterKnobs
from orrery.training.small.techniques import backpropagation, cascaded_forward, forward_forward, mono_forward

DATA, SHORT = clusters(count=800, seed=2), Settings(seed=2, most_passes=40)
A100 = get_device("a100-sxm-40gb")
SIZES = Sizes(inputs=3072, hidden=(2000, 2000, 2000), num_classes=10, batch=128)


def linear_accuracy_frac():
    """Logistic regression on the inputs: the best that a plane a class does."""
    predictor = Layer(np.zeros((DATA.train.rows.shape[1], DATA.num_classes)), np.zeros(DATA.num_classes))
    cafo.train_predictor(predictor, DATA.train, DATA.validation, SHORT, "linear")
    return accuracy_frac(predictor(DATA.test.rows), DATA.test.labels)


@pytest.fixture(scope="module")
def trained():
    """Every rule on the same data, once."""
    return {rule.__name__.rsplit(".", 1)[1]: rule.train(DATA, SHORT) for rule in (bp, mf, ff, cafo)}


def test_every_rule_learns_what_no_plane_can_tell_apart(trained):
    plane = linear_accuracy_frac()
    assert plane < 0.75
    assert trained["backpropagation"].accuracy_frac > plane + 0.2
    assert trained["mono_forward"].accuracy_frac > trained["backpropagation"].accuracy_frac - 0.05
    assert plane + 0.1 < trained["forward_forward"].accuracy_frac < trained["backpropagation"].accuracy_frac
    assert plane + 0.1 < trained["cascaded_forward"].accuracy_frac < trained["backpropagation"].accuracy_frac


def test_layers_that_learn_in_turn_pass_over_the_data_more_often(trained):
    assert trained["mono_forward"].passes > trained["backpropagation"].passes
    assert trained["cascaded_forward"].passes > trained["backpropagation"].passes
    assert all(run.passes == len(run.validation_losses) for run in trained.values())


def test_a_run_is_the_same_every_time():
    once = Settings(seed=2, most_passes=2)
    for rule in (bp, mf, ff, cafo):
        assert rule.train(DATA, once) == rule.train(DATA, once)


def slopes(loss, arrays, step=1e-6):
    """The gradient by central differences, one number after the other."""
    for array in arrays:
        found = np.empty_like(array)
        for place in np.ndindex(array.shape):
            retained = array[place]
            array[place] = retained + step
            above = loss()
            array[place] = retained - step
            found[place] = (above - loss()) / (2 * step)
            array[place] = retained
        yield found


def off_the_kink(*widths):
    """Layers with biases, so that no activation sits at zero, where the slope is not defined."""
    network, draw = layers(widths, 0, "check"), np.random.default_rng(1)
    return [Layer(layer.weights, draw.standard_normal(layer.biases.size)) for layer in network]


INPUTS, LABELS = DATA.train.rows[:9, :5], DATA.train.labels[:9]


def test_gradients_of_backpropagation():
    network = off_the_kink(5, 7, 6, 4)
    found = bp.gradients(network, INPUTS, LABELS)[1]
    arrays = [a for layer in network for a in layer]
    for got, want in zip(found, slopes(lambda: bp.gradients(network, INPUTS, LABELS)[0], arrays), strict=True):
        assert got == pytest.approx(want, abs=1e-6)


def test_gradients_of_mono_forward():
    (layer,), projection = off_the_kink(5, 7), np.random.default_rng(0).standard_normal((7, 4))
    found = mf.local_gradients(layer, projection, INPUTS, LABELS)[1]
    checked = slopes(lambda: mf.local_gradients(layer, projection, INPUTS, LABELS)[0], [*layer, projection])
    for got, want in zip(found, checked, strict=True):
        assert got == pytest.approx(want, abs=1e-6)


def test_gradients_of_forward_forward_do_not_cross_layers():
    """The last layer's are those of the whole loss; the first layer's are those of a network that ends with it."""
    network, wrong = off_the_kink(9, 7, 6), (LABELS + 1) % 4
    both = ff.labelled(INPUTS, LABELS, 4), ff.labelled(INPUTS, wrong, 4)
    found = ff.gradients(network, *both)[1]
    last = slopes(lambda: ff.gradients(network, *both)[0], network[1])
    first = slopes(lambda: ff.gradients(network[:1], *both)[0], network[0])
    for got, want in zip(found, itertools.chain(first, last), strict=True):
        assert got == pytest.approx(want, abs=1e-6)


def test_adam_by_hand():
    """The first step moves by the learning rate against the sign of the gradient, whatever its size."""
    x = np.array([1.0, 1.0, 1.0])
    Adam([x], 0.1).step([np.array([1e-3, -50.0, 0.0])])
    assert x == pytest.approx([0.9, 1.1, 1.0], abs=1e-5)


def test_the_best_pass_is_kept():
    x, seen = np.zeros(1), [3.0, 1.0, 2.0, 2.0, 0.5]

    def one_pass(passed):
        x[0] = passed
        return seen[passed]

    assert until_no_better(one_pass, [x], Settings(patience_passes=2)) == [3.0, 1.0, 2.0, 2.0]
    assert x[0] == 1.0


@pytest.mark.parametrize("order", ["bottom-up", "top-down", "random"])
@pytest.mark.parametrize("groups", [3, 6])
def test_one_group_at_a_time_converges(order, groups):
    losses = layerwise_descent(order, groups, 240, 1)
    assert losses.shape == (240,)
    assert losses[0] > 1.2
    assert losses[-30:].mean() < 0.35 * losses[0]


def test_one_group_of_all_layers_is_plain_descent_and_order_is_nothing():
    assert (layerwise_descent("bottom-up", 1, 30, 0) == layerwise_descent("top-down", 1, 30, 0)).all()
    assert (
        layerwise_descent("bottom-up", 6, 240, 1)[-30:].mean() > layerwise_descent("bottom-up", 1, 240, 1)[-30:].mean()
    )
    assert (layerwise_descent("bottom-up", 2, 30, 0) != layerwise_descent("top-down", 2, 30, 0)).any()


def test_stale_outer_updates_converge_behind_synchronous_ones():
    found = stale_outer_descent(rounds=30)
    assert found.losses_ratio.shape == found.synchronous_losses_ratio.shape == (31,)
    assert found.losses_ratio[0] == found.losses_ratio[1] == found.synchronous_losses_ratio[0]  # nothing arrived yet
    assert found.losses_ratio[-1] < 0.35 * found.losses_ratio[0]
    assert found.losses_ratio[-1] == pytest.approx(found.synchronous_losses_ratio[-1], rel=0.25)


def test_penalty_and_cut_each_hold_back_a_heavy_outer_momentum():
    def last(**knobs):
        return stale_outer_descent(rounds=16, knobs=OuterKnobs(momentum_ratio=0.9, **knobs)).losses_ratio[-1]

    both, penalised, bare = last(), last(clip_ratio=math.inf), last(is_penalised=False, clip_ratio=math.inf)
    assert both < 0.4 * stale_outer_descent(rounds=1).losses_ratio[0]
    assert both < penalised < bare


def test_one_worker_one_step_without_extras_is_descent_one_round_late():
    plain = OuterKnobs(momentum_ratio=0.0, is_penalised=False, clip_ratio=math.inf)
    found = stale_outer_descent(num_workers=1, local_steps=1, rounds=2, knobs=plain)
    assert found.losses_ratio[2] == pytest.approx(found.synchronous_losses_ratio[1])


def works(sizes):
    """Work of one step by rule and layer."""
    every = range(len(sizes.hidden))
    knobs = mono_forward.TECHNIQUE.knobs()
    return {
        "bp": [backpropagation.rule(sizes, 0, knobs)],
        "ff": [forward_forward.rule(sizes, 0, knobs)],
        "mf": [mono_forward.rule(sizes, i, knobs) for i in every],
        "cafo": [cascaded_forward.rule(sizes, i, knobs) for i in every],
    }


def flops(work):
    return sum(2.0 * op.m * op.n * op.k for op in work.ops if isinstance(op, kernels.ops.Gemm))


def test_flops_of_a_step_by_hand():
    sizes = Sizes(inputs=7, hidden=(5, 3), num_classes=2, batch=4)
    found = works(sizes)
    assert flops(found["bp"][0]) == 2 * 4 * (2 * 35 + 3 * 15 + 3 * 6)  # no gradient for the inputs
    assert [flops(w) for w in found["mf"]] == [2 * 4 * (2 * 35 + 3 * 10), 2 * 4 * (35 + 2 * 15 + 3 * 6)]
    assert [flops(w) for w in found["cafo"]] == [2 * 4 * (35 + 2 * 10), 2 * 4 * (35 + 15 + 2 * 6)]
    assert flops(found["ff"][0]) == 2 * 4 * (2 * 2 * 50 + 50 + 2 * 6)


@given(
    inputs=st.integers(1, 300),
    hidden=st.lists(st.integers(1, 300), min_size=2, max_size=4),
    classes=st.integers(2, 10),
    batch=st.integers(1, 64),
)
def test_local_rules_keep_less_than_the_chain(inputs, hidden, classes, batch):
    found = works(Sizes(inputs=inputs, hidden=tuple(hidden), num_classes=classes, batch=batch))
    whole = found["bp"][0]
    assert whole.activation_bytes == 4.0 * batch * (inputs + sum(hidden) + classes)
    for local in (*found["mf"], *found["cafo"]):
        assert local.activation_bytes < whole.activation_bytes
    for a, b in zip(found["cafo"], found["mf"], strict=True):
        assert a.state_bytes < b.state_bytes
        assert flops(a) < flops(b)


@settings(deadline=None, max_examples=8)
@given(st.floats(0, 1e-2), st.floats(0, 1e-4))
def test_a_price_adds_up(host_s, launch_s):
    work = works(SIZES)["bp"][0]
    found = price(work, A100, host_s=host_s, launch_s=launch_s)
    kernel_s = sum(float(kernels.predict(op, A100).time_s) for op in work.ops)
    assert found.device_s == pytest.approx(kernel_s)
    assert found.time_s == max(found.device_s, host_s, launch_s * work.num_launches)
    assert A100.idle_power_w <= found.energy_j / found.time_s <= A100.power_limit_w
    assert found.times(3).energy_j == 3 * found.energy_j


def test_a_pass_of_mono_forward_costs_less_and_one_of_forward_forward_more():
    prices = {rule: mean([price(work, A100, launch_s=0.0) for work in steps]) for rule, steps in works(SIZES).items()}
    for name in ("time_s", "energy_j", "flops", "bytes"):
        of = {rule: getattr(p, name) for rule, p in prices.items()}
        assert of["cafo"] < of["mf"] < of["bp"] < of["ff"], name
    assert prices["mf"].state_bytes < prices["bp"].state_bytes


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: layerwise_descent("sideways", 2, 5, 0), "sideways"),
        (lambda: layerwise_descent("random", 9, 5, 0), "1 to 6 groups"),
        (lambda: stale_outer_descent(rounds=0), "1 or more"),
        (lambda: OuterKnobs(momentum_ratio=1.0), "momentum"),
        (lambda: Sizes(inputs=1, hidden=(), num_classes=2, batch=1), "hidden layer"),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(ScenarioError, match=says):
        make()

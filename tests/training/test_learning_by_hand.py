"""Small networks that really learn: points, Adam, batches, stopping, flows and forward passes, on known numbers."""

from math import exp, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.base.knobs import NoKnobs
from orrery.training.small import data as points
from orrery.training.small import flows, forward_forward, layerwise, learning, pricing, stale
from orrery.training.small.data import Split, clusters
from orrery.training.small.flows import Mixture, mixture, routed, seen
from orrery.training.small.learning import Adam, Settings, batches, until_no_better
from orrery.training.small.network import Layer
from orrery.training.small.techniques import backpropagation
from orrery.training.small.work import (
    Sizes,
    elements,
    forward,
    input_gradient,
    moved,
    readout,
    state_bytes,
    update,
    weight_gradient,
)


class Draws:
    """Streams whose numbers are known: normal ones count up, whole ones go round, orders are turned about."""

    def standard_normal(self, shape):
        return np.arange(1.0, np.prod(shape) + 1).reshape(shape)

    def integers(self, low, high, count):
        return np.arange(count) % (high - low) + low

    def permutation(self, what):
        return np.asarray(np.arange(what) if isinstance(what, int) else what)[::-1]

    def random(self, shape):
        return np.full(shape, 0.25)

    def choice(self, among, count):
        return np.resize(among, count)


@pytest.fixture
def drawn(monkeypatch):
    for module in (points, flows, learning, layerwise):
        monkeypatch.setattr(module, "stream", lambda seed, name: Draws())


def test_points_of_clusters(drawn):
    """Two classes of one cluster, in one latent dimension: centres at 2.5 x 1 and 2.5 x 2, mixed by 1 into one input;
    points add 1, 2, ... and 0.3 of the same; a quarter as many to validate and to test; scaled by those to train on."""
    found = clusters(num_classes=2, per_class=1, num_latent=1, num_inputs=1, count=8)
    plain = np.where(np.arange(12) % 2 == 0, 2.5, 5.0) + 1.3 * np.arange(1.0, 13.0)
    scaled = (plain - plain[:8].mean()) / plain[:8].std()
    parts = (found.train, found.validation, found.test)
    assert np.concatenate([p.rows.ravel() for p in parts]).tolist() == pytest.approx(scaled.tolist())
    assert [len(p.labels) for p in parts] == [8, 2, 2]
    assert found.train.labels.tolist() == [0, 1] * 4
    assert found.num_classes == 2
    wide = clusters(num_classes=1, per_class=1, num_latent=4, num_inputs=2, count=4)
    assert wide.train.rows.shape == (4, 2)
    usual = clusters(count=8)
    assert (usual.num_classes, usual.train.rows.shape) == (4, (8, 24))


def test_mixing_keeps_the_spread(monkeypatch):
    """A matrix of ones from four latent dimensions is divided by two: inputs are sums over two of four."""

    class Ones(Draws):
        def standard_normal(self, shape):
            return np.ones(shape) if shape == (4, 1) else super().standard_normal(shape)

    monkeypatch.setattr(points, "stream", lambda seed, name: Ones())
    found = clusters(num_classes=1, per_class=1, num_latent=4, num_inputs=1, count=4)
    latent = 2.5 * np.arange(1.0, 5.0) + np.arange(1.0, 25.0).reshape(6, 4)
    plain = latent.sum(axis=1) / 2 + 0.3 * np.arange(1.0, 7.0)
    expected = (plain[:4] - plain[:4].mean()) / plain[:4].std()
    assert found.train.rows.ravel().tolist() == pytest.approx(expected.tolist())


def test_steps_of_adam():
    """A first step is the rate; then a gradient of 0: 0.9 x 0.2 over 0.19, and 0.999 x 0.004 over 0.001999."""
    array = np.array([5.0])
    adam = Adam([array], 0.5)
    adam.step([np.array([2.0])])
    assert array[0] == pytest.approx(4.5)
    adam.step([np.array([0.0])])
    assert array[0] == pytest.approx(4.5 - 0.5 * (0.18 / 0.19) / sqrt(0.999 * 0.004 / (1 - 0.999**2)))
    assert adam.steps == 2
    usual = Settings()
    assert (usual.hidden, usual.batch, usual.learning_rate_ratio) == ((48, 48), 64, 2e-3)
    assert (usual.most_passes, usual.patience_passes, usual.seed) == (60, 4, 0)


def test_batches_of_a_pass(drawn):
    part = Split(rows=np.arange(5.0)[:, None], labels=np.arange(5))
    found = [labels.tolist() for _, labels in batches(part, Settings(batch=2), "x", 0)]
    assert found == [[4, 3], [2, 1], [0]]


def test_passes_until_nothing_improves():
    """Best at the second pass; after two without gain it stops, as it was then. An equal loss is as good."""
    array = np.zeros(1)
    losses = [3.0, 2.0, 5.0, 4.0, 1.0]

    def one_pass(passed):
        array[0] = passed + 10.0
        return losses[passed]

    assert until_no_better(one_pass, [array], Settings(patience_passes=2)) == [3.0, 2.0, 5.0, 4.0]
    assert array[0] == 11.0
    assert len(until_no_better(one_pass, [array], Settings(patience_passes=3, most_passes=5))) == 5
    assert array[0] == 14.0
    losses[:] = [2.0, 2.0, 2.0, 2.0, 2.0]
    until_no_better(one_pass, [array], Settings(patience_passes=1, most_passes=5))
    assert array[0] == 14.0


# --- flows


PAIR = Mixture(means=np.array([[0.0], [4.0]]), spread_ratio=0.5, cluster=np.array([0, 1]))


def test_the_exact_flow_of_a_gaussian():
    """At t = 1/2 the variance is 1/4 + 1/16; x = 2 is as likely of 0 as of 4, which lies at 2: not. Of mean 4 alone:
    4 + (1/8 - 1/2) / (5/16) x (2 - 2)."""
    x, t = np.array([[2.0], [1.0]]), np.array([[0.5], [0.5]])
    assert PAIR.flow(x, t, 1).ravel().tolist() == pytest.approx([4.0, 4.0 - 1.2 * (1.0 - 2.0)])
    assert PAIR.flow(x, t, 0).ravel().tolist() == pytest.approx([-1.2 * 2.0, -1.2 * 1.0])
    chances = PAIR.chances(x, t)
    far = exp(-4.0 / (2 * 0.3125))
    assert chances[0].tolist() == pytest.approx([far / (1 + far), 1 / (1 + far)])
    assert chances[1].tolist() == pytest.approx([0.5, 0.5])
    assert PAIR.cluster_chances(x, t).tolist() == [pytest.approx(c) for c in chances.tolist()]
    assert PAIR.flow(x, t)[1, 0] == pytest.approx((5.2 - 1.2) / 2)
    assert PAIR.num_clusters == 2


def test_noisy_points_on_their_way():
    """A quarter of the way from noise 1, 2 to data 0 + 0.5 and 4 + 1: 0.75 noise and 0.25 data."""
    x, t, target, cluster = PAIR.draw(Draws(), 2)
    assert x.ravel().tolist() == [0.75 + 0.125, 1.5 + 1.25]
    assert (t.ravel().tolist(), target.ravel().tolist(), cluster.tolist()) == ([0.25] * 2, [-0.5, 3.0], [0, 1])
    assert PAIR.draw(Draws(), 2, 1)[3].tolist() == [1, 1]


def test_clusters_of_a_mixture(drawn):
    """Means 2, 4, 6, 8 in a line: neighbours stay together, or they are dealt out as they come."""
    near = mixture(4, 1, 0.5, 2, 0, True)
    assert near.means.ravel().tolist() == [2.0, 4.0, 6.0, 8.0]
    assert near.cluster.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert mixture(4, 1, 0.5, 2, 0, False).cluster.tolist() == [0, 0, 1, 1]


def test_what_networks_see_of_time():
    found = seen(np.array([[7.0]]), np.array([[0.5]]))
    assert found.ravel().tolist() == pytest.approx([7.0, sqrt(0.5), 1.0, 0.0, sqrt(0.5), 0.0, -1.0])
    network = flows._network(2, 5, 3, 0, "x")
    assert [layer.weights.shape if hasattr(layer, "weights") else layer[0].shape for layer in network] == [
        (8, 5),
        (5, 5),
        (5, 3),
    ]


def test_chances_of_a_router(monkeypatch):
    monkeypatch.setattr(flows, "activations", lambda network, inputs: [np.array([[0.0, log(3.0)]])])
    assert routed([], np.zeros((1, 1)), np.zeros((1, 1))).tolist() == [pytest.approx([0.25, 0.75])]


def test_rates_fall_to_nothing_over_a_run(monkeypatch):
    """Of four steps the rates are 1, 3/4, 1/2 and 1/4; the target's error counts twice over the points."""
    rates, slopes = [], []

    class Kept:
        learning_rate = 0.0

        def step(self, gradients):
            rates.append(self.learning_rate)

    monkeypatch.setattr(flows, "_adam", lambda network: Kept())
    monkeypatch.setattr(flows, "_network", lambda *_: [])
    monkeypatch.setattr(flows, "stream", lambda seed, name: Draws())
    monkeypatch.setattr(flows, "activations", lambda network, inputs: [np.full((2, 1), 5.0)])
    monkeypatch.setattr(flows, "backward", lambda network, saved, slope: slopes.append(slope.ravel().tolist()))
    flows.train_flow(PAIR, None, 3, 2, 4, 0)
    assert rates == pytest.approx([3e-3 * x for x in (1.0, 0.75, 0.5, 0.25)])
    assert slopes[0] == [2 * (5.0 + 0.5) / 2, 2 * (5.0 - 3.0) / 2]
    rates.clear()
    monkeypatch.setattr(flows, "cross_entropy", lambda scores, labels: (0.0, scores))
    flows.train_router(PAIR, 3, 2, 4, 0)
    assert rates == pytest.approx([3e-3 * x for x in (1.0, 0.75, 0.5, 0.25)])


# --- layer by layer


def test_groups_of_layers_in_turn(monkeypatch, drawn):
    """Six layers in three groups over seven steps: one group of two a step; the rate falls with each cycle."""
    told = []

    class Kept:
        def __init__(self, arrays, rate):
            self.count, self.learning_rate = len(arrays), rate

        def step(self, gradients):
            told.append((self.count, round(self.learning_rate / 5e-3, 6), gradients))

    monkeypatch.setattr(layerwise, "Adam", Kept)
    monkeypatch.setattr(layerwise, "gradients", lambda network, inputs, labels: (float(len(labels)), list(range(12))))
    losses = layerwise.layerwise_descent("bottom-up", 3, 7, 0)
    assert losses.tolist() == [64.0] * 7
    assert [t[2] for t in told[:4]] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [0, 1, 2, 3]]
    assert [t[1] for t in told] == pytest.approx([1.0] * 3 + [4 / 7] * 3 + [1 / 7], abs=1e-6)
    assert {t[0] for t in told} == {4}
    assert layerwise._turns("top-down", 3, 0).tolist() == [2, 1, 0]
    assert layerwise._turns("random", 3, 0).tolist() == [2, 1, 0]
    for order, groups, steps in (("up", 1, 1), ("random", 0, 1), ("random", 7, 1), ("random", 1, 0)):
        with pytest.raises(ScenarioError, match="layerwise"):
            layerwise.layerwise_descent(order, groups, steps, 0)
    assert layerwise.HIDDEN == (32,) * 5


# --- two forward passes


def test_goodness_against_a_threshold():
    """A layer of ones over a row of mean square one: of (1, 1) it makes 2 and 0 (a bias of -2 more): goodness 2, which
    is the threshold: log 2 for either label."""
    layer = Layer(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.0, -2.0]))
    one = np.array([[3.0, 3.0]])
    loss, found = forward_forward.gradients([layer], one, one)
    assert loss == pytest.approx(2 * log(2.0))
    weights, bias = found
    # slopes -1/2 and 1/2 of the mean square cancel where both rows are the same
    assert np.abs(weights).max() == pytest.approx(0.0)
    assert np.abs(bias).max() == pytest.approx(0.0)
    right, wrong = np.array([[3.0, 3.0]]), np.array([[3.0, -3.0]])
    loss, found = forward_forward.gradients([layer], right, wrong)
    assert loss == pytest.approx(log(2.0) + log(1 + exp(-2.0)))
    assert found[1].tolist() == pytest.approx([-0.5 * 2.0 / 2 * 2.0, 0.0])
    assert forward_forward._goodness([layer], one).tolist() == [2.0]
    assert forward_forward._unit(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]
    labelled = forward_forward.labelled(np.array([[7.0]]), np.array([1]), 2)
    assert labelled.tolist() == [[0.0, 3.0, 7.0]]


# --- work of a step


def sizes_of(ops):
    return [(op.m, op.n, op.k) if hasattr(op, "m") else round(op.tokens) for op in ops]


def test_kernels_of_a_step():
    """60 points, 20 inputs, 30 outputs; words of four bytes by an addition of six."""
    shape = (20, 30)
    assert sizes_of(forward(60, shape)) == sizes_of(readout(60, shape)) == [(60, 30, 20), 2 * 60 * 30 * 4 / 6]
    assert sizes_of([weight_gradient(60, shape)]) == [(20, 30, 60)]
    assert sizes_of(input_gradient(60, shape)) == [(60, 20, 30), 3 * 60 * 20 * 4 / 6]
    assert update([shape, shape]).tokens == 7 * 1200 * 4 / 6
    assert (moved(0.0).tokens, moved(1.5).width) == (1, 1)
    assert elements([shape, (2, 3)]) == 606
    assert state_bytes([shape, (2, 3)], [(2, 3)]) == 4 * (606 + 3 * 6)
    sizes = Sizes(inputs=5, hidden=(4, 3), num_classes=2, batch=1)
    assert sizes.hidden_layers == [(5, 4), (4, 3)]
    for bad in ({"inputs": 0}, {"hidden": ()}, {"hidden": (0,)}, {"batch": 0}, {"num_classes": 0}):
        with pytest.raises(ScenarioError, match="sizes"):
            Sizes(**({"inputs": 5, "hidden": (4,), "num_classes": 2, "batch": 1} | bad))


def test_a_price_where_nobody_says(monkeypatch):
    """Two kernels of 1 and 2 ms: three; 400 launches of 10 us take four. A host is waited for where it is said."""
    monkeypatch.setattr(pricing.kernels, "predict", lambda op, device: SimpleNamespace(time_s=op, flops=1.0, bytes=2.0))
    monkeypatch.setattr(pricing, "energy_j", lambda device, format, times, flops, moved: 100 * times)
    device = SimpleNamespace(idle_power_w=10.0)

    def work(launches):
        return SimpleNamespace(ops=(1e-3, 2e-3), num_launches=launches, activation_bytes=7.0, state_bytes=9.0)

    found = pricing.price(work(2), device)
    assert (found.time_s, found.device_s, found.energy_j) == (
        pytest.approx(3e-3),
        pytest.approx(3e-3),
        pytest.approx(0.3),
    )
    late = pricing.price(work(400), device)
    assert (late.time_s, late.energy_j) == (pytest.approx(4e-3), pytest.approx(0.3 + 10 * 1e-3))
    assert pricing.price(work(2), device, host_s=0.5).time_s == 0.5
    both = pricing.mean([found, late])
    assert (both.time_s, both.flops, both.bytes, both.state_bytes) == (pytest.approx(3.5e-3), 2.0, 4.0, 9.0)
    twice = found.times(2.0)
    assert (twice.time_s, twice.flops, twice.activation_bytes) == (pytest.approx(6e-3), 4.0, 7.0)


# --- stale updates


class Slope:
    """A loss of half the square: its gradient is the vector; two workers, the second of whom sees twice of it."""

    def __init__(self, *_):
        self.start, self.num_workers = np.array([8.0]), 2

    def gradient(self, vector, worker, step):
        return vector * (worker + 1)

    def loss(self, vector):
        return float(vector[0])


def test_synchronous_and_stale_rounds(monkeypatch):
    """A mean slope of 1.5 at a rate of 0.1: a step leaves 0.85. Alone, workers leave 0.81 and 0.64 of 8 after two
    steps: a mean delta of 2.2, which is used a round later, whole, where the model has not moved meanwhile."""
    monkeypatch.setattr(stale, "Workers", Slope)
    found = stale.stale_outer_descent(num_workers=2, local_steps=2, rounds=3)
    assert found.synchronous_losses_ratio.tolist() == pytest.approx([8 * 0.85 ** (2 * i) for i in range(4)])
    assert found.losses_ratio[:3].tolist() == pytest.approx([8.0, 8.0, 5.8])
    # the second delta began at 8 too; the model has moved by as much as it is long, and momentum adds half of the first
    assert found.losses_ratio[3] == pytest.approx(5.8 - min(0.5 * 2.2 + 2.2 / 2.0, 2.2))
    bare = stale.OuterKnobs(is_penalised=False, clip_ratio=float("inf"), step_ratio=0.5)
    other = stale.stale_outer_descent(num_workers=2, local_steps=2, rounds=3, knobs=bare)
    assert other.losses_ratio[1:].tolist() == pytest.approx([8.0, 6.9, 6.9 - 0.5 * (1.1 + 2.2)])
    usual = stale.stale_outer_descent()
    assert usual.losses_ratio.size == 41
    assert usual.synchronous_losses_ratio[1] == pytest.approx(8 * 0.85**4)
    with pytest.raises(ScenarioError, match="stale"):
        stale.stale_outer_descent(rounds=0)
    knobs = stale.OuterKnobs()
    assert (knobs.step_ratio, knobs.momentum_ratio, knobs.is_penalised, knobs.clip_ratio) == (1.0, 0.5, True, 1.0)
    for bad in ({"momentum_ratio": 1.0}, {"momentum_ratio": -0.1}, {"step_ratio": 0.0}, {"clip_ratio": 0.0}):
        with pytest.raises(ScenarioError, match="stale"):
            stale.OuterKnobs(**bad)


def test_backpropagation_keeps_every_layers_outputs():
    """4 bytes of 2 points' 6 inputs, 8 + 4 outputs of layers and 3 classes."""
    sizes = Sizes(inputs=6, hidden=(8, 4), num_classes=3, batch=2)
    assert backpropagation.rule(sizes, 0, NoKnobs()).activation_bytes == 4 * 2 * (6 + 12 + 3)

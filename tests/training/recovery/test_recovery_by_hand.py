"""A model of two stages worked out by hand, what replaces a lost stage, and three ways to go on."""

from math import exp, log, sqrt
from types import SimpleNamespace

import numpy as np
import played_stages
import pytest
from played_stages import play_steps

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.recovery import measured, network
from orrery.training.recovery.measured import replace_stage
from orrery.training.recovery.network import Model, Shape, Text, _rms, _rms_back
from orrery.training.recovery.strategies import (
    StageFaults,
    computed_twice,
    from_neighbours,
    rolled_back,
)

TINY = Shape(num_stages=2, blocks_per_stage=1, hidden_size=2, ffn_size=3, vocab_size=2, num_batch=4)


class Ones:
    """Every normal number is one."""

    def standard_normal(self, shape):
        return np.ones(shape)


def small(monkeypatch):
    """A model whose first weights are all one, before they are scaled."""
    monkeypatch.setattr(network, "stream", lambda seed, name: Ones())
    return Model(TINY, 0, learning_rate=0.5)


def test_spreads_of_the_first_weights(monkeypatch):
    """Variance 2 / hidden on the way up, 1 / (ffn x blocks) down, 1 / hidden at the head."""
    model = small(monkeypatch)
    spreads = {name: float(w.flat[0]) for name, w in model.weights.items()}
    assert spreads == pytest.approx({"embedding": 1.0, "up": 1.0, "down": 1 / sqrt(6), "head": 1 / sqrt(2)})
    shapes = {name: w.shape for name, w in model.weights.items()}
    assert shapes == {"embedding": (2, 2, 2), "up": (2, 1, 2, 3), "down": (2, 1, 3, 2), "head": (2, 2)}
    assert (model.steps, model.stage_steps.tolist(), model.stage_rate_ratio.tolist()) == (0, [0, 0], [1, 1])
    assert model.gradient_squares.tolist() == [1, 1]
    usual = Shape()
    assert (usual.num_stages, usual.blocks_per_stage, usual.hidden_size) == (6, 1, 16)
    assert (usual.ffn_size, usual.vocab_size, usual.num_batch) == (32, 16, 64)


def test_a_forward_pass_by_hand(monkeypatch):
    """The stream is (2, 2); normed (1, 1); up (2, 2, 2); down 6 / sqrt(6) more. Heads are alike: even odds."""
    model = small(monkeypatch)
    context = np.array([[0, 1]])
    log_odds, saved = model._forward(context, range(2))
    assert log_odds.tolist() == [pytest.approx([log(0.5)] * 2)]
    assert model.loss(context, np.array([1])) == pytest.approx(log(2))
    stages = [(s[0], s[1], s[2].tolist()) for s in saved]
    assert [s[:2] for s in stages] == [(0, 0), (1, 0), (-1, -1)]
    assert saved[0][3].item() == pytest.approx(2.0)
    assert saved[1][3].item() == pytest.approx(2.0 + sqrt(6))
    assert saved[2][3].item() == pytest.approx(2.0 + 2 * sqrt(6))
    assert saved[0][4].tolist() == [pytest.approx([2.0] * 3)]
    model.weights["up"][:] = -1.0
    assert model._forward(context, range(2))[1][2][3].item() == pytest.approx(2.0)  # nothing passes below zero
    model.weights["head"][:] = [[1.0, 0.0], [1.0, 0.0]]
    assert model.loss(context, np.array([0])) == pytest.approx(-log(exp(2) / (exp(2) + 1)))


def test_root_mean_squares():
    normed, scale = _rms(np.array([[3.0, 4.0]]))
    assert scale.item() == pytest.approx(sqrt(12.5))
    assert normed.tolist() == [pytest.approx([3 / sqrt(12.5), 4 / sqrt(12.5)])]
    back = _rms_back(normed, scale, np.array([[1.0, 0.0]]))
    # d (h1 / s) / dh = 1 / s - h1 h / (2 s^3)
    s = sqrt(12.5)
    assert back.tolist() == [pytest.approx([1 / s - 9 / (2 * s**3), -12 / (2 * s**3)])]
    assert _rms(np.zeros((1, 2)))[1].item() == pytest.approx(1e-4)


def test_steps_of_adam(monkeypatch):
    """The first step is the learning rate whatever the gradient; stages have rates and counts of their own."""
    model = small(monkeypatch)
    before = {name: w.copy() for name, w in model.weights.items()}
    gradients = {name: np.full_like(w, 3.0) for name, w in model.weights.items()}
    model.stage_rate_ratio[1] = 2.0
    model._adam(gradients)
    moved = {name: (before[name] - w) for name, w in model.weights.items()}
    assert moved["head"].ravel() == pytest.approx([0.5] * 4)
    assert moved["up"][0].ravel() == pytest.approx([0.5] * 6)
    assert moved["up"][1].ravel() == pytest.approx([1.0] * 6)
    assert (model.steps, model.stage_steps.tolist()) == (1, [1, 1])
    # the second gradient is 0: the mean is 0.9 x 0.3 over 1 - 0.81, the square 0.999 x 0.009 over 1 - 0.998001
    before = model.weights["head"].copy()
    model.stage_steps[0] = 4.0
    stage = model.weights["up"].copy()
    model._adam({name: np.zeros_like(w) for name, w in model.weights.items()})
    mean, square = 0.9 * 0.3, 0.999 * 0.009
    step = 0.5 * mean / (1 - 0.81) / sqrt(square / (1 - 0.999**2))
    assert (before - model.weights["head"]).ravel() == pytest.approx([step] * 4)
    own = 0.5 * mean / (1 - 0.9**5) / sqrt(square / (1 - 0.999**5))
    assert (stage - model.weights["up"])[0].ravel() == pytest.approx([own] * 6)


def test_a_twin_goes_on_alone(monkeypatch):
    model = small(monkeypatch)
    model.steps, model.stage_steps[0], model.stage_rate_ratio[1] = 7, 5.0, 1.5
    twin = model.copy()
    twin.weights["up"][:] = 9.0
    twin.means["head"][:] = twin.stage_steps[:] = twin.gradient_squares[:] = twin.stage_rate_ratio[:] = 9.0
    assert (twin.steps, model.steps, model.stage_steps[0], model.stage_rate_ratio[1]) == (7, 7, 5.0, 1.5)
    assert (model.weights["up"] == 1.0).all()
    assert not model.means["head"].any()


def test_squared_gradients_of_stages(monkeypatch):
    """Up and down of each stage together, each over all of its entries."""
    model = small(monkeypatch)
    model._adam = lambda gradients: None

    def backward(context, target, order, count, into):
        into["up"][0], into["up"][1], into["down"][1] = 2.0, 1.0, 3.0

    model._backward = backward
    model.step(np.zeros((4, 2), np.int64), np.zeros(4, np.int64))
    assert model.gradient_squares.tolist() == [6 * 4.0, 6 * 1.0 + 6 * 9.0]


def test_stages_that_change_places(monkeypatch):
    monkeypatch.setattr(network, "stream", lambda seed, name: Ones())
    model = Model(Shape(num_stages=6, hidden_size=2, ffn_size=3, vocab_size=2), 0)
    told = []
    model._adam = lambda gradients: None
    model._backward = lambda context, target, order, count, into: told.append((len(target), order, count))
    context = np.zeros((5, 2), np.int64)
    model.step(context, np.zeros(5, np.int64), swaps_ends=True)
    assert told == [(2, [0, 1, 2, 3, 4, 5], 5), (3, [1, 0, 2, 3, 5, 4], 5)]


def test_a_text_from_known_numbers(monkeypatch):
    """Logits 0 and 2 log 3: the second token comes nine times as often as the first."""

    class Draws:
        def standard_normal(self, shape):
            return np.broadcast_to(np.array([0.0, log(3.0)]), shape)

        def integers(self, low, high, shape):
            assert (low, high) == (0, 2)
            return np.zeros(shape, np.int64)

        def random(self, shape):
            return np.array([[0.05], [0.5], [1.0 - 1e-17]])

    monkeypatch.setattr(network, "stream", lambda seed, name: Draws())
    text = Text(TINY, 0)
    assert text.bounds[0, 0].tolist() == pytest.approx([0.1, 1.0])
    assert text.batch(3)[1].tolist() == [0, 1, 1]


# --- lost stages


def four(monkeypatch):
    monkeypatch.setattr(network, "stream", lambda seed, name: Ones())
    model = Model(Shape(num_stages=4, hidden_size=2, ffn_size=3, vocab_size=2), 0)
    for name in ("up", "down"):
        model.weights[name][:] = np.arange(1.0, 5.0)[:, None, None, None]
        model.means[name][:] = model.squares[name][:] = 7.0
    model.stage_steps[:] = 9.0
    model.gradient_squares = np.array([1.0, 2.0, 3.0, 4.0])
    return model


@pytest.mark.parametrize(
    ("stage", "way", "value"),
    [
        (1, "weighted", 1 * 0.25 + 3 * 0.75),
        (1, "mean", 2.0),
        (2, "copy", 2.0),
        (0, "weighted", 2.0),
        (0, "mean", 2.0),
        (3, "mean", 3.0),
        (3, "copy", 3.0),
    ],
)
def test_a_stage_from_its_neighbours(monkeypatch, stage, way, value):
    """Stages hold 1, 2, 3 and 4; squared gradients 1, 2, 3 and 4 weigh them; the ends copy their one neighbour."""
    model = four(monkeypatch)
    replace_stage(model, stage, way)
    for name in ("up", "down"):
        assert model.weights[name][stage].ravel().tolist() == pytest.approx([value] * 6)
        assert not model.means[name][stage].any()
        assert not model.squares[name][stage].any()
        assert model.means[name].sum() == 7.0 * 18
    assert model.stage_steps.tolist() == [0.0 if i == stage else 9.0 for i in range(4)]
    assert model.stage_rate_ratio.tolist() == [1.1 if i == stage else 1.0 for i in range(4)]


def test_without_gradients_neighbours_weigh_alike(monkeypatch):
    model = four(monkeypatch)
    model.gradient_squares[:] = 0.0
    replace_stage(model, 1, "weighted")
    assert model.weights["up"][1].flat[0] == 2.0


def test_random_weights_of_the_same_spread(monkeypatch):
    model = four(monkeypatch)
    monkeypatch.setattr(measured, "stream", lambda seed, name: Ones())
    model.weights["up"][0] = np.array([-2.0, 2.0, -2.0])
    replace_stage(model, 1, "random")
    assert model.weights["up"][1].ravel().tolist() == pytest.approx([model.weights["up"][0].std()] * 6)
    for stage in (-1, 4):
        with pytest.raises(ScenarioError, match="stage"):
            replace_stage(model, stage, "mean")


class Falling:
    """A model whose loss is so many below ten as it has made steps, and four more after it lost a stage."""

    def __init__(self, *_):
        self.steps, self.lost, self.trained = 0, 0.0, []
        self.shape = SimpleNamespace(num_stages=3)

    def loss(self, *_):
        return 10.0 - self.steps + self.lost

    def step(self, *batch, swaps_ends=False):
        self.steps += 1
        self.trained.append(batch[0])

    def copy(self):
        twin = Falling()
        twin.steps, twin.lost = self.steps, self.lost
        twin.trained = self.trained
        return twin


@pytest.fixture
def falling(monkeypatch):
    def lose(model, stage, way, **_):
        model.lost += 4.0

    numbers = SimpleNamespace(batch=lambda count: (count, count))
    monkeypatch.setattr(measured, "replace_stage", lose)
    monkeypatch.setattr(measured, "Model", Falling)
    monkeypatch.setattr(measured, "Text", lambda shape, seed: numbers)
    measured.reached_loss.cache_clear()
    yield
    measured.reached_loss.cache_clear()


def test_setbacks_are_counted_in_twos(falling):
    """Four steps back to the loss of 7; the batches that come next are the fourth and then the first again."""
    whole = Falling()
    whole.steps = 3
    training = measured.Training(
        models=(whole,), batches=tuple((i, i) for i in range(5)), validation=(0, 0), losses=(), every=1
    )
    found = measured.setbacks(training, [0, 1])
    assert [(s.stage, s.after_steps, s.num_steps) for s in found] == [(0, 3, 4), (1, 3, 4)]
    assert found[0].loss_jump_ratio == pytest.approx(11 / 7)
    assert whole.trained[:4] == [3, 4, 0, 1]
    assert measured.setbacks(training, [0], most_steps=2)[0].num_steps == 2
    assert measured.setbacks(training, [0], every=3)[0].num_steps == 6


def test_a_run_and_its_losses(falling):
    found = measured.train(TINY, 30, [10, 20])
    assert [m.steps for m in found.models] == [10, 20]
    assert found.losses == (0.0, -10.0, -20.0)
    assert (len(found.batches), found.batches[0], found.validation) == (30, (4, 4), (512, 512))


def test_steps_with_losses_until_two_in_a_row_are_there(falling, monkeypatch):
    """A loss of -10 after 20 steps. A stage lost at the first of them sets back by four: at 30 and 40 steps the run is
    there."""
    draws = SimpleNamespace(random=iter([0.05] + [0.9] * 99).__next__, integers=lambda high: 0)
    monkeypatch.setattr(measured, "stream", lambda seed, name: draws)
    assert measured.steps_with_losses(TINY, 20, 0.1) == 40.0
    draws.random = lambda: 0.9
    assert measured.steps_with_losses(TINY, 20, 0.1) == 30.0
    draws.random = lambda: 0.0
    assert measured.steps_with_losses(TINY, 20, 0.1) == 80.0
    assert measured.steps_with_losses(TINY, 20, 0.1, most_ratio=2.5) == 50.0


# --- ways to go on


FAULTS = StageFaults(num_stages=6, hourly_failure_frac=0.5, replace_s=30.0)


def test_stages_lost_in_a_step():
    """Half are lost an hour: six stages and 600 s are one stage's hour."""
    assert FAULTS.step_failure_frac(600.0) == pytest.approx(0.5)
    assert FAULTS.step_failure_frac(300.0) == pytest.approx(1 - sqrt(0.5))
    assert StageFaults(num_stages=1, hourly_failure_frac=0.5).replace_s == 0.0


def test_rolling_back_by_hand():
    """q = 1/2: a row of two good steps takes (4 - 1) / 0.5 = 6 steps and 3 losses; of five steps two rows and one,
    which takes 2 and 1."""
    found = rolled_back(FAULTS, 5, 600.0, 2, save_s=7.0)
    assert found.steps == pytest.approx(2 * 6 + 2)
    assert found.num_failures == pytest.approx(2 * 3 + 1)
    assert found.time_s == pytest.approx(14 * 600 + 7 * 30 + 2 * 7)
    even = rolled_back(FAULTS, 4, 600.0, 2)
    assert (even.steps, even.num_failures) == (pytest.approx(12), pytest.approx(6))
    never = rolled_back(StageFaults(num_stages=6, hourly_failure_frac=0.0), 5, 600.0, 2, save_s=7.0)
    assert (never.steps, never.time_s, never.num_failures) == (5.0, 3014.0, 0.0)
    rolled_back(FAULTS, 500, 600.0, 432)
    with pytest.raises(OutOfRange, match="save more often"):
        rolled_back(FAULTS, 500, 600.0, 433)
    with pytest.raises(OutOfRange, match="save more often"):
        rolled_back(StageFaults(num_stages=6, hourly_failure_frac=1.0), 5, 600.0, 2)


def test_computing_twice_by_hand():
    """A third longer: 600 s for 450; half of the steps lose a stage, none is done again."""
    found = computed_twice(FAULTS, 10, 450.0)
    assert (found.step_s, found.steps) == (pytest.approx(600.0), 10.0)
    assert found.num_failures == pytest.approx(5.0)
    assert found.time_s == pytest.approx(6000 + 150)
    assert computed_twice(FAULTS, 10, 400.0, step_ratio=1.5).step_s == pytest.approx(600.0)


def test_stages_from_neighbours_by_hand():
    """Half of the steps set back by one: twice the steps, 5 % more of them for the way itself."""
    found = from_neighbours(FAULTS, 10, 600.0, 1.0, steps_ratio=1.05)
    assert (found.steps, found.num_failures) == (pytest.approx(21.0), pytest.approx(10.5))
    assert found.time_s == pytest.approx(21 * 600 + 10.5 * 30)
    assert from_neighbours(FAULTS, 10, 600.0, 0.0).steps == 10.0
    with pytest.raises(OutOfRange, match="stands still"):
        from_neighbours(FAULTS, 10, 600.0, 2.0)


def test_losses_drawn_one_by_one(monkeypatch):
    """Ten steps with saves every 4. The first run loses at its 7th step (6 are good, back to 4) and then none; the
    second at its 5th and then at its 3rd after the save at 4."""

    draws = [[7, 5], [99, 3], [99]]

    def geometric(q, count):
        assert q == pytest.approx(0.5)
        return np.array(draws.pop(0), float)

    monkeypatch.setattr(played_stages, "stream", lambda seed, name: SimpleNamespace(geometric=geometric))
    assert play_steps(FAULTS, 10, 600.0, interval_steps=4, num_runs=2).tolist() == [7 + 6, 5 + 3 + 6]
    draws += [[7, 11], [99]]
    # a setback of 3: 6 good ones and the lost one, less 3, leave 6 to go; 10 good ones are enough
    assert play_steps(FAULTS, 10, 600.0, setback_steps=3.0, num_runs=2).tolist() == [7 + 6, 10]

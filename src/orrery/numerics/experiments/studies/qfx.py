"""Binary points learned with the weights, against points that are set after training, at equal word widths.

A perceptron is trained exactly; then every tensor gets a binary point: where nothing overflows, or with the least
squared error on activations of the training distribution. From the first of these training goes on through the casts:
of the weights alone, or of weights and points, which stay where they are in the second half; at last with weights of
two signed powers of two. [dai-2024-qfx]
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.experiment import Experiment, Row, Run, counter, numbers
from orrery.numerics.experiments.fitting import Fit, Plan, all_alike, answers, fit
from orrery.numerics.experiments.fixed_perceptron import POINTS, FixedPerceptron, with_points
from orrery.numerics.experiments.losses import squared_error
from orrery.numerics.experiments.tasks import Batch, Lessons, Task, own_points
from orrery.numerics.fixed_point.cast import least_error_point, range_point
from orrery.numerics.learning import linear
from orrery.numerics.learning.linear import Array

WIDTHS = (16, 64, 8)
TEACHER_WIDTH = 32
WIDTHS_BITS = (4, 5, 6, 8)
NUM_POWERS = 2
SPREAD = 1.0
"""Standard deviation of the logarithm of an input feature's size: some are far larger than the rest."""

LONGER = 5
"""The exact network trains so many times as long: when it is rounded there is little left to learn but the rounding."""

SAMPLE = 512
"""Points whose activations the places after training are chosen by."""

RULE_OF = all_alike(linear("exact-linear"))
CHOICES = {"no overflow": range_point, "least error": least_error_point}
"""Ways of setting a point after training."""

Weights = Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated widths of codes."""

    bits: str = ",".join(map(str, WIDTHS_BITS))


def run(request: Run) -> tuple[Row, ...]:
    """A row for every width and way to set the points."""
    seed, steps = request.seed, request.steps
    widths = [int(n) for n in numbers("bits", request.sizes.bits, least=2, most=16)]
    lessons = own_points(request.data, seed) if request.data else drawn(seed)
    layers = lessons.num_inputs, WIDTHS[1], lessons.num_outputs
    tick = counter(request.progress, (LONGER + 3 * len(widths)) * steps)
    plan = Plan(steps=LONGER * steps, points=64, learning_rate=1e-2, seed=seed)
    exact = fit(FixedPerceptron(widths=layers), lessons.learned, RULE_OF, plan, on_step=tick)

    def row(bits: int, points: str, weights: Weights, network: FixedPerceptron) -> Row:
        return _row(bits, points, _loss(network, weights, lessons.judged, seed))

    rows: list[Row] = [row(0, "none", exact.weights, FixedPerceptron(widths=layers))]
    for bits in widths:
        fixed = {choice: after_training(exact, lessons.learned, bits, choice, seed) for choice in CHOICES}
        rounded = FixedPerceptron(widths=layers, width_bits=bits)
        rows += [row(bits, choice, weights, rounded) for choice, weights in fixed.items()]
        for name, network in trainable(layers, bits).items():
            found = trained_on(network, fixed["no overflow"], lessons.learned, steps, seed, tick)
            rows.append(row(bits, name, found.weights, replace(network, learns_points=False)))
    return tuple(rows)


def drawn(seed: int) -> Lessons:
    """The teacher's answers, drawn anew for every batch and for the judge."""
    task = teacher(seed)
    return Lessons(learned=task, judged=task, num_inputs=WIDTHS[0], num_outputs=WIDTHS[-1])


def teacher(seed: int) -> Task:
    """Answers of a random perceptron with ReLU to inputs whose features differ widely in size."""
    rng = np.random.default_rng([seed, 10])
    sizes = np.exp(SPREAD * rng.standard_normal(WIDTHS[0]))
    sizes /= np.sqrt(np.mean(sizes**2))
    first = rng.standard_normal((TEACHER_WIDTH, WIDTHS[0])) / np.sqrt(WIDTHS[0])
    second = rng.standard_normal((WIDTHS[-1], TEACHER_WIDTH)) / np.sqrt(TEACHER_WIDTH / 2)

    def draw(points: int, rng: np.random.Generator) -> Batch:
        x = rng.standard_normal((points, WIDTHS[0])) * sizes
        return x.astype(np.float32), (np.maximum(x @ first.T, 0.0) @ second.T).astype(np.float32)

    return Task(draw=draw, loss=squared_error, least_loss=0.0)


def trainable(layers: tuple[int, ...], bits: int) -> dict[str, FixedPerceptron]:
    """The networks that go on training, by how their points are set."""
    fixed = FixedPerceptron(widths=layers, width_bits=bits, learns_points=False)
    learned = FixedPerceptron(widths=layers, width_bits=bits)
    return {
        "no overflow, weights trained on": fixed,
        "learned": learned,
        "learned, two powers of two": replace(learned, num_powers=NUM_POWERS),
    }


def trained_on(
    network: FixedPerceptron, begin: Weights, lessons: Task, steps: int, seed: int, on_step: Callable[[], None]
) -> Fit:
    """Half of the steps with points that move, where they do, and half with points that stay."""
    moving = Plan(steps=steps // 2, points=64, learning_rate=1e-3, seed=seed + 1)
    resting = replace(moving, steps=steps - steps // 2, seed=seed + 2)
    moved = fit(network, lessons, RULE_OF, moving, begin=begin, on_step=on_step)
    return fit(replace(network, learns_points=False), lessons, RULE_OF, resting, begin=moved.weights, on_step=on_step)


def after_training(exact: Fit, lessons: Task, bits: int, choice: str, seed: int) -> Weights:
    """The exact weights with points chosen for them and for the activations that they make."""
    point_of, x = CHOICES[choice], lessons.draw(SAMPLE, np.random.default_rng([seed, 11]))[0]
    points = [point_of(x, bits)]
    for name in (name for name in exact.weights if name != POINTS):
        y = x @ exact.weights[name].T
        points += [point_of(exact.weights[name], bits), point_of(y, bits)]
        x = np.maximum(y, 0.0)
    return with_points(exact.weights, points)


def _loss(network: FixedPerceptron, weights: Weights, judged: Task, seed: int) -> float:
    """Held-out loss without further training."""
    return judged.loss(*answers(network, weights, judged, RULE_OF, seed))[0]


def _row(bits: int, points: str, loss: float) -> Row:
    return {"width_bits": bits, "points": points, "loss": loss}


EXPERIMENT = Experiment(
    name="qfx",
    question="Do binary points that are learned lose less than points set after training?",
    run=run,
    num_steps=400,
    claims=("dai-2024-qfx",),
    sizes=Sizes,
    reads=("data",),
    keys=("width_bits", "points"),
)

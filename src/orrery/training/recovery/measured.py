"""Measured setback by a lost stage: the steps until the loss is again what it was.

The stage is made anew from its neighbours' weights, in proportion to the squared norms of their last gradients (more of
the one that has farther to go), its optimizer starts afresh, and its learning rate is scaled up a little
[checkfree-2025]. Other ways are there to compare with: the plain mean, a copy of one neighbour, random weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.training.recovery.network import STAGED, Floats, Ints, Model, Shape, Text

Way = Literal["weighted", "mean", "copy", "random"]
VALIDATION = 512
"""Tokens that the loss is told on."""


def replace_stage(model: Model, stage: int, way: Way, *, rate_ratio: float = 1.1, seed: int = 0) -> None:
    """A new ``stage``; the first and the last copy their one neighbour."""
    last = model.shape.num_stages - 1
    if last < 1 or not 0 <= stage <= last:
        raise ScenarioError(f"stage: got {stage} of {last + 1}; write a stage from 0, of a model with at least two.")
    before, after = max(stage - 1, 0) if stage else 1, min(stage + 1, last) if stage < last else last - 1
    share = 0.5
    if way == "weighted" and (both := model.gradient_squares[before] + model.gradient_squares[after]) > 0.0:
        share = float(model.gradient_squares[before] / both)
    elif way == "copy":
        share = 1.0
    for name in STAGED:
        weights = model.weights[name]
        if way == "random":
            weights[stage] = _like(weights[before], stream(seed, f"recovery/{name}/{stage}"))
        else:
            weights[stage] = share * weights[before] + (1.0 - share) * weights[after]
        model.means[name][stage] = model.squares[name][stage] = 0.0
    model.stage_steps[stage] = 0.0
    model.stage_rate_ratio[stage] = rate_ratio


def _like(weights: Floats, draws: np.random.Generator) -> Floats:
    """Random weights of the same spread."""
    return weights.std() * draws.standard_normal(weights.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoss:
    """Effect of losing one stage at one moment of a run."""

    stage: int
    after_steps: int
    num_steps: int  # until the loss is again what it was
    loss_jump_ratio: float  # right after, over before


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A run without failures: the model at some moments, its batches, and its losses on the way."""

    models: tuple[Model, ...]
    batches: tuple[tuple[Ints, Ints], ...]
    validation: tuple[Ints, Ints]
    losses: tuple[float, ...]  # after every ``every`` steps
    every: int


def train(
    shape: Shape,
    num_steps: int,
    moments: Sequence[int],
    *,
    swaps_ends: bool = False,
    every: int = 10,
    seed: int = 0,
    learning_rate: float = 3e-3,
) -> Training:
    """Trains, and keeps the model after each of the ``moments``, in steps."""
    text, model = Text(shape, seed), Model(shape, seed, learning_rate)
    validation = text.batch(VALIDATION)
    batches = tuple(text.batch(shape.num_batch) for _ in range(num_steps))
    models, losses = list[Model](), list[float]()
    for done, batch in enumerate(batches, start=1):
        model.step(*batch, swaps_ends=swaps_ends)
        if done in moments:
            models.append(model.copy())
        if done % every == 0:
            losses.append(model.loss(*validation))
    return Training(models=tuple(models), batches=batches, validation=validation, losses=tuple(losses), every=every)


def setbacks(
    training: Training,
    stages: Sequence[int],
    way: Way = "weighted",
    *,
    swaps_ends: bool = False,
    most_steps: int = 400,
    every: int = 2,
) -> list[StageLoss]:
    """Loses each stage at each moment of the run, and trains on with the batches that come next.

    A run that is not back within ``most_steps`` counts with so many: a lower bound.
    """
    found = list[StageLoss]()
    for whole in training.models:
        before = whole.loss(*training.validation)
        for stage in stages:
            model = whole.copy()
            replace_stage(model, stage, way)
            jump = model.loss(*training.validation) / before
            steps = 0
            while steps < most_steps and model.loss(*training.validation) > before:
                for _ in range(every):
                    at = (whole.steps + steps) % len(training.batches)
                    model.step(*training.batches[at], swaps_ends=swaps_ends)
                    steps += 1
            found.append(StageLoss(stage=stage, after_steps=whole.steps, num_steps=steps, loss_jump_ratio=jump))
    return found


def steps_with_losses(
    shape: Shape,
    num_steps: int,
    step_failure_frac: float,
    *,
    way: Way = "weighted",
    swaps_ends: bool = False,
    most_ratio: float = 4.0,
    every: int = 10,
    seed: int = 0,
    learning_rate: float = 3e-3,
) -> float:
    """Steps that a run needs that loses stages, for the loss of a run of ``num_steps`` that loses none.

    A step loses a stage, any of them, in ``step_failure_frac`` of the cases.
    Stages that are lost again and again stay more alike than those of a run left alone, so this is less than single
    setbacks add up to. At most ``most_ratio`` times as many are tried. The loss is told every so many steps, and the
    run is there when it and the one before it are.
    """
    text, model, draws = Text(shape, seed), Model(shape, seed, learning_rate), stream(seed, "recovery/losses")
    validation, target = text.batch(VALIDATION), reached_loss(shape, num_steps, seed, learning_rate)
    steps, below, most = 0, 0, int(most_ratio * num_steps)
    while steps < most:
        model.step(*text.batch(shape.num_batch), swaps_ends=swaps_ends)
        steps += 1
        if draws.random() < step_failure_frac:
            replace_stage(model, int(draws.integers(shape.num_stages)), way)
        if steps % every == 0:
            below = below + 1 if model.loss(*validation) <= target else 0
            if below == 2:
                return float(steps)
    return float(most)


@cache
def reached_loss(shape: Shape, num_steps: int, seed: int, learning_rate: float) -> float:
    """After so many steps without a failure."""
    text, model = Text(shape, seed), Model(shape, seed, learning_rate)
    validation = text.batch(VALIDATION)
    for _ in range(num_steps):
        model.step(*text.batch(shape.num_batch))
    return model.loss(*validation)

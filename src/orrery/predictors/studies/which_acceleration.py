"""Which acceleration to switch on: a selector that learned from simulated runs, against chance and one for all.

A history is simulated, then cut: tasks that were not learned from, and devices that were not. Regret is how much longer
a choice takes than the best one. Rows called "without" shuffle what the selector is told of one feature: what that
costs is what it looks at. The question is that of [du-2025-metainf].
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run
from orrery.engine.streams import stream
from orrery.execution.memory import Infeasible
from orrery.predictors.acceleration.choice import which_acceleration
from orrery.predictors.acceleration.features import FEATURES, Floats
from orrery.predictors.acceleration.history import History, drawn_tasks, simulated
from orrery.predictors.acceleration.methods import METHODS
from orrery.predictors.acceleration.selector import Choices, best_for_all, regret, rows_of, trained
from orrery.predictors.acceleration.task import Task

NUM_FOLDS = 5
FEWEST_TASKS = 2 * NUM_FOLDS
"""With fewer there is nothing to learn from."""

PERCENTILES = (50, 90, 99)
SAME_FRAC = 1e-9


NEEDED = ("model", "device", "input_tokens", "output_tokens", "rate")
"""Settings of a deployment that a task cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Predictability of answers: the chance that one more draft token is accepted."""

    guessable_frac: float = 0.3


def run(request: Run) -> tuple[Row, ...]:
    """Rows of choosers on unseen tasks and devices, and what the selector looks at; or of the user's own deployment."""
    if request.deployment:
        return own_deployment(request)
    seed = request.seed
    history = simulated(drawn_tasks(max(request.steps, FEWEST_TASKS), seed), seed, request.progress)
    return (*choosers(history, seed), *looked_at(history, seed))


def own_deployment(request: Run) -> tuple[Row, ...]:
    """A row for every acceleration, the chosen one first: what trees expect of it, and what simulating it says."""
    found = which_acceleration(task_of(request.deployment, request.sizes), verify=True, seed=request.seed)
    if isinstance(found, Infeasible):
        raise ScenarioError(f"deployment: {found}")
    best = found.simulated_best
    best_s = min(_number(option.simulated_s) for option in found.options)
    return tuple(
        {
            "acceleration": option.method,
            "is_chosen": option.method == found.chosen,
            "is_best": option.method == best,
            "expected_ratio": option.expected_ratio,
            "simulated_ratio": _number(option.simulated_ratio),
            "simulated_s": _number(option.simulated_s),
            "regret_frac": _number(option.simulated_s) / best_s - 1.0,
        }
        for option in found.options
    )


def task_of(settings: Mapping[str, Any], sizes: Sizes) -> Task:
    """The task of a deployment; ScenarioError where its settings leave out what a task needs."""
    if missing := [name for name in NEEDED if settings.get(name) is None]:
        raise ScenarioError(f"deployment: {', '.join(missing)}: missing; a task has {', '.join(NEEDED)}.")
    shared = int(settings.get("prefix_tokens", 0))
    if shared >= settings["input_tokens"]:
        raise ScenarioError(f"deployment: prefix_tokens: got {shared}; write fewer than input_tokens.")
    return Task(
        model=settings["model"],
        device=settings["device"],
        input_tokens=settings["input_tokens"] - shared,
        output_tokens=settings["output_tokens"],
        request_rate_per_s=float(settings["rate"]),
        shared_tokens=shared,
        num_prefixes=int(settings.get("prefix_groups", 1)),
        guessable_frac=sizes.guessable_frac,
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def choosers(history: History, seed: int = 0) -> Iterator[Row]:
    """The selector, the best acceleration for all, and chance; on tasks and on devices that nobody learned from."""
    x = rows_of(history.tasks)
    devices = np.unique([task.device for task in history.tasks], return_inverse=True)[1]
    for unseen, groups in (("tasks", _folds(history)), ("devices", devices)):
        (chosen,) = _chosen(history, x, groups, seed, [x])
        yield from _rivals(unseen, history, chosen, groups)


def looked_at(history: History, seed: int = 0) -> list[Row]:
    """The selector with one feature shuffled, what costs most first."""
    x = rows_of(history.tasks)
    description = [_shuffled(x, column, seed) for column in range(len(FEATURES))]
    blind = _chosen(history, x, _folds(history), seed, description)
    rows = [_row("tasks", f"without {name}", history, [c]) for name, c in zip(FEATURES, blind, strict=True)]
    return sorted(rows, key=lambda row: -float(row["regret_mean_frac"]))


def _folds(history: History) -> NDArray[np.intp]:
    return np.arange(len(history.tasks)) % NUM_FOLDS


def _rivals(unseen: str, history: History, chosen: Choices, groups: NDArray[np.intp]) -> Iterator[Row]:
    """Choices beside the best one for all and chance; each group is chosen for by those who never saw it."""
    one = np.zeros(len(history.tasks), dtype=np.intp)
    for group in np.unique(groups):
        one[groups == group] = best_for_all(history.rows(np.flatnonzero(groups != group)))
    each: list[Choices] = [np.full(one.size, i, dtype=np.intp) for i in range(len(METHODS))]
    yield _row(unseen, "selector", history, [chosen])
    yield _row(unseen, "one for all", history, [one])
    yield _row(unseen, "chance", history, each)


def _chosen(
    history: History, x: Floats, groups: NDArray[np.intp], seed: int, description: Sequence[Floats]
) -> tuple[Choices, ...]:
    """For each of ``told``: what selectors that learned from the other groups choose, being told that."""
    chosen = tuple(np.zeros(len(history.tasks), dtype=np.intp) for _ in description)
    for group in np.unique(groups):
        others, mine = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
        selector = trained(history.rows(others), x[others], seed)
        for out, features in zip(chosen, description, strict=True):
            out[mine] = selector.choose(features[mine])
    return chosen


def _shuffled(x: Floats, column: int, seed: int) -> Floats:
    """The features with one of them dealt out anew among the tasks."""
    mixed = x.copy()
    mixed[:, column] = stream(seed, FEATURES[column]).permutation(x[:, column])
    return mixed


def _row(unseen: str, chooser: str, history: History, each: Sequence[Choices]) -> Row:
    """Regrets of one way to choose, or of several that are taken equally often."""
    found = np.concatenate([regret(history, chosen) for chosen in each])
    places = np.arange(len(history.tasks))
    taken = np.concatenate([history.latency_s[places, chosen] / history.plain_s for chosen in each])
    return {
        "unseen": unseen,
        "chooser": chooser,
        "regret_mean_frac": float(found.mean()),
        **{f"regret_p{percent}_frac": float(np.quantile(found, percent / 100)) for percent in PERCENTILES},
        "is_best_frac": float((found <= SAME_FRAC).mean()),
        "latency_ratio": float(np.exp(np.log(taken).mean())),
    }


EXPERIMENT = Experiment(
    name="which-acceleration",
    question="Does a selector that learned from simulated runs choose better accelerations than chance or one for all?",
    run=run,
    num_steps=300,
    claims=("du-2025-metainf",),
    sizes=Sizes,
    reads=("deployment",),
)

"""Which acceleration for one task on one device: what the trees expect, how sure they are, and the truth if asked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.predictors.acceleration.features import FEATURES, Floats
from orrery.predictors.acceleration.history import latency_s
from orrery.predictors.acceleration.methods import METHODS, PLAIN, service
from orrery.predictors.acceleration.selector import Selector, rows_of, trained
from orrery.predictors.acceleration.stored import stored_history
from orrery.predictors.acceleration.task import Task
from orrery.serving.simulation.assemble import memories_of

LOW_FRAC, HIGH_FRAC = 0.1, 0.9
"""Quantiles of the trees' opinions that are told: 80 % lie between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One acceleration: mean latency over that of the plain server as the trees expect it, and as simulated."""

    method: str
    expected_ratio: float
    low_ratio: float
    high_ratio: float
    favoured_frac: float  # of the trees
    simulated_ratio: float | None = None
    simulated_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The answer for one task: what to switch on, the gain to expect, the doubt, and every option, best first."""

    task: Task
    chosen: str
    gain_frac: float  # of the plain server's latency that is expected to go
    doubt_frac: float  # of the trees that would choose another one
    options: tuple[Option, ...]  # as expected; those that were not simulated have no simulated figures
    simulated_best: str = ""
    regret_frac: float | None = None  # how much longer than under the best one, when simulated
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def which_acceleration(task: Task, *, verify: bool = False, seed: int = 0) -> Choice | Infeasible:
    """Which acceleration suits ``task`` best, learned from the shipped history; with ``verify`` all are simulated too.

    Accelerations under which the model does not fit are left out; Infeasible where it fits under none.
    """
    fits = {method: memories_of(service(task, method)) for method in METHODS}
    possible: list[str] = [method for method, found in fits.items() if not isinstance(found, Infeasible)]
    if not possible:
        return next(found for found in fits.values() if isinstance(found, Infeasible))
    selector, known = _shipped()
    x = rows_of([task])
    places = [list(METHODS).index(method) for method in possible]
    opinions = selector.opinions(x)[:, 0, places]
    favoured = np.bincount(opinions.argmin(axis=1), minlength=len(possible)) / len(opinions)
    expected, low, high = (
        2.0**found for found in (opinions.mean(axis=0), *np.quantile(opinions, (LOW_FRAC, HIGH_FRAC), axis=0))
    )
    options = tuple(
        Option(
            method=possible[i],
            expected_ratio=float(expected[i]),
            low_ratio=float(low[i]),
            high_ratio=float(high[i]),
            favoured_frac=float(favoured[i]),
        )
        for i in map(int, np.argsort(expected, kind="stable").tolist())
    )
    choice = Choice(
        task=task,
        chosen=options[0].method,
        gain_frac=1.0 - options[0].expected_ratio,
        doubt_frac=1.0 - options[0].favoured_frac,
        options=options,
        notes=_notes(x[0], known, fits),
    )
    return _verified(choice, seed) if verify else choice


@cache
def _shipped() -> tuple[Selector, Floats]:
    """Trees that know the shipped history, and its features."""
    history = stored_history()
    x = rows_of(history.tasks)
    return trained(history, x), x


def _notes(x: Floats, known: Floats, fits: Mapping[str, object]) -> tuple[str, ...]:
    """Notes on tasks outside the history, and on techniques that do not fit."""
    refused: dict[str, list[str]] = {}
    for method, found in fits.items():
        if isinstance(found, Infeasible):
            refused.setdefault(str(found), []).append(method)
    notes = [f"Left out: {', '.join(methods)}. {reason}" for reason, methods in refused.items()]
    for name, value, low, high in zip(FEATURES, x, known.min(axis=0), known.max(axis=0), strict=True):
        if not low <= value <= high:
            notes.append(f"{name} = {value:.3g} lies outside the history, {low:.3g} to {high:.3g}.")
    return tuple(notes)


def _verified(choice: Choice, seed: int) -> Choice:
    """The same with every option simulated."""
    plain_s = latency_s(choice.task, PLAIN, seed)
    found = {o.method: latency_s(choice.task, o.method, seed) for o in choice.options}
    best = min(found, key=lambda method: found[method])
    is_plain_possible = bool(np.isfinite(plain_s))
    return replace(
        choice,
        simulated_best=best,
        regret_frac=found[choice.chosen] / found[best] - 1.0,
        options=tuple(
            replace(
                o,
                simulated_s=found[o.method],
                simulated_ratio=found[o.method] / plain_s if is_plain_possible else None,
            )
            for o in choice.options
        ),
    )

"""The most probable constants of some runs, what the runs leave open, and the same with each run left out.

Errors are log(predicted / measured), unknowns logarithms of constants, the prior the shipped constants with their
stiffness; ``base.posterior`` settles them. Predictions may be simulations, so slopes are finite differences, taken at
both ends of a descent, and each step goes to where the linear problem that they make settles. Where the runs scatter
more than their noise was taken to be, all noises grow by the same factor, so that few or contradictory runs identify
less.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from orrery.base.posterior import Posterior, bent, settle
from orrery.calibrate.runs.problem import Cell, Constant, Constants, Floats

STEP = 0.1
"""Step of a finite difference, in logarithms: far enough that a simulation's whole steps do not hide the slope."""

ROUNDS, LONGEST, CLOSE = 16, 1.2, 0.02
"""Rounds at most; the longest way in one; and the way (both in logarithms) that is no longer worth another."""

HALVINGS = 3
HIDDEN, FAR = 0.15, (1.6, 2.6)
"""A slope below this leads nowhere; and how far off (in logarithms) searches begin along what has no better one."""

FOREKNOWN = 6.0
"""Belief in the stated noise, as a number of measurements, when its size is judged from the scatter."""


class Predicts(Protocol):
    """Anything with measurements, constants and predictions."""

    @property
    def constants(self) -> Sequence[Constant]: ...

    @property
    def start(self) -> Constants: ...

    @property
    def cells(self) -> Sequence[Cell]: ...

    def predict(self, run: int, constants: Constants) -> Mapping[str, float]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """Where the constants settled; ``names`` are those that were free."""

    names: tuple[str, ...]
    low: Floats  # logarithms that no constant leaves
    high: Floats
    prior: Posterior
    posterior: Posterior
    error: Floats  # log(predicted / measured) of every cell, at the posterior's mean
    slopes: Floats
    noise: Floats  # of every cell, as the scatter shows it

    def values(self, start: Constants, x: Floats | None = None) -> dict[str, float]:
        """All constants, the free ones from ``x`` (else the posterior's mean)."""
        found = np.exp(np.clip(self.posterior.mean if x is None else x, self.low, self.high))
        return {**start, **dict(zip(self.names, map(float, found), strict=True))}

    def towards(self, share: float) -> Floats:
        """Part of the way from the prior's mean to the posterior's."""
        return self.prior.mean + share * (self.posterior.mean - self.prior.mean)


def errors_of(problem: Predicts, constants: Constants, tell: Callable[[], None]) -> Floats:
    """log(predicted / measured) of every cell."""
    found: dict[int, Mapping[str, float]] = {}
    for run in dict.fromkeys(c.run for c in problem.cells):
        found[run] = problem.predict(run, constants)
        tell()
    return np.array([np.log(found[c.run][c.metric] / c.measured) for c in problem.cells], dtype=np.float64)


@dataclass(slots=True, eq=False)
class _Search:
    """A descent: predictions of the cells at some unknowns, the prior, and the noise as stated."""

    at: Callable[[Floats], Floats]
    prior: Posterior
    low: Floats
    high: Floats
    stated: Floats

    def slopes(self, x: Floats, error: Floats) -> Floats:
        """Finite differences, a column for each unknown."""
        return np.stack([(self.at(x + STEP * unit) - error) / STEP for unit in np.eye(len(x))], axis=1)

    def noise(self, x: Floats, error: Floats, slopes: Floats) -> Floats:
        """As stated, grown to the scatter that is left."""
        return self.stated * _scatter(error, slopes, x, self.prior, self.stated)

    def step(self, x: Floats, error: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """A step to where the linear problem settles, shorter until it helps; none where nothing helps."""
        noise = self.noise(x, error, slopes)
        aim = settle(linear(error, slopes, x), self.prior, noise).mean
        way = np.clip(np.clip(aim, self.low, self.high) - x, -LONGEST, LONGEST)
        loss = _loss(error, noise, x, self.prior)
        for _ in range(HALVINGS):
            tried = self.at(x + way)
            if _loss(tried, noise, x + way, self.prior) < loss:
                return way, tried
            way = way / 2
        return np.zeros_like(x), error

    def descend(self, x: Floats, error: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Steps until they are short. Slopes follow by Broyden's rule, so that a step costs one prediction a run, and
        are taken anew where they lead nowhere: what hides behind something slower turns them at a corner."""
        is_fresh = True
        for _ in range(ROUNDS):
            way, found = self.step(x, error, slopes)
            if not way.any():
                if is_fresh:
                    return x, error
                slopes, is_fresh = self.slopes(x, error), True
                continue
            slopes = slopes + np.outer(found - error - slopes @ way, way) / (way @ way)
            x, error, is_fresh = x + way, found, False
            if np.abs(way).max() < CLOSE:
                break
        way, found = self.step(x, error, self.slopes(x, error))
        return x + way, found


def fit(problem: Predicts, free: Sequence[Constant], weights: Floats, tell: Callable[[], None]) -> Fitted:
    """The posterior of the ``free`` constants; ``weights`` (above 0, at most 1) make some cells count less.

    What hides behind something slower leaves no slope to follow, or a slight one: searches also begin where it shows.
    """
    names = tuple(c.name for c in free)
    spreads = np.diag([c.stiffness**2 for c in free])
    prior = Posterior(mean=np.log([problem.start[n] for n in names]), covariance=spreads)

    def at(x: Floats) -> Floats:
        return errors_of(problem, {**problem.start, **dict(zip(names, map(float, np.exp(x)), strict=True))}, tell)

    search = _Search(
        at=at,
        prior=prior,
        low=np.log([c.low for c in free]),
        high=np.log([c.high for c in free]),
        stated=np.array([c.noise for c in problem.cells], dtype=np.float64) / np.sqrt(weights),
    )
    first = at(prior.mean)
    slopes = search.slopes(prior.mean, first)
    ends = [search.descend(prior.mean, first, slopes)]
    for unit in np.eye(len(free))[np.abs(slopes).max(axis=0) < HIDDEN]:
        for far in FAR:
            shown = np.minimum(prior.mean + far * unit, search.high)
            if np.abs((error := at(shown)) - first).max() > CLOSE:
                ends.append(search.descend(shown, error, search.slopes(shown, error)))
    x, error = min(ends, key=lambda end: _loss(end[1], search.stated, end[0], prior))
    slopes = search.slopes(x, error)
    noise = search.noise(x, error, slopes)
    left = settle(linear(error, slopes, x), prior, noise)
    return Fitted(
        names=names,
        low=search.low,
        high=search.high,
        prior=prior,
        error=error,
        slopes=slopes,
        noise=noise,
        posterior=Posterior(mean=x, covariance=left.covariance),
    )


def linear(error: Floats, slopes: Floats, x: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Errors that are straight lines through these."""
    return lambda y: (error + slopes @ (y - x), slopes)


def without(fitted: Fitted, retained: np.ndarray) -> Floats:
    """Where the constants settle with some cells left out, along the slopes at the whole's optimum."""
    x = fitted.posterior.mean
    lines = linear(fitted.error[retained], fitted.slopes[retained], x)
    return settle(lines, fitted.prior, fitted.noise[retained]).mean


def keep(fitted: Fitted, retained: np.ndarray) -> Fitted:
    """The same with the other constants at their prior mean, along the slopes at the whole's optimum."""
    x, prior = fitted.posterior.mean, fitted.prior
    error = fitted.error + fitted.slopes[:, ~retained] @ (prior.mean - x)[~retained]
    narrow = Posterior(mean=prior.mean[retained], covariance=prior.covariance[np.ix_(retained, retained)])
    slopes = fitted.slopes[:, retained]
    found = settle(linear(error, slopes, x[retained]), narrow, fitted.noise) if retained.any() else narrow
    return Fitted(
        names=tuple(n for n, is_kept in zip(fitted.names, retained, strict=True) if is_kept),
        low=fitted.low[retained],
        high=fitted.high[retained],
        prior=narrow,
        posterior=found,
        error=error + slopes @ (found.mean - x[retained]),
        slopes=slopes,
        noise=fitted.noise,
    )


def known_share(fitted: Fitted) -> Floats:
    """Posterior over prior standard deviation of each free constant: 1 where the runs say nothing."""
    return np.sqrt(np.diag(fitted.posterior.covariance) / np.diag(fitted.prior.covariance))


def _scatter(error: Floats, slopes: Floats, x: Floats, prior: Posterior, noise: Floats) -> float:
    """How many times their noise the cells scatter around the best that the constants can do; at least 1."""
    best = settle(linear(error, slopes, x), prior, noise)
    scaled = (error + slopes @ (best.mean - x)) / noise
    explained = float(np.trace(best.covariance @ (slopes.T @ (slopes / noise[:, None] ** 2))))
    left = max(0.0, scaled.size - explained)
    return max(1.0, float(np.sqrt((FOREKNOWN + np.sum(scaled**2)) / (FOREKNOWN + left))))


def _loss(error: Floats, noise: Floats, x: Floats, prior: Posterior) -> float:
    """The objective: robust squares of scaled errors, plus the prior's penalty."""
    moved = x - prior.mean
    return float(np.sum(bent(error / noise)) + np.sum(moved**2 / np.diag(prior.covariance)))

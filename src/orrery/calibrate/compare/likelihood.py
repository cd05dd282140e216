"""How much the measurements speak for each cause, and whether there is anything to explain.

A cause with a fitted severity has the score S = (misfit without it) - (misfit with it) - ln n, for n numbers: twice the
gain in log-likelihood, less the penalty of the Bayesian information criterion for one parameter. "Nothing is wrong" has
S = 0. Before the measurements it is as likely as all causes together, and those are equally likely, so

    P(nothing) = 1 / (1 + mean over causes of exp(S / 2)).

Whether anything is wrong is asked with the prediction's own error. Which cause it is, given that something is, is asked
with the error that the best one leaves: all scores are divided by phi = (10 + its misfit / 1.4) / (10 + n - 1), where
1.4 is what a number's misfit is on average. So numbers that nothing fits well do not name a cause with false certainty,
and numbers that one cause fits to a few per cent are not judged by an interval that covers other people's machines.
"""

from collections.abc import Sequence
from math import exp, log

from orrery.calibrate.compare.fit import Fitted
from orrery.calibrate.compare.problem import EXPECTED_RATIO, Problem

TRUST = 10.0
"""Belief in the prediction's own error, as an equivalent number of measured numbers. With three, runs with 4 % of noise
now and then named the wrong one of two alike causes with near certainty."""


def scores(problem: Problem, found: Sequence[Fitted], phi_ratio: float = 1.0) -> list[float]:
    """S of each cause."""
    nothing, penalty = problem.misfit_ratio(), log(len(problem.cells))
    return [(nothing - f.misfit_ratio) / phi_ratio - penalty for f in found]


def chance_of_nothing(problem: Problem, found: Sequence[Fitted]) -> float:
    """P(nothing) of the module's first lines; 1 where there is no cause that leaves a trace."""
    if not found:
        return 1.0
    odds = sum(exp(min(s, 600.0) / 2.0) for s in scores(problem, found)) / len(found)
    return 1.0 / (1.0 + odds)


def shares(problem: Problem, found: Sequence[Fitted]) -> list[float]:
    """The chance of each cause, given that it is one of them; they add up to 1."""
    if not found:
        return []
    best = min(f.misfit_ratio for f in found)
    phi = (TRUST + best / EXPECTED_RATIO) / (TRUST + len(problem.cells) - 1.0)
    all_scores = scores(problem, found, phi)
    top = max(all_scores)
    weights = [exp((s - top) / 2.0) for s in all_scores]
    return [w / sum(weights) for w in weights]

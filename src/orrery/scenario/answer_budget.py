"""The best way to spend a budget of dollars on an answer: every shape of calls with every number of samples, ranked."""

from collections.abc import Iterable

from orrery.scenario.answer_ways import Budget, Spent

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Samples that are tried of each shape."""

COUNTED = ("majority-vote", "best-of-n", "generative-verification", "sequential-revision")
"""Shapes of which a law says how often their answer is right."""


def ranked(budget_usd: float, ways: Iterable[Spent]) -> Budget:
    """The best way of each shape within the budget, by how often it is right, then by cost."""
    found = [s for s in ways if s.way.usd is not None and s.way.right_frac is not None]
    within = [s for s in found if (s.way.usd or 0.0) <= budget_usd]
    best: dict[str, Spent] = {}
    for one in within:
        if one.shape not in best or _worth(one) > _worth(best[one.shape]):
            best[one.shape] = one
    return Budget(
        usd=budget_usd,
        ranked=tuple(sorted(best.values(), key=_worth, reverse=True)),
        cheapest_usd=min((s.way.usd or 0.0 for s in found), default=float("inf")),
    )


def _worth(spent: Spent) -> tuple[float, float]:
    return spent.way.right_frac or 0.0, -(spent.way.usd or 0.0)

"""Cache-aware search (ETS): keep the candidates that are worth the nodes they hold in the cache, and cover every idea.

Maximise  sum of kept shares - node_price x kept nodes / all nodes + idea_price x covered ideas / all ideas, where a
candidate keeps its whole path. Solved by HiGHS in each step; what is kept is continued like a reward-balanced search.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_above, check_range
from orrery.base.program import Program, SparseRows, solved
from orrery.base.technique import Technique
from orrery.reasoning.tree.grown import Floats, Front, Ints
from orrery.reasoning.tree.shares import by_softmax

BRANCHES = 1000
"""Branches tried for the program of one step: a count, so that the answer does not depend on the machine."""

LONGEST_S = 60.0
"""Guard against a program whose branches never end; no step that was looked at needs a tenth of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Prices of the program, and the temperature of the softmax over scores."""

    score_temperature_ratio: float = 0.2
    node_price_ratio: float = 1.0
    idea_price_ratio: float = 1.4

    def __post_init__(self) -> None:
        check_above(self, "score_temperature_ratio", 0)
        check_range(self, "node_price_ratio", 0, float("inf"))
        check_range(self, "idea_price_ratio", 0, float("inf"))


def continued(front: Front, width: int, knobs: Knobs) -> NDArray[np.int64]:
    """Shares of the width among the candidates that are kept."""
    retained = np.flatnonzero(kept_of(front, width, knobs))
    counts = np.zeros(front.scores_frac.size, dtype=np.int64)
    counts[retained] = by_softmax(front.scores_frac[retained], width, knobs.score_temperature_ratio)
    return counts


def kept_of(front: Front, width: int, knobs: Knobs) -> NDArray[np.bool_]:
    """Which candidates the program keeps, at least one."""
    shares = by_softmax(front.scores_frac, width, knobs.score_temperature_ratio)
    worth = shares / shares.sum()
    nodes, paths = np.unique(front.paths, return_inverse=True)
    ideas, idea = np.unique(front.ideas, return_inverse=True)
    paths = paths.reshape(front.paths.shape)
    price = knobs.node_price_ratio / (nodes.size + worth.size)
    prize = knobs.idea_price_ratio / ideas.size if ideas.size > 1 else 0.0
    return _kept(worth, price, prize, paths, idea, nodes.size)


def _kept(worth: Floats, price: float, prize: float, paths: Ints, idea: Ints, num_nodes: int) -> NDArray[np.bool_]:
    """Solve the program: candidates, the nodes of their paths and covered ideas are 0 or 1."""
    count, ideas = worth.size, int(idea.max()) + 1
    width = count + num_nodes + ideas
    cost = np.concatenate([price - worth, np.full(num_nodes, price), np.full(ideas, -prize)])
    rows, low = list[dict[int, float]](), list[float]()
    for candidate in range(count):  # a node is held by every candidate below it
        for node in set(paths[candidate].tolist()):
            rows.append({count + node: 1.0, candidate: -1.0})
            low.append(0.0)
    for number in range(ideas):  # an idea is covered by one of its candidates
        of_idea = dict.fromkeys(np.flatnonzero(idea == number).tolist(), 1.0)
        rows.append({**of_idea, count + num_nodes + number: -1.0})
        low.append(0.0)
    rows.append(dict.fromkeys(range(count), 1.0))
    low.append(1.0)
    starts = np.cumsum([0, *map(len, rows)])
    whole = np.zeros(width, dtype=bool)
    whole[:count] = True
    found = solved(
        Program(
            cost=cost,
            matrix=SparseRows(
                start=starts.astype(np.int64),
                index=np.array([i for row in rows for i in row], dtype=np.int64),
                value=np.array([v for row in rows for v in row.values()]),
            ),
            row_low=np.array(low),
            row_high=np.full(len(low), np.inf),
            most=np.ones(width),
            is_whole=whole,
        ),
        gap_frac=1e-6,
        most_s=LONGEST_S,
        most_nodes=BRANCHES,
    )
    if found is None:
        raise ScenarioError("shared-cache-tree: the program of a step has no solution.")
    return found.x[:count] > 0.5


TECHNIQUE = Technique(
    name="shared-cache-tree",
    extension_point="reasoning.prune",
    rule=continued,
    knobs=Knobs,
    gains="Candidates that repeat an idea go, with the paths that only they hold, so more of the cache is shared.",
    costs="Fewer beginnings are explored, and every step solves a program over all candidates.",
    claims=("ets-2025",),
)

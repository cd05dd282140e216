"""Cache-aware search (ETS): keep the candidates that are worth the nodes they hold in the cache, and cover every idea.

Maximise  sum of kept shares - node_price x kept nodes / all nodes + idea_price x covered ideas / all ideas, where a
candidate keeps its whole path. Solved by adding the candidate that gains most, then dropping those that lose; what is
kept is continued like a reward-balanced search.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.reasoning.tree.grown import Front
from orrery.reasoning.tree.shares import by_softmax


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
    retained, held, covered = np.zeros(worth.size, bool), np.zeros(nodes.size, np.int64), np.zeros(ideas.size, np.int64)
    while not retained.all():
        gain = worth - price * (1 + (held[paths] == 0).sum(axis=1)) + prize * (covered[idea] == 0)
        best = int(np.argmax(np.where(retained, -np.inf, gain)))
        if retained.any() and gain[best] <= 0:
            break
        retained[best] = True
        held[paths[best]] += 1
        covered[idea[best]] += 1
    for i in np.flatnonzero(retained)[np.argsort(worth[retained], kind="stable")]:
        loss = worth[i] - price * (1 + (held[paths[i]] == 1).sum()) + prize * (covered[idea[i]] == 1)
        if loss < 0 and retained.sum() > 1:
            retained[i] = False
            held[paths[i]] -= 1
            covered[idea[i]] -= 1
    return retained


TECHNIQUE = Technique(
    name="shared-cache-tree",
    extension_point="reasoning.prune",
    rule=continued,
    knobs=Knobs,
    gains="Candidates that repeat an idea go, with the paths that only they hold, so more of the cache is shared.",
    costs="Fewer beginnings are explored, and every step solves a program over all candidates.",
    claims=("ets-2025",),
)

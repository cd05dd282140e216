"""Diverse search: the tree is split into subtrees from its first step, and each keeps its best candidate (DVTS)."""

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.reasoning.tree.grown import Front


def continued(front: Front, width: int, knobs: NoKnobs) -> NDArray[np.int64]:
    """The best of every subtree, or of the best subtrees where the width does not reach; equal parts."""
    counts = np.zeros(front.scores_frac.size, dtype=np.int64)
    order = np.argsort(-front.scores_frac, kind="stable")
    _, first = np.unique(front.branches[order], return_index=True)
    best = order[np.sort(first)[:width]]
    counts[best] = [width // best.size + (i < width % best.size) for i in range(best.size)]
    return counts


TECHNIQUE = Technique(
    name="diverse-tree",
    extension_point="reasoning.prune",
    rule=continued,
    gains="Different beginnings stay alive to the end, whatever their scores.",
    costs="Subtrees share nothing but the prompt, and good ones get no more than bad ones.",
    claims=("beeching-2024-dvts",),
)

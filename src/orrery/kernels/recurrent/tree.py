"""A recurrent layer over a tree of tokens in one pass: no state is copied for a branch.

The state of a node is the start's, faded along the path to it, and what every ancestor put in, faded from there on::

    y_i = c_i . (F_i h + sum over ancestors j, i included, of (F_i / F_j) b_j x_j)

F_i is the product of the fadings on the path from the root to i: with the logarithms of the fadings added up along
paths, F_i / F_j is one exponential, and a mask leaves ancestors only. [stree-2025]
"""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def ancestors(parents: tuple[int, ...]) -> Bools:
    """Nodes x nodes: whether the second one lies on the path to the first, which it may be; roots have parent -1."""
    seen = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= node:
            raise ScenarioError(f"parents[{node}] = {parent}; write a node that stands before it, or -1.")
        if parent >= 0:
            seen[node] |= seen[parent]
    return seen


def tree_outputs(
    parents: tuple[int, ...], start: Floats, fading: Floats, put_in: Floats, read: Floats, inputs: Floats
) -> Floats:
    """Outputs of all nodes, nodes x channels. The start's state is features x channels; each node has one fading in
    (0, 1], what it puts in and reads by (features), and its inputs (channels).
    """
    seen = ancestors(parents)
    path = seen @ np.log(fading)
    weight = np.where(seen, np.exp(path[:, None] - path[None, :]), 0.0) * (read @ put_in.T)
    return np.exp(path)[:, None] * (read @ start) + weight @ inputs


def branch_outputs(
    parents: tuple[int, ...], start: Floats, fading: Floats, put_in: Floats, read: Floats, inputs: Floats
) -> Floats:
    """The same with a state for every node, as running each branch alone would have it."""
    states: list[Floats] = []
    for node, parent in enumerate(parents):
        before = start if parent < 0 else states[parent]
        states.append(fading[node] * before + np.outer(put_in[node], inputs[node]))
    return np.array([r @ h for r, h in zip(read, states, strict=True)])


def full_tree(widths: tuple[int, ...]) -> tuple[int, ...]:
    """Parents of a tree in which every node of a level has so many children in the next, below one root."""
    parents, level = [-1], [0]
    for width in widths:
        found = [node for node in level for _ in range(width)]
        level = list(range(len(parents), len(parents) + len(found)))
        parents += found
    return tuple(parents)

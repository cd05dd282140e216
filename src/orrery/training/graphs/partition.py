"""Parts of equal size with few edges between them: blocks of a breadth-first order, then swaps while they pay.

In every sweep each vertex counts its neighbours in every part; for two parts the vertices that gain most by moving
over are paired and swapped as long as a pair gains, half of them at a time, since neighbours that move together undo
each other's gain. Swapping keeps the sizes, as in the classic bisection [kernighan-1970] and in balanced label
propagation [ugander-2013].
"""

from itertools import combinations

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.training.graphs.graph import Graph, Ints

SWEEPS = 30
"""Sweeps at most; they end when one gains less than a thousandth of the cut."""


def partition(graph: Graph, num_parts: int, *, seed: int = 0) -> Ints:
    """The part of every vertex; sizes differ by one at most."""
    if not 1 <= num_parts <= graph.num_vertices:
        raise ScenarioError(f"partition: got {num_parts} parts of {graph.num_vertices} vertices; write 1 to as many.")
    parts = np.empty(graph.num_vertices, dtype=np.int64)
    parts[breadth_first(graph)] = np.arange(graph.num_vertices) * num_parts // graph.num_vertices
    best, least = parts.copy(), cut_edges(graph, parts)
    draw = stream(seed, "graphs/partition")
    for _ in range(SWEEPS if num_parts > 1 else 0):
        _sweep(graph, parts, num_parts, draw)
        if (now := cut_edges(graph, parts)) >= least * 0.999:
            break
        best, least = parts.copy(), now
    return best


def cut_edges(graph: Graph, parts: Ints) -> int:
    """Undirected edges between parts."""
    return int((parts[graph.source] != parts[graph.target]).sum()) // 2


def breadth_first(graph: Graph) -> Ints:
    """Vertices in breadth-first order, each component from its vertex of least degree."""
    starts, seen = graph.starts, np.zeros(graph.num_vertices, dtype=bool)
    order: list[Ints] = []
    for root in np.argsort(graph.degrees, kind="stable"):
        frontier = np.array([root])
        if seen[root]:
            continue
        seen[root] = True
        while len(frontier):
            order.append(frontier)
            ranges = [graph.target[starts[v] : starts[v + 1]] for v in frontier]
            found = np.unique(np.concatenate(ranges))
            frontier = found[~seen[found]]
            seen[frontier] = True
    return np.concatenate(order)


def _sweep(graph: Graph, parts: Ints, num_parts: int, draw: np.random.Generator) -> None:
    """Swaps between all pairs of parts, in place."""
    flat = np.bincount(graph.source * num_parts + parts[graph.target], minlength=graph.num_vertices * num_parts)
    near = flat.reshape(graph.num_vertices, num_parts)  # neighbours of every vertex in every part
    starts = graph.starts
    for low, high in draw.permutation(np.array(list(combinations(range(num_parts), 2)))):
        gained = near[:, low] - near[:, high]
        down, up = np.flatnonzero(parts == high), np.flatnonzero(parts == low)
        down, up = down[np.argsort(-gained[down], kind="stable")], up[np.argsort(gained[up], kind="stable")]
        count = min(len(down), len(up))
        swapped = (int((gained[down[:count]] > gained[up[:count]]).sum()) + 1) // 2
        parts[down[:swapped]], parts[up[:swapped]] = low, high
        change = _reached(graph, starts, down[:swapped]) - _reached(graph, starts, up[:swapped])
        near[:, low] += change
        near[:, high] -= change


def _reached(graph: Graph, starts: Ints, vertices: Ints) -> Ints:
    """How many of these vertices each vertex of the graph is a neighbour of."""
    lengths = starts[vertices + 1] - starts[vertices]
    ends = np.cumsum(lengths)
    edges = np.arange(int(lengths.sum())) + np.repeat(starts[vertices] - ends + lengths, lengths)
    return np.bincount(graph.target[edges], minlength=graph.num_vertices)

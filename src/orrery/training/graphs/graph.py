"""Graphs as arrays of edges, and synthetic ones that look like social graphs: communities and heavy-tailed degrees.

The planted partition, degree-corrected [karrer-2011]: vertices have weights from a power law and belong to communities
of equal size; an edge starts at a vertex drawn by weight and ends at another, drawn by weight from the same community
with probability ``inside_frac`` and from the whole graph otherwise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_WEIGHT_RATIO = 100.0
"""Heaviest vertex over the lightest: cuts the tail of the power law, as the size of a real graph does."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """Each undirected edge stands twice, once from either end; sorted by ``source``."""

    num_vertices: int
    source: Ints
    target: Ints

    @property
    def num_edges(self) -> int:
        """Messages of one layer: directed edges."""
        return len(self.source)

    @property
    def degrees(self) -> Ints:
        """Neighbours of every vertex."""
        return np.bincount(self.source, minlength=self.num_vertices)

    @property
    def starts(self) -> Ints:
        """Where the edges of each vertex begin; one more entry than vertices."""
        return np.concatenate([[0], np.cumsum(self.degrees)])


def from_pairs(num_vertices: int, left: Ints, right: Ints) -> Graph:
    """The graph of undirected edges, without loops and doubles."""
    is_edge = left != right
    low, high = np.minimum(left, right)[is_edge], np.maximum(left, right)[is_edge]
    keys = np.unique(np.concatenate([low * num_vertices + high, high * num_vertices + low]))
    return Graph(num_vertices=num_vertices, source=keys // num_vertices, target=keys % num_vertices)


def planted_graph(
    num_vertices: int,
    mean_degree: float,
    *,
    num_communities: int,
    inside_frac: float,
    exponent: int | float = 2.5,
    seed: int = 0,
) -> Graph:
    """A graph of about that mean degree (doubled edges are dropped); vertices are in no order of community."""
    if not 0.0 <= inside_frac <= 1.0 or num_communities < 1 or exponent <= 1.0:
        raise ScenarioError(
            f"planted graph: got inside_frac {inside_frac:g}, {num_communities} communities, exponent {exponent:g}; "
            "write a share from 0 to 1, at least one community, and an exponent above 1."
        )
    draw = stream(seed, "graphs/planted")
    weights = _weights(draw.random(num_vertices), exponent)
    community = draw.permutation(num_vertices) % num_communities
    count = round(num_vertices * mean_degree / 2.0)
    left = _by_weight(draw.random(count), weights, np.zeros(count), np.full(count, weights.sum()))
    order = np.argsort(community, kind="stable")
    ends = np.cumsum(weights[order])
    bounds = np.searchsorted(community[order], np.arange(num_communities + 1))
    edges = np.concatenate([[0.0], ends])[bounds]
    is_inside = draw.random(count) < inside_frac
    low = np.where(is_inside, edges[community[left]], 0.0)
    high = np.where(is_inside, edges[community[left] + 1], ends[-1])
    right = order[_by_weight(draw.random(count), weights[order], low, high)]
    return from_pairs(num_vertices, left, right)


def _weights(uniform: Floats, exponent: float) -> Floats:
    """Pareto of density w^-exponent between 1 and the largest ratio."""
    power = 1.0 - exponent
    return (1.0 + uniform * (LARGEST_WEIGHT_RATIO**power - 1.0)) ** (1.0 / power)


def _by_weight(uniform: Floats, weights: Floats, low: Floats, high: Floats) -> Ints:
    """Indices drawn by weight, of those whose running sums lie between ``low`` and ``high``."""
    found = np.searchsorted(np.cumsum(weights), low + uniform * (high - low), side="right")
    return np.minimum(found, len(weights) - 1).astype(np.int64)

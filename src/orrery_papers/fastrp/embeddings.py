"""Operations of node embeddings: random walks whose pairs are trained on, and sparse products with a random matrix.

Walks: every node starts so many walks of one length, and every node of a walk is paired with those within a window
that is drawn anew each time, (window + 1) / 2 a side on average. With a tree of outputs a pair meets log2(n) inner
nodes, each a dot product and two updates of the vector's width. Perozzi et al., arXiv 1403.6652; Mikolov et al., arXiv
1310.4546.

Projection: each power of the transition matrix is one sparse product with a matrix of the embedding's width, and a
norm and a weighted sum of its rows. Chen et al., arXiv 1908.11512.
"""

from dataclasses import dataclass
from math import log2

NUM_TREE_FLOPS = 6.0
"""An inner node and a number of the vector: a dot product and two updates, a multiply-add each."""

NUM_ROW_FLOPS = 6.0
"""A number of a projected row: its square and sum, its scaling, its weight and sum, in multiply-adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkTraining:
    """Walks from every node, and skip-gram with a tree of outputs over their pairs."""

    num_walks: float
    num_walk_nodes: float
    num_window_nodes: float  # to either side, at most
    num_features: float

    def num_flops(self, num_nodes: float) -> float:
        """Operations of the whole training; each walk passes once."""
        pairs = self.num_walks * self.num_walk_nodes * (self.num_window_nodes + 1.0)
        return num_nodes * pairs * log2(num_nodes) * NUM_TREE_FLOPS * self.num_features


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseProjection:
    """A random matrix multiplied by the transition matrix so many times."""

    num_powers: float
    num_features: float

    def num_flops(self, num_nodes: float, num_edges: float) -> float:
        """Operations of all powers; every edge counts in both directions."""
        products = 2.0 * 2.0 * num_edges * self.num_features
        return self.num_powers * (products + NUM_ROW_FLOPS * num_nodes * self.num_features)

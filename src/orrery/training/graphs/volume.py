"""Bytes that an epoch of full-graph training sends, whether the vertices or the layers are dealt out. [gnnpipe-2023]

With the graph in P parts, every layer sends each boundary vertex's row to every other part that has a neighbour of
it, and the backward pass sends the gradients of those rows back:

    2 L c V h bytes,  c = copies of a vertex in other parts, 0 to P - 1

With the layers in S stages, the rows of all vertices cross each of the S - 1 borders once forward and once backward,
whatever the edges:  2 (S - 1) m V h bytes, m = matrices that a border passes on (two where every layer also reads the
first layer's output). Hybrids have S stages of P devices each, and both. The ratio grows with L c / (m (S - 1)).
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.graphs.graph import Graph, Ints

PASSES = 2
"""Forward and backward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphModel:
    """Equal layers: each adds up neighbours' rows and multiplies by ``num_products`` square weights."""

    name: str
    num_layers: int
    hidden_size: int
    num_products: int = 1
    num_elementwise: int = 2  # passes over the rows: activation and dropout
    passes_first: bool = False  # every layer also reads the first one's output, as in GCNII [chen-2020]
    element_bytes: float = 4.0

    @property
    def row_bytes(self) -> float:
        """Bytes of one vertex's row in one layer."""
        return self.hidden_size * self.element_bytes

    @property
    def border_bytes(self) -> float:
        """Bytes of one vertex that cross the border of two stages, per pass."""
        return self.row_bytes * (2 if self.passes_first else 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Parts of a graph as their devices see them."""

    num_vertices: int
    vertices: Ints  # of each part
    edges: Ints  # messages to vertices of each part
    sent: Ints  # rows that each part sends in one layer

    @property
    def num_parts(self) -> int:
        """Number of parts."""
        return len(self.vertices)

    @property
    def copies_ratio(self) -> float:
        """Rows sent in one layer, per vertex of the graph."""
        return float(self.sent.sum()) / self.num_vertices


def parts_of(graph: Graph, parts: Ints) -> Parts:
    """Rows held and sent by each part: a row goes once to every other part that has a neighbour."""
    num_parts = int(parts.max()) + 1
    reached = np.unique(graph.source * num_parts + parts[graph.target])
    vertex, place = reached // num_parts, reached % num_parts
    leaves = vertex[parts[vertex] != place]
    return Parts(
        num_vertices=graph.num_vertices,
        vertices=np.bincount(parts, minlength=num_parts),
        edges=np.bincount(parts[graph.source], minlength=num_parts),
        sent=np.bincount(parts[leaves], minlength=num_parts),
    )


def enlarged(parts: Parts, num_vertices: int, num_edges: int) -> Parts:
    """The parts of a graph of that size whose vertices are copied as often as those of the one at hand."""
    ratio, dense_ratio = num_vertices / parts.num_vertices, num_edges / float(parts.edges.sum())

    def times(counts: Ints, by: float) -> Ints:
        return np.rint(counts * by).astype(np.int64)

    return Parts(
        num_vertices=num_vertices,
        vertices=times(parts.vertices, ratio),
        edges=times(parts.edges, dense_ratio),
        sent=times(parts.sent, ratio),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Bytes of an epoch over all devices, forward and backward."""

    graph_bytes: float  # between parts of the graph
    pipeline_bytes: float  # between stages

    @property
    def total_bytes(self) -> float:
        """Both."""
        return self.graph_bytes + self.pipeline_bytes


def volume(parts: Parts, model: GraphModel, num_stages: int = 1) -> Volume:
    """Bytes sent by ``num_stages`` stages, a device a part; one stage is graph parallelism, one part the pipeline."""
    if not 1 <= num_stages <= model.num_layers:
        raise ScenarioError(f"stages: got {num_stages} for {model.num_layers} layers; write 1 to as many.")
    return Volume(
        graph_bytes=PASSES * model.num_layers * float(parts.sent.sum()) * model.row_bytes,
        pipeline_bytes=PASSES * (num_stages - 1) * parts.num_vertices * model.border_bytes,
    )

"""FastRP: operations of a sparse projection against those of training on random walks."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery_papers.fastrp.embeddings import SparseProjection, WalkTraining


def predict(paper: Paper) -> Iterator[Prediction]:
    """One ratio of operations."""
    setup = paper.setups["blogcatalog"]
    nodes, edges = setup.number("num_vertices"), setup.number("num_edges")
    walks = WalkTraining(
        num_walks=setup.number("num_walks"),
        num_walk_nodes=setup.number("num_walk_nodes"),
        num_window_nodes=setup.number("num_window_nodes"),
        num_features=setup.number("num_walk_features"),
    ).num_flops(nodes)
    projected = SparseProjection(
        num_powers=setup.number("num_matrix_powers"), num_features=setup.number("num_projected_features")
    ).num_flops(nodes, edges)
    yield Prediction(
        claim="speedup",
        predicted=walks / projected,
        because=f"{walks / 1e12:.2f} T operations of pairs and inner nodes, {projected / 1e9:.2f} G of sparse products",
        differs="drawing walks in Python, and updates of single rows that run below the pace of a sparse product",
    )

"""Operations of node embeddings, by hand."""

import pytest

from orrery_papers.fastrp.embeddings import SparseProjection, WalkTraining


def test_walks_count_pairs_and_inner_nodes():
    walks = WalkTraining(num_walks=2, num_walk_nodes=5, num_window_nodes=3, num_features=4)
    assert walks.num_flops(8) == pytest.approx(8 * 2 * 5 * 4 * 3 * 6 * 4)


def test_a_projection_grows_with_edges_and_walks_do_not():
    projection = SparseProjection(num_powers=3, num_features=4)
    assert projection.num_flops(10, 0) == pytest.approx(3 * 6 * 10 * 4)
    assert projection.num_flops(10, 100) - projection.num_flops(10, 0) == pytest.approx(3 * 4 * 100 * 4)

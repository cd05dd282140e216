"""GNNPipe, re-run on its smallest graph."""

import pytest

from orrery.evidence.paper_file import get_paper
from orrery.training.graphs.volume import volume
from orrery_papers.gnnpipe import predict as gnnpipe

SQUIRREL = get_paper("gnnpipe").setups["squirrel"]


def test_layers_in_stages_send_less_and_take_less_time():
    plain, first = gnnpipe.run(SQUIRREL, "gcn"), gnnpipe.run(SQUIRREL, "gcnii")
    assert plain.volume_ratio == pytest.approx(gnnpipe.reduction(SQUIRREL, 32))
    assert first.volume_ratio == pytest.approx(plain.volume_ratio / 2.0)
    for one in (plain, first):
        assert min(one.volume_ratio, one.speedup_ratio, one.communication_ratio) > 1.0


def test_the_reduction_follows_the_number_of_layers():
    assert gnnpipe.reduction(SQUIRREL, 64) == pytest.approx(2.0 * gnnpipe.reduction(SQUIRREL, 32))


def test_the_drawn_graph_has_the_size_of_the_real_one():
    eight = gnnpipe.parts(SQUIRREL, 8)
    assert eight.num_vertices == 5201
    assert eight.edges.sum() == pytest.approx(217073, rel=1e-4)
    assert 0.0 < eight.copies_ratio < 7.0
    model = gnnpipe.model_of(SQUIRREL, "gcn")
    assert volume(eight, model).pipeline_bytes == 0.0

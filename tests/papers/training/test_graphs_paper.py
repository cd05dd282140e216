"""GNNPipe, re-run on its smallest graph."""

import pytest

from orrery.evidence.paper_file import get_paper
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
    """A border of stages is crossed by all rows, forward and backward, 4 bytes an element."""
    found = gnnpipe.modes(SQUIRREL, "gcn")
    assert found["pipeline"]["sent_bytes"] == 2 * 7 * 5201 * 1000 * 4
    assert 0.0 < found["vertices"]["copies_ratio"] < 7.0

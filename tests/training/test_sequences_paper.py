"""ByteScale, re-run at its longest context with the smaller model."""

import pytest

from orrery.evidence.paper_file import get_paper
from orrery_papers.bytescale import predict as bytescale


def test_ranks_by_length_gain_severalfold_at_two_million_tokens():
    setup = get_paper("bytescale").setups["cluster"]
    found = bytescale.run(setup.name, "llama-7b", 2048 * 1024)
    assert found.speedup_ratio > 2.0
    assert found.static.most_degree == 15
    assert found.static.ring_s > 100 * found.hybrid.ring_s
    assert found.static.idle_s > found.hybrid.idle_s
    assert found.hybrid.products_s == pytest.approx(found.static.products_s, rel=0.02)

"""ByteScale, re-run at its longest context with the smaller model."""

from orrery.evidence.paper_file import get_paper
from orrery_papers.bytescale import predict as bytescale


def test_ranks_by_length_gain_severalfold_at_two_million_tokens():
    setup = get_paper("bytescale").setups["cluster"]
    rows = bytescale.run(setup.name, "llama-7b", 2048 * 1024)
    static, _, _, hybrid = rows
    assert bytescale.speedup_ratio(rows) > 2.0
    assert static["largest_group"] == 15
    assert static["ring_s"] > 100 * hybrid["ring_s"]
    assert static["idle_s"] > hybrid["idle_s"]

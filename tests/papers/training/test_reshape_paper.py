"""Universal checkpointing re-run: times from storage, and when going on with half of the nodes pays."""

import numpy as np

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import get_paper
from orrery_papers.universal_checkpointing import predict as again

PAPER = get_paper("universal-checkpointing")


def test_predictions_are_numbers_for_claims_of_the_paper():
    found = {p.claim: p for p in again.predict(PAPER)}
    assert found.keys() < {c.id for c in PAPER.claims}
    assert all(np.isfinite(p.predicted) and p.because for p in found.values())
    assert found["under-five-minutes"].predicted < 300
    assert found["negligible"].predicted < 0.02


def test_storage_is_a_floor_under_what_is_predicted():
    """14 bytes a parameter out of every node, 26 in and out, 12 in."""
    for name, nodes in (("7b", 4), ("176b", 48)):
        setup = PAPER.setups[name]
        parameters = get_model(setup.word("model")).num_parameters
        floor_s = parameters / nodes / setup.number("storage_bytes_per_s")
        found = again.times_s(setup)
        assert found["save"] > 14.0 * floor_s
        assert found["convert"] > 26.0 * floor_s
        assert found["load"] > 12.0 * floor_s
        assert found["convert by one process"] > found["convert"]

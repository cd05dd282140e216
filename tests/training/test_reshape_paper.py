"""Universal checkpointing re-run: times from storage, and when going on with half of the nodes pays."""

import numpy as np
import pytest

from orrery.evidence.paper_file import get_paper
from orrery_papers.universal_checkpointing import predict as again

PAPER = get_paper("universal-checkpointing")


def test_predictions_are_numbers_for_claims_of_the_paper():
    found = {p.claim: p for p in again.predict(PAPER)}
    assert found.keys() < {c.id for c in PAPER.claims}
    assert all(np.isfinite(p.predicted) and p.because for p in found.values())
    assert found["under-five-minutes"].predicted < 300
    assert found["negligible"].predicted < 0.01


def test_storage_is_a_floor_under_what_was_measured_but_for_the_largest_save():
    for claim in PAPER.claims:
        if claim.metric in ("save_time", "convert_time", "load_time", "all_time") and claim.id != "1t-save":
            assert again.answer(claim) < claim.low, claim.id


def test_half_of_the_nodes_take_twice_as_long_to_convert():
    setup = PAPER.setups["176b"]
    by_hand = 26.0 * 176e9 / 24 / 5e9 + 12.0 * 176e9 / 24 / 5e9
    soon, late = again.fewer_nodes(setup, 60.0), again.fewer_nodes(setup, 86400.0)
    assert not soon.is_elastic_better
    assert late.is_elastic_better
    load_s = again.times(setup).load_s
    back_s = 14.0 * 176e9 / 24 / 5e9 + 26.0 * 176e9 / 48 / 5e9 + load_s
    assert late.break_even_s == pytest.approx(by_hand + (back_s - load_s) / 0.5)
    assert late.waiting_lost_s - late.elastic_lost_s == pytest.approx(0.5 * (86400.0 - late.break_even_s))

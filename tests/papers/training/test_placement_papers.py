"""The papers about placement, re-run: conversions send what is stated, and what ran is found to fit."""

from dataclasses import replace

import pytest

from orrery.evidence.paper_file import get_paper
from orrery.evidence.verdict import is_met
from orrery_papers.oneflow import predict as oneflow
from orrery_papers.redco import predict as redco


@pytest.mark.parametrize(("key", "module"), [("oneflow", oneflow), ("redco", redco)])
def test_every_claim_that_is_predicted_repeats(key, module):
    paper = get_paper(key)
    claims = {claim.id: claim for claim in paper.claims}
    found = {p.claim: p.predicted for p in module.predict(paper)}
    assert found.keys() <= claims.keys()
    assert claims.keys() - found.keys() <= {"functions"}
    assert all(is_met(replace(claims[name], tolerance_frac=0.01), x) for name, x in found.items())


def test_memory_of_a_run_is_its_states_and_one_sequence():
    setup = get_paper("redco").setups["llama-7b"]
    held = redco.memory(setup)[4]
    assert held["state_bytes"] == pytest.approx(16.0 * 6.738e9 / 4, rel=1e-3)
    assert 0.0 < held["activations_bytes"] < held["state_bytes"]


def test_fewer_chips_hold_a_smaller_model():
    setup = get_paper("redco").setups["t5-11b"]
    assert 11e9 < redco.largest_parameters(setup) < 14e9

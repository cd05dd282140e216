"""Beyond backpropagation re-run: energies of whole runs behind a data loader, and who costs more than whom."""

import numpy as np
import pytest

from orrery.evidence.paper_file import get_paper
from orrery.evidence.verdict import verdict
from orrery_papers.beyond_backprop_mono_forward import predict as again

PAPER = get_paper("beyond-backprop-mono-forward")
CLAIMS = {c.id: c for c in PAPER.claims}
FOUND = {p.claim: p for p in again.predict(PAPER)}


def test_predictions_are_numbers_for_claims_of_the_paper():
    assert FOUND.keys() < CLAIMS.keys()
    assert all(np.isfinite(p.predicted) and p.because and p.differs for p in FOUND.values())


def test_energies_of_whole_runs_come_out():
    energies = [c for c in CLAIMS.values() if c.metric in ("baseline_energy", "run_energy")]
    assert len(energies) == 8
    for claim in energies:
        assert verdict(claim, FOUND[claim.id].predicted) == "reproduced", claim.id


def test_with_the_passes_of_early_stopping_mono_forward_saves_and_forward_forward_does_not():
    assert verdict(CLAIMS["headline-energy"], FOUND["headline-energy"].predicted) == "reproduced"
    assert FOUND["headline-energy"].predicted > FOUND["headline-time"].predicted > 0.2
    for claim in CLAIMS.values():
        if claim.metric in ("time_multiple", "energy_multiple"):
            assert FOUND[claim.id].predicted > 1.5, claim.id


RULES = ("backpropagation", "mono-forward", "cascaded-forward", "forward-forward")


def test_a_pass_takes_the_loaders_time_whatever_the_rule():
    setup = PAPER.setups["cifar-10"]
    passes = {rule: again.priced(setup, rule, True) for rule in RULES}
    expected = setup.number("baseline_run_s") / setup.number("num_baseline_epochs")
    for rule, found in passes.items():  # the last batch of a pass counts as a full one
        assert found["time_s"] == pytest.approx(expected, rel=0.01), rule
    energy = {rule: p["energy_j"] for rule, p in passes.items()}
    assert energy["cascaded-forward"] < energy["mono-forward"] < energy["backpropagation"] < energy["forward-forward"]

"""Sequential gradient coding re-run: loads to the digit, and an order of schemes that only stragglers can turn."""

import numpy as np
import pytest

from orrery.evidence.paper_file import get_paper
from orrery.evidence.verdict import verdict
from orrery_papers.sequential_gradient_coding import predict as again

PAPER = get_paper("sequential-gradient-coding")
SETUP = PAPER.setups["lambda-256"]


def test_predictions_are_numbers_for_claims_of_the_paper():
    found = {p.claim: p for p in again.predict(PAPER)}
    claims = {c.id: c for c in PAPER.claims}
    assert found.keys() == claims.keys() - {"workers"}
    assert all(np.isfinite(p.predicted) and p.because for p in found.values())
    for name in ("load-plain", "load-selective", "load-multiplexed"):
        assert found[name].predicted == pytest.approx(claims[name].low, rel=1e-12)
    for name in ("profile-selective", "profile-multiplexed"):
        assert verdict(claims[name], found[name].predicted) == "anchored"
    assert 0.0 < found["headline"].predicted < 0.2


def test_the_baseline_takes_the_time_that_its_workers_were_read_from():
    found = again.rows(SETUP)
    assert found["gradient"]["total_s"] == pytest.approx(SETUP.number("baseline_run_s"), rel=0.02)
    assert found["multiplexed"]["total_s"] < found["gradient"]["total_s"]


def test_without_stragglers_the_gain_is_that_of_the_loads():
    found, worker = again.rows(SETUP, late_frac=0.0), again.pace(SETUP)
    whole_s = SETUP.number("worker_load_s")
    loads = {name: worker["fixed_s"] + whole_s * found[name]["load_frac"] for name in ("gradient", "multiplexed")}
    expected = 1.0 - 81 * loads["multiplexed"] / (80 * loads["gradient"])
    gain = 1.0 - found["multiplexed"]["total_s"] / found["gradient"]["total_s"]
    assert gain == pytest.approx(expected, abs=0.01)
    assert expected == pytest.approx(0.144, abs=0.005)

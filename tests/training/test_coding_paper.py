"""Sequential gradient coding re-run: loads to the digit, and an order of schemes that only stragglers can turn."""

import numpy as np
import pytest

from orrery.evidence.paper_file import get_paper
from orrery.evidence.verdict import verdict
from orrery.training.coding import run_s, worker_times_s
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
    total_s = {name: again.total_s(SETUP, scheme) for name, scheme in again.schemes(SETUP).items()}
    assert total_s["plain"] == pytest.approx(SETUP.number("baseline_run_s"), rel=0.02)
    assert total_s["multiplexed"] < total_s["plain"]


def test_without_stragglers_the_gain_is_that_of_the_loads():
    scheme, worker = again.schemes(SETUP), again.pace(SETUP)
    totals = {}
    for name in ("plain", "multiplexed"):
        rounds = 80 + scheme[name].delay_rounds
        nobody = np.zeros((rounds, 256), dtype=bool)
        totals[name] = run_s(scheme[name], worker_times_s(worker, scheme[name].load_frac, nobody), 1.0)[0].sum()
    loads = {n: worker.fixed_s + worker.per_load_s * scheme[n].load_frac for n in totals}
    expected = 1.0 - 81 * loads["multiplexed"] / (80 * loads["plain"])
    assert 1.0 - totals["multiplexed"] / totals["plain"] == pytest.approx(expected, abs=0.01)
    assert expected == pytest.approx(0.144, abs=0.005)

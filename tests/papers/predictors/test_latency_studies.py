"""LA-DNAS's reduction of search cost at small budgets."""

import pytest

from orrery.catalog.devices import get_device
from orrery.predictors.cells.darts import darts
from orrery.predictors.cells.learned import ignore
from orrery.predictors.cells.pool import bench
from orrery.predictors.studies import latency_aware_search
from orrery.predictors.studies.latency_aware_search import EQUAL_FRAC, searched
from orrery_papers.la_dnas.reduction import reduction_at

P100 = get_device("p100-pcie-16gb")


@pytest.mark.slow
def test_the_latency_in_the_loss_makes_cells_faster_at_little_quality(monkeypatch):
    monkeypatch.setattr(latency_aware_search, "NUM_SAMPLES", 8000)
    rows = searched(bench(P100, darts(), 32), 0, 300, ignore)
    latency = [row["latency_s"] for row in rows if row["term"] == "latency"]
    assert latency[-1] < 0.7 * latency[0]
    assert 0.1 < reduction_at(rows, "latency", EQUAL_FRAC) < 0.5
    assert reduction_at(rows, "latency", 0.0) < 0.1
    assert reduction_at(rows, "latency", EQUAL_FRAC) > reduction_at(rows, "multiply-adds", EQUAL_FRAC)

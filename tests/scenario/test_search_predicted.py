"""A search over latencies that a few of the user's timings teach: the best by them, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from orrery import search
from orrery.base.errors import ScenarioError
from orrery.predictors.cells.nas_bench_201 import nas_bench_201
from orrery.scenario.search import predicted

TIMINGS = Path(__file__).parents[2] / "docs" / "data" / "timings.csv"
SETTINGS = {"space": "cells", "device": "m2-max", "predictor": "few-shot", "measurements": str(TIMINGS)}


@pytest.fixture
def quick(monkeypatch):
    """A predictor taught for a few steps."""
    monkeypatch.setattr(predicted, "TAUGHT_STEPS", 10)


def test_latencies_are_the_predictors_and_a_machine_twice_as_slow_is_searched_alike(quick, tmp_path):
    slow = tmp_path / "slow.csv"
    lines = TIMINGS.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    slow.write_text("\n".join([lines[0], *(f"{name},{2 * float(s)}" for name, s in rows)]))
    own, other = (search(**SETTINGS | {"measurements": str(p)}, latency_ratio=0.95) for p in (TIMINGS, slow))
    plain = search(space="cells", device="m2-max", latency_ratio=0.95, method="enumeration")
    first, second, third = (found.devices[0].best.metrics["latency"] for found in (own, other, plain))
    assert second == pytest.approx(2 * first, rel=1e-6)  # logarithms less their mean are the same
    assert first != third
    assert own.method == "enumeration"  # predicted times are no sums over edges
    assert any("adapted by 10 timings; over the other 40" in note for note in own.notes)


def test_few_other_timings_do_not_judge(quick, tmp_path):
    path = tmp_path / "ten.csv"
    path.write_text("\n".join(TIMINGS.read_text(encoding="utf-8").splitlines()[:12]))
    assert any("too few to judge" in note for note in search(**SETTINGS | {"measurements": str(path)}).notes)


def test_the_example_has_the_ten_networks_and_forty_more():
    rows = TIMINGS.read_text(encoding="utf-8").splitlines()[1:]
    assert len(rows) == 50
    assert {len(row.split(",")[0]) for row in rows} == {len(nas_bench_201().num_alternatives)}
    assert np.all([float(row.split(",")[1]) > 0 for row in rows])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measurements": None}, "measurements: missing"),
        ({"predictor": None}, "predictor: missing"),
        ({"predictor": "forest"}, "write few-shot"),
        ({"space": "mbconv"}, "networks of cells alone"),
        ({"device": "m2-max,t4"}, "of one machine"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ScenarioError, match=words):
        search(**{k: v for k, v in (SETTINGS | change).items() if v is not None})

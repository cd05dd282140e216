"""Runs that no fit reads: complete, apart from the fitted tables, and scored as the checked-in numbers say."""

import csv
import sys
from pathlib import Path

import pytest

from orrery.evidence.accuracy import read_tables
from orrery.evidence.campaign import source_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from scorecard_unseen import BATCHES, DECLINED, entries, lines  # noqa: E402

FEWEST_ROWS, FEWEST_CAMPAIGNS = 230, 40
FITTED = (
    "Argonne",
    "aiconfigurator",
    "GPU-Benchmarks",
    "rocm/vllm",
    "splitwise-sim",
    "llm-perf-bench",
    "premAI-io",
    "sgl-cookbook",
)
"""Publishers of tables that fits read, as far as they also publish what these tables are about."""

TABLES = [path for batch in BATCHES for path in batch.tables]
ROWS = [row for path in TABLES for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]


def test_every_row_says_where_it_is_from_and_under_which_conditions():
    for row in ROWS:
        told = ("format", "kernel", "engine_version") if row["kind"] == "kernel" else ("note", "model", "num_devices")
        assert all(row[column] for column in ("source", "device", *told)), row
        assert row.get("engine") or row.get("framework"), row


def test_there_are_enough_rows_of_enough_sources():
    assert len(ROWS) >= FEWEST_ROWS
    assert len({source_of(row["source"]) for row in ROWS}) >= FEWEST_CAMPAIGNS


def test_no_fitted_table_is_among_them():
    assert not [row["source"] for row in ROWS if any(name.casefold() in row["source"].casefold() for name in FITTED)]


def test_training_rows_are_scored_as_checked_in():
    found = entries(BATCHES[0].tables[1:])
    now = read_tables()[BATCHES[0].key]
    for metric in ("tokens_per_s_per_device", "peak_memory_bytes"):
        for group, entry in found[metric].items():
            assert entry["median"] == pytest.approx(now[metric][group]["median"], abs=0.005), (metric, group)


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: batch.key)
def test_serving_rows_are_scored_as_checked_in(batch):
    found = entries(batch.tables[:1])
    now = read_tables()[batch.key]
    for group, entry in found["output_tokens_per_s"].items():
        assert entry["median"] == pytest.approx(now["output_tokens_per_s"][group]["median"], abs=0.005), group
    assert set(found[DECLINED]) <= set(now[DECLINED])


def test_the_page_shows_the_first_score_beside_the_present_one():
    entry = {"rows": 2, "median": 0.1, "mean": 0.2, "p90": 0.3, "bias": -0.1, "covered_80": 0.5}
    first = {"tpot_s": {"closed": entry}, DECLINED: ["unknown model x (3)"]}
    now = {"tpot_s": {"closed": entry | {"median": 0.05}}, DECLINED: []}
    page = "\n".join(lines(BATCHES[0], now, first))
    assert "| `tpot_s` | closed | 2 | 10.0 / 20.0 / 30.0 | -10.0 | 50 | **5.0 / 20.0 / 30.0** | -10.0 | 50 |" in page
    assert "not answered at first: unknown model x (3)." in page
    assert "not answered now: none." in page
    assert all(f"{batch.key}, first score" in read_tables() for batch in BATCHES)

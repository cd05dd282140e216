"""The checked-in accuracy is that of the code (needs the measured tables: set ORRERY_DATA to their folder)."""

import os
from pathlib import Path

import numpy as np
import pytest

from orrery.evidence.accuracy import read_tables
from orrery.evidence.check import check_table
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import read_table

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ORRERY_DATA", ROOT.parent / "shared" / "data"))
ACCURACY = read_tables()

needs_data = pytest.mark.skipif(not (DATA / "kernels").is_dir(), reason=f"no measured tables under {DATA}")
CHANGE = 0.005
"""A median may move by half a point before the file must be written again (`make scorecard`)."""


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("gemm.csv.gz", "gemm"),
        ("attention_prefill.csv.gz", "attention_prefill"),
        ("attention_decode.csv.gz", "attention_decode"),
        ("moe.csv.gz", "moe"),
    ],
)
def test_medians_are_those_of_the_file(table, what):
    checked = check_table(read_table(DATA / "kernels" / table))
    slow_enough = checked.measured["time_s"] >= checked.answers.bound_s
    rows = checked.scored("time_s") & slow_enough & (sides(checked.table, what) == TEST)
    entry = ACCURACY[table]["time_s"][what]
    assert int(rows.sum()) == entry["rows"]
    assert float(np.median(np.abs(checked.error("time_s", rows)))) == pytest.approx(entry["median"], abs=CHANGE)


@pytest.mark.slow
@needs_data
def test_training_steps_are_those_of_the_file():
    checked = check_table(read_table(DATA / "training" / "vtrain_a100.csv"))
    rows = checked.scored("step_time_s") & (sides(checked.table, "training") == TEST)
    entry = ACCURACY["vtrain_a100.csv"]["step_time_s"]["megatron-deepspeed"]
    assert int(rows.sum()) == entry["rows"]
    assert float(np.median(np.abs(checked.error("step_time_s", rows)))) == pytest.approx(entry["median"], abs=CHANGE)
    assert ACCURACY["vtrain_a100.csv"]["step"] == ACCURACY["vtrain_a100.csv"]["step_time_s"]


def test_every_entry_states_its_errors():
    entries = [
        e
        for table in ACCURACY.values()
        for metric in table.values()
        if isinstance(metric, dict)
        for e in metric.values()
    ]
    assert entries
    for entry in entries:
        assert entry["rows"] > 0
        assert 0 <= entry["median"] <= entry["p90"]

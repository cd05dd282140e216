"""Two hundred measured rows are predicted as when the scorecard was made."""

import os
from pathlib import Path

import pytest

from orrery.evidence.tables import read_table
from scorecard_sample import NUM_ROWS, predict, read_sample

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
SAMPLE = read_sample()


def test_the_sample_has_rows_of_every_kind():
    assert sum(map(len, SAMPLE.values())) == NUM_ROWS
    assert {name.split("/")[0] for name in SAMPLE} == {"kernels", "serving", "training"}
    answered = [metrics for rows in SAMPLE.values() for metrics in rows.values() if metrics]
    assert len(answered) > 0.8 * NUM_ROWS


@pytest.mark.skipif(not (DATA / "kernels").is_dir(), reason="no measured tables beside the repository (ORRERY_DATA)")
def test_predictions_are_those_of_the_scorecard():
    """A change that is meant writes the sample again: ``python tools/scorecard_sample.py``."""
    moved = []
    for name, rows in SAMPLE.items():
        found = predict(read_table(DATA / name), [int(row) for row in rows])
        new = {row: found[row] for row, was in rows.items() if not _equal(found[row], was)}
        moved += [f"{name}, row {row}: {now} was {rows[row]}" for row, now in new.items()]
    assert not moved, f"{len(moved)} predictions moved:\n" + "\n".join(moved)


def _equal(found: dict[str, float], was: dict[str, float]) -> bool:
    return found.keys() == was.keys() and all(found[m] == pytest.approx(was[m], rel=1e-6) for m in was)

"""A sample of the scorecard: 200 measured rows drawn by seed over all tables, with what is predicted for each.

    python tools/scorecard_sample.py --data ../shared/data

writes tests/evidence/sampled_rows.toml, which a quick test holds every change against: a prediction that moves is seen
in a minute, long before the scorecard is made again. ``make scorecard`` writes it too.
"""

import argparse
import tomllib
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import tomli_w

from orrery.base.files import write_atomically
from orrery.evidence.check import check_table
from orrery.evidence.columns import kinds_of, states_anything
from orrery.evidence.tables import Table, read_table

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "evidence" / "sampled_rows.toml"
NUM_ROWS = 200
SEED = 2026
FOLDERS = ("kernels", "serving", "training")

Predicted = dict[str, dict[str, float]]
"""Row of a table (the first is "0") -> metric -> what is predicted."""


def tables_of(data: Path) -> dict[str, Table]:
    """The measured tables under a folder that state what is predicted, by ``folder/file``."""
    paths = sorted(path for folder in FOLDERS for path in (data / folder).glob("*.csv*"))
    tables = ((path, read_table(path)) for path in paths)
    return {f"{path.parent.name}/{path.name}": table for path, table in tables if _is_measured(table)}


def predict(table: Table, rows: list[int]) -> Predicted:
    """What is predicted for some rows; a row that is declined has no metrics."""
    checked = check_table(table.take(rows))
    return {
        str(row): {
            metric: float(f"{values[at]:.8g}")
            for metric, values in sorted(checked.answers.predicted.items())
            if at not in checked.answers.declined and np.isfinite(values[at])
        }
        for at, row in enumerate(rows)
    }


def read_sample(path: Path = SAMPLE) -> dict[str, Predicted]:
    """The checked-in sample by table."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def draw(data: Path) -> dict[str, Predicted]:
    """Rows drawn by turns from all tables, so that each of them is there, and predicted."""
    rng = np.random.default_rng(SEED)
    tables = tables_of(data)
    shuffled = {name: iter(rng.permutation(len(table)).tolist()) for name, table in tables.items()}
    drawn: dict[str, list[int]] = {name: [] for name in tables}
    turns = ((name, row) for name in cycle(tables) if (row := next(shuffled[name], None)) is not None)
    for name, row in islice(turns, NUM_ROWS):
        drawn[name].append(row)
    return {name: predict(tables[name], sorted(rows)) for name, rows in drawn.items()}


def _is_measured(table: Table) -> bool:
    return any(states_anything(table, kind) for kind in set(kinds_of(table).tolist()))


def main() -> None:
    """Draw, predict and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of measured tables")
    sample = draw(parser.parse_args().data)
    head = "# made by: python tools/scorecard_sample.py. Predictions of measured rows (the first is 0), in SI units.\n"
    write_atomically(SAMPLE, head + tomli_w.dumps(sample))
    print(f"wrote {SAMPLE.relative_to(ROOT)}: {sum(map(len, sample.values()))} rows of {len(sample)} tables")


if __name__ == "__main__":
    main()

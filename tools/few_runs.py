"""How well ten of a service's own runs predict its others: ``calibrate runs`` on random draws of measured tables.

    python tools/few_runs.py DATA [--draws 5] [--runs 10]

A service is one model on one engine, device and layout, with 20 rows or more that state a time per token; they differ
in lengths and load. Ten rows settle the constants (``calibrate.runs.fit``), the others are predicted; medians of the
absolute error over all draws are printed, with the shipped constants and with those of the ten.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from orrery.calibrate.runs.answer import OPEN
from orrery.calibrate.runs.fit import errors_of, fit, keep, known_share
from orrery.calibrate.runs.problem import Floats
from orrery.calibrate.runs.serving import ServingRuns
from orrery.evidence.metrics import base_metric
from orrery.evidence.tables import Table, read_table

SERVICE = (
    "model",
    "device",
    "num_devices",
    "engine",
    "engine_version",
    "mode",
    "tp",
    "pp",
    "dp",
    "ep",
    "weights_format",
    "kv_format",
    "source",
    "technique",
)
FEWEST = 20


def services(table: Table) -> Iterator[tuple[tuple[str, ...], Table]]:
    """Rows of one service, where there are enough."""
    columns = [table.columns.get(c, ("",) * len(table)) for c in SERVICE]
    rows: dict[tuple[str, ...], list[int]] = {}
    for number, key in enumerate(zip(*columns, strict=True)):
        if table.columns.get("tpot_s", ("",) * len(table))[number]:
            rows.setdefault(key, []).append(number)
    yield from ((key, table.take(found)) for key, found in rows.items() if len(found) >= FEWEST)


def left_over(table: Table, draws: int, count: int) -> dict[str, tuple[Floats, Floats]]:
    """By metric, |log(predicted / measured)| of rows that were not drawn: as shipped, and with the drawn ones' fit."""
    out: dict[str, list[tuple[float, float]]] = {"tpot_s": [], "ttft_s": []}
    everything = ServingRuns(table)
    before = errors_of(everything, everything.start, lambda: None)
    for seed in range(draws):
        drawn = sorted(np.random.default_rng(seed).choice(len(everything.table), count, replace=False).tolist())
        few = ServingRuns(everything.table.take(drawn))
        whole = fit(few, few.constants, np.ones(len(few.cells)), lambda: None)
        retained = keep(whole, known_share(whole) <= OPEN)
        after = errors_of(everything, retained.values(few.start), lambda: None)
        for cell, b, a in zip(everything.cells, before, after, strict=True):
            if cell.run not in drawn and base_metric(cell.metric) in out:
                out[base_metric(cell.metric)].append((abs(np.expm1(b)), abs(np.expm1(a))))
    found = {m: np.array(x, np.float64) for m, x in out.items() if x}
    return {m: (x[:, 0], x[:, 1]) for m, x in found.items()}


def main() -> None:
    """Print a line for each service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10)
    requested = parser.parse_args()
    for path in sorted(requested.data.glob("*.csv")):
        for key, rows in services(read_table(path)):
            found = left_over(rows, requested.draws, requested.runs)
            words = [f"{m}: {np.median(b):6.1%} -> {np.median(a):6.1%}" for m, (b, a) in found.items()]
            print(
                f"{path.stem} {key[0]} {key[1]} {key[3]} {key[5]} tp{key[6]} {len(rows)} rows  " + "  ".join(words),
                flush=True,
            )


if __name__ == "__main__":
    main()

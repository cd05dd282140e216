"""Widths of training predictions: how far intervals of seen frameworks are widened for tables that they never saw."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "fit"))

from training_widths import levels, tables_s, tables_weight, widened  # noqa: E402


@dataclass(frozen=True)
class Row:
    """A measured row of a framework's table."""

    file: str
    side: str = "calibrate"
    kind: str = "pretrain"
    key: tuple[str, str, str] = ("nemo", "hopper", "bf16")


def of(middles, spread, rows=50, seed=7):
    """Rows of tables with these middles, and their errors."""
    rng = np.random.default_rng(seed)
    runs = [Row(f"table {i}") for i in range(len(middles)) for _ in range(rows)]
    errors = np.concatenate([m + rng.normal(0.0, spread, rows) for m in middles])
    return runs, errors


def test_the_middles_of_tables_as_a_deviation():
    runs, errors = of([0.1, -0.2, 0.3], 0.0)
    assert tables_s(runs, errors) == pytest.approx(1.4826 * 0.2)


def test_tables_alike_need_no_widening():
    """Rows of any table are then covered by those of the others: nothing is added."""
    runs, errors = of([0.0] * 6, 0.1, rows=400)
    assert tables_weight(runs, errors, 0.1) <= 0.2


def test_tables_apart_are_covered_as_claimed_and_no_more():
    """Each table's own rows hardly differ, so what covers a table left out is the widening alone."""
    runs, errors = of([-0.3, -0.2, -0.1, 0.1, 0.2, 0.3], 0.01)
    deviation = tables_s(runs, errors)
    weight = tables_weight(runs, errors, deviation)

    def covered(weight):
        shares = []
        for i in range(6):
            out = np.arange(len(errors)) // 50 == i
            low, high = widened(levels([errors[~out]]), weight * deviation)[:2]
            shares.append(np.mean((errors[out] >= low) & (errors[out] <= high)))
        return float(np.mean(shares))

    assert 0.8 <= covered(weight) <= 0.9
    assert covered(weight - 0.05) < 0.8


def test_one_table_of_a_framework_says_nothing_of_the_next():
    runs, errors = of([0.2], 0.1)
    assert tables_weight(runs, errors, 0.1) == 1.0
    apart = [Row("a", key=("nemo", "hopper", "")), Row("b", key=("maxtext", "hopper", ""))]
    assert tables_weight([r for r in apart for _ in range(20)], np.zeros(40), 0.1) == 1.0

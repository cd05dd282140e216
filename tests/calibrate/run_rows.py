"""Rows that a reader made, and their cells."""

import pytest


def row(table, number=0):
    return {c: v[number] for c, v in table.columns.items() if v[number]}


def near(cell, value):
    return float(cell) == pytest.approx(value, rel=1e-6)

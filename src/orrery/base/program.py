"""A linear program, some of whose unknowns are whole: least cost with rows within their bounds, solved by HiGHS."""

import os
import sys
from ctypes import CDLL
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT = {"mip_abs_gap": 1e-12, "mip_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10}
"""Solver tolerances where a proof of optimality is required."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseRows:
    """Rows of which few entries are not zero: entry i is ``value[i]`` in column ``index[i]``; row r is start[r] to
    start[r + 1]."""

    start: Ints
    index: Ints
    value: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """min cost . x  with  row_low <= matrix x <= row_high,  0 <= x <= most,  x whole where ``is_whole``."""

    cost: Floats
    matrix: Floats | SparseRows
    row_low: Floats
    row_high: Floats
    most: Floats
    is_whole: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """The best x that was found."""

    x: Floats
    is_proven: bool  # nothing better exists, to the gap that was asked for
    bound: float = -np.inf  # no x costs less


def solved(program: Program, *, gap_frac: float = 1e-6, most_s: float = 20.0, most_nodes: int = 0) -> Solution | None:
    """The best x, to a share ``gap_frac`` of its cost (0: exactly) or the best within limits; None: there is none.

    ``most_nodes`` limits the branches tried (0: no limit). One thread and one seed: the same every time where
    ``most_s`` is not reached.
    """
    highs = _highs()
    lp = highs.HighsLp()
    lp.num_col_, lp.num_row_ = program.cost.size, program.row_low.size
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(program.cost.size), _bounded(program.most, highs)
    lp.row_lower_, lp.row_upper_ = _bounded(program.row_low, highs), _bounded(program.row_high, highs)
    rows = program.matrix if isinstance(program.matrix, SparseRows) else _sparse(program.matrix)
    lp.a_matrix_.format_ = highs.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.start, rows.index, rows.value
    kinds = (highs.HighsVarType.kContinuous, highs.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(whole)] for whole in program.is_whole]
    solver = _quiet_solver(highs)
    settings: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "mip_rel_gap": gap_frac,
        "time_limit": most_s,
    }
    if most_nodes:
        settings["mip_max_nodes"] = most_nodes
    for name, value in (settings | (EXACT if not gap_frac else {})).items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    if not solver.getInfo().primal_solution_status:
        return None
    x = np.array(solver.getSolution().col_value, dtype=np.float64)
    is_proven = solver.getModelStatus() == highs.HighsModelStatus.kOptimal
    bound = float(solver.getInfo().mip_dual_bound) if program.is_whole.any() else float(program.cost @ x)
    return Solution(x=x, is_proven=is_proven, bound=bound)


def _sparse(matrix: Floats) -> SparseRows:
    filled = matrix != 0.0
    start = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    return SparseRows(start=start, index=np.nonzero(filled)[1], value=matrix[filled])


def _quiet_solver(highs: Any) -> Any:
    """A solver without the banner that newer releases print to the process's output while the first one is made."""
    sys.stdout.flush()
    try:
        output = os.dup(1)
    except OSError:
        return highs.Highs()
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            solver = highs.Highs()
            CDLL(None).fflush(None)
        finally:
            os.dup2(output, 1)
            os.close(output)
    return solver


def _bounded(values: Floats, highs: Any) -> Floats:
    """Infinite bounds as the solver writes them."""
    return np.clip(values, -highs.kHighsInf, highs.kHighsInf)


def _highs() -> Any:
    """The solver; ScenarioError where it is not installed."""
    try:
        return import_module("highspy")
    except ModuleNotFoundError:
        raise ScenarioError(
            "The solver HiGHS is not installed; write: pip install 'orrery-ai[bits]' (12 MB more)."
        ) from None

"""A linear program, some of whose unknowns are whole: least cost with rows within their bounds, solved by HiGHS."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]

EXACT = {"mip_abs_gap": 1e-12, "mip_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10}
"""What the solver may leave open where a proof is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """min cost . x  with  row_low <= matrix x <= row_high,  0 <= x <= most,  x whole where ``is_whole``."""

    cost: Floats
    matrix: Floats
    row_low: Floats
    row_high: Floats
    most: Floats
    is_whole: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """The best x that was found."""

    x: Floats
    is_proven: bool  # nothing better exists, to the gap that was asked for


def solved(program: Program, *, gap_frac: float = 1e-6, most_s: float = 20.0) -> Solution | None:
    """The best x, to a share ``gap_frac`` of its cost (0: exactly) or the best within ``most_s``; None: there is none.

    One thread and one seed: the same every time.
    """
    highs = _highs()
    lp = highs.HighsLp()
    lp.num_col_, lp.num_row_ = program.cost.size, program.matrix.shape[0]
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(program.cost.size), _bounded(program.most, highs)
    lp.row_lower_, lp.row_upper_ = _bounded(program.row_low, highs), _bounded(program.row_high, highs)
    filled = program.matrix != 0.0
    lp.a_matrix_.format_ = highs.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    lp.a_matrix_.index_, lp.a_matrix_.value_ = np.nonzero(filled)[1], program.matrix[filled]
    kinds = (highs.HighsVarType.kContinuous, highs.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(whole)] for whole in program.is_whole]
    solver = highs.Highs()
    settings = {"output_flag": False, "threads": 1, "random_seed": 0, "mip_rel_gap": gap_frac, "time_limit": most_s}
    for name, value in (settings | (EXACT if not gap_frac else {})).items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    if not solver.getInfo().primal_solution_status:
        return None
    x = np.array(solver.getSolution().col_value, dtype=np.float64)
    return Solution(x=x, is_proven=solver.getModelStatus() == highs.HighsModelStatus.kOptimal)


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

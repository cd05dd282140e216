"""Constants of the GEMM rule from measured rows: a robust fit in log time for every tile set and split limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from gemm_rows import Rows
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.gemm.machine import constants_vector
from orrery.kernels.gemm.tiles import TILE_SETS, tile_set

Floats = NDArray[np.float64]

START = {
    "peak_frac": 0.8, "bandwidth_frac": 0.85, "overhead_s": 2.5e-6, "feed_ratio": 6.0, "overlap_frac": 0.25,
    "step_s": 1e-9, "split_s": 2.5e-6, "fill_elements": 128.0, "wave_frac": 0.3, "cache_ratio": 1.0,
    "cache_gain_frac": 0.3, "dequantise_ratio": 1.0, "gemv_s": 3e-6, "gemv_ratio": 0.5,
    "quantise_s": 2e-6, "quantise_frac": 0.5,
}  # fmt: skip
BOUNDS = {
    "peak_frac": (0.25, 1.0), "bandwidth_frac": (0.3, 1.0), "overhead_s": (5e-7, 2e-5), "feed_ratio": (0.3, 40.0),
    "overlap_frac": (0.01, 1.0), "step_s": (1e-11, 2e-8), "split_s": (1e-7, 3e-5), "fill_elements": (8.0, 800.0),
    "wave_frac": (0.01, 1.0), "cache_ratio": (0.1, 3.0), "cache_gain_frac": (0.02, 0.95),
    "dequantise_ratio": (0.01, 100.0), "gemv_s": (1e-6, 2e-5), "gemv_ratio": (0.02, 4.0),
    "quantise_s": (1e-7, 2e-5), "quantise_frac": (0.05, 5.0),
}  # fmt: skip
GEMV_ROWS = {"int8": 4.0, "int8_weight_only": 15.0, "int4_weight_only": 15.0, "bf16": 1.0, "fp16": 1.0}
"""Up to how many rows of m the library takes a matrix-vector kernel (TensorRT-LLM's plugins, cuBLAS)."""

SPLITS = (1.0, 16.0)  # with or without splitting k
ERROR_SCALE = 0.03  # log error where the loss turns from square to linear: repeat noise is 1 to 3 %
PRIOR = 2e-3  # pull of a constant towards START, in standard errors a row: decides only what the rows leave open


@dataclass(slots=True)
class Problem:
    """Rows to explain with one set of constants; ``fixed`` holds those that are not free."""

    parts: Sequence[Rows]
    free: tuple[str, ...]
    fixed: Mapping[str, float]
    start: Mapping[str, float] = field(default_factory=lambda: START)
    prior: float = PRIOR
    weights: Sequence[float] = ()

    def constants(self, x: Floats) -> dict[str, float]:
        """All constants at the logarithms ``x`` of the free ones."""
        return {**self.fixed, **{c: float(v) for c, v in zip(self.free, np.exp(x), strict=True)}}

    def residuals(self, x: Floats) -> Floats:
        """log(predicted / measured) of every row, then the pull towards the start."""
        constants = self.constants(x)
        errors = [np.log(predicted(rows, constants) / rows.time_s) for rows in self.parts]
        if self.weights:
            errors = [e * w for e, w in zip(errors, self.weights, strict=True)]
        num_rows = sum(len(e) for e in errors)
        return np.concatenate([*errors, self.prior * np.sqrt(num_rows) * (x - self.origin())])

    def origin(self) -> Floats:
        """Logarithms of the start."""
        return np.log([self.start[c] for c in self.free])


def predicted(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """Times by the rule under the conditions of the measurement."""
    out = np.zeros((len(rows.m), kernel.COLUMNS))
    ones = np.ones(len(rows.m))
    vector, tiles = constants_vector(constants), tile_set(constants["tile_set"])
    kernel.many(rows.m, rows.n, rows.k, ones, vector, rows.machine(), tiles, False, rows.quantises, out)
    return out[:, kernel.TIME]


def free_constants(format: str, quantises: bool, *, is_launch_known: bool) -> tuple[str, ...]:
    """Which constants the rows of a format can tell."""
    names = [
        "peak_frac", "bandwidth_frac", "feed_ratio", "overlap_frac", "step_s", "fill_elements", "wave_frac",
        "cache_ratio", "cache_gain_frac",
    ]  # fmt: skip
    if not is_launch_known:
        names.append("overhead_s")
    if quantises:
        names += ["quantise_s", "quantise_frac"]
    if format in GEMV_ROWS:
        names.append("gemv_s")
        names += ["gemv_ratio"] if GEMV_ROWS[format] > 1 else []
    if format.endswith("weight_only"):
        names.append("dequantise_ratio")
    return tuple(names)


def solve(problem: Problem, x: Floats | None = None) -> tuple[float, dict[str, float]]:
    """Loss and constants from one start."""
    low, high = (np.log([BOUNDS[c][side] for c in problem.free]) for side in (0, 1))
    start = np.clip(problem.origin() if x is None else x, low + 1e-3, high - 1e-3)
    found = least_squares(
        problem.residuals, start, bounds=(low, high), loss="soft_l1", f_scale=ERROR_SCALE, diff_step=3e-3, max_nfev=80
    )
    return float(found.cost), problem.constants(found.x)


def fit(parts: Sequence[Rows], *, overhead_s: float = 0.0, weights: Sequence[float] = ()) -> dict[str, float]:
    """The best constants over tile sets and split limits; ``overhead_s`` where the launch is known from bf16 rows."""
    format, quantises = parts[0].format, parts[0].quantises
    free = free_constants(format, quantises, is_launch_known=overhead_s > 0)
    tried: list[tuple[float, dict[str, float], Problem]] = []
    for index in range(len(TILE_SETS)):
        for max_splits in SPLITS:
            fixed = {"tile_set": float(index), "max_splits": max_splits}
            fixed |= {"gemv_rows": GEMV_ROWS[format], "gemv_ratio": 1.0} if format in GEMV_ROWS else {}
            fixed |= {"overhead_s": overhead_s} if overhead_s > 0 else {}
            names = (*free, "split_s") if max_splits > 1 else free
            problem = Problem(parts, names, {k: v for k, v in fixed.items() if k not in names}, weights=weights)
            tried.append((*solve(problem), problem))
    tried.sort(key=lambda t: t[0])
    random = np.random.default_rng(0)
    for loss, constants, problem in tried[:2]:
        best = np.log([constants[c] for c in problem.free])
        for _ in range(2):
            again = solve(problem, best + random.normal(0, 0.4, len(best)))
            loss, constants = min((loss, constants), again, key=lambda t: t[0])
        tried.append((loss, constants, problem))
    return min(tried, key=lambda t: t[0])[1]

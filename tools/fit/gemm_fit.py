"""Constants of the GEMM rule from measured rows: a robust fit in log time for every tile set and split limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gemm_rows import Rows
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.gemm.machine import constants_vector
from orrery.kernels.gemm.tiles import TILE_SETS, tile_set

Floats = NDArray[np.float64]

START = {
    "peak_frac": 0.8,
    "bandwidth_frac": 0.85,
    "overhead_s": 2.5e-6,
    "feed_ratio": 6.0,
    "overlap_frac": 0.25,
    "step_s": 1e-9,
    "split_s": 2.5e-6,
    "ramp_s": 1e-6,
    "reread_ratio": 1.0,
    "cache_ratio": 1.0,
    "cache_gain_frac": 0.3,
    "dequantise_ratio": 1.0,
    "gemv_s": 3e-6,
    "gemv_ratio": 0.5,
    "quantise_s": 2e-6,
    "quantise_frac": 0.5,
    "host_s": 1e-4,
}
BOUNDS = {
    "peak_frac": (0.25, 1.0),
    "bandwidth_frac": (0.3, 1.0),
    "overhead_s": (5e-7, 5e-5),
    "feed_ratio": (0.3, 40.0),
    "overlap_frac": (0.01, 1.0),
    "step_s": (1e-11, 2e-8),
    "split_s": (1e-7, 3e-5),
    "ramp_s": (1e-8, 1e-5),
    "reread_ratio": (0.1, 8.0),
    "cache_ratio": (0.1, 3.0),
    "cache_gain_frac": (0.02, 0.95),
    "dequantise_ratio": (0.01, 100.0),
    "gemv_s": (1e-6, 2e-5),
    "gemv_ratio": (0.02, 4.0),
    "quantise_s": (1e-7, 2e-5),
    "quantise_frac": (0.05, 5.0),
    "host_s": (1e-5, 2e-3),
}
GEMV_ROWS = {"int8": 4.0, "int8_weight_only": 15.0, "int4_weight_only": 15.0, "bf16": 1.0, "fp16": 1.0}
"""Up to how many rows of m the library takes a matrix-vector kernel (TensorRT-LLM's plugins, cuBLAS)."""

ERROR_SCALE = 0.03  # log error where the loss turns from square to linear: repeat noise is 1 to 3 %
PRIOR = 2e-3  # pull of a constant towards START, in standard errors a row: decides only what the rows leave open


@dataclass(slots=True)
class Problem:
    """Rows to explain with one set of constants; ``fixed`` holds those that are not free."""

    parts: Sequence[Rows]
    free: tuple[str, ...]
    fixed: Mapping[str, float]

    def constants(self, x: Floats) -> dict[str, float]:
        """All constants at the logarithms ``x`` of the free ones."""
        return {**self.fixed, **{c: float(v) for c, v in zip(self.free, np.exp(x), strict=True)}}

    def residuals(self, x: Floats) -> Floats:
        """log(predicted / measured) of every row, then the pull towards the start."""
        constants = self.constants(x)
        errors = [np.log(predicted(rows, constants) / rows.time_s) for rows in self.parts]
        num_rows = sum(len(e) for e in errors)
        return np.concatenate([*errors, PRIOR * np.sqrt(num_rows) * (x - self.origin())])

    def position(self, constants: Mapping[str, float]) -> Floats:
        """Logarithms of the free ones among some constants."""
        return np.log([constants[c] for c in self.free])

    def origin(self) -> Floats:
        """Logarithms of the start."""
        return np.log([START[c] for c in self.free])


def predicted(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """Times by the rule under the conditions of the measurement."""
    out = np.zeros((len(rows.m), kernel.COLUMNS))
    vector, tiles = constants_vector(constants), tile_set(constants["tile_set"])
    kernel.many(rows.m, rows.n, rows.k, rows.batch, vector, rows.machine(), tiles, False, rows.quantises, out)
    return out[:, kernel.TIME]


def free_constants(format: str, quantises: bool) -> tuple[str, ...]:
    """Which constants the rows of a format can tell."""
    names = [
        "overhead_s",
        "peak_frac",
        "bandwidth_frac",
        "feed_ratio",
        "overlap_frac",
        "step_s",
        "ramp_s",
        "reread_ratio",
        "cache_ratio",
        "cache_gain_frac",
    ]
    if quantises:
        names += ["quantise_s", "quantise_frac"]
    if format in GEMV_ROWS:
        names.append("gemv_s")
        names += ["gemv_ratio"] if GEMV_ROWS[format] > 1 else []
    if format.endswith("weight_only"):
        names.append("dequantise_ratio")
    return tuple(names)


def solve(problem: Problem, x: Floats | None = None, rounds: int = 60) -> tuple[float, dict[str, float]]:
    """Loss and constants from one start."""
    low, high = (np.log([BOUNDS[c][side] for c in problem.free]) for side in (0, 1))
    start = np.clip(problem.origin() if x is None else x, low + 1e-3, high - 1e-3)
    found = least_squares(
        problem.residuals,
        start,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=ERROR_SCALE,
        diff_step=3e-3,
        max_nfev=rounds,
    )
    return float(found.cost), problem.constants(found.x)


def fit(
    parts: Sequence[Rows], *, known: Mapping[str, float] | None = None, like: Sequence[Mapping[str, float]] = ()
) -> dict[str, float]:
    """The best constants over the choices of a library: tile set, split limit, fewest rows.

    ``known``: constants that other rows have told (the launch, from bf16). ``like``: take the choices from one of these
    constants instead of trying all.
    """
    problem_of = _problems(parts, dict(known or {}))
    if like:
        choices = dict.fromkeys(Choice.of(constants) for constants in like)
        return min((solve(problem_of(choice)) for choice in choices), key=lambda t: t[0])[1]
    tried = [(*solve(p, rounds=FIRST_ROUNDS), p) for p in map(problem_of, FIRST_CHOICES)]
    best = Choice.of(min(tried, key=lambda t: t[0])[1])
    tried += [(*solve(p, rounds=FIRST_ROUNDS), p) for p in map(problem_of, best.by_rows())]
    tried.sort(key=lambda t: t[0])
    polished = [(*solve(p, p.position(c)), p) for _, c, p in tried[:3]]
    _, constants, problem = min(polished, key=lambda t: t[0])
    again = problem.position(constants) + np.random.default_rng(0).normal(0, 0.4, len(problem.free))
    return min(*polished, (*solve(problem, again), problem), key=lambda t: t[0])[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a library does: whole numbers that a least-squares fit cannot move."""

    tile_set: int
    max_splits: int
    min_rows: int = 0

    @classmethod
    def of(cls, constants: Mapping[str, float]) -> "Choice":
        """The choices among some constants."""
        return cls(**{name: int(constants.get(name, 0)) for name in ("tile_set", "max_splits", "min_rows")})

    def by_rows(self) -> "list[Choice]":
        """The same library, picking tiles by m alone; only sets that have tiles of so many rows."""
        return [
            Choice(tile_set=index, max_splits=self.max_splits, min_rows=rows)
            for index, tiles in enumerate(TILE_SETS[:2])
            for rows in (64, 128, 256)
            if rows <= max(t[0] for t in tiles)
        ]


FIRST_CHOICES = [Choice(tile_set=i, max_splits=s) for i in range(len(TILE_SETS)) for s in (1, 16)]
FIRST_ROUNDS = 14  # enough to rank the choices


def _problems(parts: Sequence[Rows], known: dict[str, float]) -> Callable[[Choice], Problem]:
    """The problem that belongs to a choice."""
    format = parts[0].format
    free = tuple(c for c in free_constants(format, parts[0].quantises) if c not in known)

    def problem(choice: Choice) -> Problem:
        fixed = known | {name: float(getattr(choice, name)) for name in ("tile_set", "max_splits", "min_rows")}
        if format in GEMV_ROWS:
            fixed |= {"gemv_rows": GEMV_ROWS[format]} | ({} if "gemv_ratio" in free else {"gemv_ratio": 1.0})
        return Problem(parts, (*free, "split_s") if choice.max_splits > 1 else free, fixed)

    return problem

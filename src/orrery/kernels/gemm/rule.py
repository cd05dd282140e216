"""How long a dense product takes on a device: measured constants, datasheet roofs, one pass of the kernel."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.calibration import Calibration, ResidualTrees
from orrery.hardware.device import Device
from orrery.kernels.columns import flat_columns, timing
from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.gemm.machine import constants_vector, machine_vector
from orrery.kernels.gemm.tiles import tile_set
from orrery.kernels.ops import Gemm, Timing
from orrery.kernels.residual import correction
from orrery.kernels.resolve import find, unhindered
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

RATE, WEIGHT, RESULT = (kernel.MACHINE.index(name) for name in ("flops", "b_bytes", "c_bytes"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """Why a product takes its time: the tile and split it chose, how full they are, and the terms that met."""

    calibration: Calibration
    tile: tuple[Floats, Floats]  # rows, columns; 0 = a matrix-vector kernel
    num_splits: Floats
    num_waves: Floats
    tile_fill_frac: Floats
    mma_s: Floats  # the three terms that overlap
    feed_s: Floats
    dram_s: Floats
    compute_s: Floats  # datasheet roof
    memory_s: Floats  # datasheet roof
    overhead_s: Floats
    time_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """All facts about (device, format, engine) that do not depend on the shape."""

    calibration: Calibration
    constants: Floats
    machine: Floats
    tiles: Floats
    quantises: bool


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, engine: str) -> _Ready:
    number = get_format(format)
    found = unhindered(find(device, "gemm", number.name, engine), device, number.name, ("peak_frac",))
    if get_format(found.format).bytes_per_element != number.bytes_per_element:
        found = replace(found, residual=None)  # trees know the kernels of one width, the rule knows any
    vector, tiles = constants_vector(found.constants), tile_set(found.constants["tile_set"])
    quantises = "quantise_s" in found.constants and not number.weight_only
    return _Ready(found, vector, machine_vector(device, number), tiles, quantises)


def time_on(op: Gemm, machine: Floats, found: Calibration) -> Floats:
    """Time of ``op`` on a machine vector of one's own, as ``MACHINE`` names it; the op's format plays no part."""
    bare = replace(found, residual=None)  # trees know the kernels that were measured
    tiles = tile_set(found.constants["tile_set"])
    return _rows(op, _Ready(bare, constants_vector(found.constants), machine, tiles, False))[kernel.TIME]


def _rows(op: Gemm, ready: _Ready) -> Floats:
    """The kernel's columns, first axis; further axes are the op's broadcast shape."""
    quantises = ready.quantises and op.quantises_input
    machine = _machine_for(op, ready.machine)
    fixed = (ready.constants, machine, ready.tiles, op.is_cold, quantises)
    trees = ready.calibration.residual
    shape: tuple[int, ...] = ()
    if type(op.m) is type(op.n) is type(op.k) is type(op.batch) is int:
        if trees is None:
            return kernel.scalar(float(op.m), float(op.n), float(op.k), float(op.batch), *fixed)
        flat = [np.array([size], dtype=np.float64) for size in (op.m, op.n, op.k, op.batch)]
    else:
        shape, flat = flat_columns((op.m, op.n, op.k, op.batch), np.float64)
    out = np.zeros((flat[0].size, kernel.COLUMNS))
    kernel.many(*flat, *fixed, out)
    if trees is not None:
        roof = np.maximum(out[:, kernel.COMPUTE], out[:, kernel.MEMORY] if op.is_cold else 0.0)
        out[:, kernel.TIME] = np.maximum(out[:, kernel.TIME] * _learned(flat, ready, trees), roof)
    return out.T.reshape(kernel.COLUMNS, *shape)


def _machine_for(op: Gemm, machine: Floats) -> Floats:
    """The machine as an op sees it: bytes of its results and of sparse weights, and a rate that counts weights which
    are skipped as if they were multiplied."""
    if not op.result_bytes and op.kept_frac == 1.0:
        return machine
    machine = machine.copy()
    if op.result_bytes:
        machine[RESULT] = op.result_bytes
    machine[RATE] /= op.kept_frac
    machine[WEIGHT] = op.kept_frac * (machine[WEIGHT] + op.index_bits / 8.0)
    return machine


def _learned(flat: list[Floats], ready: _Ready, trees: ResidualTrees) -> Floats:
    """measured / rule as the trees expect it, 1 far outside the measured sizes.

    The trees see the condition of the measurements that taught them: warm cache, input quantised.
    """
    m, n, k, _ = flat
    rows = np.zeros((m.size, kernel.COLUMNS))
    condition = (np.ones(m.size), ready.constants, ready.machine, ready.tiles, False, ready.quantises)
    kernel.many(m, n, k, *condition, rows)
    ranges, sizes = ready.calibration.range, {"m": m, "n": n, "k": k}
    within = [(size, ranges[name]) for name, size in sizes.items() if name in ranges]
    return correction(features(m, n, k, rows, ready.machine), trees, within)


def predict(op: Gemm, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device``; arrays of the op's broadcast shape."""
    found = timing(_rows(op, _ready(device, op.format, engine)))
    return found if op.kept_frac == 1.0 else _sparse(op, found, device, engine)


def _sparse(op: Gemm, found: Timing, device: Device, engine: str) -> Timing:
    """Timing of a sparse product: skipped weights are no operations, and no time shrinks by more than their share."""
    whole = timing(_rows(replace(op, kept_frac=1.0), _ready(device, op.format, engine)))
    time_s = np.maximum(found.time_s, op.kept_frac * whole.time_s)
    return replace(found, time_s=time_s, flops=op.kept_frac * found.flops)


def explain(op: Gemm, device: Device, engine: str = "") -> Terms:
    """The same answer with the choices behind it."""
    ready = _ready(device, op.format, engine)
    rows = _rows(op, ready)
    choice = rows[kernel.CHOICE]
    index = np.maximum(choice // 100, 0).astype(np.int64)
    is_tiled = choice > 0
    return Terms(
        calibration=ready.calibration,
        tile=(np.where(is_tiled, ready.tiles[index, 0], 0.0), np.where(is_tiled, ready.tiles[index, 1], 0.0)),
        num_splits=np.where(is_tiled, choice % 100, 1.0),
        num_waves=rows[kernel.WAVES],
        tile_fill_frac=rows[kernel.FILLED],
        mma_s=rows[kernel.MMA],
        feed_s=rows[kernel.FEED],
        dram_s=rows[kernel.DRAM],
        compute_s=rows[kernel.COMPUTE],
        memory_s=rows[kernel.MEMORY],
        overhead_s=rows[kernel.OVERHEAD],
        time_s=rows[kernel.TIME],
    )


def features(m: Floats, n: Floats, k: Floats, rows: Floats, machine: Floats) -> Floats:
    """One row of ``kernel.FEATURES`` for every shape; ``rows`` are the kernel's under the measured condition."""
    x = np.empty((m.size, len(kernel.FEATURES)))
    kernel.features(m, n, k, rows, machine, x)
    return x

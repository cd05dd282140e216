"""Tiles chosen on the spot: candidates of a product compiled and timed one after the other, until time is up.

Tuning takes, for each candidate, its compilation and a few runs; products of one shape are tuned once. A candidate that
would pass the budget is not tried, and what was not tuned keeps the tile that a library ships with. Jia et al.,
nn-JIT.web (arXiv 2309.08978), cut candidates to dozens and compilation to what a browser needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.hardware.device import Device
from orrery.kernels.gemm.naive_tiles import tiled_run

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """Cost of one trial, the candidates, and the choice without tuning."""

    tiles: tuple[int, ...]
    shipped_tile: int
    compile_s: float  # of one candidate
    num_trials: int  # runs of one
    dispatch_s: float  # of a kernel, beside its own time
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The products of one network before and after."""

    shipped_s: float
    tuned_s: float
    tuning_s: float
    num_tried: int
    tiles: tuple[int, ...]  # of each shape


def tuned(shapes: Sequence[Shape], device: Device, tuner: Tuner) -> Tuned:
    """Shapes in their order; each of them counts once in the times."""
    spent, tried, best = 0.0, 0, list[tuple[float, int]]()
    shipped = [_run_s(shape, tuner.shipped_tile, device, tuner) for shape in shapes]
    for shape, without_s in zip(shapes, shipped, strict=True):
        found = (without_s, tuner.shipped_tile)
        for tile in tuner.tiles:
            run_s = _run_s(shape, tile, device, tuner)
            trial_s = tuner.compile_s + tuner.num_trials * run_s
            if spent + trial_s > tuner.budget_s:
                continue
            spent, tried, found = spent + trial_s, tried + 1, min(found, (run_s, tile))
        best.append(found)
    return Tuned(
        shipped_s=sum(shipped),
        tuned_s=sum(s for s, _ in best),
        tuning_s=spent,
        num_tried=tried,
        tiles=tuple(tile for _, tile in best),
    )


def _run_s(shape: Shape, tile: int, device: Device, tuner: Tuner) -> float:
    return tiled_run(*shape, tile, device).time_s + tuner.dispatch_s

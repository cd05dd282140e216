"""A saddle point by workers that send compressed differences, against whole messages: error over bits. [masha-2022]

Beside each measured gain of random numbers stands the one that theory allows (``guaranteed_gain``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.fleet.decentral import COMPRESSORS
from orrery.fleet.decentral.guarantee import guaranteed_gain
from orrery.fleet.decentral.saddle import Game, Path, compressed, extragradient, game

STEPS = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1)
"""Lengths of a step that are tried, against one over the steepness."""

METHODS = {"random": ("send-random", False), "largest": ("send-largest", True)}
NUM_POINTS = 24
"""Points of a curve, evenly spread over the logarithm of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated numbers of workers; moves of a player; shares kept of a message and of workers that send."""

    workers: str = "5"
    features: int = 20
    keep: str = "0.1"
    participating_frac: float = 1.0
    down: str = "compressed"  # or "whole": only what workers send is compressed and counted
    spread_ratio: float = 0.5
    weight_ratio: float = 0.02
    target_frac: float = 1e-3


def run(request: Run) -> tuple[Row, ...]:
    """A row a point of each curve: the error and the bits of a worker; and the gain at the target."""
    sizes: Sizes = request.sizes
    if sizes.down not in ("compressed", "whole"):
        raise ScenarioError(f"set: down = {sizes.down!r}; write compressed or whole.")
    if not 0.0 < sizes.participating_frac <= 1.0 or not 0.0 < sizes.target_frac < 1.0:
        raise ScenarioError("set: participating_frac is above 0 and at most 1, target_frac between 0 and 1.")
    many = [whole("workers", int(n), most=2000) for n in numbers("workers", sizes.workers, least=1)]
    keeps = numbers("keep", sizes.keep, least=1e-6, most=1.0)
    tick = counter(request.progress, len(many) * (1 + len(keeps) * len(METHODS)))
    return tuple(row for count in many for row in _rows(request, sizes, count, keeps, tick))


def _rows(request: Run, sizes: Sizes, count: int, keeps: tuple[float, ...], tick: Callable[[], None]) -> Iterator[Row]:
    of = game(count, whole("features", sizes.features, most=500), sizes.weight_ratio, sizes.spread_ratio, request.seed)
    ways = 4.0 if sizes.down == "compressed" else 2.0
    plain = _best([extragradient(of, step, request.steps, sizes.target_frac) for step in STEPS], sizes.target_frac)
    plain = Path(num_bits=plain.num_bits * ways / 4.0, error_frac=plain.error_frac)
    yield from _curve("whole messages", count, 1.0, plain, plain, sizes.target_frac, 1.0)
    tick()
    for method in METHODS:
        for share in keeps:
            found = _best([_path(request, of, sizes, method, share, step) for step in STEPS], sizes.target_frac)
            yield from _curve(
                method, count, share, found, plain, sizes.target_frac, _theory(method, count, share, sizes)
            )
            tick()


def _path(request: Run, of: Game, sizes: Sizes, method: str, share: float, step: float) -> Path:
    name, remembers = METHODS[method]
    technique = COMPRESSORS.get(name)
    return compressed(
        of,
        technique,
        technique.knobs(kept_frac=share),
        remembers=remembers,
        move_frac=share,
        step_ratio=step,
        num_steps=request.steps,
        until_frac=sizes.target_frac,
        seed=request.seed,
        participating_frac=sizes.participating_frac,
        compresses_down=sizes.down == "compressed",
    )


def _best(paths: list[Path], target: float) -> Path:
    """The path with the fewest bits to the target, or the least error where none reaches it."""
    return min(paths, key=lambda p: (p.bits_to(target), float(p.error_frac.min())))


def _theory(method: str, count: int, share: float, sizes: Sizes) -> float:
    """Gain of steps as long as theory allows; unknown for a biased compressor."""
    if method != "random":
        return nan
    return guaranteed_gain(share, count, sizes.participating_frac, compresses_down=sizes.down == "compressed")


def _curve(
    method: str, count: int, share: float, path: Path, plain: Path, target: float, theory: float
) -> Iterator[Row]:
    bits = path.bits_to(target)
    gain = plain.bits_to(target) / bits if isfinite(bits) else 0.0
    for error in np.geomspace(1.0, target, NUM_POINTS).tolist():
        reached = path.bits_to(error)
        yield {
            "method": method,
            "workers": count,
            "keep": share,
            "error_frac": float(error),
            "mbit": reached / 1e6 if isfinite(reached) else nan,
            "gain_at_target": gain,
            "guaranteed_gain": theory,
        }


EXPERIMENT = Experiment(
    name="compressed-saddle",
    question="How many bits do workers save who send compressed differences on the way to a saddle point?",
    run=run,
    num_steps=4000,
    claims=("masha",),
    sizes=Sizes,
    keys=("method", "workers", "keep", "error_frac"),
    curve=("mbit", "error_frac"),
)

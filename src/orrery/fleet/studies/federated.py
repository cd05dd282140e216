"""Clients of unequal speed and unlike data train together: three schedules by the server's clock. [fedcompass-2024]"""

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.fleet.federated import FEDERATED
from orrery.fleet.federated.federation import OWN, Federation, History, Holdings, federation
from orrery.training.small.points import points_of

SCHEDULES = ("federated-average", "federated-async", "federated-compass")
NUM_POINTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated times of a client's step, as multiples of the fastest; local steps; the server's seconds.

    ``target_frac`` is a share of the accuracy with which the synchronous run ends; ``num_classes`` are drawn (0: one a
    client, four at least), and a client holds ``num_least_held`` to ``num_most_held`` beside others (0: its own).
    """

    speeds: str = "1,1,2,3,5,8"
    num_local_steps: int = 40
    num_least_steps: int = 8
    run_s: float = 60.0
    learning_ratio: float = 0.002
    target_frac: float = 0.98
    num_classes: int = 0
    num_least_held: int = 0
    num_most_held: int = 0


def run(request: Run) -> tuple[Row, ...]:
    """A row a moment of each schedule: accuracy; and when it reached the target."""
    sizes: Sizes = request.sizes
    step_s = tuple(0.01 * speed for speed in numbers("speeds", sizes.speeds, least=0.01, most=1000.0))
    if len(step_s) < 2 or sizes.run_s <= 0.0 or sizes.learning_ratio <= 0.0:
        raise ScenarioError("set: write speeds of two clients or more, and run_s and learning_ratio above 0.")
    if not 0.0 < sizes.target_frac < 1.0:
        raise ScenarioError(f"set: target_frac = {sizes.target_frac:g}; write a share between 0 and 1.")
    most = whole("num_local_steps", sizes.num_local_steps, most=10_000)
    least = whole("num_least_steps", sizes.num_least_steps, most=most)
    world = _world(request, sizes, step_s)
    tick = counter(request.progress, len(SCHEDULES))
    found: dict[str, History] = {}
    for name in SCHEDULES:
        technique = FEDERATED.get(name)
        given = {"num_most": most, "num_least": least} if name == "federated-compass" else {"num_steps": most}
        found[name] = technique.rule(world, technique.knobs(**given))
        tick()
    target = sizes.target_frac * found["federated-average"].final_frac
    reached = {name: history.reached_s(target) for name, history in found.items()}
    base = reached["federated-average"]
    return tuple(
        {
            "schedule": name,
            "time_s": float(at),
            "accuracy_frac": _at(history, float(at)),
            "target_s": reached[name] if isfinite(reached[name]) else float("nan"),
            "speedup_over_average": base / reached[name] if isfinite(reached[name]) else 0.0,
        }
        for name, history in found.items()
        for at in np.linspace(sizes.run_s / NUM_POINTS, sizes.run_s, NUM_POINTS)
    )


def _at(history: History, time_s: float) -> float:
    before = np.flatnonzero(history.time_s <= time_s)
    return float(history.accuracy_frac[before[-1]]) if before.size else 0.0


def _world(request: Run, sizes: Sizes, step_s: tuple[float, ...]) -> Federation:
    """Clients with drawn points, or with the user's."""
    data = points_of(request.data, request.seed) if request.data else None
    if data is not None and sizes.num_classes:
        raise ScenarioError("set: num_classes is of points that are drawn; data has its own, leave it out.")
    if sizes.num_classes and not 2 <= sizes.num_classes <= 100:
        raise ScenarioError(f"set: num_classes = {sizes.num_classes}; write 2 to 100, or leave it out.")
    num_classes = data.num_classes if data else sizes.num_classes or max(4, len(step_s))
    least, most = sizes.num_least_held, sizes.num_most_held or sizes.num_least_held
    if (least or most) and not (1 <= least <= most <= num_classes and most * len(step_s) >= num_classes):
        raise ScenarioError(
            f"set: num_least_held = {least}, num_most_held = {most}; write 1 to {num_classes}, the least first, and so "
            f"many that {len(step_s)} clients hold all {num_classes} classes."
        )
    holdings = Holdings(least=least, most=most)
    world = federation(
        step_s,
        run_s=sizes.run_s,
        learning_ratio=sizes.learning_ratio,
        num_classes=sizes.num_classes,
        holdings=OWN if data else holdings,
        seed=request.seed,
    )
    if data is None:
        return world
    parts = holdings.parts(data.train, data.num_classes, world.num_clients, request.seed)
    if min(part.labels.size for part in parts) == 0:
        raise ScenarioError(f"data: a client has no points; write {len(parts)} classes or more, or fewer speeds.")
    return replace(world, data=data, parts=parts)


EXPERIMENT = Experiment(
    name="federated",
    question="Does waiting for groups of clients beat waiting for all, and for none?",
    run=run,
    num_steps=1,
    claims=("fedcompass",),
    sizes=Sizes,
    reads=("data",),
    keys=("schedule", "time_s"),
    curve=("time_s", "accuracy_frac"),
)

"""Clients of unequal speed and unlike data train together: three schedules by the server's clock. [fedcompass-2024]"""

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.engine.streams import stream
from orrery.fleet.federated import FEDERATED
from orrery.fleet.federated.federation import Federation, History, federation
from orrery.training.small.data import Split
from orrery.training.small.points import points_of

SCHEDULES = ("federated-average", "federated-async", "federated-compass")
NUM_POINTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated times of a client's step, as multiples of the fastest; local steps; the server's seconds; the target
    as a share of the accuracy with which the synchronous run ends."""

    speeds: str = "1,1,2,3,5,8"
    num_local_steps: int = 40
    num_least_steps: int = 8
    run_s: float = 60.0
    learning_ratio: float = 0.002
    target_frac: float = 0.98


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
    world = federation(step_s, run_s=sizes.run_s, learning_ratio=sizes.learning_ratio, seed=request.seed)
    if request.data:
        world = _with_data(world, request)
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


def _with_data(world: Federation, request: Run) -> Federation:
    """The same federation on the user's points: each client mostly has classes of its own."""
    data = points_of(request.data, request.seed)
    clients, draw = world.num_clients, stream(request.seed, "federated/own")
    owner = data.train.labels % clients
    strays = draw.random(owner.size) > 0.9
    owner[strays] = draw.integers(0, clients, int(strays.sum()))
    parts = tuple(Split(rows=data.train.rows[owner == i], labels=data.train.labels[owner == i]) for i in range(clients))
    if min(part.labels.size for part in parts) == 0:
        raise ScenarioError(f"data: a client has no points; write {clients} classes or more, or fewer speeds.")
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

"""A sweep: every point of a grid simulated, what was finished before taken over, failures told beside the answers."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError, ScenarioError
from orrery.base.tasks import LostTask, lost, results
from orrery.base.user_file import user_path
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.service import service_for
from orrery.scenario.simulate import warm_up
from orrery.scenario.sweep.carried import CarriedOver, carried_over
from orrery.scenario.sweep.grid import Point, points_of, read_axes
from orrery.scenario.sweep.point import failed, run_point
from orrery.scenario.sweep.saved_runs import folder_for, keep, saved_run

TRIED_S, WORTH_S = 2.0, 10.0
"""Unless a number of jobs is asked for, runs start in this process; after so many seconds, processes of their own take
over where the rest would take longer than it takes to start them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """The runs of a sweep, in the order of its grid."""

    scenario: Scenario  # what all runs have in common, before anything varies
    over: tuple[str, ...]
    points: tuple[Point, ...]
    runs: tuple[dict[str, Any], ...]  # answers of `orrery simulate --json`, with ``label`` and ``varied``
    num_resumed: int
    took_s: float
    carried: tuple[CarriedOver, ...] = ()  # where optima are carried from device to device

    @property
    def num_infeasible(self) -> int:
        """Runs that cannot be."""
        return sum("infeasible" in run for run in self.runs)

    @property
    def num_failed(self) -> int:
        """Runs that came to nothing."""
        return sum("error" in run for run in self.runs)

    @property
    def answers(self) -> tuple[dict[str, Any], ...]:
        """The runs that were simulated."""
        return tuple(run for run in self.runs if "error" not in run and "infeasible" not in run)

    def to_json(self) -> dict[str, Any]:
        """The runs under ``runs``, and how many there are of each kind."""
        return {
            "runs": list(self.runs),
            **({"carry_over": [one.to_json() for one in self.carried]} if self.carried else {}),
            "num_runs": len(self.runs),
            "num_infeasible": self.num_infeasible,
            "num_failed": self.num_failed,
            "num_resumed": self.num_resumed,
            "seconds": self.took_s,
            "settings": self.scenario.written(),
            "sweep": list(self.over),
        }


@typed
def sweep(
    scenario: Scenario | None = None,
    /,
    *,
    over: Sequence[str],
    jobs: int = 0,
    finds_capacity: bool = False,
    carry_over: bool = False,
    resume: Path | str | None = None,
    ray: str = "",
    patience: AbstractContextManager[object] | None = None,
    on_run: Callable[[int, int], None] = lambda done, total: None,
    **settings: Any,
) -> Swept:
    """Simulate every combination of the settings in ``over`` (each KEY=V1,V2,…), in ``jobs`` processes (0: one for each
    core, where that is worth it).

    A folder ``resume`` keeps every run that ends and gives back those of an earlier, interrupted sweep; ``ray`` is the
    address of a cluster to run on instead of this machine. With ``finds_capacity`` each point is searched for its
    highest rate; with ``carry_over`` the best settings of each device are tried on every other one. A script that
    calls this with several jobs needs ``if __name__ == "__main__":`` around the call.
    """
    started = time.perf_counter()
    if not over:
        raise ScenarioError("sweep: nothing varies; write a setting and its values, such as tp=1,2,4.")
    base = merged(scenario, settings)
    refuse_foreign("simulate", settings)
    points = points_of(base, read_axes(over))
    if carry_over:
        carried_over((), list(points[0].values))
    for name in ("concurrency", "users"):
        if finds_capacity and any(getattr(point.scenario, name) is not None for point in points):
            raise ScenarioError(f"{name}: a capacity is a rate of arrivals; leave {name} out.")
    folder = folder_for(user_path(resume)) if resume else None
    inputs = [point.scenario.written() for point in points]
    found: dict[int, dict[str, Any]] = {}
    for number, one in enumerate(inputs):
        if folder and (before := saved_run(folder, one, finds_capacity)) is not None:
            found[number] = before
    resumed = len(found)
    todo = {number: one for number, one in enumerate(inputs) if number not in found}

    def done(number: int, run: dict[str, Any] | LostTask) -> None:
        if folder and not isinstance(run, LostTask):  # what the settings alone decide; a machine's failure is not
            keep(folder, inputs[number], finds_capacity, run)
        found[number] = failed(run) if isinstance(run, LostTask) else run
        on_run(len(found), len(points))

    on_run(resumed, len(points))
    if todo and not ray:
        with patience or nullcontext():
            _load([points[number] for number in todo])
    left = todo if ray or jobs > 1 else _in_turn(todo, jobs == 0, finds_capacity, done)
    tasks = {number: (one, finds_capacity) for number, one in left.items()}
    for number, run in results(run_point, tasks, jobs=jobs or os.cpu_count() or 1, ray=ray) if tasks else ():
        done(number, run)
    runs = tuple({"label": p.label, "varied": p.varied} | _unlabelled(found[n]) for n, p in enumerate(points))
    return Swept(
        scenario=base,
        over=tuple(over),
        points=points,
        runs=runs,
        num_resumed=resumed,
        carried=carried_over(runs, list(points[0].values)) if carry_over else (),
        took_s=time.perf_counter() - started,
    )


def _in_turn(
    todo: dict[int, dict[str, Any]],
    may_stop: bool,
    finds_capacity: bool,
    done: Callable[[int, dict[str, Any] | LostTask], None],
) -> dict[int, dict[str, Any]]:
    """Run one after the other in this process; return those left where others should help."""
    started, left = time.perf_counter(), dict(todo)
    for number, one in todo.items():
        try:
            run: dict[str, Any] | LostTask = run_point(one, finds_capacity)
        except Exception as error:  # one run's failure must not end the others
            run = lost(error)
        done(number, run)
        del left[number]
        spent_s = time.perf_counter() - started
        if may_stop and spent_s > TRIED_S and spent_s / (len(todo) - len(left)) * len(left) > WORTH_S:
            return left
    return left


def _unlabelled(run: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key != "label"}


def _load(points: Sequence[Point]) -> None:
    """Load the simulator once, before several processes do; an infeasible point is passed by."""
    for point in points:
        try:
            warm_up(service_for(point.scenario)[0])
            return
        except OrreryError:
            continue

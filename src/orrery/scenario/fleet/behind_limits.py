"""Several services whose replicas stand behind the same limits on power: the limits at the top of their file.

They are simulated together, on one clock: a limit's rule reads what the replicas of all services behind it draw, and
lowers the clocks of all. A service without limits at the top is simulated by itself (``services``).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service.run import run_behind_limits
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.answer import FleetAnswer, answer_of
from orrery.scenario.fleet.build import Built, built, check_runs
from orrery.scenario.fleet.by_hour import check_hours
from orrery.scenario.fleet.power import OF_LIMITS, power_cap_of
from orrery.scenario.fleet.racks import racks_of
from orrery.scenario.fleet.read import FleetInputs, read_fleet
from orrery.scenario.fleet.regret import regret_of
from orrery.scenario.fleet.services import ServicesAnswer, service_settings
from orrery.scenario.fleet.traffic import FleetTraffic, traffic_for


def has_limits(settings: Mapping[str, Any]) -> bool:
    """Whether limits or meters stand at the top of a file."""
    return any(settings.get(name) is not None for name in ("power_budget_w", "row", "rack"))


def services_behind_limits(
    settings: Mapping[str, Any], where: str, check: Callable[[FleetInputs], None]
) -> ServicesAnswer | InfeasibleAnswer:
    """Serve all services of some settings, each by its own replicas, behind the limits at the top."""
    started = time.perf_counter()
    found = _read(settings, where)
    parts: dict[str, tuple[FleetTraffic, Built]] = {}
    for name, inputs in found.items():
        check(inputs)
        traffic = traffic_for(inputs)
        one = built(inputs, traffic.split.requests, traffic.length_s)
        if isinstance(one, Infeasible):
            return InfeasibleAnswer(infeasible=one, notes=(), settings=dict(settings))
        check_runs(one.setup)
        parts[name] = traffic, one
    cap = power_cap_of(next(iter(found.values())))
    if cap is None:
        raise ScenarioError("row, rack: nothing is limited or metered; write [[row]] with a limit_w.")
    seeds = [inputs.scenario.seed or 0 for inputs in found.values()]
    runs = run_behind_limits(
        cap, [(one.setup, t.split.requests, seed) for (t, one), seed in zip(parts.values(), seeds, strict=True)]
    )
    answers: dict[str, FleetAnswer] = {}
    for (name, (traffic, one)), run in zip(parts.items(), runs, strict=False):
        if isinstance(run, Infeasible):
            return InfeasibleAnswer(infeasible=run, notes=(), settings=dict(settings))
        notes = (*one.notes, *traffic.notes, *check_hours(found[name], one.setup))
        answer = answer_of(found[name], traffic, run, notes, time.perf_counter() - started)
        answers[name] = replace(answer, regret=regret_of(run))
    return ServicesAnswer(services=answers)


def _read(settings: Mapping[str, Any], where: str) -> dict[str, FleetInputs]:
    """The inputs of every service; each knows in which racks the others stand."""
    for k, table in enumerate(settings["service"], start=1):
        if given := [key for key in table if key.replace("-", "_") in OF_LIMITS]:
            raise ScenarioError(
                f"[[service]] {k}: {given[0]}: limits stand at the top, for all services; leave it out here, or write "
                "those at the top in every [[service]] as its own."
            )
    found = {name: read_fleet(own, place) for name, (own, place) in service_settings(settings, where).items()}
    racks = {
        name: frozenset(rack for pool in inputs.pools for rack in racks_of(inputs, pool.block))
        for name, inputs in found.items()
    }
    return {
        name: replace(inputs, racks_of_others=frozenset[str]().union(*(r for n, r in racks.items() if n != name)))
        for name, inputs in found.items()
    }

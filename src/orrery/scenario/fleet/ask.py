"""Asking for a fleet: its traffic served over days, and the answer."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError, ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service.run import run_fleet
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.file import read_settings
from orrery.scenario.fleet.answer import FleetAnswer, answer_of
from orrery.scenario.fleet.behind_limits import has_limits, services_behind_limits
from orrery.scenario.fleet.build import Built, built, check_runs
from orrery.scenario.fleet.by_hour import check_hours
from orrery.scenario.fleet.by_region import AgainstNearest, against_nearest
from orrery.scenario.fleet.change import smallest_change
from orrery.scenario.fleet.clusters import ClustersAnswer, own_clusters
from orrery.scenario.fleet.graph import GraphAnswer, place_graph
from orrery.scenario.fleet.jobs import check_jobs
from orrery.scenario.fleet.mixed import MixedAnswer, mixed_fleet
from orrery.scenario.fleet.oversubscribe import Oversubscription, oversubscribed
from orrery.scenario.fleet.power import check_power
from orrery.scenario.fleet.read import FleetInputs, read_fleet, refuse_foreign_settings
from orrery.scenario.fleet.regions import NEAREST, check_regions
from orrery.scenario.fleet.regret import regret_of
from orrery.scenario.fleet.services import ServicesAnswer, services_of
from orrery.scenario.fleet.shared import shared_fleet
from orrery.scenario.fleet.steady import SteadyAnswer, against_steady, steady_answer
from orrery.scenario.fleet.survive import Survival, survival
from orrery.scenario.fleet.traffic import FleetTraffic, traffic_for
from orrery.scenario.fleet.unused import unused_notes
from orrery.scenario.money import api_price_of
from orrery.scenario.schema import Scenario
from orrery.scenario.simulate import warm_up

OtherAnswer = SteadyAnswer | Survival | ServicesAnswer | MixedAnswer | GraphAnswer | Oversubscription | ClustersAnswer
"""Answers that are no single simulated run."""

QUICK_S = 4.0
"""A run that took less is simulated again with small changes where it missed its SLOs."""


@typed
def simulate_fleet(
    file: Path | str | None = None,
    /,
    *,
    patience: AbstractContextManager[object] | None = None,
    jobs: int = 1,
    ray: str = "",
    **settings: Any,
) -> FleetAnswer | OtherAnswer | InfeasibleAnswer:
    """Serve a fleet's traffic over days, with replicas that start, stop and fail.

    ``file`` is a FLEET.toml; settings are its keys and override it. Several services are simulated in ``jobs``
    processes, or on a Ray cluster at the address ``ray``.
    """
    refuse_foreign_settings(settings)
    given: dict[str, Any] = {}
    if file is not None:
        given = {key.replace("-", "_"): value for key, value in read_settings(Path(file)).items()}
    where = str(file) if file and not settings else ""
    return ask_fleet({**given, **settings}, where=where, patience=patience, jobs=jobs, ray=ray)


def ask_fleet(
    settings: Mapping[str, Any],
    *,
    where: str = "",
    patience: AbstractContextManager[object] | None = None,
    jobs: int = 1,
    ray: str = "",
) -> FleetAnswer | OtherAnswer | InfeasibleAnswer:
    """The answer for settings as a FLEET.toml has them."""
    if (jobs > 1 or ray) and "service" not in settings:
        raise ScenarioError("jobs, ray: share out several services; write each as [[service]], or leave them out.")
    if settings.get("owned") is not None:
        return own_clusters(settings)
    check_power(settings)
    check_regions(settings)
    if settings.get("graph"):
        return place_graph(settings)
    if settings.get("mix"):
        return mixed_fleet(settings, where)
    if settings.get("share"):
        return shared_fleet(settings, where)
    if "service" in settings and has_limits(settings):
        if jobs > 1 or ray:
            raise ScenarioError("jobs, ray: services behind the same power limits run on one clock; leave them out.")
        return services_behind_limits(settings, where, _check_one)
    if "service" in settings:
        return services_of(settings, where, one_service, jobs=jobs, ray=ray)
    inputs = read_fleet(settings, where)
    _check_whole(inputs)
    check_jobs(inputs)
    if (inputs.top.survive is not None or inputs.top.steady) and inputs.scenario.api_price is not None:
        raise ScenarioError("api_price: prices requests that are simulated; leave out survive and steady.")
    if inputs.top.survive is not None and inputs.hours is not None:
        raise ScenarioError("hours: a size that survives a loss has no price; leave one of both out.")
    if inputs.top.survive is not None:
        with patience or nullcontext():
            return survival(inputs, inputs.top.survive)
    if inputs.top.steady:
        return steady_answer(inputs)
    if inputs.top.oversubscribe:
        with patience or nullcontext():
            return oversubscribed(inputs, settings, lambda more: simulated_fleet(read_fleet(more, where), None))
    if inputs.top.power_late:
        raise ScenarioError("power_late: is about how many replicas fit; write oversubscribe = true beside it.")
    return with_more(inputs, settings, patience)


def one_service(settings: Mapping[str, Any], where: str) -> FleetAnswer | InfeasibleAnswer:
    """The answer of one of several services."""
    inputs = read_fleet(settings, where)
    _check_one(inputs)
    return with_more(inputs, settings, None)


def _check_one(inputs: FleetInputs) -> None:
    """Refuse what one of several services cannot be asked."""
    _check_whole(inputs)
    check_jobs(inputs)


def _check_whole(inputs: FleetInputs) -> None:
    if inputs.top.turn_s is not None:
        raise ScenarioError('turn_s: is of models that share replicas; write share = "sleep" beside it.')
    for name in ("stock", "spare_frac"):
        if (getattr(inputs.top, name, None) or getattr(inputs.scenario, name, None)) is not None:
            raise ScenarioError(f"{name}: is about a mix of devices; write mix = true beside it.")
    if inputs.scenario.model is None or inputs.pools[0].scenario.device is None:
        raise ScenarioError('A fleet needs a model and a device; write model = "llama-3.1-8b" and device = "h100-sxm".')


def with_more(
    inputs: FleetInputs, settings: Mapping[str, Any], patience: AbstractContextManager[object] | None
) -> FleetAnswer | InfeasibleAnswer:
    """Serve a fleet, and hold it against hindsight, against steady hours, and against small changes of it."""
    answer = simulated_fleet(inputs, patience)
    if isinstance(answer, InfeasibleAnswer):
        return answer
    answer = replace(answer, regret=regret_of(answer.run), steady=against_steady(answer))
    answer = replace(answer, nearest=_beside_nearest(answer, settings))
    if answer.is_met is not False or answer.beyond_budgets or not has_time(answer):
        return answer
    return replace(answer, change=smallest_change(answer, lambda more: _again({**settings, **more})), has_searched=True)


def _beside_nearest(answer: FleetAnswer, settings: Mapping[str, Any]) -> AgainstNearest | None:
    """The answer beside the same fleet with each request in its nearest region, where its router is another one."""
    regions = answer.run.setup.regions
    if regions is None or regions.router.name == NEAREST or len(regions.regions) == 1 or not has_time(answer):
        return None
    near = _again({**settings, "region_router": NEAREST, "region_router_knob": None})
    return near and against_nearest(answer.run, near.run, (answer.cost_usd, near.cost_usd))


def has_time(answer: FleetAnswer) -> bool:
    """Whether the fleet is simulated again with small changes: where it was asked, or where that is quick."""
    asked_for = answer.inputs.top.change
    return asked_for if asked_for is not None else answer.seconds < QUICK_S


def _again(settings: Mapping[str, Any]) -> FleetAnswer | None:
    """The answer of other settings; None where they make no sense or do not fit."""
    try:
        answer = simulated_fleet(read_fleet(settings), None)
    except OrreryError:
        return None
    return None if isinstance(answer, InfeasibleAnswer) else answer


def simulated_fleet(
    inputs: FleetInputs, patience: AbstractContextManager[object] | None
) -> FleetAnswer | InfeasibleAnswer:
    """Serve a fleet once."""
    started = time.perf_counter()
    paid = _money_notes(inputs.scenario)
    prepared = prepared_for(inputs)
    if isinstance(prepared, InfeasibleAnswer):
        return prepared
    traffic, found = prepared
    check_runs(found.setup)
    check = check_hours(inputs, found.setup)
    with patience or nullcontext():
        warm_up(found.setup.service)
    run = run_fleet(found.setup, traffic.split.requests, seed=inputs.scenario.seed or 0)
    if isinstance(run, Infeasible):
        return InfeasibleAnswer(infeasible=run, notes=found.notes, settings=dict(inputs.written))
    unused = unused_notes(inputs, traffic.split.requests, found.setup.service)
    notes = (*found.notes, *traffic.notes, *check, *paid, *unused)
    return answer_of(inputs, traffic, run, notes, time.perf_counter() - started)


def _money_notes(scenario: Scenario) -> tuple[str, ...]:
    """Notes on the API's price, and on settings of money that change nothing here."""
    if scenario.api_price is not None:
        return api_price_of(scenario.api_price)[1]
    return ("cached_frac: not used; write api_price",) if scenario.cached_frac is not None else ()


def prepared_for(inputs: FleetInputs) -> tuple[FleetTraffic, Built] | InfeasibleAnswer:
    """The traffic and the setup of a fleet."""
    traffic = traffic_for(inputs)
    found = built(inputs, traffic.split.requests, traffic.length_s)
    if isinstance(found, Infeasible):
        return InfeasibleAnswer(infeasible=found, notes=(), settings=dict(inputs.written))
    return traffic, found

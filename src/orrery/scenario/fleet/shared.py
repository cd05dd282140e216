"""Services whose models stand on the same replicas: in parts of their memory, or one awake at a time."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.fleet.service.result import FleetRun
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.sharing import part_of, shared_setup, together
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.cold_start import cold_start_of
from orrery.scenario.fleet.answer import FleetAnswer, answer_of
from orrery.scenario.fleet.build import Built, built, check_runs
from orrery.scenario.fleet.curve import TRAFFIC_ALONE
from orrery.scenario.fleet.jobs import peak_power_w
from orrery.scenario.fleet.read import TOP, FleetInputs, read_fleet
from orrery.scenario.fleet.services import ServicesAnswer, service_settings
from orrery.scenario.fleet.sleeping import NAME as HOST_MEMORY
from orrery.scenario.fleet.sleeping import host_fit, weight_bytes
from orrery.scenario.fleet.traffic import traffic_for
from orrery.scenario.resolve import find, one_device
from orrery.scenario.schema import merged

WAYS = ("time", "sleep")
TURN_S = 10.0
"""Time that a model stays awake while others wait, where nobody says."""

OF_REPLICAS = frozenset(
    {*TOP, HOST_MEMORY, "pool", "autoscaler", "faults", "outage", "device", "replicas"} - set(TRAFFIC_ALONE)
)
"""Settings of the replicas that all services share."""

WITHOUT_USE = ("prefill_replicas", "prefill_autoscaler", "survive", "steady", "mix", "graph", "job", "hours", "change")
NEEDS_CAPACITY = ("slo-planner", "predictive")
"""Autoscalers that must know what a replica carries, which several models on it do not say."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedAnswer(ServicesAnswer):
    """Services on the same replicas. Each one's part of rent and idle power is that of the computing time, in which a
    step that waits for its model to wake counts as a whole."""

    run: FleetRun
    own_notes: tuple[str, ...]

    @property
    def more(self) -> Mapping[str, Any]:
        """Shares of the replicas by model."""
        return {
            "share": self.run.setup.service.sharing,
            "computed_s": dict(zip(self.services, self.run.model_busy_s, strict=True)),
            "wakes": self.run.wakes,
        }

    @property
    def peak_power_w(self) -> float:
        """The most that the shared replicas draw."""
        return peak_power_w(self.run)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of every service, and of what they share."""
        each = (f"{name}: {note}" for name, answer in self.services.items() for note in answer.notes)
        return tuple(dict.fromkeys((*self.own_notes, *each)))


def shared_fleet(settings: Mapping[str, Any], where: str) -> SharedAnswer | InfeasibleAnswer:
    """Serve all services of some settings on the same replicas."""
    started = time.perf_counter()
    way = str(settings["share"]).strip()
    if way not in WAYS:
        raise ScenarioError(f"share: got {way!r}; write {' or '.join(WAYS)}.")
    if way != "sleep" and (given := [name for name in ("turn_s", HOST_MEMORY) if settings.get(name) is not None]):
        raise ScenarioError(
            f'{given[0]}: with share = "time" every model is awake; write share = "sleep", or leave it out.'
        )
    if "service" not in settings:
        raise ScenarioError("share: is about several models; write each as [[service]], with its model and traffic.")
    found = _read(settings, where)
    notes = _split_memory(found) if way == "time" and len(found) > 1 else ()
    traffic = {name: traffic_for(inputs) for name, inputs in found.items()}
    parts: dict[str, Built] = {}
    for name, inputs in found.items():
        one = built(inputs, traffic[name].split.requests, traffic[name].length_s)
        if isinstance(one, Infeasible):
            return _too_large(name, one, found, notes, settings)
        parts[name] = one
    wake_s = [_wake_s(found[name], one) for name, one in parts.items()]
    if way == "sleep":
        deployments = {name: one.setup.service.pools[0].deployment for name, one in parts.items()}
        too_large, note = host_fit(settings, deployments, parts[next(iter(parts))].setup.service.host_cache_bytes)
        notes = (*(_asleep(name, d, s) for (name, d), s in zip(deployments.items(), wake_s, strict=True)), note)
        if too_large:
            return InfeasibleAnswer(infeasible=too_large, notes=notes, settings=dict(settings))
    setups = [one.setup for one in parts.values()]
    setup = shared_setup(setups, way, float(settings.get("turn_s") or TURN_S) if way == "sleep" else 0.0, wake_s)
    check_runs(setup)
    requests, which = together([t.split.requests for t in traffic.values()])
    run = run_fleet(setup, requests, seed=next(iter(found.values())).scenario.seed or 0)
    if isinstance(run, Infeasible):
        return InfeasibleAnswer(infeasible=run, notes=notes, settings=dict(settings))
    seconds = time.perf_counter() - started
    answers: dict[str, FleetAnswer] = {}
    for k, (name, inputs) in enumerate(found.items()):
        part = part_of(run, setups[k], traffic[name].split.requests, which[k], k)
        answers[name] = answer_of(inputs, traffic[name], part, (*parts[name].notes, *traffic[name].notes), seconds)
    return SharedAnswer(services=answers, run=run, own_notes=notes)


def _read(settings: Mapping[str, Any], where: str) -> dict[str, FleetInputs]:
    """The inputs of every service; what is of the replicas stands at the top."""
    for k, table in enumerate(settings["service"], start=1):
        if given := [key for key in table if key.replace("-", "_") in OF_REPLICAS and key != "name"]:
            raise ScenarioError(
                f"[[service]] {k}: {given[0]}: is of the replicas that all services share; write it at the top."
            )
    if given := [key for key in WITHOUT_USE if settings.get(key) is not None]:
        raise ScenarioError(f"{given[0]}: is not of models that share replicas; leave it or share out.")
    found: dict[str, FleetInputs] = {}
    for name, (own, place) in service_settings(settings, where).items():
        inputs = read_fleet(
            {key: value for key, value in own.items() if key not in ("share", "turn_s", HOST_MEMORY)}, place
        )
        if len(inputs.pools) > 1:
            raise ScenarioError("share: the replicas that models share are of one pool; leave out [[pool]].")
        if inputs.autoscaler in NEEDS_CAPACITY:
            raise ScenarioError(
                f"autoscaler: {inputs.autoscaler} must know what a replica carries, which depends on how much of each "
                "model is asked for; write hpa, keda-queue or knative-concurrency."
            )
        found[name] = inputs
    return found


def _split_memory(found: dict[str, FleetInputs]) -> tuple[str, ...]:
    """Give every model its part of the memory: what it says, else an equal part of what an engine takes and the others
    leave."""
    given = {name: i.scenario.gpu_memory_utilization for name, i in found.items()}
    stated = [share for share in given.values() if share is not None]
    if sum(stated) > 1.0 + 1e-9:
        raise ScenarioError(
            f"gpu_memory_utilization: the models' parts add up to {sum(stated):.3g}; write at most 1 in all."
        )
    if len(stated) == len(given):
        return ()
    first = next(iter(found.values())).scenario
    whole = find(first, one_device(first)).engine.memory_utilization_frac
    each = (whole - sum(stated)) / (len(given) - len(stated))
    if each <= 0.0:
        raise ScenarioError("gpu_memory_utilization: nothing is left for the models that do not say their part.")
    for name, inputs in found.items():
        if given[name] is None:
            found[name] = _with_memory(inputs, each)
    return (f"gpu_memory_utilization: {each:.3g} of the memory for each model that does not say its part",)


def _with_memory(inputs: FleetInputs, frac: float) -> FleetInputs:
    more = {"gpu_memory_utilization": frac}
    pools = tuple(replace(p, scenario=merged(p.scenario, more)) for p in inputs.pools)
    return replace(inputs, scenario=merged(inputs.scenario, more), pools=pools)


def _too_large(
    name: str, why: Infeasible, found: Mapping[str, FleetInputs], notes: tuple[str, ...], settings: Mapping[str, Any]
) -> InfeasibleAnswer:
    """A model that does not fit into its part of the memory."""
    more = f"{name}, one of {len(found)} models on the same devices: {why.smallest_change}"
    if len(found) > 1:
        more += ' Or let one be awake at a time (share = "sleep"), or give it replicas of its own.'
    return InfeasibleAnswer(infeasible=replace(why, smallest_change=more), notes=notes, settings=dict(settings))


def _asleep(name: str, deployment: Deployment, wake_s: float) -> str:
    """A note on a model that sleeps."""
    return (
        f"{name}: its weights take {wake_s:.3g} s to come back from the host's memory, of which they hold "
        f"{weight_bytes(deployment) / 1e9:.3g} GB a replica"
    )


def _wake_s(inputs: FleetInputs, one: Built) -> float:
    """Time until a sleeping model's weights are on the devices again, from the host's memory."""
    scenario = merged(inputs.scenario, {"start": "sleep-1"})
    return cold_start_of(scenario, one.setup.service.pools[0].deployment).start.seconds_s

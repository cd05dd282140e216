"""From a fleet as it was written to a simulator that stands ready, with its pools, autoscaler, faults and tenants."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.emulator.settings import Settings
from orrery.emulator.start import Ready, ServerOptions, length_notes, longest_sizes, settings_of
from orrery.execution.memory import Infeasible
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.fleet.service.rate_curve import DAY_S
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_regions import ROUTING_SETTINGS
from orrery.scenario.file import read_settings
from orrery.scenario.fleet.blocks import PoolBlock
from orrery.scenario.fleet.build import built
from orrery.scenario.fleet.curve import TRAFFIC_ALONE
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.fleet.traffic import FleetTraffic, tenants_of, traffic_for
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import Scenario, merged
from orrery.serving.requests import Requests

SAMPLE = 1000
"""Requests whose mean lengths say what a replica carries, where no traffic is played."""

SERVED = frozenset(
    (
        *PoolBlock.model_fields,
        *("days", "max_queue", "fault_rates"),
        *(s.name for s in ROUTING_SETTINGS),
        *("power_budget_w", "power_cap", "power_cap_knob", "power_low_frac", "power_reading_s", "power_delay_s"),
        *("autoscaler", "autoscaler_knob", "prefill_autoscaler", "prefill_autoscaler_knob"),
        *TRAFFIC_ALONE,
    )
)
"""Settings at the top of a fleet's file that a server has a use for; others are of answers that it does not give."""

OF_ANSWERS = ("api_price", "cached_frac")
"""The same among the settings of a deployment."""


def settings_of_fleet(file: Path | None, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a file with others on top; one service has one endpoint."""
    given = {key.replace("-", "_"): value for key, value in read_settings(file).items()} if file is not None else {}
    if "service" in given:
        raise ScenarioError(f"{file}: [[service]]: one endpoint is of one service; write a file for each of them.")
    return {**given, **typed}


def ready_fleet(
    inputs: FleetInputs,
    options: ServerOptions,
    patience: AbstractContextManager[object] | None = None,
    *,
    plays_traffic: bool = False,
) -> Ready | InfeasibleAnswer:
    """Build a fleet; whatever is wrong with it is said before its simulator is prepared.

    ``plays_traffic``: the server sends the fleet's own traffic, on its clock. ``patience`` is entered while the
    simulator is prepared.
    """
    _check(inputs)
    scenario, traffic = inputs.scenario, traffic_for(inputs) if plays_traffic else None
    requests = traffic.split.requests if traffic else _sample(scenario)
    found = built(inputs, requests, traffic.length_s if traffic else (inputs.top.days or 0.0) * DAY_S)
    if isinstance(found, Infeasible):
        return InfeasibleAnswer(infeasible=found, notes=())
    setup = found.setup
    block_tokens = requests.prefix_block_tokens or setup.service.pools[0].deployment.engine.block_tokens
    sizes = longest_sizes(scenario, setup.service, block_tokens)
    if isinstance(sizes, Infeasible):
        return InfeasibleAnswer(infeasible=sizes, notes=found.notes)
    if traffic is not None:
        _check_lengths(traffic, sizes.longest_tokens)
    with patience or nullcontext():
        live = LiveFleet.of(setup, seed=scenario.seed or 0, sizes=sizes, prefix_block_tokens=block_tokens)
    if isinstance(live, Infeasible):
        return InfeasibleAnswer(infeasible=live, notes=found.notes)
    settings: Settings = replace(
        settings_of(scenario, setup.service, sizes, options),
        tenants=tenants_of(inputs),
        origins=tuple(str(o.name) for o in inputs.origins),
    )
    notes = (*found.notes, *(traffic.notes if traffic else _unused(inputs)), *length_notes(scenario, sizes))
    return Ready(live=live, settings=settings, notes=notes, traffic=requests if traffic else None)


def _check(inputs: FleetInputs) -> None:
    if inputs.scenario.model is None or inputs.pools[0].scenario.device is None:
        raise ScenarioError('A fleet needs a model and a device; write model = "llama-3.1-8b" and device = "h100-sxm".')
    given = [name for name in inputs.top.written() if name not in SERVED]
    given += [name for name in OF_ANSWERS if getattr(inputs.scenario, name) is not None]
    if given:
        raise ScenarioError(f"{given[0]}: a running fleet has no use for it; leave it out, or ask orrery fleet.")


def _sample(scenario: Scenario) -> Requests:
    """Requests of the scenario's lengths, at any rate."""
    given = {} if scenario.trace is not None else {"num_requests": SAMPLE}
    if scenario.input_tokens is None and scenario.trace is None:
        given |= {"input_tokens": 512}
    if scenario.output_tokens is None and scenario.trace is None:
        given |= {"output_tokens": 128}
    return requests_for(merged(scenario, given), 1.0)


def _unused(inputs: FleetInputs) -> tuple[str, ...]:
    """A note where traffic is written and not played."""
    given = [n for n in TRAFFIC_ALONE if getattr(inputs.top, n) is not None]
    given += [n for n in ("rate", "trace") if getattr(inputs.scenario, n) is not None]
    return (f"{', '.join(given)}: not played; write --play-traffic",) if given else ()


def _check_lengths(traffic: FleetTraffic, most_tokens: int) -> None:
    longest = int((traffic.split.requests.input_tokens + traffic.split.requests.output_tokens).max())
    if longest > most_tokens:
        raise ScenarioError(
            f"The traffic's longest request has {longest:,} tokens; model and cache hold {most_tokens:,}. Write "
            "shorter lengths, or a larger max_model_len."
        )

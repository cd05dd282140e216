"""Several models on the same replicas: their requests in one run, and each model's part of what it leaves behind."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.fleet.service.rows import Outcome
from orrery.fleet.service.setup import FleetService
from orrery.serving.requests import Ints, Requests
from orrery.serving.simulation.service import Service

ENERGY = FRAME.index("energy_j")


def shared_setup(setups: list[FleetService], sharing: str, turn_s: float, wake_s: list[float]) -> FleetService:
    """One service of the models of several, each of one pool, on the replicas of the first one."""
    first = setups[0]
    for setup in setups[1:]:
        for f in fields(Service):
            if f.name != "pools" and getattr(setup.service, f.name) != getattr(first.service, f.name):
                raise ScenarioError(f"share: {f.name} differs between the services; write it once, at the top.")
    pools = [
        replace(s.service.pools[0], host=-1 if k == 0 else 0, wake_s=wake_s[k] if sharing == "sleep" else 0.0)
        for k, s in enumerate(setups)
    ]
    service = replace(first.service, pools=tuple(pools), sharing=sharing, turn_s=turn_s)
    return replace(first, service=service, capacity_requests_per_s=0.0)


def together(parts: list[Requests]) -> tuple[Requests, list[Ints]]:
    """The requests of several models in order of arrival, and where those of each one stand."""
    for part in parts:
        if part.after.size or part.prefix_start.size:
            raise ScenarioError(
                "share: requests that follow others or share prefixes are not told apart by model; leave out turns, "
                "calls, prefix_tokens and traces that have either."
            )
    arrive_s = np.concatenate([p.arrive_s for p in parts])
    model = np.repeat(np.arange(len(parts)), [p.count for p in parts])
    order = np.argsort(arrive_s, kind="stable")
    clients = np.cumsum([0, *(int(p.client.max(initial=0)) + 1 for p in parts[:-1])])
    found = Requests(
        arrive_s=arrive_s[order],
        input_tokens=np.concatenate([p.input_tokens for p in parts])[order],
        output_tokens=np.concatenate([p.output_tokens for p in parts])[order],
        model=model[order],
        client=np.concatenate([c + _filled(p.client, p.count) for c, p in zip(clients, parts, strict=True)])[order],
        priority=np.concatenate([_filled(p.priority, p.count) for p in parts])[order],
    )
    return found, [np.flatnonzero(found.model == k) for k in range(len(parts))]


def _filled(values: NDArray[Any], count: int) -> NDArray[Any]:
    """A column of requests, zero where there is none."""
    return values if values.size else np.zeros(count, dtype=values.dtype)


def part_of(run: FleetRun, setup: FleetService, requests: Requests, which: Ints, model: int) -> FleetRun:
    """One model's part of a run: its requests, and of rent and idle power its share of the time that was computed."""
    busy_s, spent_j = sum(run.model_busy_s), sum(run.model_spent_j)
    share = run.model_busy_s[model] / busy_s if busy_s > 0.0 else 1.0 / len(run.model_busy_s)
    spent = run.model_spent_j[model] / spent_j if spent_j > 0.0 else share
    terms = tuple(
        replace(
            t,
            usd_per_s=t.usd_per_s * share,
            idle_power_w=t.idle_power_w * share,
            host_power_w=t.host_power_w * share,
        )
        for t in run.setup.terms
    )
    energy = run.frames.copy()
    energy[:, ENERGY] *= spent
    return replace(
        run,
        setup=replace(setup, terms=terms),
        requests=requests,
        outcome=Outcome(**{f.name: getattr(run.outcome, f.name)[which] for f in fields(Outcome)}),
        frames=energy,
        energy_above_idle_j=run.energy_above_idle_j * spent,
        busy_s=run.busy_s * share,
        spent_j=run.spent_j * spent,
    )

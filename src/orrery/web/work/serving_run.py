"""A simulated run as the parts that are kept of it: the answer, what the closed form says, its requests, its steps."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from orrery.base.errors import OrreryError
from orrery.reports.perfetto import trace_events
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer, estimate
from orrery.scenario.fields import BY_NAME
from orrery.scenario.schema import Scenario, read_scenario
from orrery.scenario.simulate import SimulatedAnswer
from orrery.serving.metrics import details
from orrery.serving.simulation.result import STEP, Simulated

MAX_REQUESTS, MAX_STEPS = 200_000, 50_000
"""Rows of requests and of steps that are kept; of more requests, none."""

SHARED = ("rate", "concurrency")
"""Load that replicas share; the closed form is of one of them."""


def parts_of(answer: SimulatedAnswer, plain: Mapping[str, Any], window: tuple[float, float] | None) -> dict[str, bytes]:
    """By name; ``plain`` is the answer as JSON has it."""
    run, num_steps = answer.simulated, answer.simulated.step_log.shape[0]
    parts = {"answer": packed(plain), "closed": packed(closed_form(answer.scenario))}
    run = replace(run, step_log=run.step_log[:MAX_STEPS])
    if run.requests.count <= MAX_REQUESTS:
        parts["requests"] = packed(details(run))
    if window is not None:
        parts["steps"], parts["trace"] = packed(steps_of(run, window, num_steps)), packed(trace_events(run))
    return parts


def steps_of(run: Simulated, window: tuple[float, float], num_steps: int) -> dict[str, Any]:
    """The steps of a window as columns; ``num_steps`` there were in all."""
    columns = {name: np.round(run.step_log[:, number], 9).tolist() for number, name in enumerate(STEP)}
    return {"window_s": list(window), "num_steps": num_steps, "num_machines": run.num_machines} | columns


def closed_form(scenario: Scenario) -> dict[str, Any]:
    """The estimate of one replica with its share of the load; ``replicas``, and the settings that it does not read."""
    replicas = scenario.replicas or 1
    settings = scenario.written()
    unread = [key for key in settings if "estimate" not in BY_NAME[key].commands and key != "replicas"]
    inputs = {key: value for key, value in settings.items() if "estimate" in BY_NAME[key].commands}
    for key in SHARED:
        if key in inputs:
            inputs[key] = max(1, round(inputs[key] / replicas)) if key == "concurrency" else inputs[key] / replicas
    inputs.pop("devices", None) if replicas > 1 else None
    try:
        found = estimate(read_scenario(inputs))
    except OrreryError as error:
        return {"error": str(error), "replicas": replicas, "unread": unread}
    plain = found.to_json()
    if isinstance(found, InfeasibleAnswer):
        return {"error": "it does not fit", "replicas": replicas, "unread": unread}
    return plain | {"replicas": replicas, "unread": unread}


def packed(value: Any) -> bytes:
    """Plain JSON; what is not finite is null."""
    return json.dumps(to_json(value), allow_nan=False, separators=(",", ":")).encode()

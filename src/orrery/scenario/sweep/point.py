"""One run of a sweep as plain data, so that it can be made in another process, or on another machine."""

from collections.abc import Mapping
from typing import Any

from orrery.base.errors import OrreryError
from orrery.base.tasks import LostTask, lost
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.capacity import find_capacity
from orrery.scenario.schema import read_scenario
from orrery.scenario.simulate import simulate


def run_point(settings: Mapping[str, Any], finds_capacity: bool) -> dict[str, Any]:
    """Return the answer of ``orrery simulate --json``; or ``infeasible``, or ``error`` where settings are refused."""
    try:
        answer = find_capacity(read_scenario(settings)) if finds_capacity else simulate(read_scenario(settings))
    except OrreryError as error:
        return failed(lost(error))
    found = answer.to_json()
    return {"infeasible": found["infeasible"]} if isinstance(answer, InfeasibleAnswer) else found


def failed(task: LostTask) -> dict[str, Any]:
    """Return a run that came to nothing, with the kind and the message of what ended it."""
    return {"error": {"kind": task.kind, "message": task.message}}

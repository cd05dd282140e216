"""One run of a sweep as plain data, so that it can be made in another process, or on another machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.base.errors import OrreryError
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.capacity import find_capacity
from orrery.scenario.schema import read_scenario
from orrery.scenario.simulate import simulate
from orrery.scenario.sweep.saved_runs import keep


def run_point(settings: Mapping[str, Any], finds_capacity: bool, folder: str = "") -> dict[str, Any]:
    """The answer of ``orrery simulate --json``; or ``infeasible``, or ``error`` with its kind and message.

    What the settings alone decide is kept in ``folder``; a failure of the machine is not.
    """
    try:
        answer = find_capacity(read_scenario(settings)) if finds_capacity else simulate(read_scenario(settings))
        found = (
            {"infeasible": answer.to_json()["infeasible"]} if isinstance(answer, InfeasibleAnswer) else answer.to_json()
        )
    except OrreryError as error:
        found = failed(error)
    except Exception as error:  # one run's failure must not end the others
        return failed(error)
    if folder:
        keep(Path(folder), settings, finds_capacity, found)
    return found


def failed(error: BaseException) -> dict[str, Any]:
    """A run that came to nothing."""
    return {"error": {"kind": type(error).__name__, "message": str(error) or type(error).__name__}}

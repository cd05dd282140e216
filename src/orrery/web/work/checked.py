"""Checked runs; everything wrong with one is reported before it waits for its turn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError, nearest
from orrery.scenario.fields import BY_NAME
from orrery.scenario.schema import Scenario, read_scenario
from orrery.scenario.service import service_for
from orrery.scenario.simulate import check_traffic, read_window
from orrery.scenario.sweep.grid import points_of, read_axes
from orrery.web.named import grounded
from orrery.web.work.kinds import KINDS, REPORT

MAX_REQUESTS = 1_000_000
"""Maximum number of requests in one simulation; it takes seconds, and some hundred bytes each."""

MAX_RUNS = 200
"""Maximum number of runs in one sweep; the page about it stays readable."""


def check(kind: str, settings: Mapping[str, Any], options: Mapping[str, Any], uploads: Path) -> None:
    """ScenarioError where it cannot be run as it stands."""
    known = [name for name in KINDS if name != REPORT]
    if kind not in known:
        near = nearest(kind, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
        raise ScenarioError(f"kind: there is no kind of run {kind[:40]!r}; {hint}")
    inputs = read_scenario(grounded(settings, uploads))
    command = KINDS[kind].command
    foreign = [key for key in inputs.written() if command not in BY_NAME[key].commands]
    if foreign:
        raise ScenarioError(f"{foreign[0]}: is no setting of `orrery {command}`; leave it out.")
    if inputs.num_requests is not None and inputs.num_requests > MAX_REQUESTS:
        raise ScenarioError(f"num_requests: got {inputs.num_requests:,}; ask for at most {MAX_REQUESTS:,} here.")
    if options.get("window"):
        read_window(str(options["window"]))
    if kind == "sweep":
        _check_sweep(inputs, [str(text) for text in options.get("sweep", ())], uploads)
    elif command == "simulate":
        check_traffic(inputs)
        service_for(inputs)
    if kind == "capacity" and inputs.concurrency is not None:
        raise ScenarioError("concurrency: a capacity is a rate of arrivals; leave concurrency out.")


def _check_sweep(scenario: Scenario, over: list[str], uploads: Path) -> None:
    if not over:
        raise ScenarioError("sweep: nothing varies; write a setting and its values, such as tp=1,2,4.")
    axes = read_axes(over)
    for axis in axes:
        for value in axis.values:
            named = {axis.key: value}
            if grounded(named, uploads) != named:
                raise ScenarioError(f"sweep: {axis.key}={value}: uploaded files cannot vary; choose one for all runs.")
    points = points_of(scenario, axes)
    if len(points) > MAX_RUNS:
        raise ScenarioError(f"sweep: {len(points):,} runs are too many here; write fewer values, at most {MAX_RUNS}.")
    most = max(point.scenario.num_requests or 0 for point in points)
    if most > MAX_REQUESTS:
        raise ScenarioError(f"num_requests: got {most:,}; ask for at most {MAX_REQUESTS:,} here.")

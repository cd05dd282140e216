"""Runs of a sweep on a Ray cluster (https://docs.ray.io): one task a run. Needs the package ``ray``."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.scenario.sweep.point import failed, run_point

HERE = "local"
"""The address of a cluster that is started on this machine and ends with the sweep."""


def on_ray(
    todo: Mapping[int, Mapping[str, Any]], address: str, finds_capacity: bool,
    on_run: Callable[[int, dict[str, Any]], None],
) -> None:  # fmt: skip
    """Run all of ``todo`` on the cluster at ``address`` (``auto``, ``local``, ``ray://host:port``); orrery must be
    installed on its machines."""
    ray = _ray()
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ScenarioError(
            f"ray: no cluster at {address!r} ({str(error).splitlines()[0]}); write its address, such as "
            f"ray://host:10001, or {HERE} for one on this machine."
        ) from None
    try:
        task = ray.remote(run_point)
        numbers = {task.remote(dict(settings), finds_capacity): number for number, settings in todo.items()}
        while numbers:
            (first, *_), _ = ray.wait(list(numbers), num_returns=1)
            try:
                found: dict[str, Any] = ray.get(first)
            except Exception as error:  # a machine that is lost fails its runs, not the sweep
                found = failed(error)
            on_run(numbers.pop(first), found)
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise ScenarioError(
            "ray: the package is not installed; write: pip install 'orrery-ai[ray]', or leave --ray out to use the "
            "cores of this machine."
        ) from None

"""Tasks on a Ray cluster (https://docs.ray.io), where the package ``ray`` is installed."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.tasks.lost import Key, lost
from orrery.base.tasks.processes import THREADS

HERE = "local"
"""The address of a cluster that is started on this machine and ends with the work."""

AHEAD_RATIO = 4
"""Tasks that wait on the cluster beside each that runs: enough to keep cores busy, few enough to hold in memory."""

MAX_RETRIES = 5
"""Starts of a task anew after its machine was lost."""


def on_cluster(
    function: Callable[..., Any], todo: Mapping[Key, tuple[Any, ...]], address: str
) -> Iterator[tuple[Key, Any]]:
    """Run all of ``todo`` on the cluster at ``address``; orrery must be installed on its machines.

    A task whose machine is lost starts again on another one. Raises ScenarioError where there is no package or no
    cluster.
    """
    ray = _ray()
    try:
        ray.init(address=address, log_to_driver=False, runtime_env={"env_vars": dict.fromkeys(THREADS, "1")})
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ScenarioError(
            f"ray: no cluster at {address!r} ({str(error).splitlines()[0]}); write its address, such as "
            f"ray://host:10001, or {HERE} for one on this machine."
        ) from None
    try:
        task = ray.remote(packed(function)).options(max_retries=MAX_RETRIES)
        left = iter(todo.items())
        running: dict[Any, Key] = {}
        while True:
            most = max(1, AHEAD_RATIO * round(ray.cluster_resources().get("CPU", 1.0)))
            while len(running) < most and (one := next(left, None)):
                running[task.remote(*one[1])] = one[0]
            if not running:
                return
            (first, *_), _ = ray.wait(list(running), num_returns=1)
            try:
                found = pickle.loads(ray.get(first))
            except Exception as error:  # one task's failure must not end the others
                found = lost(getattr(error, "cause", None) or error)
            yield running.pop(first), found
    finally:
        ray.shutdown()


def packed(function: Callable[..., Any]) -> Callable[..., bytes]:
    """The function with its result as bytes. Arrays would come as views of the cluster's own memory, which is gone when
    the work is over."""

    def run(*arguments: Any) -> bytes:
        return pickle.dumps(function(*arguments))

    return run


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise ScenarioError(
            "ray: the package is not installed; write: pip install 'orrery-ai[ray]', or leave --ray out to use the "
            "cores of this machine."
        ) from None

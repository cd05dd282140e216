"""Changes to what a run ran on. Equal changes of one thing give one object, so that its tables are made once."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from orrery.calibrate.compare.run import Run, ServingRun, TrainingRun
from orrery.execution.layout import Deployment
from orrery.hardware.device import Device

T = TypeVar("T")


def with_fields(thing: T, **changes: Any) -> T:
    """A frozen dataclass with some (hashable) fields changed."""
    return _replaced(thing, tuple(changes.items()))


@lru_cache(maxsize=4096)
def _replaced(thing: Any, changes: tuple[tuple[str, Any], ...]) -> Any:
    return replace(thing, **dict(changes))


@lru_cache(maxsize=1024)
def slowed(device: Device, compute_frac: float = 1.0, memory_frac: float = 1.0) -> Device:
    """The device at a share of its arithmetic rates, and of its memory bandwidth."""
    return replace(
        device,
        dense_flops_per_s={k: v * compute_frac for k, v in device.dense_flops_per_s.items()},
        vector_flops_per_s=device.vector_flops_per_s * compute_frac,
        compute_clock_hz=device.compute_clock_hz * compute_frac,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s * memory_frac,
    )


def on_device(run: Run, change: Callable[[Device], Device]) -> Run:
    """The run on changed devices."""
    if isinstance(run, TrainingRun):
        cluster = with_fields(run.job.cluster, device=change(run.job.cluster.device))
        return replace(run, job=with_fields(run.job, cluster=cluster))
    return on_deployments(
        run, lambda d: with_fields(d, cluster=with_fields(d.cluster, device=change(d.cluster.device)))
    )


def on_deployments(run: ServingRun, change: Callable[[Deployment], Deployment]) -> ServingRun:
    """The run with every pool's deployment changed."""
    pools = tuple(replace(p, deployment=change(p.deployment)) for p in run.service.pools)
    return replace(run, service=replace(run.service, pools=pools))


def on_engine(run: ServingRun, **changes: float) -> ServingRun:
    """The run with other constants of the engine."""
    return on_deployments(run, lambda d: with_fields(d, engine=with_fields(d.engine, **changes)))


def device_of(run: Run) -> Device:
    """The device that a run used; of pools, the last one's."""
    return run.job.cluster.device if isinstance(run, TrainingRun) else deployment_of(run).cluster.device


def deployment_of(run: ServingRun) -> Deployment:
    """The deployment that gives the answers."""
    return run.service.pools[-1].deployment

"""States off the device, searched: every technique that learns as training does, with every cut that it takes.

A technique takes tensor parallelism inside a node and data parallelism; micro-batches and recomputation vary too.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.train.job import FROZEN
from orrery.planner.training.space import divisors
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.train_job import TrainingQuestion
from orrery.scenario.train_offload import LADDER, OPEN, OffloadAnswer, fits_tiers, offloaded
from orrery.scenario.train_offload_ask import RECOMPUTES, technique_called

ANY_OFFLOAD = "any"
"""Written for a search: every technique, also where the device has room."""

MOST_MICRO_BATCH = 32


def offload_plans(asked: Scenario, question: TrainingQuestion, count: int) -> tuple[OffloadAnswer, ...]:
    """The ``count`` fastest that fit in every tier, best first; none where no technique takes the job."""
    if asked.offload not in (None, ANY_OFFLOAD):
        technique_called(asked.offload)
    found: list[OffloadAnswer] = []
    for sizes in _ladders(asked, question):
        for change in sizes:
            try:
                scenario = merged(asked, change)
                one = offloaded(scenario) if fits_tiers(scenario) else None
            except ScenarioError:
                break
            if not isinstance(one, OffloadAnswer):
                break  # larger micro-batches hold more
            found.append(replace(one, settings=scenario.written()))
    return tuple(sorted(found, key=lambda a: a.step_time_s)[:count])


def _ladders(asked: Scenario, question: TrainingQuestion) -> Iterator[Iterator[dict[str, Any]]]:
    """For each technique, cut and recomputation the settings of rising micro-batches."""
    job = question.job
    if any(getattr(asked, name) not in (None, 1) for name in ("pp", "cp", "ep", "etp", "vp")):
        return
    names = (*LADDER, "adapters-only") if asked.offload in (None, ANY_OFFLOAD) else (asked.offload or "",)
    names = [n for n in names if (n == "adapters-only") == (job.task in FROZEN)]
    devices = job.cluster.num_devices
    degrees = [asked.tp] if asked.tp else [t for t in divisors(job.cluster.devices_per_node) if devices % t == 0]
    kept = OPEN | {"framework": asked.framework, "against": None}
    for tp, name in product(degrees, names):
        share = job.global_batch // (devices // tp)
        sizes = [asked.micro_batch] if asked.micro_batch else divisors(share, MOST_MICRO_BATCH) if share else []
        ways = (None,) if name in RECOMPUTES else (asked.recompute,) if asked.recompute else ("none", "full")
        for recompute in ways:
            own = kept | {"offload": name, "tp": tp, "recompute": recompute}
            yield ({**own, "micro_batch": size} for size in sizes)

"""States off the device, searched: every technique that learns as training does, with every cut that it takes.

A technique takes tensor parallelism inside a node and data parallelism; micro-batches and recomputation vary too.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.offload import OFFLOADS
from orrery.execution.train.job import FROZEN
from orrery.planner.training.space import divisors
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.train_job import TrainingQuestion
from orrery.scenario.train_offload import OPEN, OffloadAnswer, fits_tiers, ladder, offloaded

ANY_OFFLOAD = "any"
"""Written for a search: every technique, also where the device has room."""

MAX_MICRO_BATCH = 32


def offload_plans(inputs: Scenario, question: TrainingQuestion, count: int) -> tuple[OffloadAnswer, ...]:
    """The ``count`` fastest that fit in every tier, best first; none where no technique takes the job."""
    if inputs.offload not in (None, ANY_OFFLOAD):
        OFFLOADS.get(inputs.offload)
    found: list[OffloadAnswer] = []
    for sizes in _ladders(inputs, question):
        for change in sizes:
            try:
                scenario = merged(inputs, change)
                one = offloaded(scenario) if fits_tiers(scenario) else None
            except ScenarioError:
                break
            if not isinstance(one, OffloadAnswer):
                break  # larger micro-batches hold more
            found.append(replace(one, settings=scenario.written()))
    return tuple(sorted(found, key=lambda a: a.step_time_s)[:count])


def _ladders(scenario: Scenario, question: TrainingQuestion) -> Iterator[Iterator[dict[str, Any]]]:
    """For each technique, cut and recomputation the settings of rising micro-batches."""
    job = question.job
    if any(getattr(scenario, name) not in (None, 1) for name in ("pp", "cp", "ep", "etp", "vp")):
        return
    is_frozen, known = job.task in FROZEN, OFFLOADS.techniques
    adapters = tuple(name for name, technique in known.items() if technique.knobs.trains == "adapters")
    names = (*ladder(), *adapters) if scenario.offload in (None, ANY_OFFLOAD) else (scenario.offload or "",)
    names = [n for n in names if (n in adapters) == is_frozen]
    devices = job.cluster.num_devices
    degrees = [scenario.tp] if scenario.tp else [t for t in divisors(job.cluster.devices_per_node) if devices % t == 0]
    base_settings = OPEN | {"framework": scenario.framework, "against": None}
    for tp, name in product(degrees, names):
        share = job.global_batch // (devices // tp)
        sizes = [scenario.micro_batch] if scenario.micro_batch else divisors(share, MAX_MICRO_BATCH) if share else []
        ways = (
            (None,)
            if OFFLOADS.get(name).knobs.always_recomputes
            else (scenario.recompute,)
            if scenario.recompute
            else ("none", "full")
        )
        for recompute in ways:
            own = base_settings | {"offload": name, "tp": tp, "recompute": recompute}
            yield ({**own, "micro_batch": size} for size in sizes)

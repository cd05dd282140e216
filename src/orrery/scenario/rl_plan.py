"""The best ways to share devices between rollouts and training: splits, trainers' layouts and engines' degrees."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.catalog.rl_frameworks import get_rl_framework
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training import SCHEDULES
from orrery.planner.space import tensor_degrees
from orrery.planner.training.search import search
from orrery.planner.training.space import FixedSettings
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.resolve import one_device
from orrery.scenario.rl import RlAnswer, train_rl
from orrery.scenario.rl_job import check_needed, engine_for, lengths_of_scenario, refuse_placement, trainer_question
from orrery.scenario.schema import Scenario, merged, refuse_foreign

EIGHTHS = (1, 2, 3, 4, 5, 6, 7)
"""Shares of the devices that generate, in eighths, where nobody fixes them."""

ENGINES = 3
"""Tensor-parallel degrees of an engine that are tried: the least that fits, and the next ones."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlPlanAnswer:
    """Splits of the devices, the fastest first."""

    plans: tuple[RlAnswer, ...]
    evaluated: int  # simulated in full
    rejected: Mapping[str, int]  # why others were not, and how many
    search_s: float
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        left_out = ("settings", "notes", "because", "price")
        return to_json(
            {
                "plans": [
                    {k: v for k, v in p.to_json().items() if k not in left_out} | {"flags": flags_of(p)}
                    for p in self.plans
                ],
                "evaluated": self.evaluated,
                "rejected": [{"reason": r, "plans": n} for r, n in self.rejected.items()],
                "seconds": self.search_s,
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def flags_of(plan: RlAnswer) -> dict[str, Any]:
    """A plan's additions to its scenario: with them, the scenario is this plan."""
    job, layout = plan.job, plan.job.layout
    chosen: dict[str, Any] = {"layout": str(layout), "generation_tp": job.generation.layout.tp}
    return chosen | ({"colocated": True} if job.is_colocated else {"generation_devices": job.generation_devices})


@typed
def train_rl_plan(
    scenario: Scenario | None = None, /, *, progress: Progress | None = None, **settings: Any
) -> RlPlanAnswer:
    """Every split of the devices in eighths, and taking turns; each with its fastest trainer and engines of few sizes.

    What the scenario fixes (layout flags, generation_devices, generation_tp, colocated) is not varied. With
    ``max_staleness`` both pools work side by side; without it, in turn.
    """
    started_s = time.perf_counter()
    inputs = merged(scenario, {"rl": True, **settings})
    refuse_foreign("train", settings)
    check_needed(inputs)
    refuse_placement(inputs)
    tried, answers, why = list(_splits(inputs)), list[RlAnswer](), Counter[str]()
    evaluated = 0
    for done, generating in enumerate(tried, 1):
        fixed = {"colocated": True} if generating is None else {"generation_devices": generating, "colocated": False}
        split = merged(inputs, fixed)
        layout = _trainer(split, generating)
        if layout is None:
            why["no layout of the trainer fits its devices"] += 1
        for degree in _engines(split, generating) if layout else ():
            found = _tried(merged(split, {"generation_tp": degree, **({} if inputs.layout else _cut(str(layout)))}))
            if isinstance(found, RlAnswer):
                answers.append(found)
            else:
                why[found] += 1
            evaluated += 1
        if progress:
            progress(done, len(tried))
    answers.sort(key=lambda a: a.step_time_s)
    notes = answers[0].notes if answers else ()
    return RlPlanAnswer(
        plans=tuple(answers),
        evaluated=evaluated,
        rejected=dict(why),
        notes=notes,
        settings=inputs.written(),
        search_s=time.perf_counter() - started_s,
    )


LAYOUT_FLAGS = (
    "tp",
    "cp",
    "pp",
    "dp",
    "vp",
    "ep",
    "etp",
    "micro_batch",
    "sharding",
    "sharding_group",
    "secondary_group",
    "recompute",
    "recompute_layers",
    "schedule",
    "context_kind",
    "sequence_parallel",
)


def _cut(layout: str) -> dict[str, Any]:
    """The layout by its name, in place of what the scenario fixed of it."""
    return {"layout": layout, **dict.fromkeys(LAYOUT_FLAGS)}


def _splits(scenario: Scenario) -> Iterator[int | None]:
    """Devices that generate; None: all, in turn."""
    devices = cast(int, scenario.devices)
    if scenario.colocated or (
        scenario.colocated is None and not scenario.max_staleness and scenario.generation_devices is None
    ):
        yield None
    if scenario.colocated:
        return
    if scenario.generation_devices is not None:
        yield scenario.generation_devices
        return
    node = scenario.devices_per_node or get_device(one_device(scenario)).devices_per_node
    unit = node if devices > node and devices % node == 0 else 1
    yield from sorted({max(unit, devices * n // 8 // unit * unit) for n in EIGHTHS} - {devices})


def _trainer(split: Scenario, generating: int | None) -> TrainingLayout | None:
    """The fastest layout of the training devices for an update of the longest sequences, one to a micro-batch."""
    framework = get_rl_framework(split.framework or "")
    training = cast(int, split.devices) - (generating or 0)
    question = trainer_question(split, framework, training, lengths_of_scenario(split, [])[2], is_open=True)
    if split.layout:
        return TrainingLayout(**question.given)
    schedules = () if "schedule" in question.given else SCHEDULES.get(question.job.framework.name, ())
    fixed: dict[str, Any] = {"micro_batch": 1, **question.given}
    found = search(question.job, FixedSettings(**fixed, schedules=schedules), count=1)
    return found.best[0].layout if found.best else None


def _engines(split: Scenario, generating: int | None) -> list[int]:
    """Tensor-parallel degrees of an engine whose weights fit."""
    if split.generation_tp is not None:
        return [split.generation_tp]
    framework = get_rl_framework(split.framework or "")
    devices = generating or cast(int, split.devices)
    question = trainer_question(split, framework, devices, lengths_of_scenario(split, [])[2])
    node = question.job.cluster.devices_per_node
    out: list[int] = []
    for degree in tensor_degrees(question.job.model, node):
        if devices % degree or len(out) == ENGINES:
            continue
        engine = engine_for(merged(split, {"generation_tp": degree}), framework, question.job, generating is None, [])
        if not isinstance(memory_of(engine), Infeasible):
            out.append(degree)
    return out


def _tried(scenario: Scenario) -> RlAnswer | str:
    """The answer, or why there is none."""
    try:
        found = train_rl(scenario)
    except OrreryError as error:
        return str(error)
    return f"memory: {found.infeasible.what}" if isinstance(found, InfeasibleAnswer) else found

"""The best layouts to train with: searched over everything that the scenario leaves open."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError, shown
from orrery.execution.memory import Infeasible
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training import SCHEDULES, launches, refusals
from orrery.planner.money import Tariff, tariff_of
from orrery.planner.training.search import ConstraintRejection, Point, TrainingSearchResult, search
from orrery.planner.training.space import FixedSettings
from orrery.planner.workers import Workers
from orrery.scenario.answer import to_json
from orrery.scenario.plan_answer import price_json
from orrery.scenario.rl_job import check_is_no_rl
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.train import TrainAnswer, answer_of
from orrery.scenario.train_against import Against, against_layout
from orrery.scenario.train_job import ANY_SCHEDULE, TrainingQuestion, job_json, layout_of, training_question
from orrery.scenario.train_offload import OffloadAnswer, refuse_tiers
from orrery.scenario.train_plan_offload import offload_plans
from orrery.scenario.train_run import check_run, costs_of, run_of
from orrery.scenario.train_with.refused import refuse_techniques
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.memory import room_bytes
from orrery.training.ranks import costed

IN_FULL = 5
"""Plans that are worked out in full; the others are counted."""

MAX_PLANS = 200
"""That may be asked for in full: each takes some tens of milliseconds."""

KILLED_SHOWN = 200
"""Families of layouts with the constraint that kills them, those that come closest first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainPlanAnswer:
    """Result of a search of training layouts; ``infeasible`` where nothing works."""

    job: TrainingJob
    plans: tuple[TrainAnswer, ...]  # the fastest, best first
    launch: dict[str, str]  # of the first plan, by framework
    launch_refusals: dict[str, str]  # frameworks that cannot run it, and why
    front: tuple[Point, ...]  # time, memory and energy; dollars follow from time and energy
    rejected: tuple[ConstraintRejection, ...]
    infeasible: Infeasible | None
    evaluated: int
    ruled_out: int
    num_layouts: int
    seconds: float
    tariff: Tariff
    notes: tuple[str, ...]
    against: Against | None = None  # a layout of the user's beside them
    offloads: tuple[OffloadAnswer, ...] = ()  # the fastest with states off the device, where they were searched
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it

    def why_not(self) -> dict[str, int]:
        """Layouts that each constraint rules out, over all families."""
        out: dict[str, int] = {}
        for k in self.rejected:
            out[k.constraint] = out.get(k.constraint, 0) + k.layouts
        return dict(sorted(out.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        out: dict[str, Any] = {"infeasible": self.infeasible} if self.infeasible else {}
        return to_json(
            out
            | {
                "plans": [plan_json(p) for p in self.plans],
                "offload_plans": [plan_json(p) for p in self.offloads],
                "front": [
                    {
                        "layout": p.layout,
                        "step_time_s": p.time_s,
                        "peak_memory_bytes": p.memory_bytes,
                        "energy_j_per_step": p.energy_j,
                        "usd_per_step": usd_per_step(self, p),
                    }
                    for p in self.front
                ],
                "against": self.against.to_json(self.plans[0] if self.plans else None) if self.against else None,
                "why_not": self.why_not(),
                "rejected": [killed_json(k) for k in self.rejected[:KILLED_SHOWN]],
                "launch": self.launch,
                "launch_refusals": self.launch_refusals,
                "evaluated": self.evaluated,
                "ruled_out": self.ruled_out,
                "num_layouts": self.num_layouts,
                "seconds": self.seconds,
                "evaluations_per_s": self.evaluated / self.seconds,
                "job": job_json(self.job),
                "price": price_json(self.tariff),
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def usd_per_step(answer: TrainPlanAnswer, point: Point) -> float | None:
    """Dollars of one step: devices for its time, and electricity where it is paid apart."""
    rate = answer.tariff.usd_per_s(answer.job.cluster.num_devices, point.energy_j / point.time_s)
    return None if rate is None else rate * point.time_s


def plan_json(plan: TrainAnswer | OffloadAnswer) -> dict[str, Any]:
    """One plan; the job stands once beside all of them."""
    return {k: v for k, v in plan.to_json().items() if k not in ("job", "notes", "price", "settings")}


def killed_json(rejected: ConstraintRejection) -> dict[str, Any]:
    """One family of layouts and what rules it out."""
    f = rejected.family
    out: dict[str, Any] = {
        "family": {n: getattr(f, n) for n in ("tp", "cp", "pp", "dp", "ep", "etp")},
        "constraint": rejected.constraint,
        "layouts": rejected.layouts,
    }
    if rejected.nearest is not None:
        out |= {"need_bytes": rejected.need_bytes, "have_bytes": rejected.have_bytes, "nearest": rejected.nearest}
    return out


@typed
def train_plan(
    scenario: Scenario | None = None,
    /,
    *,
    count: int = IN_FULL,
    progress: Callable[[int, int], None] | None = None,
    jobs: int = 1,
    ray: str = "",
    **settings: Any,
) -> TrainPlanAnswer:
    """The fastest layouts that fit, the front of time and memory, what falls out and why, and how to launch the best.

    Every layout flag and the micro-batch are optional: what is left open is searched. States leave the device where
    nothing fits otherwise, or where ``offload`` names a technique or says "any". ``jobs`` processes, or a Ray cluster
    at the address ``ray``, search parts of a large space; the answer is the same.
    """
    started_s = time.perf_counter()
    if not 0 <= count <= MAX_PLANS:
        raise ScenarioError(f"train_plan: count: got {shown(count)}; write a whole number up to {MAX_PLANS}.")
    inputs = merged(scenario, settings)
    refuse_foreign("train", settings)
    check_is_no_rl(inputs, settings)
    if inputs.layout:
        raise ScenarioError("layout: is what --plan searches; write --against to see how one of yours stands.")
    if not inputs.offload:
        refuse_tiers(inputs)
    question = training_question(merged(inputs, {"offload": None}))
    job = question.job
    _check_searched(question.given)
    check_run(inputs)
    refuse_techniques(inputs, "by the search", "--plan")
    tried = () if inputs.schedule == ANY_SCHEDULE else SCHEDULES.get(job.framework.name, ())
    fixed = FixedSettings(**question.given, schedules=tried)
    tariff = tariff_of(job.cluster.device, inputs.usd_per_hour, inputs.electricity)
    mine = _in_full(inputs, job, against_layout(question, inputs.against), tariff) if inputs.against else None
    rank_s, workers = mine.step_time_s if mine else 0.0, Workers(jobs=jobs, ray=ray)
    found = search(job, fixed, count=max(count, 1), progress=progress, rank_s=rank_s, workers=workers)
    if not found.num_layouts:
        raise ScenarioError(_empty(question))
    if not found.best and all(k.nearest is None for k in found.rejected):
        raise ScenarioError(_empty(question))
    offloads = offload_plans(inputs, question, count) if inputs.offload or not found.best else ()
    plans = tuple(_in_full(inputs, job, point.layout, tariff) for point in found.best[:count])
    best = plans[0].layout if plans else None
    return TrainPlanAnswer(
        job=job,
        plans=plans,
        launch=launches(job, best) if best else {},
        launch_refusals=refusals(job, best) if best else {},
        front=tuple(found.front),
        rejected=tuple(sorted(found.rejected, key=_closeness)),
        infeasible=None if plans or offloads else _nothing(job, found),
        offloads=offloads,
        evaluated=found.evaluated,
        ruled_out=found.ruled_out,
        num_layouts=found.num_layouts,
        seconds=time.perf_counter() - started_s,
        tariff=tariff,
        notes=(*question.notes, *_schedule_notes(job, fixed), *tariff.notes),
        against=_against(mine, found),
        settings=inputs.written(),
    )


def _against(mine: TrainAnswer | None, found: TrainingSearchResult) -> Against | None:
    if mine is None:
        return None
    return Against(
        answer=mine, num_faster=found.num_faster, need_bytes=mine.peak_memory_bytes, have_bytes=room_bytes(mine.job)
    )


def _schedule_notes(job: TrainingJob, selection: FixedSettings) -> tuple[str, ...]:
    """Which schedules were tried, where the framework runs only some."""
    if selection.schedule or not selection.schedules:
        return ()
    return (f"schedule: {', '.join(selection.schedules)} (what {job.framework.name} runs; --schedule any tries all)",)


def _in_full(scenario: Scenario, job: TrainingJob, layout: TrainingLayout, tariff: Tariff) -> TrainAnswer:
    steps, ranks = costed(job, layout)
    return answer_of(steps, ranks, tariff, run_of(scenario, costs_of(steps, ranks), tariff), ())


def _closeness(rejected: ConstraintRejection) -> tuple[bool, float]:
    return rejected.constraint != "memory", rejected.need_bytes


def _nothing(job: TrainingJob, found: TrainingSearchResult) -> Infeasible:
    """The layout that comes closest to fitting."""
    missed = [k for k in found.rejected if k.nearest is not None]
    near = min(missed, key=lambda k: k.need_bytes)
    more = max(2, round(near.need_bytes / near.have_bytes + 0.5))
    return Infeasible(
        what=f"{job.model.name} on {job.cluster.num_devices} x {job.cluster.device.name}, even with {near.nearest}",
        need=near.need_bytes,
        have=near.have_bytes,
        unit="bytes",
        smallest_change=f"Use some {more} times as many devices, or ones with more memory: with states off the device "
        "nothing fits either.",
    )


def _check_searched(given: dict[str, Any]) -> None:
    """Refuse to fix what the search neither varies nor holds fast."""
    searched = {f.name for f in fields(FixedSettings)}
    if unknown := [name for name in given if name not in searched]:
        raise ScenarioError(f"{unknown[0]}: is not searched by --plan; leave {unknown[0]} or --plan out.")


def _empty(question: TrainingQuestion) -> str:
    """Why nothing makes sense: what is wrong with the plainest layout that was asked for."""
    job, given = question.job, question.given
    try:
        plainest, _ = layout_of(question)
        why = refusal(job, columns_of([plainest]))
    except ScenarioError as error:
        why = str(error)
    text = " with " + ", ".join(f"{k} = {v}" for k, v in given.items()) if given else ""
    return f"No layout of {job.cluster.num_devices} devices{text} makes sense for {job.model.name}. {why}".strip()

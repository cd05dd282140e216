"""A training job's answer: step time by part, memory by category and rank, energy, money, and the whole run."""

from dataclasses import dataclass, replace
from typing import Any

from orrery.base.arguments import typed
from orrery.base.cost import Interval, Spread
from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.money import Tariff, tariff_of
from orrery.planner.training.nearby import cheapest_fit, nearest_sensible
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.rl_job import check_is_no_rl
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.show import Table
from orrery.scenario.train_answer import Trained
from orrery.scenario.train_idle import idle_settings
from orrery.scenario.train_job import ANY_SCHEDULE, layout_of, training_question
from orrery.scenario.train_offload import OffloadAnswer, first_offload, offloaded, refuse_tiers
from orrery.scenario.train_run import Run, check_run, costs_of, run_of
from orrery.scenario.train_with.apply import with_techniques
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.error_range import spread_of
from orrery.training.memory import room_bytes
from orrery.training.ranks import Rank, costed
from orrery.training.step import Steps
from orrery.training.worth import mfu_frac, peak_flops_per_s, power_w

KINDS = {
    "compute": ("forward", "backward", "weight gradients", "recomputation", "redundant forward"),
    "network": (
        "tensor parallel",
        "context parallel",
        "expert parallel",
        "sharding",
        "hand-overs",
        "gradient reduction",
        "parameter gathering",
    ),
    "bubble": ("bubble",),
    "memory": ("update", "weight sampling", "activation offloading"),
    "overhead": ("launches", "once a step"),
}
"""Limits of a step, and the parts of each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainAnswer(Trained):
    """One configuration of a training job whose states stay on the devices."""

    KINDS = KINDS

    ranks: tuple[Rank, ...]  # pipeline ranks, first to last

    @property
    def peak_memory_bytes(self) -> float:
        """The allocator's peak on the fullest device."""
        return max(r.peak_bytes for r in self.ranks)

    def intervals(self) -> dict[str, Interval]:
        """80 % and 95 % intervals, from the errors of runs of the same kind that were not used to fit."""
        out: dict[str, Interval] = {}
        if spread := spread_of(self.job, "step_time_s"):
            out["step_time_s"] = spread.around(self.step_time_s)
            for name in ("tokens_per_s_per_device", "mfu_frac", "model_flops_per_s_per_device"):
                out[name] = _inverse(getattr(self, name), spread)
        if spread := spread_of(self.job, "peak_memory_bytes"):
            out["peak_memory_bytes"] = spread.around(self.peak_memory_bytes)
        return out

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        memory = [
            {
                "rank": r.rank,
                "in_flight": r.in_flight,
                "peak_bytes": r.peak_bytes,
                **{f"{k}_bytes": v for k, v in r.parts.items()},
            }
            for r in self.ranks
        ]
        return to_json(
            {
                **self.figures_json(),
                "peak_memory_bytes": self.peak_memory_bytes,
                "memory": memory,
                "intervals": self.intervals(),
                **self.job_json(),
            }
        )


def _inverse(value: float, spread: Spread) -> Interval:
    """Interval around a rate, whose truth is above where the time's is below."""
    return Interval(
        low_80=value / spread.high_80_ratio,
        high_80=value / spread.low_80_ratio,
        low_95=value / spread.high_95_ratio,
        high_95=value / spread.low_95_ratio,
        because=spread.because,
    )


@typed
def train(scenario: Scenario | None = None, /, **settings: Any) -> TrainAnswer | OffloadAnswer | InfeasibleAnswer:
    """One training configuration: step time, utilisation, memory, energy, money, and days to so many tokens.

    Settings are those of a scenario file; given beside a scenario they override it. Raises ScenarioError where a layout
    makes no sense, naming the numbers and the nearest layout that works; what does not fit is an ``InfeasibleAnswer``.
    With ``offload`` the states leave the device, and the answer says what each tier of memory holds.
    """
    inputs = merged(scenario, settings)
    refuse_foreign("train", settings)
    check_is_no_rl(inputs, settings)
    return replace(_trained(inputs), settings=inputs.written())


def _trained(scenario: Scenario) -> TrainAnswer | OffloadAnswer | InfeasibleAnswer:
    check_run(scenario)
    if scenario.against:
        raise ScenarioError("against: is for --plan, which ranks a layout among all; write --layout for one alone.")
    if scenario.offload:
        return offloaded(scenario)
    if scenario.find_largest:
        raise ScenarioError("find_largest: is of techniques of offloading; write offload, such as all-on-device.")
    refuse_tiers(scenario)
    question = training_question(scenario)
    if scenario.schedule == ANY_SCHEDULE:
        raise ScenarioError(f'schedule: {ANY_SCHEDULE} is for --plan; write one, such as schedule = "1f1b".')
    layout, layout_notes = layout_of(question)
    job = question.job
    if text := refusal(job, columns_of([layout])):
        near = nearest_sensible(job, layout)
        raise ScenarioError(text + (f" The nearest layout that works: {near}." if near else ""))
    changed = with_techniques(scenario, job, layout, *costed(job, layout))
    steps, ranks = changed.steps, changed.ranks
    notes = (*question.notes, *layout_notes, *idle_settings(scenario, job, layout), *changed.notes)
    if missing := _missing_memory(scenario, job, layout, ranks):
        return InfeasibleAnswer(infeasible=missing, notes=notes, tables=changed.tables)
    tariff = tariff_of(job.cluster.device, scenario.usd_per_hour, scenario.electricity)
    run = run_of(scenario, replace(costs_of(steps, ranks), outage_lost_s=changed.outage_lost_s), tariff)
    tables = (*changed.tables, *(run.tables if run else ()))
    return answer_of(steps, ranks, tariff, run, (*notes, *tariff.notes), tables)


def answer_of(
    steps: Steps,
    ranks: tuple[Rank, ...],
    tariff: Tariff,
    run: Run | None,
    notes: tuple[str, ...],
    tables: tuple[Table, ...] = (),
) -> TrainAnswer:
    """The answer for the one layout of ``steps``."""
    job, devices = steps.job, steps.job.cluster.num_devices
    time_s = float(steps.time_s[0])
    return TrainAnswer(
        job=job,
        layout=steps.columns.layout(0),
        step_time_s=time_s,
        parts={name: float(value[0]) for name, value in steps.parts.items()},
        mfu_frac=float(mfu_frac(steps)[0]),
        hfu_frac=float(steps.hardware_flops[0]) / (time_s * peak_flops_per_s(job)),
        model_flops_per_s_per_device=float(steps.model_flops[0]) / time_s / devices,
        ranks=ranks,
        power_w=float(power_w(steps)[0]),
        tariff=tariff,
        run=run,
        notes=tuple(dict.fromkeys(notes)),
        tables=tables,
    )


def _missing_memory(
    scenario: Scenario, job: TrainingJob, layout: TrainingLayout, ranks: tuple[Rank, ...]
) -> Infeasible | None:
    fullest = max(ranks, key=lambda r: r.peak_bytes)
    have = room_bytes(job)
    if fullest.peak_bytes <= have:
        return None
    near = cheapest_fit(job, layout) or first_offload(scenario, layout)
    return Infeasible(
        what=f"{job.model.name} on {job.cluster.num_devices} x {job.cluster.device.name} ({layout}), "
        f"pipeline rank {fullest.rank}",
        need=fullest.peak_bytes,
        have=have,
        unit="bytes",
        smallest_change=f"{near} fits." if near else "Nothing near it fits: take more devices, or larger ones.",
    )

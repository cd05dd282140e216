"""A training job's answer: step time by part, memory by category and rank, energy, money, and the whole run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
from orrery.scenario.levers.found import of_job
from orrery.scenario.levers.idle import idle_notes
from orrery.scenario.plan_answer import price_json
from orrery.scenario.rl_job import check_is_no_rl
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.show import Table, rows_of
from orrery.scenario.train_job import ANY_SCHEDULE, job_json, layout_of, training_question
from orrery.scenario.train_offload import OffloadAnswer, first_offload, offloaded, refuse_tiers
from orrery.scenario.train_run import Run, check_run, costs_of, run_json, run_of
from orrery.scenario.train_with.apply import with_techniques
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.error_range import spread_of
from orrery.training.memory import room_bytes
from orrery.training.ranks import Rank, costed
from orrery.training.step import Steps
from orrery.training.worth import energy_j, mfu_frac, peak_flops_per_s, power_w

USD_TOKENS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainAnswer:
    """One configuration of a training job."""

    job: TrainingJob
    layout: TrainingLayout
    step_time_s: float
    parts: dict[str, float]  # seconds; they add up to the step
    mfu_frac: float
    hfu_frac: float  # recomputation counted
    model_flops_per_s_per_device: float
    tokens_per_s_per_device: float
    ranks: tuple[Rank, ...]  # pipeline ranks, first to last
    power_w: float  # of one device
    energy_j_per_step: float  # of all devices
    bound_by: str
    tariff: Tariff
    run: Run | None
    notes: tuple[str, ...]
    tables: tuple[Table, ...] = ()  # what techniques that were asked for do, each in figures of its own
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it

    @property
    def peak_memory_bytes(self) -> float:
        """The allocator's peak on the fullest device."""
        return max(r.peak_bytes for r in self.ranks)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second, all devices."""
        return self.job.tokens_per_step / self.step_time_s

    @property
    def energy_j_per_token(self) -> float:
        """Energy (J) per token, all devices."""
        return self.energy_j_per_step / self.job.tokens_per_step

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Dollars for a million tokens; None where no price is known."""
        devices = self.job.cluster.num_devices
        return self.tariff.usd_per_million(devices, devices * self.power_w, self.tokens_per_s)

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

    def table(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Rows of what a technique that was asked for does; ScenarioError names the tables that there are."""
        return rows_of(self.tables, kind)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "step_time_s": self.step_time_s,
                "mfu_frac": self.mfu_frac,
                "hfu_frac": self.hfu_frac,
                "tokens_per_s_per_device": self.tokens_per_s_per_device,
                "tokens_per_s": self.tokens_per_s,
                "model_flops_per_s_per_device": self.model_flops_per_s_per_device,
                "peak_memory_bytes": self.peak_memory_bytes,
                "capacity_bytes": self.job.cluster.device.memory_capacity_bytes,
                "parts": self.parts,
                "bound_by": self.bound_by,
                "memory": [
                    {
                        "rank": r.rank,
                        "in_flight": r.in_flight,
                        "peak_bytes": r.peak_bytes,
                        **{f"{k}_bytes": v for k, v in r.parts.items()},
                    }
                    for r in self.ranks
                ],
                "power_w": self.power_w,
                "energy_j_per_step": self.energy_j_per_step,
                "energy_j_per_token": self.energy_j_per_token,
                "usd_per_million_tokens": self.usd_per_million_tokens,
                "price": price_json(self.tariff),
                "run": run_json(self.run) if self.run else None,
                "intervals": self.intervals(),
                "job": job_json(self.job),
                "layout": self.layout,
                "settings": self.settings,
                "notes": self.notes,
                **({"techniques": {t.kind: t.rows for t in self.tables}} if self.tables else {}),
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
    notes = (*question.notes, *layout_notes, *idle_notes(scenario.written(), of_job(job, layout)), *changed.notes)
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
    parts = {name: float(value[0]) for name, value in steps.parts.items()}
    return TrainAnswer(
        job=job,
        layout=steps.columns.layout(0),
        step_time_s=time_s,
        parts=parts,
        mfu_frac=float(mfu_frac(steps)[0]),
        hfu_frac=float(steps.hardware_flops[0]) / (time_s * peak_flops_per_s(job)),
        model_flops_per_s_per_device=float(steps.model_flops[0]) / time_s / devices,
        tokens_per_s_per_device=float(steps.tokens_per_s_per_device[0]),
        ranks=ranks,
        power_w=float(power_w(steps)[0]),
        energy_j_per_step=float(energy_j(steps)[0]),
        bound_by=bound_by(parts),
        tariff=tariff,
        run=run,
        notes=tuple(dict.fromkeys(notes)),
        tables=tables,
    )


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
    "memory": ("update", "weight sampling"),
    "overhead": ("launches", "once a step"),
}
"""Limits of a step, and the parts of each."""


def bound_by(parts: dict[str, float]) -> str:
    """The kind of parts that takes most of the step."""
    return max(KINDS, key=lambda kind: sum(parts.get(name, 0.0) for name in KINDS[kind]))


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

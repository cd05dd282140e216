"""Figures of every answer to a training job: step time by part, rates, power, energy, money, and the whole run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.money import Tariff
from orrery.scenario.plan_answer import price_json
from orrery.scenario.show import Table, rows_of
from orrery.scenario.train_job import job_json
from orrery.scenario.train_run import Run, run_json


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """One configuration of a training job."""

    KINDS: ClassVar[Mapping[str, tuple[str, ...]]]  # limits of a step, and the parts of each

    job: TrainingJob
    layout: TrainingLayout
    step_time_s: float
    parts: dict[str, float]  # seconds; they add up to the step
    mfu_frac: float
    hfu_frac: float  # recomputation counted
    model_flops_per_s_per_device: float
    power_w: float  # of one device
    tariff: Tariff
    run: Run | None
    notes: tuple[str, ...]
    tables: tuple[Table, ...] = ()  # what techniques that were asked for do, each in figures of its own
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second, all devices."""
        return self.job.tokens_per_step / self.step_time_s

    @property
    def tokens_per_s_per_device(self) -> float:
        """Tokens per second of each device, averaged over all."""
        return self.tokens_per_s / self.job.cluster.num_devices

    @property
    def energy_j_per_step(self) -> float:
        """Energy (J) of one step over all devices; the host and the drives are not in it."""
        return self.power_w * self.step_time_s * self.job.cluster.num_devices

    @property
    def energy_j_per_token(self) -> float:
        """Energy (J) per token, all devices."""
        return self.energy_j_per_step / self.job.tokens_per_step

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Dollars for a million tokens; None where no price is known."""
        devices = self.job.cluster.num_devices
        return self.tariff.usd_per_million(devices, devices * self.power_w, self.tokens_per_s)

    @property
    def bound_by(self) -> str:
        """The kind of parts that takes most of the step."""
        return max(self.KINDS, key=lambda kind: sum(self.parts.get(name, 0.0) for name in self.KINDS[kind]))

    def table(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Rows of what a technique that was asked for does; ScenarioError names the tables that there are."""
        return rows_of(self.tables, kind)

    def figures_json(self) -> dict[str, Any]:
        """Figures of the step, in the shape that scripts rely on; SI units."""
        return {
            "step_time_s": self.step_time_s,
            "mfu_frac": self.mfu_frac,
            "hfu_frac": self.hfu_frac,
            "tokens_per_s_per_device": self.tokens_per_s_per_device,
            "tokens_per_s": self.tokens_per_s,
            "model_flops_per_s_per_device": self.model_flops_per_s_per_device,
            "capacity_bytes": self.job.cluster.device.memory_capacity_bytes,
            "parts": self.parts,
            "bound_by": self.bound_by,
        }

    def job_json(self) -> dict[str, Any]:
        """Energy, money, the whole run, and the question."""
        return {
            "power_w": self.power_w,
            "energy_j_per_step": self.energy_j_per_step,
            "energy_j_per_token": self.energy_j_per_token,
            "usd_per_million_tokens": self.usd_per_million_tokens,
            "price": price_json(self.tariff),
            "run": run_json(self.run) if self.run else None,
            "job": job_json(self.job),
            "layout": self.layout,
            "settings": self.settings,
            "notes": self.notes,
            **({"techniques": {t.kind: t.rows for t in self.tables}} if self.tables else {}),
        }

"""One step of RL post-training as an answer: seconds by phase, pools, memory, money, and what limits it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.base.arguments import typed
from orrery.base.cost import Interval
from orrery.execution.memory import Infeasible
from orrery.planner.money import Tariff, tariff_of
from orrery.planner.training.nearby import cheapest_fit
from orrery.rl.error_range import step_interval
from orrery.rl.job import RlJob
from orrery.rl.passes import update_job
from orrery.rl.step import PoolMemory, RlStep, rl_step
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.plan_answer import price_json
from orrery.scenario.rl_job import rl_question
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.train_job import job_json


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlAnswer:
    """One step of RL post-training in its steady state."""

    step: RlStep
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def job(self) -> RlJob:
        """The job."""
        return self.step.job

    @property
    def step_time_s(self) -> float:
        """Seconds from one new policy to the next."""
        return self.step.time_s

    @property
    def samples_per_s(self) -> float:
        """Responses trained on, a second."""
        return self.job.num_samples / self.step_time_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens of trained sequences, prompts counted, a second."""
        return self.step.trained_tokens / self.step_time_s

    @property
    def usd_per_step(self) -> float | None:
        """Dollars; None where no price is known."""
        rate = self.tariff.usd_per_s(self.job.num_devices, self.step.energy_j / self.step_time_s)
        return None if rate is None else rate * self.step_time_s

    def intervals(self) -> dict[str, Interval]:
        """Intervals of the step time (s), and of the rates that follow from it."""
        step = step_interval(self.step)
        out = {"step_time_s": step}
        for name in ("samples_per_s", "tokens_per_s"):
            scale = getattr(self, name) * self.step_time_s
            out[name] = Interval(
                low_80=scale / step.high_80,
                high_80=scale / step.low_80,
                low_95=scale / step.high_95,
                high_95=scale / step.low_95,
                because=step.because,
            )
        return out

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        step, job = self.step, self.job
        return to_json(
            {
                "step_time_s": self.step_time_s,
                "phases": step.phases,
                "shares": {name: s / self.step_time_s for name, s in step.phases.items()},
                "limited_by": step.limited_by,
                "samples_per_s": self.samples_per_s,
                "tokens_per_s": self.tokens_per_s,
                "tokens_per_s_per_device": self.tokens_per_s / job.num_devices,
                "rollout": rollout_json(step),
                "pools": pools_json(step),
                "micro_batches": step.passes.packing,
                "usd_per_step": self.usd_per_step,
                "energy_j_per_step": step.energy_j,
                "intervals": self.intervals(),
                "price": price_json(self.tariff),
                "job": {
                    **job_json(job.training),
                    "framework": job.framework.name,
                    "training_framework": job.training.framework.name,
                    "engine": job.generation.engine.name,
                    "algorithm": job.algorithm,
                    "prompts_per_step": job.num_prompts,
                    "generations_per_prompt": job.group,
                    "updates_per_step": job.num_updates,
                    "epochs": job.num_epochs,
                    "is_colocated": job.is_colocated,
                    "max_staleness": job.max_staleness,
                    "num_devices": job.num_devices,
                },
                "because": [fact.cite() for fact in job.framework.facts.values()],
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def rollout_json(step: RlStep) -> dict[str, Any]:
    """Figures of the rollouts."""
    lengths = np.concatenate([r.lengths.response for r in step.rollouts.rounds])
    found = step.rollouts
    return {
        "time_s": found.time_s,
        "tail_s": found.tail_s,
        "preemptions": found.preemptions,
        "output_tokens": {
            "mean": float(lengths.mean()),
            "p50": float(np.percentile(lengths, 50)),
            "p99": float(np.percentile(lengths, 99)),
            "max": int(lengths.max()),
        },
        "cut_frac": float((lengths >= step.job.response.most_tokens).mean()),
        "written_tokens": found.written_tokens,
        "batch_latency_s": step.pace.latency_s if step.pace else found.time_s,
    }


def pools_json(step: RlStep) -> list[dict[str, Any]]:
    """Both pools: devices, layout, idle time and memory."""
    job = step.job
    return [
        {
            "role": "training",
            "num_devices": job.training.cluster.num_devices,
            "layout": str(job.layout),
            "idle_s": step.training_idle_s,
            "idle_frac": step.training_idle_s / step.time_s,
            "memory": memory_json(step.trainer),
        },
        {
            "role": "generation",
            "num_devices": job.generation_devices,
            "layout": str(job.generation.layout),
            "replicas": job.replicas,
            "idle_s": step.generation_idle_s,
            "idle_frac": step.generation_idle_s / step.time_s,
            "memory": memory_json(step.generator),
        },
    ]


def memory_json(memory: PoolMemory) -> dict[str, Any]:
    """The fullest device of a pool."""
    return {
        "peak_bytes": memory.peak_bytes,
        "room_bytes": memory.room_bytes,
        "fits": memory.fits,
        "parts": {f"{name}_bytes": value for name, value in memory.parts.items()},
    }


@typed
def train_rl(scenario: Scenario | None = None, /, **settings: Any) -> RlAnswer | InfeasibleAnswer:
    """One step of RL post-training: rollouts simulated, passes and updates costed, weights handed over.

    Settings are those of a scenario file; given beside a scenario they override it. Raises ScenarioError where the
    pools or layouts make no sense; what does not fit comes back as ``InfeasibleAnswer``.
    """
    inputs = merged(scenario, {"rl": True, **settings})
    refuse_foreign("train", settings)
    question = rl_question(inputs)
    return answered(question.job, inputs, question.notes)


def answered(job: RlJob, scenario: Scenario, notes: tuple[str, ...]) -> RlAnswer | InfeasibleAnswer:
    """The answer to one job, or what does not fit of it."""
    step = rl_step(job)
    if isinstance(step, Infeasible):
        return InfeasibleAnswer(infeasible=step, notes=notes, settings=scenario.written())
    if missing := missing_memory(step):
        return InfeasibleAnswer(infeasible=missing, notes=notes, settings=scenario.written())
    tariff = tariff_of(job.training.cluster.device, scenario.usd_per_hour, scenario.electricity)
    return RlAnswer(
        step=step, tariff=tariff, notes=tuple(dict.fromkeys((*notes, *tariff.notes))), settings=scenario.written()
    )


def missing_memory(step: RlStep) -> Infeasible | None:
    """The missing memory of the pool that does not fit."""
    job = step.job
    if not step.trainer.fits:
        near = cheapest_fit(update_job(job, step.passes.packing, job.training.model), job.layout)
        return Infeasible(
            what=f"{job.training.model.name}, trained on {job.training.cluster.num_devices} x "
            f"{job.training.cluster.device.name} ({job.layout})",
            need=step.trainer.peak_bytes,
            have=step.trainer.room_bytes,
            unit="bytes",
            smallest_change=f"{near} fits." if near else "Nothing near it fits: train on more devices, or larger ones.",
        )
    if step.generator.fits:
        return None
    beside = step.generator.parts.get("trainer", 0.0)
    share = (step.generator.room_bytes - beside) / job.training.cluster.device.memory_capacity_bytes
    change = f"Let the engine fill less: --gpu-memory-utilization {max(0.0, share - 0.005):.2f}"
    if job.is_colocated and not job.offloads:
        change += ", or let the trainer leave the device: --offload-training"
    return Infeasible(
        what=f"an engine of {job.generation.layout} beside what else is on its devices",
        need=step.generator.peak_bytes,
        have=step.generator.room_bytes,
        unit="bytes",
        smallest_change=f"{change}.",
    )

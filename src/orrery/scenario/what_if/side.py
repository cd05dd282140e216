"""One side of a comparison: a scenario answered by a plain command, its figures and how sure they are."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.base.cost import Interval, Spread
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.train.job import TrainingJob
from orrery.scenario.answer import to_json
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate, plan
from orrery.scenario.levers.lever import Question
from orrery.scenario.plan_answer import PlanAnswer
from orrery.scenario.schema import Scenario
from orrery.scenario.simulate import SimulatedAnswer, simulate
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_offload import OffloadAnswer
from orrery.serving import extrapolation
from orrery.serving.clock import steps_of, tick
from orrery.serving.intervals import quotient

SHARED_BY_JOBS = extrapolation.SHARED
"""Share of two training predictions' squared log errors that is one and the same error, for one framework on one
device; taken as that of serving, assumed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """A scenario answered. Without figures, ``infeasible`` says what it lacks."""

    question: Question
    settings: Mapping[str, Any]
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    intervals: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    about: Deployment | TrainingJob | None = None
    answer: Any = None  # of the plain command
    infeasible: Infeasible | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The figures by name, and the settings that gave them."""
        if self.infeasible is not None:
            return {"settings": dict(self.settings), "infeasible": to_json(self.infeasible)}
        return {
            "settings": dict(self.settings),
            **{k: v if math.isfinite(v) else None for k, v in self.figures.items()},
            "intervals": {name: {"low_80": i.low_80, "high_80": i.high_80} for name, i in self.intervals.items()},
        }


def side_of(question: Question, scenario: Scenario) -> Side:
    """The scenario, answered by the plain command of that name."""
    answer = _ASK[question](scenario)
    settings = scenario.written()
    if isinstance(answer, InfeasibleAnswer) or (isinstance(answer, PlanAnswer) and not answer.plans):
        return Side(
            question=question, settings=settings, infeasible=answer.infeasible, answer=answer, notes=answer.notes
        )
    figures, intervals, about = _READ[question](answer)
    return Side(
        question=question,
        settings=settings,
        answer=answer,
        about=about,
        notes=tuple(answer.notes),
        figures={name: float(value) for name, value in figures.items() if value is not None},
        intervals={name: around for name, around in intervals.items() if around is not None},
    )


def shared_frac(a: Side, b: Side) -> float:
    """How much of the errors of both sides is the same one."""
    if isinstance(a.about, Deployment) and isinstance(b.about, Deployment):
        return extrapolation.shared_frac(a.about, b.about)
    if isinstance(a.about, TrainingJob) and isinstance(b.about, TrainingJob):
        one, other = ((j.framework.name, j.cluster.device.name) for j in (a.about, b.about))
        return SHARED_BY_JOBS if one == other else 0.0
    return 0.0


_Found = tuple[Mapping[str, float | None], Mapping[str, Interval | None], Deployment | TrainingJob]


def _estimated(answer: Answer) -> _Found:
    e = answer.estimate
    figures: dict[str, float | None] = {
        "ttft_s": e.ttft_s,
        "tpot_s": e.tpot_s,
        "latency_s": e.latency_s,
        "output_tokens_per_s": e.output_tokens_per_s,
        "usd_per_million_tokens": answer.usd_per_million_tokens,
        "energy_j_per_token": e.energy_j_per_token,
        "kv_capacity_tokens": e.memory.kv_capacity_tokens,
    }
    intervals: dict[str, Interval | None] = {name: answer.intervals().get(name) for name in figures}
    if answer.reasoned:
        way = answer.reasoned.ways[-1]
        figures |= {
            "answer_time_s": way.time_s,
            "answer_usd": way.usd,
            "answer_energy_j": way.energy_j,
            "right_frac": way.right_frac,
        }
        intervals["answer_time_s"] = way.time_interval
    return figures, intervals, answer.question.deployment


def _planned(answer: PlanAnswer) -> _Found:
    """Figures, intervals and deployment of the first plan."""
    best = answer.plans[0]
    o = best.operation
    figures = {
        "ttft_s": o.ttft_s,
        "tpot_s": o.tpot_s,
        "output_tokens_per_s": best.output_tokens_per_s,
        "usd_per_million_tokens": best.usd_per_million_tokens,
        "energy_j_per_token": best.energy_j_per_token,
        "kv_capacity_tokens": o.memory.kv_capacity_tokens,
    }
    return figures, {name: best.intervals.get(name) for name in figures}, o.deployment


def _simulated(answer: SimulatedAnswer) -> _Found:
    s, description = answer.summary, answer.to_json()
    deployment = answer.service.pools[-1].deployment
    memory = memory_of(deployment)
    figures: dict[str, float | None] = {
        "ttft_s": s.ttft.mean_s,
        "tpot_s": s.tpot.mean_s,
        "latency_s": s.e2el.mean_s,
        "output_tokens_per_s": s.output_tokens_per_s,
        "usd_per_million_tokens": description["usd_per_million_tokens"],
        "energy_j_per_token": s.energy_j_per_output_token,
        "kv_capacity_tokens": None if isinstance(memory, Infeasible) else memory.kv_capacity_tokens,
        "slo_attainment_frac": description["slo_attainment"],
    }
    ratios = _ratios(answer)
    intervals: dict[str, Interval | None] = {
        name: ratios[name].around(value) for name, value in figures.items() if value and name in ratios
    }
    return figures, intervals, deployment


def _ratios(answer: SimulatedAnswer) -> Mapping[str, Spread]:
    """By metric, the ends of its interval over its value: the errors of such runs, for what a usual step rests on."""
    service, scenario = answer.service, answer.scenario
    deployment, s = service.pools[-1].deployment, answer.summary
    mode = (
        "closed" if scenario.concurrency or scenario.users else "open" if scenario.rate or scenario.trace else "offline"
    )
    tokens = max(1, s.num_requests)
    prompt, output = s.input_tokens / tokens, s.output_tokens / tokens
    running = max(1.0, s.running_mean_requests / max(1, answer.simulated.num_machines))
    both = steps_of(
        np.array([0.0, 1.0]),
        np.array([0.0, max(1.0, min(prompt, 8192.0))]),
        np.array([0.0, max(1.0, prompt)]),
        np.array([running, 0.0]),
        np.array([prompt + output / 2, 0.0]),
    )
    doubt = extrapolation.extrapolation_share(tick(deployment, both).done)
    factors = extrapolation.factors_of(
        deployment, extrapolation.kind_of_run(deployment, mode, len(service.pools)), doubt
    )
    pace, power = factors.pace, factors.power
    found = {"ttft_s": factors.first, "tpot_s": pace, "latency_s": pace}
    if mode == "open":  # the rate is that of the arrivals, where they are served in time
        return found | {"energy_j_per_token": power}
    rate = pace.inverse()
    return found | {
        "output_tokens_per_s": rate,
        "usd_per_million_tokens": pace,
        "energy_j_per_token": quotient(power, rate),
    }


def _trained(answer: TrainAnswer | OffloadAnswer) -> _Found:
    figures: dict[str, float | None] = {
        "step_time_s": answer.step_time_s,
        "tokens_per_s": answer.tokens_per_s,
        "usd_per_million_tokens": answer.usd_per_million_tokens,
        "energy_j_per_token": answer.energy_j_per_token,
        "peak_memory_bytes": answer.peak_memory_bytes,
        "run_time_s": answer.run.time_s if answer.run else None,
    }
    intervals: dict[str, Interval | None] = {}
    if isinstance(answer, TrainAnswer):
        found = answer.intervals()
        intervals = {name: found.get(name) for name in ("step_time_s", "peak_memory_bytes")}
        if around := found.get("step_time_s"):
            ratio = around.scaled(1.0 / answer.step_time_s)
            for name in ("run_time_s", "usd_per_million_tokens"):
                value = figures[name]
                intervals[name] = None if value is None else ratio.scaled(value)
            intervals["tokens_per_s"] = Interval(
                low_80=answer.tokens_per_s / ratio.high_80,
                high_80=answer.tokens_per_s / ratio.low_80,
                low_95=answer.tokens_per_s / ratio.high_95,
                high_95=answer.tokens_per_s / ratio.low_95,
                because=around.because,
            )
    return figures, intervals, answer.job


_ASK: Mapping[Question, Any] = {"estimate": estimate, "simulate": simulate, "plan": plan, "train": train}
_READ: Mapping[Question, Any] = {
    "estimate": _estimated,
    "simulate": _simulated,
    "plan": _planned,
    "train": _trained,
}

"""``train --rl --rl-placement``: where each call of an RLHF iteration runs, beside every other way to place them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knobs_from
from orrery.execution.memory import Infeasible
from orrery.planner.money import Tariff, tariff_of
from orrery.planner.rlhf.dataflow import Call, RlhfJob
from orrery.planner.rlhf.plan import Placed, Plan
from orrery.planner.rlhf.registry import PLACEMENTS
from orrery.planner.rlhf.search import Space, space_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.knobs import read_train_knobs
from orrery.scenario.plan_answer import price_json
from orrery.scenario.rl_placement_job import PlacementQuestion, placement_question
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.show import Table, rows_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlPlacementAnswer:
    """One iteration with every call placed, and what the other placements would take."""

    job: RlhfJob
    algorithm: str
    placement: str
    plan: Plan
    others: Mapping[str, Plan | Infeasible]  # all placements, this one too
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def step_time_s(self) -> float:
        """Seconds from one new policy to the next."""
        return self.plan.time_s

    @property
    def moved_s(self) -> float:
        """Seconds in which calls wait for weights that come from where they are trained."""
        return self.plan.moved_s

    @property
    def samples_per_s(self) -> float:
        """Responses trained on, a second."""
        return self.job.batch / self.step_time_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens of trained sequences, prompts counted, a second."""
        return self.samples_per_s * self.job.seq_len

    @property
    def usd_per_step(self) -> float | None:
        """Dollars of the devices' hours; None where no price is known."""
        rate = self.tariff.usd_per_s(self.job.cluster.num_devices, 0.0)
        return None if rate is None else rate * self.step_time_s

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every call of this placement, and all placements side by side."""
        return (
            Table(kind="calls", title="Calls, in the order in which they are written", rows=_call_rows(self)),
            Table(kind="placements", title="Ways to place them", rows=_placement_rows(self)),
        )

    def table(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Rows of a table: ``calls`` or ``placements``."""
        return rows_of(self.tables, kind)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "rl_placement": self.placement,
                "step_time_s": self.step_time_s,
                "moved_s": self.moved_s,
                "samples_per_s": self.samples_per_s,
                "tokens_per_s": self.tokens_per_s,
                "tokens_per_s_per_device": self.tokens_per_s / self.job.cluster.num_devices,
                "peak_memory_bytes": self.plan.memory_bytes,
                "capacity_bytes": self.plan.capacity_bytes,
                "usd_per_step": self.usd_per_step,
                "price": price_json(self.tariff),
                "algorithm": self.algorithm,
                "framework": self.job.framework.name,
                "engine": self.job.engine.name,
                **{table.kind: table.rows for table in self.tables},
                "settings": self.settings,
                "notes": self.notes,
            }
        )


@typed
def train_rl_placement(scenario: Scenario | None = None, /, **settings: Any) -> RlPlacementAnswer | InfeasibleAnswer:
    """One iteration of RLHF whose calls are placed as ``rl_placement`` says, beside all other placements.

    Settings are those of a scenario file. Raises ScenarioError for settings that a placement has no use for.
    """
    inputs = merged(scenario, {"rl": True, **settings})
    refuse_foreign("train", settings)
    if inputs.rl_placement is None:
        raise ScenarioError(f"rl_placement: is missing; write one of {', '.join(PLACEMENTS.words)}.")
    name = PLACEMENTS.get(inputs.rl_placement).written
    question = placement_question(inputs)
    space = space_of(question.job)
    plan = _placed(inputs, space, name)
    if isinstance(plan, Infeasible):
        return InfeasibleAnswer(infeasible=plan, notes=question.notes, settings=inputs.written())
    found = {word: plan if word == name else _placed(inputs, space, word) for word in PLACEMENTS.words}
    return _answer(inputs, question, name, plan, found)


def _answer(
    inputs: Scenario, question: PlacementQuestion, name: str, plan: Plan, found: Mapping[str, Plan | Infeasible]
) -> RlPlacementAnswer:
    tariff = tariff_of(question.job.cluster.device, inputs.usd_per_hour, None)
    return RlPlacementAnswer(
        job=question.job,
        algorithm=question.algorithm,
        placement=name,
        plan=plan,
        others=found,
        tariff=tariff,
        notes=tuple(dict.fromkeys((*question.notes, *tariff.notes))),
        settings=inputs.written(),
    )


def _placed(inputs: Scenario, space: Space | Infeasible, word: str) -> Plan | Infeasible:
    """That placement with its own knobs, or with the defaults where another one was asked for."""
    if isinstance(space, Infeasible):
        return space
    technique = PLACEMENTS.get(word)
    written = dict(read_train_knobs(inputs.knob)["rl_placement"]) if inputs.rl_placement == word else {}
    if word == "asynchronous" and inputs.max_staleness is not None:
        written.setdefault("max_staleness", str(inputs.max_staleness))
    if inputs.seed is not None and "seed" in {f.name for f in fields(technique.knobs)}:
        written.setdefault("seed", str(inputs.seed))
    return technique.rule(space, knobs_from(technique, written))


def _call_rows(answer: RlPlacementAnswer) -> tuple[dict[str, Any], ...]:
    job, plan = answer.job, answer.plan
    return tuple(
        {
            "call": call.name,
            "model": job.models[call.role].name,
            "devices": str(placed.mesh),
            "layout": _layout(call, placed),
            "start_s": turn.start_s,
            "moved_s": turn.moved_s,
            "work_s": placed.way.time_s,
            "end_s": turn.end_s,
            "peak_memory_bytes": placed.way.peak_bytes,
        }
        for call, placed, turn in zip(job.calls, plan.placed, plan.turns, strict=True)
    )


def _layout(call: Call, placed: Placed) -> str:
    """Degrees of a call, with waves in place of micro-batches for engines."""
    text = str(placed.way)
    return text.replace(" mb", " waves") if call.kind == "generate" else text


def _placement_rows(answer: RlPlacementAnswer) -> tuple[dict[str, Any], ...]:
    rows: list[dict[str, Any]] = []
    for word, found in answer.others.items():
        if isinstance(found, Infeasible):
            rows.append({"rl_placement": word, "fits": False, "because": str(found)})
            continue
        rows.append(
            {
                "rl_placement": word,
                "fits": True,
                "step_time_s": found.time_s,
                "slowdown_ratio": found.time_s / answer.step_time_s,
                "moved_s": found.moved_s,
                "peak_memory_bytes": found.memory_bytes,
            }
        )
    return tuple(rows)

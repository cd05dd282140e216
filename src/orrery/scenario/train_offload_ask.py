"""From a scenario to a technique of offloading with all that it asks for, or a refusal that says what to write."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knobs_from
from orrery.base.technique import Technique
from orrery.execution.offload import OFFLOADS
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.knobs import read_train_knobs
from orrery.scenario.schema import Scenario
from orrery.scenario.train_job import TrainingQuestion, layout_of, training_question
from orrery.scenario.train_offload_work import MAX_PLAYED, Pieces, Rule, pieces_of, played
from orrery.scenario.train_tiers import NodeMemory, node_memory
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of

PRECISIONS = ("bf16", "fp16", "fp32", "tf32")

ALONE = {"pp": 1, "cp": 1, "ep": 1, "etp": 1, "vp": 1}
"""Degrees that offloading is not known with."""

OF_RANKS = ("expert_placement", "expert_overlap", "dispatcher")
"""Settings of experts that stand on other ranks."""

OWN_WAY = (
    "first_stage_layers",
    "last_stage_layers",
    "sharding",
    "sharding_group",
    "secondary_group",
    "recompute_layers",
    "schedule",
    "context_kind",
    "gradient_overlap",
)
"""Settings that a technique decides itself, or that mean nothing with it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A job, its layout, and a technique with its knobs filled in."""

    name: str
    job: TrainingJob
    layout: TrainingLayout
    technique: Technique
    knobs: Any  # of the technique
    pieces: Pieces
    memory: NodeMemory
    may_recompute: bool  # whether recompute = full would change anything
    notes: tuple[str, ...]

    def rule(self, work: Work, tiers: Tiers) -> OffloadedStep:
        """The technique with its knobs."""
        step: OffloadedStep = self.technique.rule(work, tiers, self.knobs)
        return step


def prepare(scenario: Scenario) -> Prepared:
    """Prepare all that the technique asks for; ScenarioError where the scenario makes no sense with it."""
    technique = OFFLOADS.get(scenario.offload or "")
    if scenario.layout:
        raise ScenarioError(f"layout: says more than --offload {technique.name} takes; write tp, dp and micro_batch.")
    question, text = _question(scenario, technique)
    _check_layout(scenario.written() | question.given, technique.name)
    knobs, recompute, more = _knobs(scenario, technique)
    given = {k: v for k, v in question.given.items() if k not in ALONE} | {"sharding": "none", "recompute": recompute}
    layout, layout_notes = layout_of(replace(question, given=given))
    job = question.job
    if why := refusal(job, columns_of([layout])):
        raise ScenarioError(why)
    pieces = pieces_of(job, layout)
    if knobs.trains == "adapters":  # gradients of weights are the adapters' own, and stay
        pieces = replace(pieces, work=replace(pieces.work, weight_gradient_s=0.0), outer_weight_s=0.0)
    memory = node_memory(scenario, job, layout, pieces.work)
    late = (f"micro-batches: after the first {MAX_PLAYED} each takes what the last of these adds",)
    return Prepared(
        name=technique.name,
        job=job,
        layout=layout,
        technique=technique,
        knobs=knobs,
        pieces=pieces,
        memory=memory,
        may_recompute=getattr(knobs, "recomputes", True) is False,
        notes=(
            *question.notes,
            *text,
            *layout_notes,
            *more,
            *memory.notes,
            *(late if pieces.work.num_micro_batches > MAX_PLAYED else ()),
        ),
    )


def chosen_rule(ready: Prepared) -> tuple[Rule, OffloadedStep]:
    """The rule with what it settles itself held fast, so that parts are of one schedule; and the step."""
    few = min(MAX_PLAYED, ready.pieces.work.num_micro_batches)
    settled = ready.rule(replace(ready.pieces.work, num_micro_batches=few), ready.memory.tiers).choices
    names = {f.name for f in fields(ready.knobs)}
    knobs = replace(ready.knobs, **{k: int(v) if k == "stride" else v for k, v in settled.items() if k in names})
    rule = replace(ready, knobs=knobs).rule
    return rule, played(rule, ready.pieces.work, ready.memory.tiers)


def _question(scenario: Scenario, technique: Technique) -> tuple[TrainingQuestion, tuple[str, ...]]:
    """The job, with the task that the technique is for."""
    of_ranks = (*OF_RANKS, *(("expert_loads",) if scenario.expert_capacity_factor is None else ()))
    if other := next((n for n in of_ranks if getattr(scenario, n) is not None), None):
        raise ScenarioError(f"{other}: every rank has all experts with --offload {technique.name}; leave {other} out.")
    question = training_question(scenario)
    job, notes = question.job, list[str]()
    if job.recipe.name not in PRECISIONS:
        raise ScenarioError(
            f"precision: offloading is known for {', '.join(PRECISIONS)}, got {job.recipe.name}; write bf16."
        )
    if technique.knobs.trains == "adapters":
        if scenario.task not in (None, "lora", "qlora"):
            raise ScenarioError(f"task: {technique.name} trains adapters, got {scenario.task}; write lora or qlora.")
        if scenario.task is None:
            notes.append(f"task: lora (what {technique.name} trains)")
        job = replace(job, task="lora")
    elif scenario.task not in (None, "pretrain", "full_finetune"):
        raise ScenarioError(
            f"task: {technique.name} trains all weights, got {scenario.task}; write full_finetune, or for adapters "
            "--offload adapters-only."
        )
    return replace(question, job=job), tuple(notes)


def _check_layout(given: Mapping[str, Any], name: str) -> None:
    for key, alone in ALONE.items():
        if given.get(key, alone) != alone:
            raise ScenarioError(
                f"{key}: got {given[key]} with --offload {name}, which is known for tp and dp alone; leave {key} out."
            )
    for key in OWN_WAY:
        if key in given:
            raise ScenarioError(
                f"{key}: got {given[key]} with --offload {name}, which decides this itself; leave {key} out."
            )


def _knobs(scenario: Scenario, technique: Technique) -> tuple[Any, str, tuple[str, ...]]:
    """The technique's knobs, what the layout calls its recomputation, and what was assumed."""
    given = read_train_knobs(scenario.knob)["offload"]
    if "recomputes" in given:
        raise ScenarioError("knob: offload.recomputes is a setting of its own; write recompute = full or none.")
    knobs = knobs_from(technique, given)
    if knobs.trains == "adapters":
        knobs = replace(knobs, rank=scenario.adapter_rank or 16, is_4bit=scenario.task == "qlora")
    if what := knobs.always_recomputes:
        if scenario.recompute is not None:
            raise ScenarioError(
                f"recompute: got {scenario.recompute}, but {technique.name} always computes {what} again; leave it out."
            )
        return knobs, knobs.recompute, ()
    if scenario.recompute not in (None, "full", "none"):
        raise ScenarioError(f"recompute: got {scenario.recompute} with --offload {technique.name}; write full or none.")
    if scenario.recompute is None:
        word = "full" if knobs.recomputes else "none"
        return knobs, word, (f"recompute: {word} (as {technique.name} does by default)",)
    return replace(knobs, recomputes=scenario.recompute == "full"), scenario.recompute, ()

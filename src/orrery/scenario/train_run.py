"""The whole run: steps to so many tokens, evaluation, data, failures and checkpoints; days, energy and dollars."""

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.train.job import TrainingJob
from orrery.planner.money import Tariff
from orrery.scenario.answer import to_json
from orrery.scenario.levers.found import FAILURES
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.failures import (
    check_failures,
    detection_table,
    faults_of,
    recovery_table,
    without_rollback,
)
from orrery.scenario.train_with.recovery import REDUNDANT
from orrery.scenario.train_with.reshape import RESHAPE
from orrery.scenario.train_with.saves import SavedState, checkpoint_name, checkpoints_table, saved_run, saving_called
from orrery.training.faults.goodput import Goodput, expected
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan
from orrery.training.forward import forward_pass_s
from orrery.training.ranks import Rank
from orrery.training.step import Steps
from orrery.training.worth import power_w

S_PER_DAY, S_PER_HOUR = 86400.0, 3600.0

SAVES = (*FAILURES, "checkpoint_interval_s")
"""Settings of which any makes a run save."""

OF_SAVES = (
    "checkpoint",
    "storage_bytes_per_s",
    "checkpoint_buffer_bytes",
    "pack_bytes_per_s",
    "checkpoint_file_s",
)
"""Settings that mean nothing where nothing is saved."""

OF_A_RUN = (*SAVES, "checkpoint", "eval_every_steps", "data_tokens_per_s", "startup_s")
"""Settings that mean nothing without a number of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepCosts:
    """Costs of a run's steps; bytes are of one device."""

    job: TrainingJob
    step_s: float
    forward_s: float  # of a step, without what it waits for
    update_s: float
    evaluation_s: float  # of one global batch, forward only
    state_bytes: float  # weights and optimizer: what a checkpoint holds
    num_replicas: int  # devices that hold the same state
    power_w: float  # of one device
    num_stages: int = 1  # of the pipeline
    outage_lost_s: float | None = None  # that a lost node costs where the others go on
    redundant_s: float = 0.0  # that a step gets longer by where stages compute their neighbour's forward pass too


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Time, energy and money that a run of ``tokens`` tokens takes. ``parts`` are seconds that add up to ``time_s``."""

    tokens: float
    num_steps: int
    time_s: float  # on the wall
    parts: dict[str, float]
    energy_j: float
    usd: float | None
    num_devices: int
    goodput: Goodput | None  # None: nothing fails. Its useful part is steps, evaluation and waiting for data
    num_evaluations: int = 0
    checkpoint: str = ""
    checkpoint_interval_s: float = 0.0
    checkpoint_blocked_s: float = 0.0
    checkpoint_bytes: float = 0.0  # of the whole job
    tables: tuple[Table, ...] = ()  # what techniques against failures do

    @property
    def days(self) -> float:
        """On the wall, as people count long runs."""
        return self.time_s / S_PER_DAY

    @property
    def device_hours(self) -> float:
        """Device-hours of all devices, on the wall: what clouds bill."""
        return self.num_devices * self.time_s / S_PER_HOUR


def run_json(run: Run) -> dict[str, Any]:
    """The whole run, with its length in days and device hours too."""
    own = {name: value for name, value in to_json(run).items() if name != "tables"}
    return {**own, "days": run.days, "device_hours": run.device_hours}


def costs_of(steps: Steps, ranks: tuple[Rank, ...]) -> StepCosts:
    """Costs per step of the one layout of ``steps``."""
    layout = steps.columns.layout(0)
    parts = {name: float(v[0]) for name, v in steps.parts.items()}
    return StepCosts(
        job=steps.job,
        step_s=float(steps.time_s[0]),
        forward_s=parts["forward"],
        update_s=parts["update"],
        evaluation_s=forward_pass_s(parts),
        power_w=float(power_w(steps)[0]),
        state_bytes=max(r.parts["weights"] + r.parts["optimizer"] for r in ranks),
        num_replicas=layout.dp if layout.sharding == "none" else 1,
        num_stages=layout.pp,
        redundant_s=parts.get(REDUNDANT, 0.0) or forward_pass_s(parts),
    )


def check_run(scenario: Scenario) -> None:
    """Refuse half a question: settings of a run without its length, and evaluation without its size."""
    if (scenario.eval_every_steps is None) != (scenario.eval_batches is None):
        missing = "eval_batches" if scenario.eval_batches is None else "eval_every_steps"
        raise ScenarioError(f"{missing}: is missing; evaluation needs how often, and how many batches.")
    if scenario.train_tokens is None and (inputs := [n for n in OF_A_RUN if getattr(scenario, n) is not None]):
        raise ScenarioError(f"train_tokens: is missing; {inputs[0]} needs the length of the run.")
    check_failures(scenario)
    if scenario.checkpoint:
        saving_called(scenario.checkpoint)
    given = [name for name in OF_SAVES if getattr(scenario, name) is not None]
    if given and scenario.checkpoint != RESHAPE and not scenario.asks(*SAVES):
        raise ScenarioError(
            f"{given[0]}: nothing is saved; write node_mtbf_s or device_mtbf_s (and train_tokens), or "
            "checkpoint_interval_s."
        )


def run_of(scenario: Scenario, costs: StepCosts, tariff: Tariff) -> Run | None:
    """The run that a scenario asks for; None where it names no number of tokens."""
    check_run(scenario)
    if scenario.train_tokens is None:
        return None
    job = costs.job
    num_steps = ceil(scenario.train_tokens / job.tokens_per_step)
    num_evaluations, parts = _work(scenario, costs, num_steps)
    work_s, startup_s = sum(parts.values()), _or(scenario.startup_s, 0.0)
    found, extra = None, dict[str, Any]()
    if scenario.asks(*SAVES):
        found, extra = _with_failures(scenario, costs, RunPlan(step_s=work_s / num_steps, num_steps=num_steps))
    parts |= {"startup": startup_s, "failures and checkpoints": found.time_s - work_s if found else 0.0}
    wall_s, devices = sum(parts.values()), job.cluster.num_devices
    rate = tariff.usd_per_s(devices, devices * costs.power_w)
    return Run(
        tokens=scenario.train_tokens,
        num_steps=num_steps,
        time_s=wall_s,
        parts=parts,
        energy_j=wall_s * devices * costs.power_w,
        usd=None if rate is None else rate * wall_s,
        goodput=found,
        num_devices=devices,
        num_evaluations=num_evaluations,
        **extra,
    )


def _work(scenario: Scenario, costs: StepCosts, num_steps: int) -> tuple[int, dict[str, float]]:
    """How many evaluations; and what steps and they take, with what both wait for the loaders.

    No global batch, trained on or evaluated, takes less than its tokens over what the loaders deliver.
    """
    evaluations = num_steps // scenario.eval_every_steps if scenario.eval_every_steps else 0
    batches = evaluations * (scenario.eval_batches or 0)
    least_s = costs.job.tokens_per_step / _or(scenario.data_tokens_per_s, inf)
    waiting_s = num_steps * max(0.0, least_s - costs.step_s) + batches * max(0.0, least_s - costs.evaluation_s)
    return evaluations, {
        "steps": num_steps * costs.step_s,
        "evaluation": batches * costs.evaluation_s,
        "waiting for data": waiting_s,
    }


def _with_failures(scenario: Scenario, costs: StepCosts, run: RunPlan) -> tuple[Goodput, dict[str, Any]]:
    """The goodput of ``run``, whose steps stand for all useful work; starting up joins every restart."""
    cluster = costs.job.cluster
    faults = faults_of(scenario, costs.step_s, cluster.num_devices, cluster.devices_per_node)
    if costs.outage_lost_s is not None:  # nothing runs in it, as far as the full layout is concerned
        faults = replace(faults, repair_s=0.0, num_spares=0, diagnosis_s=faults.diagnosis_s + costs.outage_lost_s)
    state = SavedState(
        cluster=cluster,
        state_bytes=costs.state_bytes,
        num_replicas=costs.num_replicas,
        forward_s=costs.forward_s,
        update_s=costs.update_s,
    )
    saved = saved_run(scenario, state, faults, run, checkpoint_name(scenario))
    found, tables = saved.goodput, list(saved.tables)
    if scenario.checkpoint is not None:
        tables.append(checkpoints_table(scenario, state, faults, run))
    if scenario.detection is not None:
        tables.append(detection_table(scenario, faults, costs.step_s, saved.saves, run))
    extra = {
        "checkpoint": saved.name,
        "checkpoint_interval_s": saved.interval_steps * run.step_s,
        "checkpoint_blocked_s": saved.cost.blocked_s,
        "checkpoint_bytes": costs.state_bytes * cluster.num_devices / costs.num_replicas,
    }
    if scenario.recovery is not None:
        tables.append(_recoveries(scenario, costs, faults, saved.saves, run))
        if scenario.recovery != "rollback":
            found = without_rollback(scenario, faults, run, costs.num_stages)
            extra = {"checkpoint": "none"}
    return found, extra | {"tables": tuple(tables)}


def _recoveries(scenario: Scenario, costs: StepCosts, faults: FaultModel, saves: CheckpointPlan, run: RunPlan) -> Table:
    """All ways after the loss of a stage; a step that computes its neighbour's pass too is not the others'."""
    is_twice = scenario.recovery == "redundant"
    plain = replace(run, step_s=run.step_s - costs.redundant_s) if is_twice else run
    rolled = expected(faults, saves, plain)
    return recovery_table(scenario, faults, rolled, plain, costs.num_stages, plain.step_s + costs.redundant_s)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value

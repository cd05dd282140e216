"""The whole run: steps to so many tokens, evaluation, data, failures and checkpoints; days, energy and dollars."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.execution.train.job import TrainingJob
from orrery.planner.money import Tariff
from orrery.scenario.answer import to_json
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.failures import (
    FAILURES,
    STORAGE_BYTES_PER_S,
    check_failures,
    detection_table,
    faults_of,
    from_memory,
    group_nodes,
    recovery_table,
    without_rollback,
)
from orrery.scenario.train_with.recovery import REDUNDANT
from orrery.scenario.train_with.reshape import RESHAPE
from orrery.training.faults import CHECKPOINTS
from orrery.training.faults.goodput import Goodput, expected
from orrery.training.faults.interval import best_steps
from orrery.training.faults.model import FaultModel, RunPlan
from orrery.training.faults.saving import SaveCost, Saving, storage_plan
from orrery.training.forward import forward_pass_s
from orrery.training.ranks import Rank
from orrery.training.step import Steps
from orrery.training.worth import power_w

S_PER_DAY, S_PER_HOUR = 86400.0, 3600.0
FIRST_INTERVAL_S = 1800.0
"""Where the search for the best interval begins."""

DEFAULT_CHECKPOINT, IN_MEMORY = "snapshot", "in-memory"

OF_A_RUN = (
    "device_mtbf_s",
    "node_mtbf_s",
    "slow_mtbf_s",
    "checkpoint",
    "eval_every_steps",
    "data_tokens_per_s",
    "startup_s",
)
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
    if scenario.asks(*FAILURES):
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
    saving = _saving(scenario, costs, run)
    name = (scenario.checkpoint or DEFAULT_CHECKPOINT).removeprefix("checkpoint-")
    group, parity = group_nodes(scenario, cluster.num_nodes) if name == IN_MEMORY else (0, 0)
    knobs = {"group_nodes": group, "num_parity": parity} if group > 1 else {}
    interval = _interval_steps(scenario, faults, saving, name, run, knobs)
    cost = _save_cost(name, saving, interval, knobs)
    saves, tables = storage_plan(saving, cost, interval), list[Table]()
    found = expected(faults, saves, run)
    if group > 1:
        found, table = from_memory(faults, cost, saves, run, group, parity)
        tables.append(table)
    if scenario.detection is not None:
        tables.append(detection_table(scenario, faults, costs.step_s, saves, run))
    extra = {
        "checkpoint": name,
        "checkpoint_interval_s": interval * run.step_s,
        "checkpoint_blocked_s": cost.blocked_s,
        "checkpoint_bytes": costs.state_bytes * cluster.num_devices / costs.num_replicas,
    }
    if scenario.recovery is not None:
        is_twice = scenario.recovery == "redundant"
        plain = replace(run, step_s=run.step_s - costs.redundant_s) if is_twice else run
        rolled = expected(faults, saves, plain)
        tables.append(
            recovery_table(scenario, faults, rolled, plain, costs.num_stages, plain.step_s + costs.redundant_s)
        )
        if scenario.recovery != "rollback":
            found = without_rollback(scenario, faults, run, costs.num_stages)
            extra = {"checkpoint": "none"}
    return found, extra | {"tables": tuple(tables)}


def _saving(scenario: Scenario, costs: StepCosts, run: RunPlan) -> Saving:
    """A save of one device: its bytes, the steps beside it, and its links."""
    cluster = costs.job.cluster
    node_rate = scenario.storage_bytes_per_s or STORAGE_BYTES_PER_S
    return Saving(
        shard_bytes=costs.state_bytes,
        num_devices=cluster.num_devices,
        devices_per_node=cluster.devices_per_node,
        forward_s=costs.forward_s,
        update_s=costs.update_s,
        backward_s=run.step_s - costs.forward_s - costs.update_s,  # nothing changes in evaluation and waiting either
        device_to_host_bytes_per_s=cluster.device.host.each_way_bytes_per_s,
        storage_bytes_per_s=node_rate * cluster.num_nodes,
        node_storage_bytes_per_s=node_rate,
        node_link_bytes_per_s=cluster.device.scaleout.each_way_bytes_per_s * cluster.devices_per_node,
        num_replicas=costs.num_replicas,
    )


def _interval_steps(
    scenario: Scenario, faults: FaultModel, saving: Saving, name: str, run: RunPlan, knobs: Mapping[str, int]
) -> int:
    """The asked interval in whole steps, or the best: what a save blocks depends on it, so it is found twice."""
    if scenario.checkpoint_interval_s is not None:
        return max(1, round(scenario.checkpoint_interval_s / run.step_s))
    steps = min(run.num_steps, max(1, round(FIRST_INTERVAL_S / run.step_s)))
    for _ in range(2):
        cost = _save_cost(name, saving, steps, knobs)
        if cost.blocked_s <= 0.0:  # free while each write is done before the next begins
            return min(run.num_steps, max(1, ceil(cost.durable_lag_s / run.step_s)))
        steps = best_steps(faults, storage_plan(saving, cost, steps), run)
    return steps


def saving_called(name: str) -> Technique:
    """The way of saving called ``name``, with or without "checkpoint-"."""
    return CHECKPOINTS.get(DEFAULT_CHECKPOINT if name == RESHAPE else name)


def _save_cost(name: str, saving: Saving, interval_steps: int, knobs: Mapping[str, int]) -> SaveCost:
    found = saving_called(name)
    cost: SaveCost = found.rule(saving, interval_steps, found.knobs(**knobs))
    return cost


def _or(value: float | None, default: float) -> float:
    return default if value is None else value

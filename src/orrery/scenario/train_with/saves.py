"""Saves of a run that fails, or that only saves: what each way of saving stops, how often, and what the run takes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.technique import Technique
from orrery.hardware.cluster import Cluster
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.failures import STORAGE_BYTES_PER_S, from_memory, group_nodes
from orrery.scenario.train_with.reshape import RESHAPE
from orrery.training.faults import CHECKPOINTS
from orrery.training.faults.goodput import Goodput, expected
from orrery.training.faults.interval import best_steps
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan
from orrery.training.faults.saving import SaveCost, Saving, memory_plan, storage_plan
from orrery.training.faults.simulate import simulate

FIRST_INTERVAL_S = 1800.0
"""Where the search for the best interval begins."""

DEFAULT_CHECKPOINT, IN_MEMORY = "snapshot", "in-memory"

NUM_RUNS = 1000
"""Runs that are drawn where failures are not independent."""

PERCENTILES = (10, 50, 90, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """State of a run that must be saved, and the parts of a step beside it; bytes are of one device."""

    cluster: Cluster
    state_bytes: float
    num_replicas: int
    forward_s: float
    update_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedRun:
    """A run by one way of saving."""

    name: str
    interval_steps: int
    cost: SaveCost
    saves: CheckpointPlan
    goodput: Goodput
    tables: tuple[Table, ...] = ()


def saved_run(scenario: Scenario, state: SavedState, faults: FaultModel, run: RunPlan, name: str) -> SavedRun:
    """The run that saves as ``name`` says, every so often as is asked or best."""
    saving = saving_of(scenario, state, run)
    group, parity = group_nodes(scenario, state.cluster.num_nodes) if name == IN_MEMORY else (0, 0)
    knobs = {"group_nodes": group, "num_parity": parity} if group > 1 else {}
    interval = _interval_steps(scenario, faults, saving, name, run, knobs)
    cost = _save_cost(name, saving, interval, knobs)
    saves, tables = storage_plan(saving, cost, interval), list[Table]()
    if group > 1 and faults.failures_per_s > 0.0:
        found, table = from_memory(faults, cost, saves, run, group, parity)
        tables.append(table)
    else:
        found = expected(faults, memory_plan(cost) if group > 1 else saves, run)
    if scenario.failure_shape is not None:
        found, table = _drawn(scenario, faults, saves, run, name)
        tables.append(table)
    return SavedRun(name=name, interval_steps=interval, cost=cost, saves=saves, goodput=found, tables=tuple(tables))


def checkpoint_name(scenario: Scenario) -> str:
    """The way of saving that a scenario asks for, as a setting writes it."""
    return (scenario.checkpoint or DEFAULT_CHECKPOINT).removeprefix("checkpoint-")


def saving_called(name: str) -> Technique:
    """The way of saving called ``name``, with or without "checkpoint-"."""
    return CHECKPOINTS.get(DEFAULT_CHECKPOINT if name == RESHAPE else name)


def checkpoints_table(scenario: Scenario, state: SavedState, faults: FaultModel, run: RunPlan) -> Table:
    """Every way of saving on the same run."""
    rows: list[dict[str, Any]] = []
    for name in CHECKPOINTS.words:
        found = saved_run(scenario.model_copy(update={"failure_shape": None}), state, faults, run, name)
        cost, goodput = found.cost, found.goodput
        is_kept = math.isfinite(cost.memory_interval_s)
        interval_s = cost.memory_interval_s if is_kept else found.interval_steps * run.step_s
        lag_s = cost.memory_lag_s if is_kept else cost.durable_lag_s
        rows.append(
            {
                "checkpoint": name,
                "interval_s": interval_s,
                "copy_s": cost.copy_s,
                "blocked_s": cost.blocked_s,
                "counts_after_s": lag_s,
                "lost_work_s": interval_s / 2.0 + lag_s,
                "load_s": cost.memory_load_s if is_kept else cost.load_s,
                "checkpoint_frac": goodput.checkpoint_frac,
                "overhead_frac": goodput.overhead_frac,
                "run_s": goodput.time_s,
                "host_bytes_per_node": cost.host_bytes,
            }
        )
    return Table(kind="checkpoints", title="Ways to save, each as often as is asked or best", rows=tuple(rows))


def _drawn(
    scenario: Scenario, faults: FaultModel, saves: CheckpointPlan, run: RunPlan, name: str
) -> tuple[Goodput, Table]:
    """The mean of runs whose times between failures are drawn, and how far they lie apart."""
    if name == IN_MEMORY or scenario.recovery not in (None, "rollback"):
        what = "checkpoint" if name == IN_MEMORY else "recovery"
        raise ScenarioError(f"failure_shape: drawn runs go back to storage; leave it out, or {what}.")
    shape = scenario.failure_shape or 1.0
    drawn = simulate(faults, saves, run, num_runs=NUM_RUNS, seed=scenario.seed or 0, weibull_shape=shape)
    mean_s = float(drawn.time_s.mean())
    rows = [{"runs": "mean", "time_s": mean_s}]
    rows += [{"runs": f"{percent} % take at most", "time_s": drawn.percentile_s(percent)} for percent in PERCENTILES]
    found = Goodput(
        time_s=mean_s,
        useful_frac=drawn.useful_frac,
        checkpoint_frac=drawn.saving_s / mean_s,
        lost_frac=float(drawn.lost_s.mean()) / mean_s,
        recovery_frac=float(drawn.recovery_s.mean()) / mean_s,
        num_failures=float(drawn.num_failures.mean()),
    )
    title = f"{NUM_RUNS} runs with Weibull times between failures, shape {shape:g}"
    return found, Table(kind="run_times", title=title, rows=tuple(rows))


def saving_of(scenario: Scenario, state: SavedState, run: RunPlan) -> Saving:
    """The state of one device to save, with its steps and links."""
    cluster = state.cluster
    node_rate = scenario.storage_bytes_per_s or STORAGE_BYTES_PER_S
    return Saving(
        shard_bytes=state.state_bytes,
        num_devices=cluster.num_devices,
        devices_per_node=cluster.devices_per_node,
        forward_s=state.forward_s,
        update_s=state.update_s,
        backward_s=run.step_s - state.forward_s - state.update_s,  # evaluation and waiting change nothing either
        device_to_host_bytes_per_s=cluster.device.host.each_way_bytes_per_s,
        storage_bytes_per_s=node_rate * cluster.num_nodes,
        node_storage_bytes_per_s=node_rate,
        node_link_bytes_per_s=cluster.device.scaleout.each_way_bytes_per_s * cluster.devices_per_node,
        num_replicas=state.num_replicas,
        host_memory_bytes_per_s=scenario.host_memory_bytes_per_s or math.inf,
        host_buffer_bytes=scenario.checkpoint_buffer_bytes or math.inf,
        pack_bytes_per_s=scenario.pack_bytes_per_s or math.inf,
        file_s=scenario.checkpoint_file_s or 0.0,
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
            return min(run.num_steps, max(1, math.ceil(cost.durable_lag_s / run.step_s)))
        steps = best_steps(faults, storage_plan(saving, cost, steps), run)
    return steps


def _save_cost(name: str, saving: Saving, interval_steps: int, knobs: Mapping[str, int]) -> SaveCost:
    found = saving_called(name)
    cost: SaveCost = found.rule(saving, interval_steps, found.knobs(**knobs))
    return cost

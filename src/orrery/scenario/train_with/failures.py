"""Runs whose machines fail: how failures are noticed, what memory outlives, and what is done about lost stages."""

import math
from dataclasses import dataclass, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.scenario.levers.found import FAILURES
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.training.faults.detection import FaultKind, HeartbeatDetection
from orrery.training.faults.goodput import Goodput, expected, expected_two_level
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan
from orrery.training.faults.saving import SaveCost, memory_plan
from orrery.training.faults.survival import mean_time_to_loss_s
from orrery.training.recovery.strategies import HOUR_S, Outcome, StageFaults, from_neighbours

DETECTION_S, RESTART_S = 600.0, 600.0
"""Ten minutes until a failure is noticed, ten until the first new step; assumed where nobody says."""

STORAGE_BYTES_PER_S = 2e9
"""Default bandwidth of a node to shared storage; assumed."""

REPORT_S = 10.0
"""Seconds between two reports of a rank's collectives; assumed where nobody says."""

GROUP_NODES, PARITY_NODES = 6, 1
"""Nodes of a group whose memory holds each other's parity, and lost ones that it outlives; assumed."""

OF_FAILURES = ("recovery", "detection", "diagnosis_s", "report_s", "repair_s", "spare_nodes", "failure_shape")
OF_SLOW = ("slow_ratio", "slow_notice_s")
OF_MEMORY = ("parity_nodes", "parity_group_nodes")


def check_failures(scenario: Scenario) -> None:
    """Refuse what says nothing without failures, or beside another setting."""
    if all(getattr(scenario, name) is None for name in FAILURES):
        for name in (*OF_FAILURES, *OF_SLOW, *OF_MEMORY):
            if getattr(scenario, name) is not None:
                raise ScenarioError(f"{name}: nothing fails; write train_tokens, and node_mtbf_s or device_mtbf_s.")
    _check_slow(scenario)
    if scenario.report_s is not None and scenario.detection != "collective":
        raise ScenarioError("report_s: is of reports; write detection = collective, or leave it out.")
    if scenario.detection == "collective" and scenario.detection_s is not None:
        raise ScenarioError("detection_s: follows from the rhythm of collectives; leave it out, or detection.")
    if scenario.spare_nodes is not None and scenario.repair_s is None:
        raise ScenarioError("repair_s: is missing; spares are of use while a node is repaired.")
    if any(getattr(scenario, name) is not None for name in OF_MEMORY) and scenario.checkpoint != "in-memory":
        raise ScenarioError("parity_nodes: is of checkpoints in memory; write checkpoint = in-memory, or leave it out.")
    if scenario.setback_steps is not None and scenario.recovery is None:
        raise ScenarioError("setback_steps: means nothing without recovery; write recovery = neighbour-average.")
    if scenario.recovery == "neighbour-average" and scenario.setback_steps is None:
        raise ScenarioError(
            "setback_steps: is missing; how far the loss of a stage sets training back must be measured on a run."
        )


def _check_slow(scenario: Scenario) -> None:
    """Slow devices need all that is said of them, or nothing."""
    given = [name for name in ("slow_mtbf_s", *OF_SLOW) if getattr(scenario, name) is not None]
    missing = [name for name in ("slow_mtbf_s", *OF_SLOW) if name not in given]
    if given and missing:
        raise ScenarioError(
            f"{missing[0]}: is missing beside {given[0]}; slow devices need how often they turn slow, how slow "
            "(slow_ratio), and when people notice where nothing else does (slow_notice_s)."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Until a failure is known (s), and then until its node is; and until a slow device is known."""

    detection_s: float
    diagnosis_s: float
    slow_detection_s: float = 0.0
    slow_frac: float = 0.0  # of that time is lost to its late steps


def notice_of(scenario: Scenario, way: str | None, step_s: float, num_devices: int) -> Notice:
    """The rhythm of collectives names the node itself; after a timeout people look for it."""
    ratio = scenario.slow_ratio or 1.0
    if way != "collective":
        slow_s = _or(scenario.slow_notice_s, 0.0)
        return Notice(
            detection_s=_or(scenario.detection_s, DETECTION_S),
            diagnosis_s=_or(scenario.diagnosis_s, 0.0),
            slow_detection_s=slow_s,
            slow_frac=1.0 - 1.0 / ratio,
        )
    watch = HeartbeatDetection(
        step_s=step_s, num_ranks=num_devices, report_s=_or(scenario.report_s, REPORT_S), diagnosis_s=0.0
    )
    stops = watch.response(FaultKind(name="stop", device_mtbf_s=1.0))
    slow = watch.response(FaultKind(name="slow", device_mtbf_s=1.0, slowdown_ratio=ratio))
    return Notice(
        detection_s=stops.detection_s,
        diagnosis_s=stops.diagnosis_s,
        slow_detection_s=slow.detection_s,
        slow_frac=1.0 - 1.0 / ratio,
    )


def faults_of(
    scenario: Scenario, step_s: float, num_devices: int, devices_per_node: int, way: str | None = None
) -> FaultModel:
    """Failure rates, and the outage after each failure; starting up is part of every restart.

    A slow device is replaced like a failed one, unless another failure takes it out before it is known: of rate r it
    holds the others back for (1 - e^(-r d)) / r of the d seconds until then, which stand for its notice.
    """
    notice = notice_of(scenario, way or scenario.detection, step_s, num_devices)
    stops = FaultModel(
        num_devices=num_devices,
        devices_per_node=devices_per_node,
        device_mtbf_s=scenario.device_mtbf_s or math.inf,
        node_mtbf_s=scenario.node_mtbf_s or math.inf,
        detection_s=notice.detection_s,
        diagnosis_s=notice.diagnosis_s,
        restart_s=_or(scenario.restart_s, RESTART_S) + _or(scenario.startup_s, 0.0),
        repair_s=_or(scenario.repair_s, 0.0),
        num_spares=scenario.spare_nodes or 0,
    )
    if scenario.slow_mtbf_s is None:
        return stops
    strikes, stopped = num_devices / scenario.slow_mtbf_s, stops.failures_per_s
    alone = math.exp(-(strikes + stopped) * notice.slow_detection_s)
    held_s = (1.0 - alone) / (strikes + stopped) * notice.slow_frac
    own = strikes * alone
    return replace(
        stops,
        device_mtbf_s=1.0 / (1.0 / stops.device_mtbf_s + alone / scenario.slow_mtbf_s),
        detection_s=(stopped * notice.detection_s + strikes * held_s) / (stopped + own),
    )


def detection_table(
    scenario: Scenario, faults: FaultModel, step_s: float, saves: CheckpointPlan, run: RunPlan
) -> Table:
    """Both ways of noticing, with the time that failures take of the run by each."""
    rows: list[dict[str, Any]] = []
    outage_s = faults.diagnosis_s - notice_of(scenario, scenario.detection, step_s, faults.num_devices).diagnosis_s
    for way in ("timeout", "collective"):
        notice = notice_of(scenario, way, step_s, faults.num_devices)
        own = faults_of(scenario, step_s, faults.num_devices, faults.devices_per_node, way)
        found = expected(
            replace(faults, detection_s=own.detection_s, diagnosis_s=own.diagnosis_s + outage_s),
            saves,
            run,
        )
        slow = {} if scenario.slow_mtbf_s is None else {"slow_noticed_after_s": notice.slow_detection_s}
        rows.append(
            {
                "detection": way,
                "noticed_after_s": notice.detection_s,
                "node_known_after_s": notice.detection_s + notice.diagnosis_s,
                **slow,
                "lost_frac": found.lost_frac,
                "recovery_frac": found.recovery_frac,
                "overhead_frac": found.overhead_frac,
            }
        )
    return Table(kind="detection", title="How failures are noticed", rows=tuple(rows))


def group_nodes(scenario: Scenario, num_nodes: int) -> tuple[int, int]:
    """Nodes of a group, and how many lost ones its memory outlives."""
    group = min(scenario.parity_group_nodes or GROUP_NODES, num_nodes)
    parity = _or(scenario.parity_nodes, min(PARITY_NODES, group - 1))
    if parity >= group:
        raise ScenarioError(
            f"parity_nodes: {parity} of groups of {group} nodes; write at most {group - 1}"
            + (", or more parity_group_nodes." if group < num_nodes else ", or more devices.")
        )
    return group, int(parity)


def from_memory(
    faults: FaultModel, cost: SaveCost, storage: CheckpointPlan, run: RunPlan, group: int, parity: int
) -> tuple[Goodput, Table]:
    """The run that restores from memory what a group outlives, and the rest from storage.

    A group loses its state when one more node than its parity fails before the first is replaced and rebuilt: the mean
    time to that, against the mean time between failures, is the share of failures that need storage.
    """
    groups = math.ceil(faults.num_nodes / group)
    node_mtbf_s = faults.num_nodes / (faults.failures_per_s * faults.node_loss_frac)
    window_s = faults.down_s + faults.restart_s + (cost.rebuild_s if math.isfinite(cost.rebuild_s) else 0.0)
    to_loss_s = mean_time_to_loss_s(groups, group, parity, node_mtbf_s, max(window_s, 1.0))
    deep = min(1.0, 1.0 / (to_loss_s * faults.failures_per_s))
    memory = memory_plan(cost)
    found = expected_two_level(faults, memory, storage, run, storage_only_frac=deep)
    rows = (
        {
            "from": "memory",
            "failures_frac": 1.0 - deep,
            "interval_s": memory.interval_s,
            "lost_work_s": memory.interval_s / 2.0 + memory.lag_s,
            "load_s": memory.load_s,
            "outlives_the_run_frac": math.exp(-found.time_s / to_loss_s),
            "host_bytes_per_node": cost.host_bytes,
        },
        {
            "from": "storage",
            "failures_frac": deep,
            "interval_s": storage.interval_s,
            "lost_work_s": storage.interval_s / 2.0 + storage.lag_s,
            "load_s": storage.load_s,
            "outlives_the_run_frac": 1.0,
            "host_bytes_per_node": 0.0,
        },
    )
    title = f"What a failure loses: groups of {group} nodes that outlive {parity} lost"
    return found, Table(kind="saves", title=title, rows=rows)


def stage_faults(faults: FaultModel, num_stages: int) -> StageFaults:
    """The same failures, as losses of whole pipeline stages."""
    each = faults.failures_per_s / num_stages
    return StageFaults(
        num_stages=num_stages,
        hourly_failure_frac=-math.expm1(-each * HOUR_S),
        replace_s=faults.down_s + faults.restart_s,
    )


def without_rollback(scenario: Scenario, faults: FaultModel, run: RunPlan, num_stages: int) -> Goodput:
    """A run that saves nothing: a lost stage comes from its neighbours, with or without a setback."""
    back = 0.0 if scenario.recovery == "redundant" else float(scenario.setback_steps or 0.0)
    found = from_neighbours(stage_faults(faults, num_stages), run.num_steps, run.step_s, back)
    return _goodput(found, run)


def _goodput(found: Outcome, run: RunPlan) -> Goodput:
    again_s = (found.steps - run.num_steps) * run.step_s
    return Goodput(
        time_s=found.time_s,
        useful_frac=run.work_s / found.time_s,
        checkpoint_frac=0.0,
        lost_frac=again_s / found.time_s,
        recovery_frac=(found.time_s - run.work_s - again_s) / found.time_s,
        num_failures=found.num_failures,
    )


def recovery_table(
    scenario: Scenario, faults: FaultModel, rolled: Goodput, plain: RunPlan, num_stages: int, redundant_s: float
) -> Table:
    """All ways on the same failures. ``redundant_s``: a step with the neighbour's forward pass in it."""
    stages = stage_faults(faults, num_stages)
    twice = from_neighbours(stages, plain.num_steps, redundant_s, 0.0)
    rows: list[dict[str, Any]] = [
        _row("rollback", rolled.time_s, rolled.num_failures, plain.step_s),
        _row("redundant", twice.time_s, twice.num_failures, redundant_s),
    ]
    if scenario.setback_steps is not None:
        averaged = from_neighbours(stages, plain.num_steps, plain.step_s, scenario.setback_steps)
        rows.append(_row("neighbour-average", averaged.time_s, averaged.num_failures, plain.step_s))
    return Table(kind="recovery", title="After the loss of a stage", rows=tuple(rows))


def _row(way: str, time_s: float, num_failures: float, step_s: float) -> dict[str, Any]:
    return {"recovery": way, "run_s": time_s, "step_s": step_s, "failures": num_failures}


def _or(value: float | None, default: float) -> float:
    return default if value is None else value

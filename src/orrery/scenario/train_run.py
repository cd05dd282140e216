"""The whole run: steps to so many tokens, what failures and checkpoints take of them, days, energy and dollars."""

from dataclasses import dataclass
from math import ceil, inf

from orrery.base.errors import ScenarioError, nearest
from orrery.base.seam import techniques_at
from orrery.planner.money import Tariff
from orrery.scenario.schema import Scenario
from orrery.training.faults import techniques
from orrery.training.faults.goodput import Goodput, expected
from orrery.training.faults.interval import best_steps
from orrery.training.faults.model import FaultModel, RunPlan
from orrery.training.faults.saving import SaveCost, Saving, storage_plan
from orrery.training.ranks import Rank
from orrery.training.step import Steps
from orrery.training.worth import power_w

S_PER_DAY = 86400.0
STORAGE_BYTES_PER_S = 2e9
"""What a node writes to shared storage where nobody says; assumed."""

DETECTION_S, RESTART_S = 600.0, 600.0
"""Ten minutes until a failure is noticed, ten until the first new step; assumed where nobody says."""

FIRST_INTERVAL_S = 1800.0
"""Where the search for the best interval begins."""

DEFAULT_CHECKPOINT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that a run of so many tokens takes."""

    tokens: float
    num_steps: int
    time_s: float  # on the wall
    energy_j: float
    usd: float | None
    goodput: Goodput | None  # None: nothing fails
    checkpoint: str = ""
    checkpoint_interval_s: float = 0.0
    checkpoint_blocked_s: float = 0.0
    checkpoint_bytes: float = 0.0  # of the whole job

    @property
    def days(self) -> float:
        """On the wall, as people count long runs."""
        return self.time_s / S_PER_DAY


def run_of(scenario: Scenario, steps: Steps, ranks: tuple[Rank, ...], tariff: Tariff) -> Run | None:
    """The run that a scenario asks for; None where it names no number of tokens."""
    wants_faults = scenario.device_mtbf_s is not None or scenario.node_mtbf_s is not None
    if scenario.train_tokens is None:
        if wants_faults or scenario.checkpoint:
            raise ScenarioError("train_tokens: is missing; failures and checkpoints need the length of the run.")
        return None
    job, step_s = steps.job, float(steps.time_s[0])
    num_steps = ceil(scenario.train_tokens / job.tokens_per_step)
    devices, watts = job.cluster.num_devices, float(power_w(steps)[0])
    wall_s, found = num_steps * step_s, None
    extra: dict[str, object] = {}
    if wants_faults:
        found, extra = _with_failures(scenario, steps, ranks, num_steps)
        wall_s = found.time_s
    rate = tariff.usd_per_s(devices, devices * watts)
    return Run(
        tokens=scenario.train_tokens, num_steps=num_steps, time_s=wall_s, energy_j=wall_s * devices * watts,
        usd=None if rate is None else rate * wall_s, goodput=found, **extra,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


def _with_failures(
    scenario: Scenario, steps: Steps, ranks: tuple[Rank, ...], num_steps: int
) -> tuple[Goodput, dict[str, object]]:
    job, layout = steps.job, steps.columns.layout(0)
    step_s = float(steps.time_s[0])
    per_node = job.cluster.devices_per_node
    faults = FaultModel(
        num_devices=job.cluster.num_devices, devices_per_node=per_node, device_mtbf_s=scenario.device_mtbf_s or inf,
        node_mtbf_s=scenario.node_mtbf_s or inf, detection_s=_or(scenario.detection_s, DETECTION_S),
        restart_s=_or(scenario.restart_s, RESTART_S),
    )  # fmt: skip
    state = max(r.parts["weights"] + r.parts["optimizer"] for r in ranks)
    replicas = layout.dp if layout.sharding == "none" else 1
    parts = {name: float(v[0]) for name, v in steps.parts.items()}
    node_rate = scenario.storage_bytes_per_s or STORAGE_BYTES_PER_S
    saving = Saving(
        shard_bytes=state, num_devices=job.cluster.num_devices, devices_per_node=per_node,
        forward_s=parts["forward"], update_s=parts["update"], backward_s=step_s - parts["forward"] - parts["update"],
        device_to_host_bytes_per_s=job.cluster.device.host.each_way_bytes_per_s,
        storage_bytes_per_s=node_rate * job.cluster.num_nodes, node_storage_bytes_per_s=node_rate,
        num_replicas=replicas,
    )  # fmt: skip
    name = scenario.checkpoint or DEFAULT_CHECKPOINT
    run = RunPlan(step_s=step_s, num_steps=num_steps)
    interval = _interval_steps(scenario, faults, saving, name, run)
    cost = _save_cost(name, saving, interval)
    found = expected(faults, storage_plan(saving, cost, interval), run)
    return found, {
        "checkpoint": name, "checkpoint_interval_s": interval * step_s, "checkpoint_blocked_s": cost.blocked_s,
        "checkpoint_bytes": state * job.cluster.num_devices / replicas,
    }  # fmt: skip


def _interval_steps(scenario: Scenario, faults: FaultModel, saving: Saving, name: str, run: RunPlan) -> int:
    """The asked interval in whole steps, or the best: what a save blocks depends on it, so it is found twice."""
    if scenario.checkpoint_interval_s is not None:
        return max(1, round(scenario.checkpoint_interval_s / run.step_s))
    steps = min(run.num_steps, max(1, round(FIRST_INTERVAL_S / run.step_s)))
    for _ in range(2):
        cost = _save_cost(name, saving, steps)
        if cost.blocked_s <= 0.0:  # free while each write is done before the next begins
            return min(run.num_steps, max(1, ceil(cost.durable_lag_s / run.step_s)))
        steps = best_steps(faults, storage_plan(saving, cost, steps), run)
    return steps


def _save_cost(name: str, saving: Saving, interval_steps: int) -> SaveCost:
    """What the way of saving called ``name`` (with or without "checkpoint-") makes of it."""
    known = {n.removeprefix("checkpoint-"): t for n, t in techniques_at(techniques, "training.checkpoint").items()}
    if (found := known.get(name.removeprefix("checkpoint-"))) is None:
        near = nearest(name, known) or tuple(known)
        raise ScenarioError(f"checkpoint: got {name!r}; write {' or '.join(map(repr, near))}.")
    cost: SaveCost = found.rule(saving, interval_steps, found.knobs())
    return cost


def _or(value: float | None, default: float) -> float:
    return default if value is None else value

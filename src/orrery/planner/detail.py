"""From an operation to a plan: what the estimate of one replica says, times the replicas, in watts and dollars."""

from dataclasses import replace

from orrery.base.cost import Interval
from orrery.base.units import percent
from orrery.execution.experts.placed import placed_note
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.planner.goal import Goal
from orrery.planner.launch import launch
from orrery.planner.money import idle_notes
from orrery.planner.plan import Operation, Plan
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.workload import Workload

LONG_RUN = 1000
"""Rounds of a closed loop after which its start no longer shows in the means."""


def detail(goal: Goal, operation: Operation) -> Plan:
    """Work out the full plan of one operation: its rates, power, price and launch commands."""
    found = estimate(operation.deployment, workload_of(goal, operation))
    if isinstance(found, Infeasible):
        raise AssertionError(f"a plan stopped fitting: {found}")
    replicas, traffic = operation.replicas, goal.traffic
    output_rate = operation.output_tokens_per_s
    total_rate = operation.requests_per_s * (traffic.input_tokens + traffic.output_tokens)
    power_w, host_w = found.power_w * replicas, found.host_power_w * replicas
    tariff, devices = operation.candidate.option.tariff, operation.num_devices
    usd_per_s = tariff.usd_per_s(devices, power_w)
    used_frac = operation.requests_per_s / operation.highest_requests_per_s
    commands, launch_notes = launch(limited(operation), longest_tokens=traffic.longest_tokens, replicas=replicas)
    return Plan(
        operation=operation,
        output_tokens_per_s=output_rate,
        total_tokens_per_s=total_rate,
        power_w=power_w,
        host_power_w=host_w,
        energy_j_per_token=power_w / output_rate,
        energy_j_per_token_with_host=(power_w + host_w) / output_rate,
        usd_per_hour=None if usd_per_s is None else usd_per_s * 3600,
        usd_per_million_tokens=tariff.usd_per_million(devices, power_w, output_rate),
        usd_per_million_total_tokens=tariff.usd_per_million(devices, power_w, total_rate),
        bound_by=found.bound_by,
        intervals=_around(operation, found),
        notes=(*found.notes, *quality_notes(operation), *_clock_notes(operation), *idle_notes(tariff, used_frac)),
        launch=commands,
        launch_notes=launch_notes,
    )


def workload_of(goal: Goal, operation: Operation) -> Workload:
    """The traffic of one replica: its share of the arrivals, or a full closed loop where no rate is demanded."""
    traffic = goal.traffic
    if traffic.request_rate_per_s and operation.requests_per_s < 0.99 * operation.highest_requests_per_s:
        return traffic.open(operation.requests_per_s / operation.replicas)
    concurrency = max(1, round(operation.concurrency))
    return traffic.closed(concurrency, LONG_RUN * concurrency)


def limited(operation: Operation) -> Deployment:
    """The deployment with the batch limit that keeps it inside the objectives, per data-parallel rank."""
    deployment = operation.deployment
    seqs = max(1, int(operation.max_concurrency / deployment.layout.dp))
    return replace(deployment, max_num_seqs=min(seqs, operation.memory.max_num_seqs))


def _around(operation: Operation, found: Estimate) -> dict[str, Interval]:
    """The estimate's relative intervals, around the operation's own numbers."""
    mine = {
        "ttft_s": operation.ttft_s,
        "tpot_s": operation.tpot_s,
        "output_tokens_per_s": operation.output_tokens_per_s,
    }
    return {
        name: _scaled(found.intervals[name], value / getattr(found, name))
        for name, value in mine.items()
        if name in found.intervals and getattr(found, name) > 0
    }


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(
        low_80=interval.low_80 * factor,
        high_80=interval.high_80 * factor,
        low_95=interval.low_95 * factor,
        high_95=interval.high_95 * factor,
        because=interval.because,
    )


def _clock_notes(operation: Operation) -> tuple[str, ...]:
    """Settings for the devices of a plan that runs them slower."""
    clock = operation.candidate.option.clock_frac
    return (f"clock: {percent(clock)} of the full one, to be locked on every device",) if clock != 1.0 else ()


def quality_notes(operation: Operation) -> tuple[str, ...]:
    """Changes to the model's answers under a plan, for somebody to measure."""
    deployment = operation.deployment
    own = deployment.model.weights_format
    notes: list[str] = []
    if deployment.formats.weights != own:
        notes.append(
            f"weights in {deployment.formats.weights}, the checkpoint holds {own}: measure what that does to answers"
        )
    if deployment.expert_placement:
        notes.append(placed_note(deployment))
    if deployment.formats.kv == "fp8":
        notes.append("cache in fp8: measure what that does to long answers")
    return tuple(notes)

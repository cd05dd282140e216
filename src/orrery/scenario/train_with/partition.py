"""Weights, gradients and optimizer states, each cut at a level of the machine of its own."""

from dataclasses import fields, replace

from orrery.base.errors import ScenarioError, nearest
from orrery.execution.train.job import TrainingJob
from orrery.hardware.device import Link
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, refuse_beside, refuse_without
from orrery.training.levels import Level, Topology, of_cluster
from orrery.training.partition import PARTITIONS, PartitionedStep, get_plan, partitioned_step
from orrery.training.state_plan import Plan

KNOBS = ("partition_levels", "link_levels", "wire_weight_bits", "wire_gradient_bits")
STATES = {"weights": "weights", "gradients": "gradients", "optimizer": "optimizer", "second": "secondary"}
"""As a user names a state, and the plan's field of it."""

COMPARED = ("zero3", "zero-plus-plus", "three-level")


def check_partition(scenario: Scenario) -> None:
    """Refuse knobs without a partition, and what says otherwise where states lie."""
    refuse_without(scenario, "partition", KNOBS)
    if scenario.partition is not None:
        why = "a partition says where every state lies"
        refuse_beside(scenario, "partition", ("sharding", "sharding_group", "secondary_group", "local_updates"), why)
        refuse_beside(scenario, "partition", ("gradient_overlap",), "its exchanges have a level for each state")
        refuse_beside(scenario, "partition", ("sites", "island_devices"), "write the links as link_levels")


def with_partition(scenario: Scenario, plain: Changed) -> Changed:
    """The step whose states lie where the plan says; parts keep their names, gathers and reductions being sharding."""
    check_partition(scenario)
    if scenario.partition is None:
        return plain
    layout = plain.layout
    if layout.num_devices == 1:
        raise ScenarioError("partition: one device holds every state; leave partition out, or write more devices.")
    if layout.num_devices != layout.dp:
        raise ScenarioError(f"partition: {layout}; write tp = pp = cp = 1: every device is a data-parallel rank.")
    if layout.ep > 1 or layout.recompute_modules or layout.recompute_layers:
        raise ScenarioError(f"partition: {layout}; write ep = 1, and recompute none, selective or full of all layers.")
    topology = topology_of(scenario, plain.job)
    found = _step(scenario, plain, topology, scenario.partition)
    parts = found.parts
    changed = plain.with_parts(
        {name: 0.0 for name in plain.parts if name not in parts}
        | {name: seconds for name, seconds in parts.items() if name in plain.parts}
        | {
            "sharding": parts["gathering"] + parts["gathering again, reducing"],
            "parameter gathering": parts["once a step, between groups"],
        }
    )
    held = dict(found.held)
    held["weights"] += held.pop("second copy of weights")
    rank = replace(plain.ranks[0], parts={name: held.get(name, 0.0) for name in plain.ranks[0].parts})
    changed = replace(changed, ranks=(rank,))
    return changed.saying(_states(found, topology), _compared(scenario, plain, topology, found))


def topology_of(scenario: Scenario, job: TrainingJob) -> Topology:
    """The cluster's node and system, with the user's levels inside a node."""
    plain = of_cluster(job.cluster)
    if scenario.link_levels is None:
        return plain
    inside = [_level(text) for text in scenario.link_levels.split(",")]
    outside = [x for x in plain.levels if x.name not in {level.name for level in inside}]
    return Topology(levels=tuple(sorted((*inside, *outside), key=lambda x: x.num_devices)))


def _level(text: str) -> Level:
    """``die:2:2e11``; a level called system joins nodes."""
    try:
        name, devices, rate = text.split(":")
        level = Level(
            name=name.strip(),
            num_devices=int(devices),
            link=Link(name=name.strip(), each_way_bytes_per_s=float(rate), latency_s=LATENCY_S),
            is_network=name.strip() == "system",
        )
    except ValueError:
        level = None
    if level is None or level.num_devices < 2 or not level.link.each_way_bytes_per_s > 0.0:
        raise ScenarioError(
            f"link_levels: got {text!r}; write NAME:DEVICES:BYTES_PER_S, such as die:2:2e11, with commas between."
        )
    return level


LATENCY_S = 2e-6
"""Latency of a link whose user says its rate alone; assumed."""


def plan_of(scenario: Scenario, topology: Topology, name: str) -> Plan:
    """The plan of that name with the levels and widths that the user sets."""
    if name != "levels":
        known = {f.name for f in fields(PARTITIONS.get(name).knobs)}
        widths = (("weight_bits", scenario.wire_weight_bits), ("gradient_bits", scenario.wire_gradient_bits))
        plan = get_plan(name, topology, **{key: bits for key, bits in widths if bits is not None and key in known})
    else:
        last = topology.names[-1]
        plan = Plan(name="levels", weights=last, gradients=last, optimizer=last)
    if scenario.partition_levels is None or name != scenario.partition:
        return plan
    return replace(plan, **_levels(scenario.partition_levels, topology))


def _levels(text: str, topology: Topology) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in text.split(","):
        state, _, level = (part.strip() for part in one.partition("="))
        if state not in STATES or not level:
            raise ScenarioError(
                f"partition_levels: got {one!r}; write STATE=LEVEL with a state of {', '.join(STATES)}."
            )
        if level not in topology.names:
            near = nearest(level, topology.names, 1) or topology.names
            raise ScenarioError(f"partition_levels: got {one!r}; write {' or '.join(near)}.")
        found[STATES[state]] = level
    return found


def _step(scenario: Scenario, plain: Changed, topology: Topology, name: str) -> PartitionedStep:
    plan = plan_of(scenario, topology, name)
    if text := plan.refusal(topology):
        raise ScenarioError(f"partition: {text}")
    layout = plain.layout
    return partitioned_step(plain.job, topology, plan, micro_batch=layout.micro_batch, recompute=layout.recompute)


def _states(found: PartitionedStep, topology: Topology) -> Table:
    plan, held = found.plan, found.held
    rows = [
        {"state": name, "level": level, "devices": topology.size(level), "held_bytes": held[key]}
        for name, level, key in (
            ("weights", plan.weights, "weights"),
            ("second copy", plan.secondary, "second copy of weights"),
            ("gradients", plan.gradients, "gradients"),
            ("optimizer", plan.optimizer, "optimizer"),
        )
        if name != "second copy" or plan.secondary != "device"
    ]
    return Table(kind="states", title="Where each state lies", rows=tuple(rows))


def _compared(scenario: Scenario, plain: Changed, topology: Topology, found: PartitionedStep) -> Table:
    """The ways by name beside the one that was asked for, each hidden or not."""
    names = [name for name in COMPARED if name != scenario.partition]
    steps = [(str(scenario.partition), found), *((name, _step(scenario, plain, topology, name)) for name in names)]
    rows = [
        {
            "partition": name,
            "step_s": step.time_s,
            "exposed_s": sum(v for k, v in step.parts.items() if "gathering" in k or "between" in k),
            "exchanges_s": sum(step.exchanges.values()),
            "peak_memory_bytes": step.memory_bytes,
        }
        for name, step in steps
    ]
    return Table(kind="partitions", title="Partitions", rows=tuple(rows))

"""Nodes whose network cards cannot all talk to each other: which stages stand where, and what a step takes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.hardware.device import Link
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, refuse_beside, refuse_without
from orrery.training.islands import Fleet, GroupedStep, NodeGroup, adapted_layers, even_layers, grouped_step

KNOBS = ("nic_group_link_bytes_per_s", "nic_placement")
AFTER = ("gradient reduction", "parameter gathering", "update", "once a step", "bubble", "hand-overs")
"""Parts that the groups decide; the others are work of the stages."""


def with_network_cards(scenario: Scenario, plain: Changed) -> Changed:
    """The step whose rings and hand-overs each take the link that joins their nodes."""
    refuse_without(scenario, "nic_groups", KNOBS)
    if scenario.nic_groups is None:
        return plain
    others = ("sites", "island_devices", "local_updates", "partition", "seq_lengths")
    refuse_beside(scenario, "nic_groups", others, "its links are those of the groups")
    if plain.layout.recompute_modules or plain.layout.recompute_layers:
        raise ScenarioError("nic_groups: write recompute none, selective or full of all layers.")
    fleet = fleet_of(scenario, plain)
    name = scenario.nic_placement or "adapted"
    found = {way: place(plain, fleet) for way, place in WAYS.items()}
    rows = [_row(way, step) for way, step in found.items()]
    table = Table(kind="network_cards", title="Stages on groups of network cards", rows=tuple(rows))
    notes = [] if scenario.nic_placement else [f"nic_placement: {name} (default)"]
    if max(found[name].layers) - min(found[name].layers) > 1:
        notes.append(f"memory: as with even stages; {'+'.join(map(str, found[name].layers))} layers differ from it")
    return _priced(plain, found[name]).saying(table, notes=tuple(notes))


def fleet_of(scenario: Scenario, plain: Changed) -> Fleet:
    """Groups as the user writes them; each device has its part of a node's cards."""
    cluster = plain.job.cluster
    own, per_node = cluster.device.scaleout, cluster.devices_per_node

    def link(name: str, node_bytes_per_s: float | None) -> Link:
        rate = own.each_way_bytes_per_s if node_bytes_per_s is None else node_bytes_per_s / per_node
        return replace(own, name=name, each_way_bytes_per_s=rate)

    groups = tuple(
        NodeGroup(name=name, num_nodes=nodes, link=link(name, rate))
        for name, nodes, rate in map(_group, str(scenario.nic_groups).split(","))
    )
    if (total := sum(g.num_nodes for g in groups)) != cluster.num_nodes:
        raise ScenarioError(f"nic_groups: have {total} nodes, the job {cluster.num_nodes}; write groups of all nodes.")
    between = scenario.nic_group_link_bytes_per_s
    if between is None and len(groups) > 1:
        raise ScenarioError("nic_group_link_bytes_per_s: is missing; write what joins the groups, such as 3.125e9.")
    slowest = min((g.link for g in groups), key=lambda x: x.each_way_bytes_per_s)
    return Fleet(groups=groups, between=slowest if between is None else link("between groups", between))


def _group(text: str) -> tuple[str, int, float | None]:
    """``ib:4`` or ``ib:4:1e11``."""
    parts = [part.strip() for part in text.split(":")]
    try:
        nodes, rate = int(parts[1]), float(parts[2]) if len(parts) == 3 else None
    except (IndexError, ValueError):
        nodes, rate = 0, None
    if nodes < 1 or len(parts) > 3 or (rate is not None and not rate > 0.0):
        raise ScenarioError(f"nic_groups: got {text!r}; write NAME:NODES or NAME:NODES:BYTES_PER_S, such as ib:4:1e11.")
    return parts[0], nodes, rate


def _even(plain: Changed, fleet: Fleet, order: Any) -> GroupedStep:
    num_layers = sum(b.count for b in (*plain.job.model.encoder, *plain.job.model.blocks))
    return grouped_step(plain.job, plain.layout, fleet, even_layers(num_layers, plain.layout.pp), order)


def _one_transport(plain: Changed, fleet: Fleet) -> GroupedStep:
    """Return the step of a library that takes one link for everything: the one that all nodes share."""
    one = NodeGroup(name="all", num_nodes=fleet.num_nodes, link=fleet.between)
    return _even(plain, Fleet(groups=(one,), between=fleet.between), "grouped")


WAYS: dict[str, Callable[[Changed, Fleet], GroupedStep]] = {
    "adapted": lambda plain, fleet: adapted_layers(plain.job, plain.layout, fleet),
    "grouped": lambda plain, fleet: _even(plain, fleet, "grouped"),
    "dealt": lambda plain, fleet: _even(plain, fleet, "dealt"),
    "one-transport": _one_transport,
}


def _priced(plain: Changed, found: GroupedStep) -> Changed:
    """Parts of the stage that is done last: its work, its waiting, its ring, and the longest update and gathering."""
    last = int(np.argmax([end + reduce for end, reduce in zip(found.stage_end_s, found.reduce_s, strict=True)]))
    end_s, finish_s = found.stage_end_s[last], max(found.finish_s)
    work = {name: seconds for name, seconds in plain.parts.items() if name not in AFTER}
    share = min(1.0, end_s / sum(work.values()))
    update_s = min(plain.parts["update"], finish_s)
    return plain.with_parts(
        {name: share * seconds for name, seconds in work.items()}
        | {
            "bubble": max(0.0, end_s - sum(work.values())),
            "hand-overs": 0.0,
            "gradient reduction": found.reduce_s[last],
            "update": update_s,
            "parameter gathering": finish_s - update_s,
        }
    )


def _row(way: str, step: GroupedStep) -> dict[str, Any]:
    return {
        "placement": way,
        "step_s": step.time_s,
        "layers": "+".join(map(str, step.layers)),
        "longest_ring_s": max(step.reduce_s),
        "hardware_flops": step.hardware_flops,
    }

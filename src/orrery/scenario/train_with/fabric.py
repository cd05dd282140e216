"""A fabric of switches between nodes: flows that meet on a link take turns, by how they are dealt to the spines."""

from dataclasses import replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.train.job import TrainingJob
from orrery.network.on_fabric import Fabric, ring_slowdowns
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, refuse_beside, refuse_without
from orrery.training.ranks import costed

SIZES = ("leaves", "hosts_per_leaf", "spines", "planes", "routing")
OTHER_LINKS = ("sites", "island_devices", "nic_groups")

ROUTINGS = {"ecmp": "ecmp", "planned": "singlepath", "spray": "spray"}
"""Ways to deal flows to spines, and what the network's own rules call them."""

DRAWS = 64
RINGS = "fabric: whatever crosses nodes moves in rings over all of them, which stand where a scheduler put them (drawn)"


def with_fabric(scenario: Scenario, plain: Changed) -> Changed:
    """The step whose exchanges between nodes move at the pace of the busiest link."""
    refuse_without(scenario, "fabric", SIZES)
    if scenario.fabric is None:
        return plain
    refuse_beside(scenario, "fabric", OTHER_LINKS, "each has links of its own between nodes")
    fabric = fabric_of(scenario, plain.job)
    chosen, notes = scenario.routing or "ecmp", [RINGS]
    if scenario.routing is None:
        notes.append("routing: ecmp (default)")
    found, rows = dict[str, Changed](), list[dict[str, Any]]()
    for name, rule in ROUTINGS.items():
        slower = ring_slowdowns(fabric, rule, num_planes=scenario.planes or 1, num_draws=DRAWS, seed=scenario.seed or 0)
        found[name] = slowed(plain, float(slower.mean()))
        rows.append(
            {
                "routing": name,
                "busiest_link_ratio": float(slower.mean()),
                "worst_tenth_ratio": float(np.quantile(slower, 0.9)),
                "step_s": found[name].step_s,
                "longer_frac": found[name].step_s / plain.step_s - 1.0,
            }
        )
    table = Table(kind="fabric", title="Flows of rings on the fabric's links", rows=tuple(rows))
    return found[chosen].saying(table, notes=tuple(notes))


def fabric_of(scenario: Scenario, job: TrainingJob) -> Fabric:
    """The user's switches, which join exactly the nodes of the job."""
    leaves, hosts, spines = scenario.leaves, scenario.hosts_per_leaf, scenario.spines
    if leaves is None or hosts is None:
        raise ScenarioError(f"{'leaves' if leaves is None else 'hosts_per_leaf'}: is missing; a fabric needs both.")
    if scenario.fabric == "fat-tree":
        if spines not in (None, hosts):
            raise ScenarioError(f"spines: a fat tree has as many as nodes below a leaf ({hosts}); leave it out.")
        spines = hosts
    if spines is None:
        raise ScenarioError("spines: is missing; write it, or fabric = fat-tree.")
    if leaves * hosts != job.cluster.num_nodes:
        raise ScenarioError(
            f"leaves: {leaves} of {hosts} nodes join {leaves * hosts}, the job has {job.cluster.num_nodes}; write "
            "leaves x hosts_per_leaf of them."
        )
    return Fabric(num_leaves=leaves, num_spines=spines, num_hosts_per_leaf=hosts, link=job.cluster.device.scaleout)


def slowed(plain: Changed, ratio: float) -> Changed:
    """The same layout where links between nodes carry that much less."""
    if ratio == 1.0:
        return plain
    cluster = plain.job.cluster
    link = cluster.device.scaleout
    slower = replace(link, each_way_bytes_per_s=link.each_way_bytes_per_s / ratio)
    job = replace(plain.job, cluster=replace(cluster, device=replace(cluster.device, scaleout=slower)))
    steps, ranks = costed(job, plain.layout)
    return replace(plain, job=job, steps=steps, ranks=ranks)

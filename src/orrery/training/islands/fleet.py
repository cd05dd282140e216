"""Groups of equal nodes with their own network cards, and a slower network between groups. [yang-2023]

Cards of different kinds (InfiniBand, RoCE) cannot talk to each other, so whatever crosses groups takes Ethernet.
"""

from dataclasses import dataclass, replace
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.hardware.device import Link

Order = Literal["grouped", "dealt"]
"""grouped: nodes of a group are neighbours, so a stage's ring stays inside. dealt: nodes are numbered round robin.

A job whose library takes one transport for everything is a fleet of one group with the link that all nodes share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """``num_nodes`` nodes whose cards talk to each other; the link is what one device has of it."""

    name: str
    num_nodes: int
    link: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Groups, and the link of one device to any other group."""

    groups: tuple[NodeGroup, ...]
    between: Link

    @property
    def num_nodes(self) -> int:
        """Nodes of all groups."""
        return sum(g.num_nodes for g in self.groups)

    def nodes(self, order: Order) -> list[int]:
        """The group of every node, in the order in which ranks are numbered."""
        if order == "grouped":
            return [i for i, g in enumerate(self.groups) for _ in range(g.num_nodes)]
        left, out = [g.num_nodes for g in self.groups], list[int]()
        while any(left):
            for i, count in enumerate(left):
                if count:
                    out.append(i)
                    left[i] -= 1
        return out

    def link(self, members: set[int]) -> Link:
        """Link between nodes of those groups."""
        return self.groups[next(iter(members))].link if len(members) == 1 else self.between


def stage_groups(job: TrainingJob, layout: TrainingLayout, fleet: Fleet, order: Order) -> list[set[int]]:
    """The groups that each pipeline stage touches: a stage is ``tp * dp`` neighbours."""
    node, nodes = job.cluster.devices_per_node, fleet.nodes(order)
    if layout.num_devices != node * fleet.num_nodes or job.cluster.num_devices != layout.num_devices:
        raise ScenarioError(
            f"islands: {layout} takes {layout.num_devices} devices, the cluster has {job.cluster.num_devices} and the "
            f"groups {node * fleet.num_nodes}; write a layout that uses all of them."
        )
    size = layout.tp * layout.dp
    return [{nodes[i // node] for i in range(p * size, (p + 1) * size)} for p in range(layout.pp)]


def hop_links(job: TrainingJob, layout: TrainingLayout, fleet: Fleet, order: Order) -> list[Link | None]:
    """The slowest link between a stage and the next; None where neighbours share a node."""
    node, nodes, size = job.cluster.devices_per_node, fleet.nodes(order), layout.tp * layout.dp
    out: list[Link | None] = []
    for p in range(layout.pp - 1):
        pairs = [(i // node, (i + size) // node) for i in range(p * size, (p + 1) * size)]
        links = [fleet.link({nodes[a], nodes[b]}) for a, b in pairs if a != b]
        out.append(min(links, key=lambda link: link.each_way_bytes_per_s) if links else None)
    return out


def with_link(job: TrainingJob, link: Link) -> TrainingJob:
    """The same job where ``link`` joins the nodes."""
    device = replace(job.cluster.device, scaleout=link)
    return replace(job, cluster=replace(job.cluster, device=device), islands=None)

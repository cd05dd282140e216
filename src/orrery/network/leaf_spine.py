"""Which link of a leaf-spine fabric carries most, by how flows between leaves are dealt to the spines.

Links are alike and every flow has one size. Spraying spreads each flow over all spines: the busiest leaf sends (or
receives) D flows over S links, D / S each. A hash puts a whole flow on one spine, and some links get more. Flows that
know of each other can do as well as spraying: cut into g = S / gcd(D, S) parts, they are the edges of a bipartite graph
of largest degree D g, whose edges can be coloured with D g colours (König 1916), and D g / S colours make a spine.
Addanki et al., arXiv 2407.00550, prove that singlepath flows with little splitting reach the congestion of spraying.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafFlows:
    """Flows of one collective between leaves, by place; each has the size of one."""

    num_leaves: int
    num_spines: int
    sources: Ints  # leaf of each flow
    targets: Ints

    @property
    def most(self) -> int:
        """Flows that the busiest leaf sends or receives."""
        sent = np.bincount(self.sources, minlength=self.num_leaves)
        return int(max(sent.max(), np.bincount(self.targets, minlength=self.num_leaves).max()))


def ring(num_leaves: int, num_spines: int, num_hosts_per_leaf: int, random: np.random.Generator | None) -> LeafFlows:
    """Every host sends to the next one of a ring: in the order of places, or in one that is drawn."""
    hosts = np.repeat(np.arange(num_leaves, dtype=np.int64), num_hosts_per_leaf)
    order = hosts if random is None else random.permutation(hosts)
    after = np.roll(order, -1)
    away = order != after
    return LeafFlows(num_leaves=num_leaves, num_spines=num_spines, sources=order[away], targets=after[away])


def permutation(num_leaves: int, num_spines: int, num_hosts_per_leaf: int, random: np.random.Generator) -> LeafFlows:
    """Every host sends to one that is drawn, and receives from one; flows that stay below a leaf use no spine."""
    hosts = np.repeat(np.arange(num_leaves, dtype=np.int64), num_hosts_per_leaf)
    targets = random.permutation(hosts)
    away = hosts != targets
    return LeafFlows(num_leaves=num_leaves, num_spines=num_spines, sources=hosts[away], targets=targets[away])


def everyone(num_leaves: int, num_spines: int, num_hosts_per_leaf: int) -> LeafFlows:
    """Every host sends to every other, as an all-to-all does."""
    hosts = np.repeat(np.arange(num_leaves, dtype=np.int64), num_hosts_per_leaf)
    sources, targets = (side.ravel() for side in np.meshgrid(hosts, hosts, indexing="ij"))
    away = sources != targets
    return LeafFlows(num_leaves=num_leaves, num_spines=num_spines, sources=sources[away], targets=targets[away])


def sprayed(flows: LeafFlows) -> float:
    """Flows on the busiest link where each is spread over all spines."""
    return flows.most / flows.num_spines


def hashed(flows: LeafFlows, random: np.random.Generator) -> float:
    """Flows on the busiest link where each takes one spine at random."""
    spines = random.integers(flows.num_spines, size=flows.sources.size)
    return float(_most_on_a_link(flows, flows.sources, flows.targets, spines))


def parts_needed(flows: LeafFlows) -> int:
    """Parts of a flow that make whole numbers of them fit the links evenly."""
    return flows.num_spines // math.gcd(flows.most, flows.num_spines)


def assigned(flows: LeafFlows, most_parts: int = 0) -> float:
    """Flows on the busiest link where each part is put on one spine with all others in view.

    ``most_parts`` bounds the cutting; 0 cuts as far as it helps.
    """
    parts = parts_needed(flows)
    parts = min(parts, most_parts) if most_parts else parts
    sources, targets = np.repeat(flows.sources, parts), np.repeat(flows.targets, parts)
    colours = _coloured(sources, targets, flows.num_leaves, flows.most * parts)
    together = -(-flows.most * parts // flows.num_spines)
    return _most_on_a_link(flows, sources, targets, colours // together) / parts


def _most_on_a_link(flows: LeafFlows, sources: Ints, targets: Ints, spines: Ints) -> int:
    """Flows or parts on the busiest link, up or down."""
    links = flows.num_leaves * flows.num_spines
    up = np.bincount(sources * flows.num_spines + spines, minlength=links)
    return int(max(up.max(), np.bincount(targets * flows.num_spines + spines, minlength=links).max()))


def _coloured(sources: Ints, targets: Ints, num_leaves: int, num_colours: int) -> Ints:
    """A colour for every edge, no two alike at a leaf's up side or down side: one alternating path an edge, at most."""
    edge_at = np.full((2 * num_leaves, num_colours), -1, dtype=np.int64)
    ends = np.stack([sources, targets + num_leaves])
    colours = np.empty(sources.size, dtype=np.int64)
    for edge in range(sources.size):
        here, there = ends[:, edge]
        first, second = (int(np.argmax(edge_at[end] < 0)) for end in (here, there))
        if edge_at[there, first] >= 0:
            _flip(int(there), first, second, edge_at, ends, colours)
        colours[edge] = first
        edge_at[here, first] = edge_at[there, first] = edge
    return colours


def _flip(end: int, first: int, second: int, edge_at: Ints, ends: Ints, colours: Ints) -> None:
    """Exchange two colours along the path of edges that bear them in turn, from ``end`` on."""
    path: list[int] = []
    at, colour, other = end, first, second
    while (edge := int(edge_at[at, colour])) >= 0:
        path.append(edge)
        at = int(ends[1, edge] if ends[0, edge] == at else ends[0, edge])
        colour, other = other, colour
    for edge in path:
        edge_at[ends[:, edge], colours[edge]] = -1
    for edge in path:
        colours[edge] = second if colours[edge] == first else first
        edge_at[ends[:, edge], colours[edge]] = edge

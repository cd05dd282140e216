"""Experts in groups of even load, and groups near those that they follow, as integer programs. [moetuner-2025]

First each layer alone: as many experts in each of D groups, the fullest as light as can be. Then groups go to devices.
With G devices a node, 0 on a device, 1 inside a node and 2 between nodes, the ways of all tokens cost

    cost = sum over layers of  2 - (share that stays on its node) - (share that stays on its device)

The nodes of all layers are one program: u[l, g, n] says that group g of layer l lies on node n, w[l, g, h, n] that g
and the next layer's h both do; sum over h of w = G u[g], sum over g of w = G u[h]. Devices inside nodes are an
assignment from each layer to the next, which has whole corners. No placement of the groups costs less than the two
bounds together. Where the time ends first, exchanges of two groups may have found better; the better one stands.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.program import Program, SparseRows, solved
from orrery.execution.experts.affinity import Floats, Ints, loads
from orrery.execution.experts.placement import distances, even_groups, near_groups

GROUP_BRANCHES, NODE_BRANCHES = 10, 20
"""Branches that the programs of one layer's groups, and of all nodes, may try: counted and not timed, so that an answer
is the same on every machine. What is not proven by then stands with its bound."""

LONGEST_S = 60.0
"""Seconds after which a program ends whatever it has tried."""

CLOSE_FRAC = 1e-3
"""Groups whose fullest is so near to a bound that no program needs to look."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tuned:
    """A placement, and how far from the best it can be at most."""

    where: Ints  # layers x experts, a device each
    load_gap_frac: float  # fullest groups over their bounds, less 1; mean over the layers
    way_ratio: float  # mean over the layers; 0 to 2
    way_bound_ratio: float


def tuned(moves: Floats, num_devices: int, per_node: int) -> Tuned:
    """The placement of experts whose tokens move so (layers - 1 x experts x experts)."""
    per_node = min(per_node, num_devices)
    found = [_groups(row, num_devices) for row in loads(moves)]
    groups = np.array([group for group, _ in found])
    between = _between(moves, groups, num_devices)
    node, stays_bound = _nodes(between, per_node)
    exchanged = near_groups(moves, distances(num_devices, per_node), groups)
    by_group = np.array(
        [[row[group == g][0] for g in range(num_devices)] for row, group in zip(exchanged, groups, strict=True)]
    )
    device = min((_devices(between, node, per_node), by_group), key=lambda at: _way_ratio(between, at, per_node))
    most = np.mean([_assigned(one)[1] for one in between]) if len(between) else 1.0
    pairs = max(len(between), 1)
    return Tuned(
        where=np.take_along_axis(device, groups, axis=1),
        load_gap_frac=float(np.mean([gap for _, gap in found])),
        way_ratio=_way_ratio(between, device, per_node),
        way_bound_ratio=2.0 - stays_bound / pairs - float(most),
    )


def _groups(load: Floats, num_groups: int) -> tuple[Ints, float]:
    """A group for each expert, and how far the fullest is above its bound at most."""
    first = even_groups(load, num_groups)
    bound = max(float(load.sum()) / num_groups, float(load.max()))
    best = _fullest(load, first, num_groups)
    if best <= bound * (1.0 + CLOSE_FRAC) or len(load) == num_groups:
        return first, 0.0 if len(load) == num_groups else best / bound - 1.0
    experts = len(load)
    cells = experts * num_groups
    grid = np.arange(cells).reshape(experts, num_groups)
    rows = np.zeros((experts + 2 * num_groups, cells + 1))
    for expert in range(experts):
        rows[expert, grid[expert]] = 1.0
    for group in range(num_groups):
        rows[experts + group, grid[:, group]] = 1.0
        rows[experts + num_groups + group, grid[:, group]] = load
        rows[experts + num_groups + group, cells] = -1.0
    each = np.concatenate([np.ones(experts), np.full(num_groups, experts / num_groups)])
    most = np.append(np.ones(cells), np.inf)
    most[grid[int(np.argmax(load)), 1:]] = 0.0  # groups have no names: the heaviest expert is in the first
    found = solved(
        Program(
            cost=np.append(np.zeros(cells), 1.0),
            matrix=rows,
            row_low=np.concatenate([each, np.full(num_groups, -np.inf)]),
            row_high=np.concatenate([each, np.zeros(num_groups)]),
            most=most,
            is_whole=np.append(np.ones(cells, np.bool_), False),
        ),
        gap_frac=CLOSE_FRAC,
        most_s=LONGEST_S,
        most_nodes=GROUP_BRANCHES,
    )
    if found is None:
        return first, best / bound - 1.0
    group = found.x[:cells].reshape(experts, num_groups).argmax(axis=1).astype(np.int64)
    bound, reached = max(bound, found.bound), _fullest(load, group, num_groups)
    return (group, reached / bound - 1.0) if reached < best else (first, best / bound - 1.0)


def _fullest(load: Floats, group: Ints, num_groups: int) -> float:
    return float(np.bincount(group, weights=load, minlength=num_groups).max())


def _between(moves: Floats, groups: Ints, num_groups: int) -> Floats:
    """Share of the tokens that go from each group to each one of the next layer."""
    found = np.zeros((len(moves), num_groups, num_groups))
    for layer, move in enumerate(moves):
        np.add.at(found[layer], (groups[layer][:, None], groups[layer + 1][None, :]), move)
    return found


def _staying(between: Floats, place: Ints) -> float:
    """Share of the ways that stay on a place, mean over the layers."""
    shares = [float(f[a[:, None] == b[None, :]].sum()) for f, a, b in zip(between, place[:-1], place[1:], strict=True)]
    return float(np.mean(shares)) if shares else 1.0


def _way_ratio(between: Floats, device: Ints, per_node: int) -> float:
    return 2.0 - _staying(between, device // per_node) - _staying(between, device)


def _assigned(gain: Floats) -> tuple[Ints, float]:
    """The partner of every row with the most gain, and that gain: a linear program with whole corners."""
    n = len(gain)
    rows: Floats = np.concatenate([np.repeat(np.eye(n), n, axis=1), np.tile(np.eye(n), n)])
    one = np.ones(2 * n)
    found = solved(
        Program(
            cost=-gain.ravel(),
            matrix=rows,
            row_low=one,
            row_high=one,
            most=np.ones(n * n),
            is_whole=np.zeros(n * n, np.bool_),
        )
    )
    assert found is not None, "every square has an assignment"
    return found.x.reshape(n, n).argmax(axis=1).astype(np.int64), float(gain.ravel() @ found.x)


def _nodes(between: Floats, per_node: int) -> tuple[Ints, float]:
    """The node of every group of every layer, and the most that can stay on its node, summed over the layers."""
    pairs, size = len(between), between.shape[1] if len(between) else per_node
    num_nodes, layers = -(-size // per_node), len(between) + 1
    in_order = np.tile(np.arange(size) // per_node, (layers, 1))
    if num_nodes == 1 or not pairs:
        return in_order, float(between.sum())
    found = solved(
        _nodes_program(between, per_node, num_nodes), gap_frac=CLOSE_FRAC, most_s=LONGEST_S, most_nodes=NODE_BRANCHES
    )
    if found is None:
        return in_order, float(between.sum())
    own = found.x[: layers * size * num_nodes].reshape(layers, size, num_nodes)
    return own.argmax(axis=2).astype(np.int64), min(-found.bound, float(between.sum()))


def _nodes_program(between: Floats, per_node: int, num_nodes: int) -> Program:
    pairs, size, _ = between.shape
    layers, cells = pairs + 1, size * num_nodes
    own: Ints = np.arange(layers * cells, dtype=np.int64).reshape(layers, size, num_nodes)
    both: Ints = own.size + np.arange(pairs * size * cells, dtype=np.int64).reshape(pairs, size, size, num_nodes)
    rows: list[tuple[Ints, Floats, float]] = []
    for layer in range(layers):
        rows += [(own[layer, g], np.ones(num_nodes), 1.0) for g in range(size)]
        rows += [(own[layer, :, n], np.ones(size), float(per_node)) for n in range(num_nodes)]
    weight = np.append(np.ones(size), -float(per_node))
    for layer in range(pairs):
        for g in range(size):
            for n in range(num_nodes):
                rows.append((np.append(both[layer, g, :, n], own[layer, g, n]), weight, 0.0))
                rows.append((np.append(both[layer, :, g, n], own[layer + 1, g, n]), weight, 0.0))
    level = np.array([value for _, _, value in rows])
    most = np.ones(own.size + both.size)
    most[own[0, 0, 1:]] = 0.0  # nodes have no names
    return Program(
        cost=np.append(np.zeros(own.size), -np.repeat(between.ravel(), num_nodes)),
        matrix=SparseRows(
            start=np.cumsum([0, *(len(index) for index, _, _ in rows)]),
            index=np.concatenate([index for index, _, _ in rows]),
            value=np.concatenate([value for _, value, _ in rows]),
        ),
        row_low=level,
        row_high=level,
        most=most,
        is_whole=np.arange(own.size + both.size) < own.size,
    )


def _devices(between: Floats, node: Ints, per_node: int) -> Ints:
    """The device of every group: the first layer's in order, each next one's beside those that it follows most."""
    device = np.empty_like(node)
    for n in range(int(node.max()) + 1):
        device[0][node[0] == n] = n * per_node + np.arange(per_node)
        for layer, ways in enumerate(between):
            here, there = np.flatnonzero(node[layer] == n), np.flatnonzero(node[layer + 1] == n)
            partner, _ = _assigned(ways[np.ix_(here, there)])
            device[layer + 1][there[partner]] = device[layer][here]
    return device

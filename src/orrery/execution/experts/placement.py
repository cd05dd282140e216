"""Which device holds which expert: in order, near those that they follow, or so that every device gets as much to do.

A placement is layers x experts, a device each, with as many experts of every layer on each device. The best one is an
integer program; here layers are improved one after the other, their neighbours standing still, by exchanging the two
experts that gain most, until no exchange of any layer gains anything. [exflow-2024], [moetuner-2025]
"""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.experts.affinity import Floats, Ints, loads

MAX_ROUNDS = 20
"""Passes over the layers; a handful is enough."""


def in_order(num_layers: int, num_experts: int, num_devices: int) -> Ints:
    """The first experts of every layer on the first device, and so on: what frameworks do."""
    if num_experts % num_devices:
        raise ScenarioError(
            f"num_devices = {num_devices} for {num_experts} experts a layer; write a number that divides it."
        )
    return np.tile(np.arange(num_experts) // (num_experts // num_devices), (num_layers, 1))


def distances(num_devices: int, per_node: int, across: float = 2.0) -> Floats:
    """Distance matrix of devices: 0 on a device, 1 inside a node, ``across`` between nodes."""
    device = np.arange(num_devices)
    node = device // per_node
    away = np.where(node[:, None] == node[None, :], 1.0, across)
    return np.where(device[:, None] == device[None, :], 0.0, away)


def near_followed(moves: Floats, distance: Floats) -> Ints:
    """The placement with the shortest ways from each expert to those that follow it."""
    layers, experts = len(moves) + 1, moves.shape[1]
    placed = in_order(layers, experts, len(distance))
    for layer in range(1, layers):
        _exchange(placed[layer], moves[layer - 1].T @ distance[placed[layer - 1]])
    for _ in range(MAX_ROUNDS):
        if not sum(_exchange(placed[layer], _ways(moves, placed, distance, layer)) for layer in range(layers)):
            break
    return placed


def balanced(moves: Floats, distance: Floats) -> Ints:
    """Experts of a layer in groups of even load, then the groups on the devices nearest to those that they follow.

    Groups are filled from the busiest expert down, each into the lightest group that has room.
    """
    groups = np.array([even_groups(row, len(distance)) for row in loads(moves)])
    return near_groups(moves, distance, groups)


def near_groups(moves: Floats, distance: Floats, groups: Ints) -> Ints:
    """Groups of experts (layers x experts) on the devices nearest to those that they follow, by exchanges of two."""
    num_devices, placed = len(distance), groups.copy()
    for _ in range(MAX_ROUNDS):
        changed = 0
        for layer in range(len(groups)):
            ways = _ways(moves, placed, distance, layer)
            cost = np.array([ways[groups[layer] == g].sum(axis=0) for g in range(num_devices)])
            device = np.array([placed[layer][groups[layer] == g][0] for g in range(num_devices)])
            if _exchange(device, cost):
                placed[layer] = device[groups[layer]]
                changed += 1
        if not changed:
            break
    return placed


def hops(moves: Floats, placed: Ints, per_node: int) -> tuple[float, float]:
    """Share of a token's steps to the next layer that leave the device, and that leave the node."""
    device = inside = 0.0
    for move, here, there in zip(moves, placed[:-1], placed[1:], strict=True):
        device += float(move[here[:, None] != there[None, :]].sum())
        inside += float(move[(here // per_node)[:, None] != (there // per_node)[None, :]].sum())
    return device / len(moves), inside / len(moves)


def fullest(moves: Floats, placed: Ints) -> float:
    """Load of the busiest device over the mean, averaged over the layers."""
    num_devices = int(placed.max()) + 1
    load = [
        np.bincount(where, weights=row, minlength=num_devices) for row, where in zip(loads(moves), placed, strict=True)
    ]
    return float(np.mean([row.max() * num_devices / row.sum() for row in load]))


def _ways(moves: Floats, placed: Ints, distance: Floats, layer: int) -> Floats:
    """Cost of each expert of a layer on each device; experts x devices."""
    cost = np.zeros((moves.shape[1], len(distance)))
    if layer > 0:
        cost += moves[layer - 1].T @ distance[placed[layer - 1]]
    if layer < len(moves):
        cost += moves[layer] @ distance[placed[layer + 1]]
    return cost


def _exchange(device: Ints, cost: Floats) -> int:
    """Exchange pairs in place while that makes it cheaper; how many were."""
    rows, count = np.arange(len(device)), 0
    while True:
        own = cost[rows, device]
        there = cost[:, device]
        gain = own[:, None] + own[None, :] - there - there.T
        best = int(np.argmax(gain))
        if gain.flat[best] <= 1e-12:
            return count
        a, b = divmod(best, len(device))
        device[a], device[b] = device[b], device[a]
        count += 1


def even_groups(load: Floats, num_groups: int) -> Ints:
    """A group for each expert, as many in each: from the busiest down, each into the lightest group with room."""
    room = np.full(num_groups, len(load) // num_groups)
    total, found = np.zeros(num_groups), np.zeros(len(load), dtype=np.int64)
    for expert in np.argsort(-load, kind="stable"):
        group = int(np.argmin(np.where(room > 0, total, np.inf)))
        found[expert] = group
        total[group] += load[expert]
        room[group] -= 1
    return found

"""Whether what nodes hold in memory outlives the loss of some of them.

Nodes stand in groups of n; a group survives up to m losses (m = 0: no parity, m = 1: XOR, more: Reed-Solomon), and the
saved state survives if every group does. Losses in a time t are independent with p = 1 - e^(-t / node MTBF):

    P = (sum_{i <= m} C(n, i) p^i (1 - p)^(n - i))^groups

and of all ways to lose exactly k of the nodes, the share that is survived is the coefficient of x^k in
(sum_{i <= m} C(n, i) x^i)^groups over C(N, k). [patterson-1988] has the first for one group.
"""

import math
from functools import reduce

import numpy as np

from orrery.base.errors import ScenarioError


def survival_frac(num_groups: int, group_nodes: int, num_parity: int, time_s: float, node_mtbf_s: float) -> float:
    """That no group loses more than its parity within the time."""
    _check(num_groups, group_nodes, num_parity)
    lost = -math.expm1(-time_s / node_mtbf_s)
    group = sum(math.comb(group_nodes, i) * lost**i * (1.0 - lost) ** (group_nodes - i) for i in range(num_parity + 1))
    return min(1.0, group) ** num_groups


def survived_losses_frac(num_groups: int, group_nodes: int, num_parity: int, num_lost: int) -> float:
    """That the state survives when exactly ``num_lost`` nodes, any of them, go at once."""
    _check(num_groups, group_nodes, num_parity)
    nodes = num_groups * group_nodes
    if not 0 <= num_lost <= nodes:
        raise ScenarioError(f"num_lost: got {num_lost}; write a number from 0 to the {nodes} nodes.")
    group = [math.comb(group_nodes, i) for i in range(num_parity + 1)]
    ways = reduce(lambda product, _: _product(product, group, num_lost), range(num_groups), [1])
    return (ways[num_lost] if num_lost < len(ways) else 0) / math.comb(nodes, num_lost)


def _product(left: list[int], right: list[int], most: int) -> list[int]:
    """Product of two polynomials with integer coefficients, up to degree ``most``."""
    product = [0] * min(most + 1, len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right[: max(0, len(product) - i)]):
            product[i + j] += a * b
    return product


def mean_time_to_loss_s(
    num_groups: int, group_nodes: int, num_parity: int, node_mtbf_s: float, rebuild_s: float
) -> float:
    """Mean time until memory alone cannot bring the state back, when each lost node is rebuilt in ``rebuild_s``.

    A group is a chain of lost nodes, 0 to m + 1: up at (n - i) / MTBF, down at i / rebuild. The time to its end solves
    (chain) t = -1; groups are alike and independent, so the first of them ends so many times sooner (rare losses).
    """
    _check(num_groups, group_nodes, num_parity)
    size = num_parity + 1
    chain = np.zeros((size, size))
    for i in range(size):
        up, down = (group_nodes - i) / node_mtbf_s, i / rebuild_s
        chain[i, i] = -(up + down)
        if i + 1 < size:
            chain[i, i + 1] = up
        if i:
            chain[i, i - 1] = down
    return float(np.linalg.solve(chain, -np.ones(size))[0]) / num_groups


def _check(num_groups: int, group_nodes: int, num_parity: int) -> None:
    if num_groups < 1 or not 0 <= num_parity < group_nodes:
        raise ScenarioError(
            f"groups: got {num_groups} of {group_nodes} nodes with {num_parity} parity; write at least one group, and "
            "fewer parities than nodes."
        )

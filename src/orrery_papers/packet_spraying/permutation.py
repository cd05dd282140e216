"""Flows of a random permutation of hosts."""

import numpy as np

from orrery.network.leaf_spine import LeafFlows


def shuffled(num_leaves: int, num_spines: int, num_hosts_per_leaf: int, random: np.random.Generator) -> LeafFlows:
    """Every host sends to one other, every host receives from one; flows that stay below a leaf use no spine."""
    hosts = np.repeat(np.arange(num_leaves, dtype=np.int64), num_hosts_per_leaf)
    targets = random.permutation(hosts)
    away = hosts != targets
    return LeafFlows(num_leaves=num_leaves, num_spines=num_spines, sources=hosts[away], targets=targets[away])

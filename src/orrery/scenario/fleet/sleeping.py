"""The host's memory that sleeping models take: weights of all of them, and the cache that a replica keeps there.

When one model goes to sleep for another to wake, the weights of all lie in the host's memory for a moment: the devices'
must be free before the next one's come.
"""

from collections.abc import Mapping
from typing import Any

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.shard import shard
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_tiers import DEVICE_SHARES

NAME = "host_memory_bytes"


def weight_bytes(deployment: Deployment) -> float:
    """Weights of one replica, all its devices together."""
    return shard(deployment).weight_bytes * deployment.layout.num_devices


def host_fit(
    settings: Mapping[str, Any], deployments: Mapping[str, Deployment], host_cache_bytes: float
) -> tuple[Infeasible | None, str]:
    """Why the models of a replica cannot sleep in its part of a node's memory, if so, and a note on that part."""
    first = next(iter(deployments.values()))
    per_node, devices = first.cluster.device.devices_per_node, first.layout.num_devices
    assumed, why = DEVICE_SHARES[NAME]
    stated = read_scenario({NAME: settings.get(NAME)}).host_memory_bytes
    node = assumed * per_node if stated is None else stated
    have = node * devices / per_node
    weights = sum(weight_bytes(d) for d in deployments.values())
    need = weights + host_cache_bytes
    cache = f" and {host_cache_bytes / 1e9:.3g} GB of cache" if host_cache_bytes else ""
    of_node = f"{have / 1e9:.4g} GB of the host's memory a replica" + (f" (assumed: {why})" if stated is None else "")
    note = f"{NAME}: {weights / 1e9:.3g} GB of weights{cache} of {of_node}"
    if need <= have:
        return None, note
    change = (
        f"A node of {per_node} devices would need {need * per_node / devices / 1e9:.4g} GB: write {NAME}, let fewer "
        "models share the replicas, or give one replicas of its own."
    )
    what = f"weights{' and cache' if cache else ''} that lie in the host's memory while models sleep"
    return Infeasible(what=what, need=need, have=have, unit="bytes", smallest_change=change), note

"""Weights that lie in a peer's memory or the host's, and cross the link in every pass.

    pass = max(kernels, fetches)        a layer arrives while those before it compute

Each layer that lies elsewhere is one transfer; the device holds two of them at once, the one that computes and the one
that arrives. Every pipeline stage fetches its own.
"""

from math import ceil

from orrery import network
from orrery.execution.host_rates import copy_bytes_per_s
from orrery.execution.layout import Deployment
from orrery.execution.shard import shard

BUFFERED_LAYERS = 2


def layer_bytes(deployment: Deployment) -> float:
    """Weights of a mean layer on one device."""
    cut, layers = shard(deployment), deployment.model.num_layers / deployment.layout.pp
    return cut.weight_bytes / max(1.0, layers)


def num_elsewhere(deployment: Deployment) -> int:
    """Layers of one pipeline stage whose weights lie elsewhere."""
    if (rule := deployment.weight_offload) is None:
        return 0
    return ceil(rule.layers_frac * deployment.model.num_layers / deployment.layout.pp - 1e-9)


def elsewhere_bytes(deployment: Deployment) -> float:
    """Bytes that one device spares: those of its layers elsewhere, less what it buffers of them."""
    return max(0, num_elsewhere(deployment) - BUFFERED_LAYERS) * layer_bytes(deployment)


def fetches_s(deployment: Deployment) -> float:
    """All transfers of one pass through all pipeline stages; 0 where all weights are on the device."""
    rule, count, each = deployment.weight_offload, num_elsewhere(deployment), layer_bytes(deployment)
    if rule is None or not count:
        return 0.0
    device = deployment.cluster.device
    if rule.where == "host":
        one_s = each / copy_bytes_per_s(device)
    else:
        work = network.Collective(kind="send_recv", num_devices=2, message_bytes=each, has_peer_to_peer=True)
        one_s = float(network.predict(work, device).time_s)
    return count * one_s * deployment.layout.pp

"""Bytes between memories: what a sequence's cache weighs on a whole replica, and which links it travels.

The time of a transfer is a rule at ``execution.transfer`` over one of these links.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from orrery import network
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.base.extension_points import ExtensionPoint, knob_array
from orrery.execution import techniques
from orrery.execution.host_rates import HOST_RATE_FRAC as HOST_RATE_FRAC
from orrery.execution.layout import Deployment
from orrery.execution.shard import cache_of, shard
from orrery.hardware.device import Device, Link
from orrery.models.model import RecurrentMixer, SoftmaxAttention

TRANSFERS = ExtensionPoint(name="execution.transfer", folder=techniques, noun="transfer")

PIECE_S = 2e-6
"""Time of one piece of a cache in a transfer: its descriptor is posted and completed. vLLM issue 50913 pulls some 5,000
tokens; blocks of 64 tokens in place of 16 save 58 of 105 ms, so three quarters of tens of thousands of pieces cost 58
ms: 2 to 3 us each. NIXL issue 176 had 40 us a piece before descriptors were prepared ahead; a GB200 whose pieces go
over NVLink posts 20 times slower than over a network card (vLLM issue 55434).
"""

__all__ = [
    "TRANSFERS",
    "Transfer",
    "holders",
    "host_link",
    "knob_array",
    "kv_bytes",
    "kv_bytes_per_token",
    "link_between",
    "num_parallel",
    "pieces_of",
]


class Transfer(NamedTuple):
    """A way for bytes: its rate in one direction, and the time of a transfer of nothing. A disk is one, too."""

    bandwidth_bytes_per_s: float
    latency_s: float


def kv_bytes(deployment: Deployment, tokens: float) -> float:
    """Cache of one sequence of ``tokens`` on all devices of a replica; heads that are held twice are sent twice."""
    return cache_of(deployment).sequence_bytes(tokens) * holders(deployment)


def kv_bytes_per_token(deployment: Deployment) -> float:
    """Cache of one more token of a long sequence, over all devices of a replica (layers that keep every token)."""
    return cache_of(deployment).bytes_per_token * holders(deployment)


def holders(deployment: Deployment) -> float:
    """Devices that keep parts of one sequence, counted in fullest devices."""
    layout = deployment.layout
    return layout.tp * layout.cp / shard(deployment).stage_share


def num_parallel(deployment: Deployment) -> int:
    """Devices of a replica that send at once, each its own part."""
    layout = deployment.layout
    return layout.tp * layout.pp * layout.cp


def link_between(deployment: Deployment, other: Deployment, *, same_node: bool, parts: int = 1) -> Transfer:
    """The way of a cache from a replica of ``deployment`` to one of ``other``: all pairs of devices at once.

    Each pair runs at the slower device's scale-up link inside a node, else at its network card; as many pairs as the
    smaller replica has devices. Rates are those that point-to-point sends were measured to reach, less what starting
    each piece takes: s/byte = 1 / rate + PIECE_S / piece, and one piece of every layer at least. The start is that of
    one of so many ``parts`` of the cache.
    """
    pairs = min(num_parallel(deployment), num_parallel(other))
    ends = [_point_to_point(d.cluster.device, same_node) for d in (deployment, other)]
    pieces, piece_bytes = pieces_of(deployment)
    each_s = 1.0 / min(e.bandwidth_bytes_per_s for e in ends) + PIECE_S / piece_bytes
    start_s = max(e.latency_s for e in ends) + pieces / parts * PIECE_S
    return Transfer(bandwidth_bytes_per_s=pairs / each_s, latency_s=start_s)


def pieces_of(deployment: Deployment) -> tuple[float, float]:
    """Pieces that any transfer of a device has at least, and the bytes of one where their number grows with tokens.

    An engine keeps its cache by layers: then keys and values of each go in one piece (infinite bytes: no more pieces
    for more tokens), or a piece for each of their blocks; or it keeps all layers of a block together.
    """
    engine, cut, cache = deployment.engine, shard(deployment), cache_of(deployment)
    retained = [m for m in cut.mixers if not isinstance(m.mixer, RecurrentMixer)]
    layers = cut.stage_share * sum(m.count * (2 if isinstance(m.mixer, SoftmaxAttention) else 1) for m in retained)
    token_bytes = cache.bytes_per_token + sum(each for _, each in cache.windows)
    if engine.cache_pieces == "layers" or not token_bytes:
        return layers, float("inf")
    block_bytes = engine.block_tokens * token_bytes
    return (1.0, block_bytes) if engine.cache_pieces == "blocks" else (layers, block_bytes / layers)


@lru_cache(maxsize=512)
def _point_to_point(device: Device, same_node: bool) -> Transfer:
    """One device to one other: the slope and the start of a measured send, or the stated link where none was."""
    link = device.scaleup if same_node else device.scaleout
    work = network.Collective(
        kind="send_recv",
        num_devices=2,
        message_bytes=np.array([1.0, 1e9, 2e9]),
        library="nccl",
        devices_per_node=2 if same_node else 1,
        has_peer_to_peer=True,
    )
    try:
        start_s, one_s, two_s = (float(t) for t in np.asarray(network.predict(work, device).time_s))
    except OutOfRange:
        return Transfer(link.each_way_bytes_per_s, link.latency_s)
    return Transfer(1e9 / (two_s - one_s), start_s)


def host_link(deployment: Deployment, *, host_memory_bytes_per_s: float = float("inf")) -> Transfer:
    """The way of a replica's cache to the hosts' memory: every device over its own link, within what the host takes."""
    if host_memory_bytes_per_s <= 0.0:
        raise ScenarioError(
            f"host_memory_bytes_per_s = {host_memory_bytes_per_s:g}; write more than 0, or leave it out."
        )
    link: Link = deployment.cluster.device.host
    together = num_parallel(deployment) * link.each_way_bytes_per_s * HOST_RATE_FRAC
    return Transfer(min(together, host_memory_bytes_per_s), link.latency_s)

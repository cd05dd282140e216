"""Dispatch of tokens to experts that other ranks hold, and return of their results.

Two ways. *Gathering*: every rank gets the tokens of all ranks, and the sums are scattered back; (R - 1) copies of a
token, whatever it chose. *Sending*: a token goes to the devices that hold its k experts, once each; of R devices it
reaches R (1 - C(E - E/R, k) / C(E, k)), nearly R (1 - (1 - 1/R)^k). Kernels for low latency send one copy to each
expert instead. Experts that are cut (every device has a part of each) can only be gathered for.

Which way an engine goes is a fact of its release; where experts lie in several servers it may go another.

Where loads are known layer by layer, the fullest rank receives more than the others, and everybody waits for it. Where
every rank keeps the context of all (``placed``), a token's results stay with its main expert: one exchange a layer by
the ways that the placement leaves, the sums of its other experts, and once a step the new keys and values of all.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from orrery import network
from orrery.execution.batch import Batch, Floats, Part
from orrery.execution.experts.placed import Placed, busiest_ratio, placed, way_scales
from orrery.execution.formats import bytes_per_element, is_16bit, wide_bytes
from orrery.execution.layout import Deployment
from orrery.execution.shard import ExpertsShard, cache_of

GATHER = "all-gather"
"""All-gather of tokens, reduce-scatter of results."""

ALL_TO_ALL = "all-to-all"
"""A plain all-to-all of NCCL, a copy of the token for every expert it chose."""

DEEPEP = "deepep"
"""DeepEP picks by phase: kernels for low latency where sequences decode, kernels for throughput for prompts."""

WIDE_RANKS = 8
"""Engines' documentation names other dispatchers for more than one server, and a server has eight devices. Published
deployments over 16 ranks and more use them also inside a rack that one NVLink domain spans."""

LOW_LATENCY_TOKENS = 1024
"""Tokens of a rank that low-latency buffers hold at most: 128 by default, up to 1024 in published large deployments
(SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK). Larger steps are prompts' and take the kernels for throughput."""


def dispatcher_of(deployment: Deployment, experts: ExpertsShard) -> str:
    """The way that tokens go: as told, else the engine's, which may have another one for many ranks."""
    engine, layout = deployment.engine, deployment.layout
    if experts.tp > 1:
        return GATHER
    if deployment.dispatcher:
        return deployment.dispatcher
    return engine.wide_dispatcher if layout.tp * layout.dp > WIDE_RANKS else engine.dispatcher


def exchange_parts(deployment: Deployment, experts: ExpertsShard, batch: Batch) -> Iterator[Part]:
    """Dispatch and combine of one block's experts."""
    way, found = dispatcher_of(deployment, experts), placed(deployment)
    if found and found.is_copied:
        yield from _copied(deployment, experts, batch, found)
    elif way == GATHER:
        yield from _gathered(deployment, experts, batch)
    elif way == ALL_TO_ALL:
        for name in ("dispatch", "combine"):
            message = _message_bytes(deployment, experts, batch, name) * busiest_ratio(deployment)
            yield _part(name, "all_to_all", _collective_s(deployment, "all_to_all", message) * experts.count)
    else:
        yield from _sent(deployment, experts, batch, way)


def _gathered(deployment: Deployment, experts: ExpertsShard, batch: Batch) -> Iterator[Part]:
    """Narrow activations are gathered at a byte an element, sums are scattered as they are."""
    activations, layout = deployment.formats.activations, deployment.layout
    everything = batch.num_tokens * float(deployment.model.hidden_size * layout.dp)
    wide, out = wide_bytes(activations), _out_bytes(activations)
    for name, kind, width in (("dispatch", "all_gather", out), ("combine", "reduce_scatter", wide)):
        work = network.Collective(
            kind=kind,
            num_devices=layout.dp,
            message_bytes=np.asarray(everything * width, np.float64),
            library="nccl",
            devices_per_node=deployment.cluster.devices_per_node,
            has_peer_to_peer=True,
            stride=layout.tp,
        )
        time_s = np.asarray(network.predict(work, deployment.cluster.device).time_s)
        yield _part(name, kind, time_s * experts.count)


def _out_bytes(activations: str) -> float:
    """Bytes of an element on its way to an expert: narrow activations are sent as a byte."""
    return bytes_per_element(activations) if is_16bit(activations) else 1.0


def _message_bytes(deployment: Deployment, experts: ExpertsShard, batch: Batch, name: str) -> Floats:
    """A device's copies of its tokens, one for each expert chosen."""
    activations = deployment.formats.activations
    width = _out_bytes(activations) if name == "dispatch" else wide_bytes(activations)
    copies = float(experts.experts.experts_per_token * deployment.model.hidden_size) / deployment.layout.tp
    return np.asarray(batch.num_tokens * copies * width, np.float64)


def _collective_s(deployment: Deployment, kind: str, message_bytes: Floats, num_devices: int = 0) -> Floats:
    """One collective over the devices that hold the experts, or over so many of one node."""
    layout = deployment.layout
    work = network.Collective(
        kind=kind,
        num_devices=num_devices or layout.tp * layout.dp,
        message_bytes=np.asarray(message_bytes, np.float64),
        library="nccl",
        devices_per_node=deployment.cluster.devices_per_node,
        has_peer_to_peer=True,
    )
    time_s = np.asarray(network.predict(work, deployment.cluster.device).time_s)
    return np.where(message_bytes > 0.0, time_s, 0.0)


def _copied(deployment: Deployment, experts: ExpertsShard, batch: Batch, found: Placed) -> Iterator[Part]:
    """One exchange a layer, the sums of a token's further experts, and the new context of all ranks once a step."""
    layout, each = deployment.layout, experts.experts.experts_per_token
    devices, inside = layout.tp * layout.dp, min(deployment.cluster.devices_per_node, layout.tp * layout.dp)
    between, within = way_scales(found, devices, inside)
    message = _message_bytes(deployment, experts, batch, "dispatch") * busiest_ratio(deployment)
    out_s = np.maximum(
        _collective_s(deployment, "all_to_all", message * between) if between else 0.0 * message,
        _collective_s(deployment, "all_to_all", message * within, inside) if within else 0.0 * message,
    )
    yield _part("dispatch", "all_to_all", out_s * experts.count)
    if each > 1:
        back = _message_bytes(deployment, experts, batch, "combine") * ((each - 1.0) / each) * busiest_ratio(deployment)
        yield _part("combine", "all_to_all", _collective_s(deployment, "all_to_all", back) * experts.count)
    if experts.block == next(b.name for b in deployment.model.blocks if b.experts):
        new = np.asarray(batch.num_tokens * _context_bytes(deployment) * layout.dp, np.float64)
        yield _part("copied context", "all_gather", _collective_s(deployment, "all_gather", new))


def _context_bytes(deployment: Deployment) -> float:
    """Keys and values that a token adds on a device, over all layers."""
    cache = cache_of(deployment)
    return (cache.bytes_per_token + sum(each for _, each in cache.windows)) / deployment.layout.dp


def _sent(deployment: Deployment, experts: ExpertsShard, batch: Batch, way: str) -> Iterator[Part]:
    """Each device of a rank sends its share of the rank's tokens."""
    tokens = np.asarray(batch.num_tokens / deployment.layout.tp, np.float64) * busiest_ratio(deployment)
    for name, kind in (("dispatch", "moe_dispatch"), ("combine", "moe_combine")):
        if way == DEEPEP:
            few = _sent_s(deployment, experts, tokens, kind, "deepep-low-latency")
            many = _sent_s(deployment, experts, tokens, kind, "deepep-normal")
            time_s = np.where(tokens <= LOW_LATENCY_TOKENS, few, many)
        else:
            time_s = _sent_s(deployment, experts, tokens, kind, way)
        yield _part(name, kind, time_s * experts.count)


def _sent_s(
    deployment: Deployment, experts: ExpertsShard, tokens: NDArray[np.float64], kind: str, library: str
) -> Floats:
    layout, e = deployment.layout, experts.experts
    work = network.TokenExchange(
        kind=kind,
        num_devices=layout.tp * layout.dp,
        tokens=tokens,
        hidden_size=e.hidden_size,
        num_experts=e.num_experts,
        experts_per_token=e.experts_per_token,
        format=experts.format,
        library=library,
        devices_per_node=deployment.cluster.devices_per_node,
    )
    return np.asarray(network.predict(work, deployment.cluster.device).time_s)


def _part(name: str, op: str, time_s: Floats) -> Part:
    return Part(name=name, group="network", time_s=time_s, op=op)

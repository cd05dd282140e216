"""How tokens reach experts that other ranks hold, and how their results come back.

Two ways. *Gathering*: every rank gets the tokens of all ranks, and the sums are scattered back; (R - 1) copies of a
token, whatever it chose. *Sending*: a token goes to the devices that hold its k experts, once each; of R devices it
reaches R (1 - C(E - E/R, k) / C(E, k)), nearly R (1 - (1 - 1/R)^k). Kernels for low latency send one copy to each
expert instead. Experts that are cut (every device has a part of each) can only be gathered for.

Which way an engine goes is a fact of its release; where experts lie in several servers it may go another.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from orrery import network
from orrery.execution.batch import Batch, Floats, Part
from orrery.execution.formats import bytes_per_element, is_16bit, wide_bytes
from orrery.execution.layout import Deployment
from orrery.execution.shard import ExpertsShard

GATHER = "all-gather"
"""All-gather of tokens, reduce-scatter of results."""

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
    if (way := dispatcher_of(deployment, experts)) == GATHER:
        yield from _gathered(deployment, experts, batch)
    else:
        yield from _sent(deployment, experts, batch, way)


def _gathered(deployment: Deployment, experts: ExpertsShard, batch: Batch) -> Iterator[Part]:
    """Narrow activations are gathered at a byte an element, sums are scattered as they are."""
    activations, layout = deployment.formats.activations, deployment.layout
    everything = batch.num_tokens * float(deployment.model.hidden_size * layout.dp)
    wide = wide_bytes(activations)
    out = bytes_per_element(activations) if is_16bit(activations) else 1.0
    for name, kind, width in (("dispatch", "all_gather", out), ("combine", "reduce_scatter", wide)):
        work = network.Collective(
            kind=kind, num_devices=layout.dp, message_bytes=np.asarray(everything * width, np.float64), library="nccl",
            devices_per_node=deployment.cluster.devices_per_node, has_peer_to_peer=True, stride=layout.tp,
        )  # fmt: skip
        time_s = np.asarray(network.predict(work, deployment.cluster.device).time_s)
        yield _part(name, kind, time_s * experts.count)


def _sent(deployment: Deployment, experts: ExpertsShard, batch: Batch, way: str) -> Iterator[Part]:
    """Each device of a rank sends its share of the rank's tokens."""
    tokens = np.asarray(batch.num_tokens / deployment.layout.tp, np.float64)
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
        kind=kind, num_devices=layout.tp * layout.dp, tokens=tokens, hidden_size=e.hidden_size,
        num_experts=e.num_experts, experts_per_token=e.experts_per_token, format=experts.format, library=library,
        devices_per_node=deployment.cluster.devices_per_node,
    )  # fmt: skip
    return np.asarray(network.predict(work, deployment.cluster.device).time_s)


def _part(name: str, op: str, time_s: Floats) -> Part:
    return Part(name=name, group="network", time_s=time_s, op=op)

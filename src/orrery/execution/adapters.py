"""Low-rank adapters (LoRA) beside a model's linear layers: their products in a step, their bytes, and how they come in.

An adapter of rank r adds (x A) B to a product x W: A has k x r elements for each matrix that is stacked in W, B r x n.
Every token of a batch passes an adapter; the weights of one adapter are read once a step, and those of each further one
that the batch has add the time of their bytes. Routed experts carry none.
"""

from collections.abc import Iterator

import numpy as np

from orrery import kernels
from orrery.execution.batch import Batch, Part, part
from orrery.execution.choice import kernels_for
from orrery.execution.formats import SIXTEEN_BIT_BYTES, wide_bytes
from orrery.execution.layout import Adapters, Deployment
from orrery.execution.shard import LinearShard, shard
from orrery.kernels import energy
from orrery.kernels.ops import Gemm

STACKED = {"qkv": 3, "qkv_a": 2, "gate_up": 2, "shared_gate_up": 2}
"""Matrices that are stacked in one product, each with an A of its own."""

PROBE = 8192
"""Side of the matrix whose product with one row shows how fast weights are read."""


def adapted(deployment: Deployment) -> tuple[LinearShard, ...]:
    """Linear layers of one device that an adapter changes: all but the head and the routers of experts."""
    return tuple(x for x in shard(deployment).linears if not x.is_head and x.name != "router")


def _format(deployment: Deployment) -> str:
    """Format of adapters, which stay wide where the weights are narrow."""
    activations = deployment.formats.activations
    return activations if wide_bytes(activations) > SIXTEEN_BIT_BYTES else "bf16"


def adapter_parts(deployment: Deployment, adapters: Adapters, batch: Batch) -> Iterator[Part]:
    """Both low-rank products of every adapted layer, for all tokens of a batch."""
    rank, format = adapters.rank, _format(deployment)
    engine, device = kernels_for(deployment, "gemm", "gemm", ""), deployment.cluster.device
    tokens = batch.largest()["tokens"]
    for x in adapted(deployment):
        inner = rank * STACKED.get(x.name, 1)
        for name, n, k in ((f"{x.name} adapter in", inner, x.k), (f"{x.name} adapter out", x.n, rank)):
            op = Gemm(m=batch.num_tokens, n=n, k=k, batch=x.groups, format=format, quantises_input=False)
            timing, calibration = kernels.predict_with_constants(op, device, engine)
            sizes = {"m": tokens, "n": float(n), "k": float(k)}
            yield part(name, "adapters", timing, x.count, "gemm", format, calibration, sizes)


def adapter_bytes(deployment: Deployment) -> float:
    """Bytes of one adapter on one device; 0 without adapters."""
    if deployment.adapters is None:
        return 0.0
    rank = deployment.adapters.rank
    elements = sum(x.count * x.groups * rank * (STACKED.get(x.name, 1) * x.k + x.n) for x in adapted(deployment))
    return elements * wide_bytes(_format(deployment)) * shard(deployment).stage_share


def slots_bytes(deployment: Deployment) -> float:
    """Memory of a device for the adapters that it holds at once."""
    return adapter_bytes(deployment) * (deployment.adapters.slots if deployment.adapters else 0)


def reading_s(deployment: Deployment) -> float:
    """Time that the weights of one adapter more take in a step, at the rate at which a product reads large weights."""
    if deployment.adapters is None:
        return 0.0
    op = Gemm(m=1, n=PROBE, k=PROBE, format=_format(deployment), quantises_input=False)
    timing = kernels.predict(op, deployment.cluster.device, kernels_for(deployment, "gemm", "gemm", ""))
    return _pass_bytes(deployment) * float((timing.time_s - timing.overhead_s) / timing.bytes)


def reading_work_s(deployment: Deployment) -> float:
    """The same as the law of power takes it: seconds of those bytes at the device's bandwidth, weighted."""
    device, none = deployment.cluster.device, np.zeros(1)
    moved = np.array([_pass_bytes(deployment)])
    return float(energy.weighted_s(device, _format(deployment), none, moved)[1][0])


def _pass_bytes(deployment: Deployment) -> float:
    """Bytes of one adapter that a pass reads, which goes through every stage."""
    return adapter_bytes(deployment) / shard(deployment).stage_share

"""The time of an epoch of full-graph training on a mesh of stages and parts. [gnnpipe-2023]

A layer adds up its neighbours' rows, which reads one row for every edge (memory-bound, nothing found in the cache),
multiplies by its weights, and passes over the result; backward does the first once and the second twice. Parts exchange
boundary rows between layers, in turn with them, and wait for the fullest part. Stages work on chunks of the graph that
follow each other:

    (C + S - 1) max(a chunk's layers, its way to the next stage), forward and then backward

so sends hide under the next chunk's work unless they take longer. The parts of one stage are neighbours.
"""

from dataclasses import dataclass

from orrery import kernels, network
from orrery.base.errors import ScenarioError
from orrery.hardware.device import Device
from orrery.kernels.ops import Elementwise, Gemm
from orrery.network import Collective
from orrery.training.graphs.volume import GraphModel, Parts

INDEX_BYTES = 8.0
"""Bytes read per edge: the neighbor's number and its weight, 32 bits each."""

SIXTEEN_BIT_BYTES = 2.0
"""Element-wise kernels are timed by 16-bit words."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Devices:
    """Equal devices, ``devices_per_node`` of them in each node."""

    device: Device
    devices_per_node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """Seconds of one epoch; ``time_s`` is their sum."""

    compute_s: float  # of the fullest device, when it works
    exchange_s: float  # between parts, nothing hides it
    send_s: float  # between stages, on the busiest border, hidden or not
    idle_s: float  # filling and draining the stages, and sends that take longer than the work

    @property
    def time_s(self) -> float:
        """Time of an epoch."""
        return self.compute_s + self.exchange_s + self.idle_s

    @property
    def communication_s(self) -> float:
        """All that is sent, hidden or not."""
        return self.exchange_s + self.send_s


def epoch(parts: Parts, model: GraphModel, devices: Devices, *, num_stages: int = 1, num_chunks: int = 1) -> Epoch:
    """One epoch on ``num_stages`` times ``parts.num_parts`` devices; the graph passes the stages in chunks."""
    if model.num_layers % num_stages or num_chunks < 1:
        raise ScenarioError(
            f"stages: got {num_stages} stages of {model.num_layers} layers, {num_chunks} chunks; write stages that "
            "divide the layers, and at least one chunk."
        )
    layers = model.num_layers // num_stages
    forward_s, backward_s = (layers * x for x in layer_s(parts, model, devices.device, num_chunks))
    exchange_s = layers * exchange_layer_s(parts, model, devices, num_chunks)
    send_s = chunk_send_s(parts, model, devices, num_chunks) if num_stages > 1 else 0.0
    steps = num_chunks + num_stages - 1
    whole_s = sum(steps * max(work_s + exchange_s, send_s) for work_s in (forward_s, backward_s))
    compute_s, exchanged_s = num_chunks * (forward_s + backward_s), num_chunks * 2.0 * exchange_s
    return Epoch(
        compute_s=compute_s,
        exchange_s=exchanged_s,
        send_s=2.0 * num_chunks * send_s,
        idle_s=whole_s - compute_s - exchanged_s,
    )


def layer_s(parts: Parts, model: GraphModel, device: Device, num_chunks: int = 1) -> tuple[float, float]:
    """Forward and backward of one layer on one chunk of the fullest part."""
    rows, edges = (max(1, round(float(x.max()) / num_chunks)) for x in (parts.vertices, parts.edges))
    gather_s = aggregate_s(rows, edges, model, device)
    product_s = _product_s(rows, model.hidden_size, model.hidden_size, device)
    gradient_s = _product_s(model.hidden_size, model.hidden_size, rows, device)
    passes = Elementwise(kind="norm", tokens=rows, width=round(model.row_bytes / SIXTEEN_BIT_BYTES))
    passes_s = model.num_elementwise * float(kernels.predict(passes, device).time_s)
    forward_s = gather_s + model.num_products * product_s + passes_s
    return forward_s, forward_s + model.num_products * gradient_s


def aggregate_s(rows: int, edges: int, model: GraphModel, device: Device) -> float:
    """A sparse product: a row read and its index for every edge, a row written for every vertex, and a launch."""
    moved_bytes = edges * (model.row_bytes + INDEX_BYTES) + rows * model.row_bytes
    launch = kernels.predict(Elementwise(kind="add", tokens=1, width=model.hidden_size), device)
    return moved_bytes / device.memory_bandwidth_bytes_per_s + float(launch.time_s)


def _product_s(m: int, n: int, k: int, device: Device) -> float:
    return float(kernels.predict(Gemm(m=m, n=n, k=k, format="fp32"), device).time_s)


def exchange_layer_s(parts: Parts, model: GraphModel, devices: Devices, num_chunks: int = 1) -> float:
    """Boundary rows of one layer and chunk, one way: an all-to-all as large as the busiest part's."""
    n = parts.num_parts
    if n == 1:
        return 0.0
    leaving_bytes = float(parts.sent.max()) * model.row_bytes / num_chunks
    work = Collective(
        kind="all_to_all",
        num_devices=n,
        message_bytes=leaving_bytes * n / (n - 1),
        devices_per_node=min(devices.devices_per_node, n),
    )
    return float(network.predict(work, devices.device).time_s)


def chunk_send_s(parts: Parts, model: GraphModel, devices: Devices, num_chunks: int) -> float:
    """A chunk's rows over the border between two nodes, which is the slowest; each part sends its own."""
    message_bytes = float(parts.vertices.max()) * model.border_bytes / num_chunks
    work = Collective(kind="send_recv", num_devices=2, message_bytes=message_bytes, devices_per_node=1)
    return float(network.predict(work, devices.device).time_s)

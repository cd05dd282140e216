"""Which collectives a plan needs, among whom, and how long each takes.

Weights, gradients and optimizer states are dealt out over n_w, n_g and n_o of N devices; P elements::

    every micro-batch   all-gather P over n_w (forward), over the second copy's group or n_w (backward)
                        reduce-scatter P over n_g
    every step          reduce-scatter P / n_g over n_o / n_g, n_g apart
                        all-reduce P / n_o over N / n_o copies, n_o apart
                        all-gather P / n_w over n_o / n_w, n_w apart

[rajbhandari-2020], [wang-2024-zeropp], [xu-2025-frontier]
"""

from dataclasses import dataclass

import numpy as np

from orrery import kernels, network
from orrery.execution.train.job import TrainingJob
from orrery.kernels.ops import Elementwise
from orrery.training.levels import DEVICE, Topology, view
from orrery.training.state_plan import Plan, Wire

CAST_WIDTH = 1024
"""Elements of a row, as which (de)quantisation is timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One collective: of ``elements`` (the whole that the group shares) among devices that stand ``stride`` apart."""

    what: str
    kind: str  # as the network calls it
    num_devices: int
    stride: int
    elements: float
    wire: Wire

    @property
    def message_bytes(self) -> float:
        """The whole buffer."""
        return self.wire.sent_bytes(self.elements)

    @property
    def received_bytes(self) -> float:
        """That reach each device: (n - 1) / n of the buffer, twice that for an all-reduce."""
        passes = 2.0 if self.kind == "all_reduce" else 1.0
        return passes * (self.num_devices - 1) / self.num_devices * self.message_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Collectives of a plan; the first three of every micro-batch, the last of every step."""

    forward: tuple[Exchange, ...]
    backward: tuple[Exchange, ...]
    gradients: tuple[Exchange, ...]
    step: tuple[Exchange, ...]


def traffic_of(plan: Plan, topology: Topology, elements: float, step_elements: float) -> Traffic:
    """``elements`` are gathered and reduced at once (a layer's), ``step_elements`` all that a step updates."""
    w, g, o = (topology.size(x) for x in (plan.weights, plan.gradients, plan.optimizer))
    again = topology.size(plan.secondary) if plan.secondary != DEVICE else w
    return Traffic(
        forward=_some(
            Exchange(
                what="weights", kind="all_gather", num_devices=w, stride=1, elements=elements, wire=plan.forward_wire
            )
        ),
        backward=_some(
            Exchange(
                what="weights again",
                kind="all_gather",
                num_devices=again,
                stride=1,
                elements=elements,
                wire=plan.backward_wire,
            )
        ),
        gradients=_some(*_gradients(plan, topology, g, elements)),
        step=_some(
            Exchange(
                what="gradients outwards",
                kind="reduce_scatter",
                num_devices=o // g,
                stride=g,
                elements=step_elements / g,
                wire=plan.step_wire,
            ),
            Exchange(
                what="gradients of copies",
                kind="all_reduce",
                num_devices=topology.num_devices // o,
                stride=o,
                elements=step_elements / o,
                wire=plan.step_wire,
            ),
            Exchange(
                what="updated weights",
                kind="all_gather",
                num_devices=o // w,
                stride=w,
                elements=step_elements / w,
                wire=plan.step_wire,
            ),
        ),
    )


def _gradients(plan: Plan, topology: Topology, ranks: int, elements: float) -> list[Exchange]:
    """Round a ring, or by all-to-alls: pieces to their owners inside the node, sums to those between nodes."""
    if not plan.exchanges_gradients:
        return [
            Exchange(
                what="gradients",
                kind="reduce_scatter",
                num_devices=ranks,
                stride=1,
                elements=elements,
                wire=plan.gradient_wire,
            )
        ]
    inside = max((x.num_devices for x in topology.levels if not x.is_network), default=1)
    near = min(ranks, inside)
    return [
        Exchange(
            what="gradients inside",
            kind="all_to_all",
            num_devices=near,
            stride=1,
            elements=elements,
            wire=plan.gradient_wire,
        ),
        Exchange(
            what="gradients between",
            kind="all_to_all",
            num_devices=ranks // near,
            stride=near,
            elements=elements / near,
            wire=plan.gradient_wire,
        ),
    ]


def _some(*found: Exchange) -> tuple[Exchange, ...]:
    return tuple(x for x in found if x.num_devices > 1)


def exchange_s(job: TrainingJob, topology: Topology, exchange: Exchange) -> float:
    """Seconds of one collective as the framework runs it, with what quantising and widening adds."""
    level = topology.level_of(exchange.num_devices * exchange.stride)
    device, per_node = view(topology, job.cluster.device, level)
    is_network = topology.levels[level].is_network
    work = network.Collective(
        kind=exchange.kind,
        num_devices=exchange.num_devices,
        message_bytes=exchange.message_bytes,
        devices_per_node=per_node,
        stride=exchange.stride,
        library="nccl",
        has_peer_to_peer=True,
    )
    ratio = job.framework.scaleout_ratio if is_network else job.framework.network_ratio
    return ratio * float(network.predict(work, device).time_s) + _casts_s(job, exchange)


def _casts_s(job: TrainingJob, exchange: Exchange) -> float:
    """A gather narrows the own part and widens all; an exchange narrows all that it sends and widens what comes."""
    if not exchange.wire.is_quantised:
        return 0.0
    own = exchange.elements / exchange.num_devices if exchange.kind == "all_gather" else exchange.elements
    rows = np.array([max(round((own + exchange.elements) / CAST_WIDTH), 1)])
    op = Elementwise(kind="quantise", tokens=rows, width=CAST_WIDTH)
    return job.framework.elementwise_ratio * float(
        kernels.predict(op, job.cluster.device, job.framework.kernels).time_s[0]
    )

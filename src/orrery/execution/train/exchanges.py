"""Collectives of one layer and micro-batch: tensor and context parallelism; and the curves of any collective."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery import network
from orrery.execution.train.cut import Choice, Ints, heads, tokens
from orrery.execution.train.job import TrainingJob
from orrery.hardware.device import Device
from orrery.models.model import Block, LatentAttention, SoftmaxAttention

Floats = NDArray[np.float64]

ELEMENT_BYTES = 2.0
"""Activations and their gradients travel in 16 bits in every recipe that we know of."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exchanges:
    """Seconds of a layer's collectives measured alone, forward and backward; arrays of the choices."""

    tensor_forward_s: Floats
    tensor_backward_s: Floats
    context_forward_s: Floats
    context_backward_s: Floats


def collective_s(job: TrainingJob, kind: str, ranks: Ints, stride: Ints, message_bytes: Floats) -> Floats:
    """One collective among ``ranks`` that stand ``stride`` apart; 0 for groups of one."""
    pairs = list(zip(ranks.tolist(), stride.tolist(), strict=True))
    groups = tuple(sorted({pair for pair in pairs if pair[0] > 1}))
    if not groups:
        return np.zeros(np.shape(message_bytes))
    place = {pair: i for i, pair in enumerate(groups)}
    group = np.array([place.get(pair, 0) for pair in pairs], dtype=np.int64)
    return np.where(ranks > 1, curves_of(job, kind, groups).time_s(group, message_bytes), 0.0)


def layer_exchanges(job: TrainingJob, block: Block, choice: Choice, cuts: int = 1) -> Exchanges:
    """Collectives (s) of one layer; every message of tensor parallelism is sent in ``cuts`` pieces."""
    tensor = tensor_s(job, block.num_reduces, choice, cuts)
    forward, backward = _context(job, block, choice)
    return Exchanges(
        tensor_forward_s=tensor,
        tensor_backward_s=tensor,
        context_forward_s=forward,
        context_backward_s=backward,
    )


def tensor_s(job: TrainingJob, num_reduces: int, choice: Choice, cuts: int = 1) -> Floats:
    """All-reduces, or with sequence parallelism all-gathers and reduce-scatters of the same bytes."""
    message = ELEMENT_BYTES * tokens(job, choice) * job.model.hidden_size / cuts
    ones = np.ones_like(choice.tp)
    whole = np.where(choice.is_sequence_parallel, 1, choice.tp)
    halves = np.where(choice.is_sequence_parallel, choice.tp, 1)
    reduced = collective_s(job, "all_reduce", whole, ones, message)
    both = collective_s(job, "all_gather", halves, ones, message)
    both = both + collective_s(job, "reduce_scatter", halves, ones, message)
    return cuts * num_reduces * (reduced + both)


def _context(job: TrainingJob, block: Block, choice: Choice) -> tuple[Floats, Floats]:
    """Keys and values round a ring, cp - 1 times (gradients beside them on the way back), or four all-to-alls."""
    zero = np.zeros(choice.tp.shape)
    mixer = block.mixer
    if mixer is None or int(choice.cp.max()) == 1:
        return zero, zero
    t = tokens(job, choice).astype(np.float64)
    queries, keys = heads(mixer, choice.tp)
    if isinstance(mixer, SoftmaxAttention):
        pair, query = keys * (mixer.head_size + mixer.value_head_size), queries * mixer.head_size
    elif isinstance(mixer, LatentAttention):
        size = mixer.nope_head_size + mixer.rope_head_size
        pair, query = queries * (size + mixer.value_head_size), queries * size
    else:
        pair, query = np.full_like(choice.tp, job.model.hidden_size), queries * 0
    ring_ranks, dealt_ranks = np.where(choice.is_ring, choice.cp, 1), np.where(choice.is_ring, 1, choice.cp)
    two = np.where(ring_ranks > 1, 2, 1)
    hop = collective_s(job, "send_recv", two, _apart(job, choice), ELEMENT_BYTES * t * pair)
    ring = hop * (ring_ranks - 1)
    dealt = collective_s(job, "all_to_all", dealt_ranks, choice.tp, ELEMENT_BYTES * t * (pair + 2 * query))
    return ring + dealt, 2.0 * ring + dealt


def _apart(job: TrainingJob, choice: Choice) -> Ints:
    """Distance of neighbours at the slowest hop of a ring: in another node, once the ring leaves one."""
    per_node = job.cluster.devices_per_node
    return np.where(choice.cp * choice.tp > per_node, np.maximum(per_node, choice.tp), choice.tp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """Collectives of many groups as curves: t = max(host, least over rows of latency + slope S + sqrt(root S))."""

    host_s: Floats  # one entry a group
    rows: Floats  # (groups, algorithms, 3); unused rows are infinite

    def time_s(self, group: Ints, message_bytes: Floats) -> Floats:
        """Time (s) of one message in each group; 0 for groups of one or empty messages."""
        found = self.rows[group]
        size = message_bytes[..., None]
        time_s = np.min(found[..., 0] + found[..., 1] * size + np.sqrt(found[..., 2] * size), axis=-1)
        return np.where((message_bytes > 0) & np.isfinite(time_s), np.maximum(time_s, self.host_s[group]), 0.0)


@lru_cache(maxsize=4096)
def curves_of(job: TrainingJob, kind: str, groups: tuple[tuple[int, int], ...]) -> Curves:
    """The curves of ``kind`` for groups of (ranks, stride), across islands where they reach beyond one."""
    found: list[tuple[float, Floats]] = []
    for ranks, stride in groups:
        work = network.Collective(
            kind=kind,
            num_devices=ranks,
            message_bytes=0.0,
            stride=stride,
            library="nccl",
            devices_per_node=job.cluster.devices_per_node,
            has_peer_to_peer=True,
        )
        found.append(network.coefficients(work, device_across(job, ranks * stride)))
    most = max((rows.shape[0] for _, rows in found), default=1)
    table = np.zeros((len(found), max(most, 1), 3))
    table[:, :, 0] = np.inf
    for i, (_, rows) in enumerate(found):
        table[i, : rows.shape[0]] = rows
    return Curves(host_s=np.array([host for host, _ in found]), rows=table)


@lru_cache(maxsize=256)
def _between_islands(job: TrainingJob) -> Device:
    """The device with the link between islands in place of the one between nodes."""
    device = job.cluster.device
    return replace(device, scaleout=job.islands.link) if job.islands else device


def device_across(job: TrainingJob, span_devices: int) -> Device:
    """The device as a group sees it that spans so many neighbours: beyond an island its slower link is in between."""
    is_beyond = job.islands is not None and span_devices > job.islands.num_devices
    return _between_islands(job) if is_beyond else job.cluster.device

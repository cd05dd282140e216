"""How long a group of devices takes to exchange bytes.

    t = max(host, min over algorithms and transports of (launch + steps step + x + 2 sqrt(pipeline steps step x)))

with ``x`` the bytes that the algorithm sends (and stages) over the achieved share of the link's stated rate. The
algorithms are the files in ``techniques``; shares and latencies are fitted constants (see ``catalog``), a handful
for each library on each device. [thakur-2005], [rabenseifner-2004], [nccl-tests]
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, UnknownName
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.network.group import KINDS, Group, group_of
from orrery.network.plan import Candidate, candidates, undominated
from orrery.network.resolve import find
from orrery.network.timing import NOTHING, CollectiveTiming, Floats

Size = int | float | NDArray[np.int64] | Floats

MEASURED_AS = {"broadcast": "all_gather"}
"""Kinds that no table has, and whose constants serve them: a broadcast is one pass down the same ring."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collective:
    """An exchange of plain buffers. ``message_bytes`` is the whole buffer of one device, as nccl-tests counts it.

    ``devices_per_node`` of 0 is the device's own fast domain. On a PCIe bus, ``has_peer_to_peer`` says that devices
    may read each other's memory; without it, as measured on L40S boxes, copies crowd through the host's memory.
    """

    kind: str  # one of KINDS
    num_devices: int | NDArray[np.int64]
    message_bytes: Size
    devices_per_node: int = 0
    library: str = ""  # "nccl", "vllm", "vllm-eager", "tensorrt-llm", …; "" = the vendor's
    format: str = "bf16"
    has_peer_to_peer: bool = False
    stride: int = 1  # members are every so-manyth device, as ranks of an outer dimension of a layout are


def predict_collective(collective: Collective, device: Device) -> CollectiveTiming:
    """The fastest of the library's algorithms, for one size or for arrays of sizes and devices."""
    count = collective.num_devices
    if isinstance(count, np.ndarray):
        return _many_groups(collective, count, device)
    host_s, plan = _plan(
        collective.kind,
        int(count),
        collective.devices_per_node,
        collective.library,
        device,
        collective.has_peer_to_peer,
        collective.stride,
    )
    size = collective.message_bytes
    if isinstance(size, np.ndarray):
        return _many_sizes(plan, host_s, size.astype(np.float64))
    if not plan or size <= 0:
        return NOTHING
    best, best_s = plan[0], plan[0].time_s(size)
    for candidate in plan[1:]:
        if (time_s := candidate.time_s(size)) < best_s:
            best, best_s = candidate, time_s
    return CollectiveTiming(
        time_s=max(best_s, host_s),
        wire_s=best.roof_s_per_bytes * size,
        latency_s=max(best.latency_s, host_s),
        sent_bytes=best.wire_ratio * size,
        algorithms=(best.name,),
        chosen=0,
    )


def collective_calibration(collective: Collective, device: Device) -> Calibration:
    """The constants that ``predict_collective`` uses, and where they come from."""
    return find(device, MEASURED_AS.get(collective.kind, collective.kind), collective.library)


@lru_cache(maxsize=8192)
def _plan(
    kind: str,
    num_devices: int,
    devices_per_node: int,
    library: str,
    device: Device,
    has_peer_to_peer: bool,
    stride: int = 1,
) -> tuple[float, tuple[Candidate, ...]]:
    """The host's least time for a launch, and what there is to choose from; nothing for a group of one."""
    if kind not in KINDS:
        raise UnknownName("collective", kind, KINDS)
    if num_devices <= 1:
        return 0.0, ()
    group = group_of(kind, num_devices, devices_per_node, device, has_peer_to_peer=has_peer_to_peer, stride=stride)
    constants = find(device, MEASURED_AS.get(kind, kind), library).constants
    found = candidates(group, device, constants)
    _check(group, device, found)
    return constants.get("host_s", 0.0), undominated(found)


def coefficients(collective: Collective, device: Device) -> tuple[float, Floats]:
    """Coefficients of which ``predict_collective`` takes the minimum, for callers with many sizes of many groups at
    once.

    The host's least time of a launch, and one row an algorithm: latency_s, slope_s_per_bytes, root_s2_per_bytes, so
    that t = max(host_s, min(latency + slope S + sqrt(root S))). ``message_bytes`` is not read; no rows for one device.
    """
    count = int(collective.num_devices) if not isinstance(collective.num_devices, np.ndarray) else 0
    host_s, plan = _plan(
        collective.kind,
        count,
        collective.devices_per_node,
        collective.library,
        device,
        collective.has_peer_to_peer,
        collective.stride,
    )
    rows = [(c.latency_s, c.slope_s_per_bytes, c.root_s2_per_bytes) for c in plan]
    return host_s, np.array(rows, dtype=np.float64).reshape(-1, 3)


def _check(group: Group, device: Device, found: tuple[Candidate, ...]) -> None:
    if not found:
        raise OutOfRange(
            f"No known algorithm does {group.kind} on {group.num_devices} x {device.name} ({group.topology})."
        )


def _many_sizes(plan: tuple[Candidate, ...], host_s: float, size: Floats) -> CollectiveTiming:
    if not plan:
        zero, nobody = np.zeros_like(size), np.zeros(size.shape, dtype=np.int64)
        return CollectiveTiming(
            time_s=zero, wire_s=zero, latency_s=zero, sent_bytes=zero, algorithms=("none",), chosen=nobody
        )
    root, best_s, best = np.sqrt(size), np.full(size.shape, np.inf), np.zeros(size.shape, dtype=np.int64)
    for i, c in enumerate(plan):
        time_s = c.slope_s_per_bytes * size
        time_s += c.latency_s
        if c.root_s2_per_bytes:
            time_s += math.sqrt(c.root_s2_per_bytes) * root
        best[time_s < best_s] = i
        np.minimum(best_s, time_s, out=best_s)
    np.maximum(best_s, host_s, out=best_s)
    latency_s = np.maximum(np.array([c.latency_s for c in plan])[best], host_s)
    if not size.all():
        best_s[size == 0], latency_s[size == 0] = 0.0, 0.0
    return CollectiveTiming(
        time_s=best_s,
        latency_s=latency_s,
        wire_s=np.array([c.roof_s_per_bytes for c in plan])[best] * size,
        sent_bytes=np.array([c.wire_ratio for c in plan])[best] * size,
        algorithms=tuple(c.name for c in plan),
        chosen=best,
    )


def _many_groups(collective: Collective, count: NDArray[np.int64], device: Device) -> CollectiveTiming:
    """One plan for each number of devices that occurs."""
    counts, sizes = np.broadcast_arrays(count, np.asarray(collective.message_bytes, dtype=np.float64))
    columns = [np.zeros(counts.shape) for _ in range(4)]
    names: list[str] = []
    chosen = np.zeros(counts.shape, dtype=np.int64)
    for n in np.unique(counts):
        here = counts == n
        part = predict_collective(replace(collective, num_devices=int(n), message_bytes=sizes[here]), device)
        for column, value in zip(columns, (part.time_s, part.wire_s, part.latency_s, part.sent_bytes), strict=True):
            column[here] = value
        chosen[here] = part.chosen + len(names)
        names += part.algorithms
    time_s, wire_s, latency_s, sent_bytes = columns
    return CollectiveTiming(
        time_s=time_s,
        wire_s=wire_s,
        latency_s=latency_s,
        sent_bytes=sent_bytes,
        algorithms=tuple(names),
        chosen=chosen,
    )

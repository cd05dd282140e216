"""How long a group of devices takes to exchange bytes.

    t = max(host, min over algorithms and transports of (launch + steps step + x + 2 sqrt(pipeline steps step x)))

with ``x`` the bytes that the algorithm sends (and stages) over the achieved share of the link's stated rate. The
algorithms are the files in ``techniques``; shares and latencies are fitted constants (see ``catalog``), a handful
for each library on each device. [thakur-2005], [rabenseifner-2004], [nccl-tests]
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, UnknownName
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.network.group import KINDS, Group, group_of
from orrery.network.plan import Candidate, candidates
from orrery.network.resolve import find
from orrery.network.timing import CollectiveTiming, Floats

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
    )
    size = collective.message_bytes
    if isinstance(size, np.ndarray):
        return _many_sizes(plan, host_s, size.astype(np.float64))
    if not plan or size <= 0:
        return CollectiveTiming(time_s=0.0, wire_s=0.0, latency_s=0.0, bytes_per_device=0.0, algorithm="none")
    best, best_s = plan[0], plan[0].time_s(size)
    for candidate in plan[1:]:
        if (time_s := candidate.time_s(size)) < best_s:
            best, best_s = candidate, time_s
    return CollectiveTiming(
        time_s=max(best_s, host_s), wire_s=best.roof_s_per_byte * size, latency_s=max(best.latency_s, host_s),
        bytes_per_device=best.wire_ratio * size, algorithm=best.name,
    )  # fmt: skip


def collective_calibration(collective: Collective, device: Device) -> Calibration:
    """The constants that ``predict_collective`` uses, and where they come from."""
    return find(device, MEASURED_AS.get(collective.kind, collective.kind), collective.library)


@lru_cache(maxsize=8192)
def _plan(
    kind: str, num_devices: int, devices_per_node: int, library: str, device: Device, has_peer_to_peer: bool
) -> tuple[float, tuple[Candidate, ...]]:
    """The host's least time for a launch, and what there is to choose from; nothing for a group of one."""
    if kind not in KINDS:
        raise UnknownName("collective", kind, KINDS)
    if num_devices <= 1:
        return 0.0, ()
    group = group_of(kind, num_devices, devices_per_node, device, has_peer_to_peer=has_peer_to_peer)
    constants = find(device, MEASURED_AS.get(kind, kind), library).constants
    found = candidates(group, device, constants)
    _check(group, device, found)
    return constants.get("host_s", 0.0), found


def _check(group: Group, device: Device, found: tuple[Candidate, ...]) -> None:
    if not found:
        raise OutOfRange(
            f"No known algorithm does {group.kind} on {group.num_devices} x {device.name} ({group.topology})."
        )


def _many_sizes(plan: tuple[Candidate, ...], host_s: float, size: Floats) -> CollectiveTiming:
    if not plan:
        zero = np.zeros_like(size)
        return CollectiveTiming(
            time_s=zero, wire_s=zero, latency_s=zero, bytes_per_device=zero, algorithm=np.full(size.shape, "none")
        )
    root = np.sqrt(size)
    times = np.stack([c.latency_s + c.slope_s_per_byte * size + np.sqrt(c.root_s2_per_byte) * root for c in plan])
    best = times.argmin(axis=0)
    some = size > 0

    def chosen(values: list[float]) -> Floats:
        return np.array(values)[best] * some

    return CollectiveTiming(
        time_s=np.maximum(np.take_along_axis(times, best[None], axis=0)[0], host_s) * some,
        wire_s=chosen([c.roof_s_per_byte for c in plan]) * size,
        latency_s=np.maximum(chosen([c.latency_s for c in plan]), host_s) * some,
        bytes_per_device=chosen([c.wire_ratio for c in plan]) * size,
        algorithm=np.where(some, np.array([c.name for c in plan])[best], "none"),
    )


def _many_groups(collective: Collective, count: NDArray[np.int64], device: Device) -> CollectiveTiming:
    """One plan for each number of devices that occurs."""
    counts, sizes = np.broadcast_arrays(count, np.asarray(collective.message_bytes, dtype=np.float64))
    columns = [np.zeros(counts.shape) for _ in range(4)]
    names = np.full(counts.shape, "none", dtype="U64")
    for n in np.unique(counts):
        here = counts == n
        host_s, plan = _plan(
            collective.kind,
            int(n),
            collective.devices_per_node,
            collective.library,
            device,
            collective.has_peer_to_peer,
        )
        part = _many_sizes(plan, host_s, sizes[here])
        for column, value in zip(
            columns, (part.time_s, part.wire_s, part.latency_s, part.bytes_per_device), strict=True
        ):
            column[here] = value
        names[here] = part.algorithm
    time_s, wire_s, latency_s, bytes_per_device = columns
    return CollectiveTiming(
        time_s=time_s, wire_s=wire_s, latency_s=latency_s, bytes_per_device=bytes_per_device, algorithm=names
    )

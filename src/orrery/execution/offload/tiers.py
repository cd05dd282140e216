"""The memories below one training device, and the rates of what joins them; what is shared is this device's part."""

from dataclasses import dataclass
from math import inf

from orrery.base.errors import ScenarioError
from orrery.execution.host_rates import HOST_MEMORY_FRAC, copy_bytes_per_s
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.hardware.device import Device

RELAYED_RATIO = 6.0
"""How many times slower copies of pageable memory are: what pinning gained in DeepSpeed, pull request 5301."""

CONTEXT_BYTES = 0.6e9
"""Driver, kernels and library workspaces of one process on the device; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """Sizes and rates. Rates are those that copies and programs reach, not those on the box."""

    gpu_bytes: float
    gpu_memory_bytes_per_s: float
    host_bytes: float = 0.0
    host_memory_bytes_per_s: float = inf
    host_link_each_way_bytes_per_s: float = inf  # pinned memory, one direction
    is_link_duplex: bool = True  # both directions at once
    pageable_bytes_per_s: float = inf  # device to host where the host's memory is not pinned
    update_bytes_per_s: float = inf  # what the host's optimizer moves where cores, not memory, hold it back
    nvme_bytes: float = 0.0
    nvme_read_bytes_per_s: float = inf
    nvme_write_bytes_per_s: float = inf
    num_ranks: int = 1  # devices that share out gradients and states (data parallel)
    collective_bytes_per_s: float = inf  # rate at which one rank gathers, or scatters, what the ranks share

    def __post_init__(self) -> None:
        for name in (
            "gpu_bytes",
            "gpu_memory_bytes_per_s",
            "host_memory_bytes_per_s",
            "update_bytes_per_s",
            "host_link_each_way_bytes_per_s",
            "pageable_bytes_per_s",
            "nvme_read_bytes_per_s",
            "nvme_write_bytes_per_s",
            "collective_bytes_per_s",
            "num_ranks",
        ):
            if not (got := getattr(self, name)) > 0:
                raise ScenarioError(f"{name} = {got:g} in Tiers; write more than 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes in each tier at the fullest moment of a step."""

    gpu_bytes: float
    host_bytes: float = 0.0
    nvme_bytes: float = 0.0


def tiers_of(
    device: Device,
    *,
    host_bytes: float = 0.0,
    host_memory_bytes_per_s: float = inf,
    nvme_bytes: float = 0.0,
    nvme_read_bytes_per_s: float = inf,
    nvme_write_bytes_per_s: float = inf,
    num_sharing: int = 1,
    num_per_link: int = 1,
    num_ranks: int = 1,
    collective_bytes_per_s: float = inf,
) -> Tiers:
    """The tiers of one of ``num_sharing`` devices of a host whose sizes and peak rates are given for the whole host.

    ``num_per_link`` devices share one host link (both directions at once).
    """
    return Tiers(
        gpu_bytes=USABLE_FRAC * device.memory_capacity_bytes - CONTEXT_BYTES,
        gpu_memory_bytes_per_s=device.memory_bandwidth_bytes_per_s,
        host_bytes=host_bytes / num_sharing,
        host_memory_bytes_per_s=HOST_MEMORY_FRAC * host_memory_bytes_per_s / num_sharing,
        host_link_each_way_bytes_per_s=copy_bytes_per_s(device, num_per_link),
        nvme_bytes=nvme_bytes / num_sharing,
        nvme_read_bytes_per_s=nvme_read_bytes_per_s / num_sharing,
        nvme_write_bytes_per_s=nvme_write_bytes_per_s / num_sharing,
        num_ranks=num_ranks,
        collective_bytes_per_s=collective_bytes_per_s,
    )


def shortage(held: MemoryUse, tiers: Tiers, what: str = "training step") -> Infeasible | None:
    """The first tier that does not hold what the schedule puts there; None where all do."""
    requested = (
        ("device", held.gpu_bytes, tiers.gpu_bytes, "Move more to the host, cut the micro-batch or recompute."),
        ("host memory", held.host_bytes, tiers.host_bytes, "Move states to NVMe drives or share them by more ranks."),
        ("NVMe drives", held.nvme_bytes, tiers.nvme_bytes, "Add drives or share the states by more ranks."),
    )
    for where, need, have, change in requested:
        if need > have:
            return Infeasible(what=f"{what}: {where}", need=need, have=have, unit="bytes", smallest_change=change)
    return None

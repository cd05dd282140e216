"""The memories below the devices of a training job: what the scenario says of a node, and what is assumed else."""

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from orrery.execution.offload.tiers import RELAYED_RATIO, Tiers, tiers_of
from orrery.execution.offload.work import Work
from orrery.execution.train.exchanges import curves_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.schema import Scenario
from orrery.training.sync import fast_domain

DEVICE_SHARES = {
    "host_memory_bytes": (128e9, "1 TB for 8 devices, as in a DGX A100"),
    "host_memory_bytes_per_s": (51.2e9, "two sockets of 8 channels DDR4-3200 for 8 devices, as in a DGX A100"),
    "nvme_bytes": (3.84e12, "a drive of 3.84 TB for each device, as in a DGX A100"),
    "nvme_read_bytes_per_s": (7.0e9, "a PCIe 4.0 drive for each device"),
    "nvme_write_bytes_per_s": (3.8e9, "a PCIe 4.0 drive for each device"),
}
"""One device's share of its node where the scenario says nothing, and what it is taken after; assumed. Rates of drives:
data sheet of the Samsung PM1733, sequential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """The tiers of one device, what its node has in all, and what was assumed."""

    tiers: Tiers
    node: dict[str, float]  # keys of DEVICE_SHARES, of the whole node
    notes: tuple[str, ...]


def node_memory(scenario: Scenario, job: TrainingJob, layout: TrainingLayout, work: Work) -> NodeMemory:
    """Devices of a node share its memory and drives; ranks of data parallelism exchange the layers of ``work``."""
    num_sharing, notes, node = job.cluster.devices_per_node, list[str](), dict[str, float]()
    for name, (each, why) in DEVICE_SHARES.items():
        stated: float | None = getattr(scenario, name)
        node[name] = each * num_sharing if stated is None else stated
        if stated is None:
            notes.append(f"{name}: {node[name]:.4g} a node (assumed: {why})")
    tiers = tiers_of(
        job.cluster.device,
        host_bytes=node["host_memory_bytes"],
        host_memory_bytes_per_s=node["host_memory_bytes_per_s"],
        nvme_bytes=node["nvme_bytes"],
        nvme_read_bytes_per_s=node["nvme_read_bytes_per_s"],
        nvme_write_bytes_per_s=node["nvme_write_bytes_per_s"],
        num_sharing=num_sharing,
        num_per_link=scenario.devices_per_host_link or 1,
        num_ranks=layout.dp,
        collective_bytes_per_s=_rate_bytes_per_s(job, layout, work.layer_bytes),
    )
    tiers = replace(tiers, pageable_bytes_per_s=tiers.host_link_each_way_bytes_per_s / RELAYED_RATIO)
    if scenario.host_updates_per_s is not None:
        rate = scenario.host_updates_per_s / num_sharing * work.update_bytes
        tiers = replace(tiers, update_bytes_per_s=rate)
    return NodeMemory(tiers=tiers, node=node, notes=tuple(notes))


def exchange_s(job: TrainingJob, layout: TrainingLayout, kind: str, message_bytes: float) -> float:
    """A collective among the data-parallel ranks, as the framework gets it."""
    if layout.dp == 1:
        return 0.0
    f, is_near = job.framework, layout.dp * layout.tp <= fast_domain(job)
    curve = curves_of(job, kind, ((layout.dp, layout.tp),))
    alone_s = float(curve.time_s(np.zeros(1, dtype=np.int64), np.array([message_bytes]))[0])
    return (f.network_ratio if is_near else f.scaleout_ratio) * alone_s


def _rate_bytes_per_s(job: TrainingJob, layout: TrainingLayout, layer_bytes: float) -> float:
    """Rate at which a rank gathers a layer from all others."""
    if layout.dp == 1:
        return inf
    return layer_bytes * (layout.dp - 1) / layout.dp / exchange_s(job, layout, "all_gather", layer_bytes)

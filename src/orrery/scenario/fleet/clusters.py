"""Clusters of one's own beside each other: machines, switches, capital, watts, dollars an hour, and a curve over price.

``--owned FILE`` reads ``[[cluster]]`` tables and, above them, the terms of owning; the first cluster is compared with
every other one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.fleet.cluster import Cluster, Network
from orrery.fleet.ownership import Terms
from orrery.planner.money import S_PER_HOUR
from orrery.scenario.answer import to_json
from orrery.scenario.fields_owned import CLUSTER_BY_NAME, OWNED_BY_NAME
from orrery.scenario.file import read_settings
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Number, Word
from orrery.scenario.ownership import ownership_note, ownership_terms
from orrery.scenario.schema import read_scenario

PRICE_RATIOS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Prices of the first cluster's devices that are tried, as parts of its own."""


class ClusterBlock(Inputs, table=CLUSTER_BY_NAME):
    """One cluster."""

    name: Word = None
    device: Word = None
    devices: Count = None
    devices_per_node: Count = None
    device_usd: Number = None
    host_usd: Number = None
    node_usd: Number = None
    host_w: Number = None
    node_ports: Count = None
    networks: Count = None
    network_ports: Count = None
    switch_ports: Count = None
    switch_layers: Count = None
    joining_switches: Count = None
    switch_usd: Number = None
    switch_w: Number = None


class OwnedTop(Inputs, table=OWNED_BY_NAME):
    """Terms of owning, common to all clusters."""

    life_months: Count = None
    upkeep_frac: Number = None
    pue: Number = None
    electricity: Number = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClustersAnswer:
    """Clusters as they were written, the first one compared with every other."""

    clusters: tuple[Cluster, ...]
    terms: Terms
    notes: tuple[str, ...]

    def compared(self, other: Cluster) -> dict[str, Any]:
        """Savings of the first cluster against another: capital, watts and dollars, and a curve over its price."""
        first = self.clusters[0]
        curve = [replace(first, device_usd=first.device_usd * ratio) for ratio in PRICE_RATIOS]
        return {
            "than": other.name,
            "capital_saved_frac": _saved(first.capital_usd, other.capital_usd),
            "node_power_saved_frac": _saved(first.node_w, other.node_w),
            "power_saved_frac": _saved(first.power_w, other.power_w),
            "usd_saved_frac": _saved(first.usd_per_s(self.terms), other.usd_per_s(self.terms)),
            "curve": [
                {
                    "device_usd": one.device_usd,
                    "capital_saved_frac": _saved(one.capital_usd, other.capital_usd),
                    "usd_saved_frac": _saved(one.usd_per_s(self.terms), other.usd_per_s(self.terms)),
                }
                for one in curve
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        return to_json(
            {
                "clusters": [
                    {
                        "name": c.name,
                        "num_devices": c.num_devices,
                        "num_nodes": c.num_nodes,
                        "num_switches": c.num_switches,
                        **{f"{part}_usd": usd for part, usd in c.parts_usd.items()},
                        "capital_usd": c.capital_usd,
                        "node_power_w": c.node_w,
                        "power_w": c.power_w,
                        "usd_per_hour": c.usd_per_s(self.terms) * S_PER_HOUR,
                        "device_usd_per_hour": c.usd_per_s(self.terms) * S_PER_HOUR / c.num_devices,
                    }
                    for c in self.clusters
                ],
                "compared": [self.compared(other) for other in self.clusters[1:]],
                "notes": list(self.notes),
            }
        )


def own_clusters(settings: Mapping[str, Any]) -> ClustersAnswer:
    """The clusters of ``owned``: a file, or its tables."""
    plain = {key: value for key, value in settings.items() if value is not None and value is not False}
    raw = plain.pop("owned")
    tables = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else read_settings(Path(str(raw)))
    if strange := [key for key in plain if key not in OWNED_BY_NAME]:
        raise ScenarioError(f"{strange[0]}: is not about clusters; owned takes {', '.join(OWNED_BY_NAME)}.")
    top = read_asked(OwnedTop, {k: v for k, v in tables.items() if k != "cluster"} | plain, OWNED_BY_NAME, "owned")
    scenario = read_scenario(top.written())
    listed = tables.get("cluster")
    if not isinstance(listed, list) or not listed:
        raise ScenarioError("owned: has no cluster; write [[cluster]] with name, device, devices and prices.")
    clusters = tuple(_cluster(k, table) for k, table in enumerate(cast("list[dict[str, Any]]", listed), start=1))
    for cluster in clusters:
        _check_network(cluster)
    names = [c.name for c in clusters]
    if len(set(names)) < len(names):
        raise ScenarioError(f"cluster: {max(names, key=names.count)!r} is there twice; give each a name of its own.")
    return ClustersAnswer(clusters=clusters, terms=ownership_terms(scenario), notes=(ownership_note(scenario),))


def _cluster(number: int, table: Mapping[str, Any]) -> Cluster:
    """One table, checked."""
    place = f"owned: [[cluster]] {number}"
    block = read_asked(ClusterBlock, table, CLUSTER_BY_NAME, place)
    if block.device is None or block.devices is None:
        raise ScenarioError(f'{place}: write device = "h100-sxm" and devices = 1024.')
    device = get_device(block.device)
    per_node = block.devices_per_node or device.devices_per_node
    device_usd, host_usd = _prices(block, per_node, place)
    return Cluster(
        name=block.name or f"cluster {number}",
        num_devices=block.devices,
        devices_per_node=per_node,
        device_usd=device_usd,
        host_usd=host_usd,
        device_w=device.power_limit_w,
        host_w=per_node * device.host_power_w if block.host_w is None else block.host_w,
        network=_network(block, place),
    )


def _prices(block: ClusterBlock, per_node: int, place: str) -> tuple[float, float]:
    """Dollars of one device and of one machine without its devices."""
    if block.node_usd is not None:
        if block.device_usd is not None or block.host_usd is not None:
            raise ScenarioError(f"{place}: node_usd is a machine with its devices; leave out device_usd and host_usd.")
        return block.node_usd / per_node, 0.0
    if block.device_usd is None or block.host_usd is None:
        raise ScenarioError(f"{place}: prices are missing; write device_usd and host_usd, or node_usd.")
    return block.device_usd, block.host_usd


def _network(block: ClusterBlock, place: str) -> Network:
    ports = 1 if block.node_ports is None else block.node_ports
    if ports and block.switch_usd is None:
        raise ScenarioError(f"{place}: switch_usd is missing; write the price of a switch, or node_ports = 0.")
    return Network(
        node_ports=ports,
        num_networks=block.networks or 1,
        num_endpoints=block.network_ports or 0,
        switch_ports=block.switch_ports or 40,
        num_layers=block.switch_layers or 2,
        num_joining=block.joining_switches or 0,
        switch_usd=block.switch_usd or 0.0,
        switch_w=block.switch_w or 0.0,
    )


def _check_network(cluster: Cluster) -> None:
    """Refuse a fat tree of too few layers, before anything is counted."""
    try:
        _ = cluster.num_switches
    except OutOfRange as error:
        raise ScenarioError(f"cluster {cluster.name}: {error}") from None


def _saved(mine: float, other: float) -> float | None:
    return 1.0 - mine / other if other > 0.0 else None

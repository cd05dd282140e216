"""Cluster of a training row: devices, nodes, and the network that it states."""

import re
from dataclasses import replace
from functools import lru_cache

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.evidence.row import Row
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device

RACK_DEVICES = 16
"""A device whose fast domain is larger than any node (a rack, a pod): a stated node is a tray of it."""

_PER_DEVICE = re.compile(r"(\d+) ?Gb/s RDMA per GPU", re.IGNORECASE)
_PER_NODE = re.compile(r"(\d+) ?Gb(?:ps|/s)?(?:/node| per s between nodes)", re.IGNORECASE)
_CARDS = re.compile(r"(\d+) ?x ?(?:ConnectX-?\d+\D*?|BlueField-?\d*\D*?)?(\d{2,3}) ?Gb(?:ps|/s|/Sec)?", re.IGNORECASE)


def device_of(row: Row) -> Device:
    """The device of a row."""
    if not (name := row.word("device")):
        raise ScenarioError("device is blank")
    return get_device(name)


def devices_per_node(row: Row, device: Device, num_devices: int) -> int:
    """Devices that share the fast links: a slice of a pod, a rack, or the stated node."""
    if slices := row.count("num_slices"):
        return max(1, num_devices // slices)
    stated = row.count("devices_per_node")
    if not stated or device.devices_per_node > RACK_DEVICES:
        return device.devices_per_node
    return stated


def cluster_of(row: Row, device: Device, num_devices: int) -> Cluster:
    """The devices, with the network between nodes that the row states."""
    per_node = devices_per_node(row, device, num_devices)
    rate = between_nodes_bytes_per_s(row, per_node) if num_devices > per_node else 0.0
    return _cluster(device, num_devices, per_node, rate)


@lru_cache(maxsize=1024)
def _cluster(device: Device, num_devices: int, per_node: int, rate: float) -> Cluster:
    """One object for equal clusters, and one device for equal networks, so that what is known of them is kept."""
    return Cluster(device=_networked(device, rate), num_devices=num_devices, devices_per_node=per_node)


@lru_cache(maxsize=256)
def _networked(device: Device, rate: float) -> Device:
    if not rate or abs(rate / device.scaleout.each_way_bytes_per_s - 1.0) < 1e-6:
        return device
    return replace(device, scaleout=replace(device.scaleout, each_way_bytes_per_s=rate))


def between_nodes_bytes_per_s(row: Row, per_node: int) -> float:
    """Stated network of one device: its own, or its share of the node's; 0 where the row says nothing clear.

    ``4x100Gb RoCE`` is four cards a node; of several kinds of cards those called Compute count.
    """
    text = f"{row.word('interconnect')} {row.word('note')}".split("|")[0]
    text = text.split("Compute:")[-1]
    if found := _PER_DEVICE.search(text):
        return float(found[1]) * 1e9 / 8
    if found := _PER_NODE.search(text):
        return float(found[1]) * 1e9 / 8 / per_node
    if found := _CARDS.search(text):
        return float(found[1]) * float(found[2]) * 1e9 / 8 / per_node
    return 0.0

"""All-reduce of devices that share a host's bus and one network card: through the host, or as one ring."""

from collections.abc import Iterator
from functools import partial

from orrery.base.errors import ScenarioError
from orrery.base.units import text
from orrery.fleet.reduction import HostedNode, host_reduce, ring_reduce
from orrery.scenario.kernel.operator import Found, Way, Work

HOST_BUS = "host-bus"
WAYS = {"through-host": host_reduce, "ring-over-bus": ring_reduce}
ABOUT = {
    "through-host": "copies to the host, which adds and exchanges one sum with other hosts (--fabric host-bus)",
    "ring-over-bus": "one ring through all devices over bus and card (--fabric host-bus)",
}
STATED = ("bus_bytes_per_s", "port_bytes_per_s", "host_memory_bytes_per_s", "card_bytes_per_s", "peer_bytes_per_s")
SETTINGS = frozenset({*STATED, "card_message_s"})
"""Rates of such a machine and the latency of one message between two."""


def over_bus(kind: str, work: Work) -> Iterator[Way]:
    """Both ways of a sum."""
    if kind != "all_reduce":
        raise ScenarioError(f"fabric: {HOST_BUS} is of all-reduce; write leaf-spine or fat-tree, or leave it out.")
    for name in ("leaves", "spines", "hosts_per_leaf", "routing"):
        if work.has(name) or work.sizes.get(name):
            raise ScenarioError(f"{name}: belongs to switches; {HOST_BUS} has none, leave it out.")
    for name in WAYS:
        yield Way(variant=name, format="bytes", find=partial(_summed, work, name))


def refuse_rates(work: Work) -> None:
    """Refuse rates of a machine that nobody asked about."""
    for name in ("devices_per_port", *SETTINGS):
        if work.has(name) or work.sizes.get(name):
            raise ScenarioError(f"{name}: is of devices on a host's bus; write --fabric {HOST_BUS} too.")


def _summed(work: Work, name: str) -> Found:
    node, count = _node(work), work.size("devices")
    if not count:
        raise ScenarioError("devices: not set; write how many take part, such as --devices 16.")
    if count % node.num_devices:
        raise ScenarioError(f"devices: {count} are no whole machines of {node.num_devices}; write a multiple.")
    size = float(work.sizes["message_bytes"])
    found = WAYS[name](node, count // node.num_devices, size)
    return Found(
        time_s=found.time_s,
        flops=0.0,
        bytes=size,
        roofs_s={found.bound_by: size / found.pace_bytes_per_s},
        others_s={"latency": found.time_s - size / found.pace_bytes_per_s},
        details={"bandwidth_bytes_per_s": found.bandwidth_bytes_per_s(size), "set_by": found.bound_by},
        because=(
            f"{found.bound_by} sets the pace, {found.pace_bytes_per_s / 1e9:.3g} GB/s; copies, sums and sends overlap",
            *_taken(work, node),
        ),
    )


def _node(work: Work) -> HostedNode:
    device, count = work.device, work.size("devices_per_node") or work.device.devices_per_node
    bus = work.number("bus_bytes_per_s", device.host.each_way_bytes_per_s)
    per_port = work.size("devices_per_port") or 1
    card = work.number("card_bytes_per_s", device.scaleout.each_way_bytes_per_s)
    return HostedNode(
        num_devices=count,
        bus_bytes_per_s=bus,
        num_devices_per_port=per_port,
        port_bytes_per_s=work.number("port_bytes_per_s", 2.0 * bus * per_port),
        host_memory_bytes_per_s=work.number("host_memory_bytes_per_s", float("inf")),
        card_bytes_per_s=card,
        peer_bytes_per_s=work.number("peer_bytes_per_s", min(bus, card)),
        step_s=work.number("card_message_s", device.scaleout.latency_s),
    )


def _taken(work: Work, node: HostedNode) -> tuple[str, ...]:
    """Rates that nobody said."""
    defaults = {
        "bus_bytes_per_s": f"the device's host link, {text(node.bus_bytes_per_s, 'bytes')}/s",
        "port_bytes_per_s": "as much as its devices' links",
        "host_memory_bytes_per_s": "no limit",
        "card_bytes_per_s": f"one card of {text(node.card_bytes_per_s, 'bytes')}/s",
        "peer_bytes_per_s": f"{text(node.peer_bytes_per_s, 'bytes')}/s",
    }
    missing = [f"{name}: {default}" for name, default in defaults.items() if not work.has(name)]
    return (f"not said: {'; '.join(missing)}",) if missing else ()

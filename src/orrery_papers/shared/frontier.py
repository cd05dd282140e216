"""A Frontier node as eight devices: half an MI250X each, with the links of a package, a node and the system."""

from dataclasses import replace

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Setup
from orrery.hardware.device import Device
from orrery.training.levels import Level, Topology


def die_of(setup: Setup) -> Device:
    """One die of the package: half of all that the package has, and its own share of the node's links.

    Links are the set-up's: ``node_device_link_bytes_per_s`` inside a node, ``link_bytes_per_s`` out of it, shared by
    the dies.
    """
    whole, dies = get_device(setup.word("device")), int(setup.number("num_devices_per_package"))
    per_node = int(setup.number("num_devices_per_node"))
    near, far = setup.number("node_device_link_bytes_per_s"), setup.number("link_bytes_per_s") / per_node
    return replace(
        whole,
        name=f"{whole.name}, one of {dies} dies",
        devices_per_node=per_node,
        dense_flops_per_s={name: rate / dies for name, rate in whole.dense_flops_per_s.items()},
        **{name: getattr(whole, name) / dies for name in HALVED},
        num_compute_units=whole.num_compute_units // dies,
        scaleup=replace(whole.scaleup, each_way_bytes_per_s=near, num_devices=per_node, topology="ring"),
        scaleout=replace(whole.scaleout, each_way_bytes_per_s=far),
    )


HALVED = (
    "memory_capacity_bytes",
    "memory_bandwidth_bytes_per_s",
    "vector_flops_per_s",
    "last_level_cache_bytes",
    "power_limit_w",
    "idle_power_w",
)
"""What the dies of a package share evenly."""


def levels_of(setup: Setup, num_devices: int) -> Topology:
    """Package, node and system."""
    die = die_of(setup)
    package = replace(
        die.scaleup,
        name="inside the package",
        each_way_bytes_per_s=setup.number("package_link_bytes_per_s"),
        num_devices=int(setup.number("num_devices_per_package")),
        topology="switch",
    )
    inner = Level(name="package", num_devices=package.num_devices, link=package)
    node = Level(name="node", num_devices=die.devices_per_node, link=die.scaleup)
    system = Level(name="system", num_devices=num_devices, link=die.scaleout, is_network=True)
    return Topology(levels=(inner, node, system))

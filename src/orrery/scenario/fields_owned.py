"""The keys of clusters of one's own, which `orrery fleet --owned` reads; nothing heavy is imported."""

from orrery.scenario.setting import Setting, count, number, word


def _number(name: str, help: str, example: float, *, most: float, least: float = 0.0, metavar: str = "X") -> Setting:
    return number(name, help, example, most=most, least=least, excludes_least=False, metavar=metavar)


CLUSTER_SETTINGS: tuple[Setting, ...] = (
    word("name", "Its name.", "ours", "NAME"),
    word("device", "Its devices.", "a100-pcie-40gb", "NAME"),
    count("devices", "How many of them.", 10_000, most=10_000_000),
    count("devices_per_node", "Devices of one machine (default: as the device is built in).", 8, most=4096),
    _number("device_usd", "Price of one device.", 11_000, most=1e8, metavar="USD"),
    _number("host_usd", "Price of one machine without its devices.", 20_000, most=1e9, metavar="USD"),
    _number("node_usd", "Price of one machine with its devices, in place of both.", 199_000, most=1e9, metavar="USD"),
    _number("host_w", "Watts of one machine without its devices (default: the device's).", 600, most=1e6, metavar="W"),
    count("node_ports", "Ports of the network that one machine takes (default 1).", 8, most=1024, least=0),
    count("networks", "Equal networks that the ports are dealt to (default 1).", 2, most=1024),
    count(
        "network_ports", "Ports that each network is built for (default: as many as are taken).", 800, most=10_000_000
    ),
    count("switch_ports", "Ports of one switch (default 40).", 40, most=4096, least=2),
    count("switch_layers", "Layers of each network's fat tree, 2 or 3 (default 2).", 3, most=3, least=2),
    count("joining_switches", "Switches between the networks (default 0).", 2, most=100_000, least=0),
    _number("switch_usd", "Price of one switch with its cables.", 20_000, most=1e8, metavar="USD"),
    _number("switch_w", "Watts of one switch (default 0).", 400, most=1e6, metavar="W"),
)

OWNED_SETTINGS: tuple[Setting, ...] = (
    count("life_months", "Months over which a purchase is written off (default 48).", 48, most=600),
    _number("upkeep_frac", "Repairs and support over that life, a share of the price (default 0.2).", 0.2, most=100),
    _number("pue", "What a site draws for each watt (default: the catalogue's).", 1.3, most=10, least=1.0),
    _number("electricity", "Price of electricity in $ per kWh (default: the catalogue's).", 0.12, most=100),
)

CLUSTER_BY_NAME = {s.name: s for s in CLUSTER_SETTINGS}
OWNED_BY_NAME = {s.name: s for s in OWNED_SETTINGS}

"""The settings of a fleet's regions and origins; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, number, word

FLEET = frozenset({"fleet"})


def _number(name: str, help: str, example: float, *, most: float, least: float = 0.0, metavar: str = "X") -> Setting:
    return number(name, help, example, most=most, least=least, excludes_least=False, metavar=metavar, commands=FLEET)


def _word(name: str, help: str, example: str, metavar: str) -> Setting:
    return word(name, help, example, metavar, commands=FLEET)


NAME = _word("name", "Its name.", "eu", "NAME")
PLACE = (
    _word("place", "A place whose round trips are published (orrery show places).", "westeurope", "PLACE"),
    _number("latitude", "Degrees north.", 52.4, most=90.0, least=-90.0, metavar="DEG"),
    _number("longitude", "Degrees east.", 4.9, most=180.0, least=-180.0, metavar="DEG"),
    _number("utc_offset", "Hours that its clock is ahead of UTC (default: its place's).", 1, most=14.0, least=-12.0),
)

REGION_SETTINGS: tuple[Setting, ...] = (
    NAME,
    *PLACE,
    _word("zones", "Its zones.", "a,b,c", "NAME[,NAME]"),
    _word("prices", "Dollars an hour of one device there.", "h100-sxm=2.5,l4=0.6", "DEVICE=USD[,…]"),
    _word("hours", "A CSV file as orrery shift reads, by the region's own clock.", "eu.csv", "FILE"),
    _word("usd_per_kwh", "Price of electricity: a number, or 24 or 168 hourly ones.", "0.12", "X[,X…]"),
    _word("carbon_g_per_kwh", "Grams of CO2 a kWh: a number, or 24 or 168 hourly ones.", "300", "X[,X…]"),
    _number("pue", "Power usage effectiveness of its site (default: the fleet's).", 1.2, most=5.0, least=1.0),
)

ORIGIN_SETTINGS: tuple[Setting, ...] = (
    NAME,
    *PLACE,
    _number("share", "Its part of the requests over a week.", 0.4, most=1.0),
    _word("rtt_ms", "Round trip to each region, ms (default: as published).", "eu=12,us=90", "REGION=MS[,…]"),
    _number("bytes_per_s", "Its clients' uplink, for request_bytes.", 1.25e7, most=1e13, metavar="X"),
    _word("regions", "Regions that may serve it (default: all).", "eu,uk", "NAME[,NAME]"),
    _word("rate_curve", "Its own curve, by its own clock.", "diurnal", "flat|diurnal|X,X,…"),
    _number("peak_to_trough", "Busiest over quietest moment of its day.", 4, most=1e6, least=1.0),
    _number("peak_hour", "Hour of its day that is busiest.", 20, most=24.0),
    _number("weekend", "Rate of its Saturdays and Sundays as a part of a weekday's.", 0.7, most=100.0),
)

ROUTING_SETTINGS: tuple[Setting, ...] = (
    _word(
        "regions",
        "Places whose regions have such a pool each (orrery show places); more is said in [[region]].",
        "westeurope,eastus",
        "PLACE[,PLACE]",
    ),
    _word(
        "origins",
        "Places that requests come from, with their shares; more is said in [[origin]].",
        "uksouth=0.6,eastus=0.4",
        "PLACE=X[,…]",
    ),
    _word(
        "region_router",
        "nearest (default), spill-over, least-loaded, cheapest, cleanest or weighted.",
        "spill-over",
        "NAME",
    ),
    Setting(
        name="region_router_knob",
        kind="words",
        metavar="NAME=VALUE",
        example='["full_ratio=0.8"]',
        commands=FLEET,
        help="A knob of the router between regions; repeat for more.",
    ),
    _number(
        "round_trips",
        "Round trips until the first token: 1 (default) on an open connection, 3 with TCP and TLS 1.3 before.",
        3,
        most=20.0,
        least=1.0,
    ),
    _word(
        "cache_moves",
        "Caches of conversations that change their region: off (default: computed again), always or sooner (where "
        "moving takes less time).",
        "sooner",
        "off|always|sooner",
    ),
    _number(
        "region_link_bytes_per_s", "Rate of the link between two regions, each way.", 1.25e9, most=1e15, metavar="X"
    ),
    _number("region_rtt_ms", "Round trip between two regions, ms (default: as published).", 80, most=1e5, metavar="MS"),
    _number("egress_usd_per_gb", "Dollars for a gigabyte that leaves a region.", 0.02, most=1e3),
    _number("request_bytes", "Bytes that a request brings, such as images.", 2e6, most=1e12, metavar="N"),
)
"""Flags, and keys at the top of a FLEET.toml."""

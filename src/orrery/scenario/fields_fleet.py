"""The settings of `orrery fleet` beside those of a deployment; nothing heavy is imported, so that help stays quick.

``FLEET_SETTINGS`` are flags and keys at the top of a FLEET.toml. ``BLOCKS`` are its tables: a new one is a line there,
a tuple of settings here, and a class of the same fields in ``scenario/fleet/blocks.py``.
"""

from collections.abc import Mapping

from orrery.scenario.fields_regions import ORIGIN_SETTINGS, REGION_SETTINGS, ROUTING_SETTINGS
from orrery.scenario.setting import Setting, count, number, switch, word

FLEET = frozenset({"fleet"})


def _number(name: str, help: str, example: float, *, most: float, least: float = 0.0, metavar: str = "X") -> Setting:
    return number(name, help, example, most=most, least=least, excludes_least=False, metavar=metavar, commands=FLEET)


def _word(name: str, help: str, example: str, metavar: str) -> Setting:
    return word(name, help, example, metavar, commands=FLEET)


POOL_SETTINGS: tuple[Setting, ...] = (
    count("replicas_min", "The fewest replicas that run.", 1, least=0, most=100_000, commands=FLEET),
    count("replicas_max", "The most replicas that may run.", 8, most=100_000, commands=FLEET),
    count(
        "prefill_replicas_min",
        "The fewest replicas for prompts alone; the others then only answer.",
        1,
        least=0,
        most=100_000,
        commands=FLEET,
    ),
    count("prefill_replicas_max", "The most replicas for prompts alone.", 4, most=100_000, commands=FLEET),
    _number(
        "cold_start_s",
        "From a replica's start to its first request (default: as orrery cold-start predicts).",
        90,
        most=1e6,
        metavar="S",
    ),
    _word("purchase", "owned, reserved, on-demand (default) or spot.", "spot", "KIND"),
    _word("zones", "Zones that the replicas are dealt to in turn.", "a,b,c", "NAME[,NAME]"),
    _word(
        "racks",
        "Racks that the replicas are dealt to in turn, as [[rack]] or undivided [[row]] name them (default: all).",
        "r1,r2",
        "NAME[,NAME]",
    ),
    _number(
        "host_power_w",
        "Watts of the machine around one device as it runs (default: the device's entry, what a machine may draw).",
        250,
        most=1e5,
        metavar="W",
    ),
    _word(
        "power_priority",
        "Which clocks a power cap lowers first: low or high (default: power_low_frac of the replicas are low).",
        "low",
        "low|high",
    ),
)
"""Settings of one pool of replicas."""

FLEET_SETTINGS: tuple[Setting, ...] = (
    *POOL_SETTINGS,
    number(
        "days",
        "Days to serve (default: as long as the requests last).",
        1,
        most=400,
        metavar="DAYS",
        commands=FLEET,
    ),
    _word(
        "autoscaler", "hpa, keda-queue, knative-concurrency, slo-planner, predictive (default: none).", "hpa", "NAME"
    ),
    Setting(
        name="autoscaler_knob",
        kind="words",
        metavar="NAME=VALUE",
        example='["target=16"]',
        commands=FLEET,
        help="A knob of the autoscaler, such as target=16; repeat for more.",
    ),
    _word(
        "prefill_autoscaler",
        "The autoscaler of replicas for prompts alone (default: none); the other one then scales those that answer.",
        "slo-planner",
        "NAME",
    ),
    Setting(
        name="prefill_autoscaler_knob",
        kind="words",
        metavar="NAME=VALUE",
        example='["target=16"]',
        commands=FLEET,
        help="A knob of that autoscaler; repeat for more.",
    ),
    _word(
        "rate_curve",
        "How the rate varies: flat, diurnal, or 24 or 168 hourly parts of it.",
        "diurnal",
        "flat|diurnal|X,X,…",
    ),
    _number("peak_to_trough", "Busiest over quietest moment of a diurnal day (default 3).", 3, most=1e6, least=1.0),
    _number("peak_hour", "Hour of the day that is busiest (default 14).", 14, most=24),
    _number("weekend", "Rate of Saturday and Sunday as a part of a weekday's (default 1).", 0.6, most=100.0),
    _number("bursts_per_day", "Bursts that come at random, on average.", 4, most=10_000),
    _number("burst_ratio", "Rate in a burst over the rate without (default 3).", 3, most=1000.0),
    _number("burst_length_s", "Length of a burst (default 300).", 300, most=1e6, metavar="S"),
    _number("start_hour", "Hour of the week at which the run starts; 0 is Monday midnight.", 8, most=168.0),
    _word(
        "survive",
        "Size the fleet for the loss of a region, of a zone, or of a replica, at the busiest hour.",
        "zone",
        "region|zone|replica",
    ),
    count(
        "max_queue",
        "Requests that may wait at one replica; more are shed (default: any number).",
        64,
        most=10_000_000,
        commands=FLEET,
    ),
    _word(
        "fault_rates",
        "Rates of failures as operators published them, where [faults] does not say its own.",
        "published",
        "published",
    ),
    switch("change", "Search the smallest change that meets the SLOs (default: where a run is quick).", commands=FLEET),
    _word(
        "hours",
        "A CSV file as orrery shift reads: usd_per_kwh (paid by owned pools) and carbon_g_per_kwh, a row an hour.",
        "h.csv",
        "FILE",
    ),
    _word(
        "graph",
        "A file (TOML) with the calls of one task; each is placed on the devices at least cost.",
        "g.toml",
        "FILE",
    ),
    _word(
        "owned",
        "A file (TOML) with clusters of one's own: machines, switches, capital, watts and dollars an hour, compared.",
        "clusters.toml",
        "FILE",
    ),
    switch(
        "mix",
        "Rent the cheapest mix of the devices for all services together, by an integer program, and simulate it.",
        commands=FLEET,
    ),
    _word(
        "stock", "--mix: devices that there are, for all services; of others any number.", "h100-sxm=8", "DEVICE=N,…"
    ),
    _word(
        "share",
        "All services on the same replicas: time (steps in turn, memory split) or sleep (one model awake at a time).",
        "time",
        "time|sleep",
    ),
    _number(
        "turn_s",
        "--share sleep: how long a model stays awake while others wait (default 10).",
        30,
        most=1e6,
        metavar="S",
    ),
    Setting(
        name="job",
        kind="words",
        metavar="NAME=KWH[,KEY=X…]",
        example='["train=400,from=0,until=24,most=50"]',
        commands=FLEET,
        help="Work that may wait, as orrery shift takes it, put into the hours beside the service; repeat for more.",
    ),
    _number("row_limit_w", "The most that service and jobs may draw (default: no limit).", 2e5, most=1e10, metavar="W"),
    _number(
        "power_budget_w",
        "Watts that all replicas and their machines may draw: clocks are lowered near it (default: no limit).",
        1e5,
        most=1e9,
        metavar="W",
    ),
    _word(
        "power_cap",
        "Rule that lowers clocks, of orrery show techniques (default two-thresholds).",
        "two-thresholds",
        "NAME",
    ),
    Setting(
        name="power_cap_knob",
        kind="words",
        metavar="NAME=VALUE",
        example='["first_frac=0.8"]',
        commands=FLEET,
        help="A knob of the power cap, such as first_frac=0.8; repeat for more.",
    ),
    _number("power_low_frac", "Share of each pool's replicas that are slowed first (default 0.5).", 0.5, most=1.0),
    _number("power_reading_s", "Seconds between two looks at the draw (default 2).", 2, most=1e5, metavar="S"),
    _number("power_delay_s", "Seconds until clocks follow (default 40).", 40, most=1e5, metavar="S"),
    switch(
        "oversubscribe",
        "The most replicas under the power budget by every rule, each with its part of the traffic.",
        commands=FLEET,
    ),
    Setting(
        name="power_late",
        kind="words",
        metavar="NAME=FRAC",
        example='["low_p99=0.5"]',
        commands=FLEET,
        help="--oversubscribe: how much later latencies may be with caps: low_p50 (default 0.05), low_p99 (0.5), "
        "high_p50 (0.01), high_p99 (0.05); repeat for more.",
    ),
    _number(
        "usd_per_tonne",
        "Price of a tonne of CO2 where jobs are placed (default 0: money alone).",
        100,
        most=1e9,
        metavar="USD",
    ),
    *ROUTING_SETTINGS,
    switch("steady", "Hour by hour in steady state, without simulating requests.", commands=FLEET),
)
"""In the order of the help page."""

AUTOSCALER_SETTINGS: tuple[Setting, ...] = (_word("name", "Its name.", "hpa", "NAME"),)

TENANT_SETTINGS: tuple[Setting, ...] = (
    _word("name", "Its name.", "free", "NAME"),
    _number("share", "Its part of the requests.", 0.8, most=1.0),
    _number("priority", "Its priority: lower goes first (queue = priority).", 1, most=1e6),
    _number("budget", "Requests a second that are let through.", 5, most=1e7),
    _number("burst", "Requests that may come at once within the budget (default 10).", 10, most=1e7),
)

FAULT_SETTINGS: tuple[Setting, ...] = (
    _number("device_mtbf_s", "Mean time between failures of one device.", 5e6, most=1e12, metavar="S"),
    _number("node_mtbf_s", "Mean time between failures of one node, devices apart.", 1e7, most=1e12, metavar="S"),
    _number(
        "link_mtbf_s",
        "Mean time between failures of one device's network link; hurts replicas over several nodes.",
        1e9,
        most=1e12,
        metavar="S",
    ),
    _number("repair_s", "Until failed devices can be used again (default 3600).", 3600, most=1e9, metavar="S"),
    _number("spot_mtbi_s", "Mean time between interruptions of one spot replica.", 36000, most=1e12, metavar="S"),
    _number("spot_notice_s", "Warning before an interruption (default 120, as EC2 gives).", 120, most=1e6, metavar="S"),
    _number("spot_away_s", "Until as much spot capacity is offered again (default 600).", 600, most=1e9, metavar="S"),
    _number("zone_mtbf_s", "Mean time between losses of one zone.", 3e7, most=1e12, metavar="S"),
    _number("zone_away_s", "Until a lost zone is back (default 7200).", 3600, most=1e9, metavar="S"),
    _number("region_mtbf_s", "Mean time between losses of one region.", 1e8, most=1e12, metavar="S"),
    _number("region_away_s", "Until a lost region is back (default 7200).", 14400, most=1e9, metavar="S"),
    _number("slow_mtbf_s", "Mean time between slow spells of one device.", 1e6, most=1e12, metavar="S"),
    _number("slow_length_s", "Length of a slow spell (default 3600).", 600, most=1e9, metavar="S"),
    _number("slow_ratio", "Steps take so many times as long in it (default 1.5).", 2, most=1000.0),
    switch("retry", "Requests of a lost replica are sent again (default true).", commands=FLEET),
)

OUTAGE_SETTINGS: tuple[Setting, ...] = (
    _word("zone", "The zone that is lost.", "a", "NAME"),
    _word("region", "Or the region, with all its zones.", "eu", "NAME"),
    _number("start_s", "When.", 3600, most=1e9, metavar="S"),
    _number("length_s", "For how long.", 1800, most=1e9, metavar="S"),
)

NAME = _word("name", "Its name.", "base", "NAME")

LIMIT_SETTINGS: tuple[Setting, ...] = (
    _number("limit_w", "Watts that it carries (default: its draw is metered alone).", 4e4, most=1e9, metavar="W"),
    _word("power_cap", "Rule that lowers clocks near its limit (default: the one at the top).", "everyone", "NAME"),
)
"""Settings of whatever has a breaker of its own."""

ROW_SETTINGS: tuple[Setting, ...] = (NAME, *LIMIT_SETTINGS)
RACK_SETTINGS: tuple[Setting, ...] = (
    NAME,
    _word("row", "The row that it stands in.", "row 1", "NAME"),
    *LIMIT_SETTINGS,
)

BLOCKS: Mapping[str, tuple[Setting, ...]] = {
    "pool": (NAME, _word("region", "Where it stands.", "eu", "NAME"), *POOL_SETTINGS),
    "autoscaler": AUTOSCALER_SETTINGS,
    "prefill_autoscaler": AUTOSCALER_SETTINGS,
    "tenant": TENANT_SETTINGS,
    "faults": FAULT_SETTINGS,
    "outage": OUTAGE_SETTINGS,
    "row": ROW_SETTINGS,
    "rack": RACK_SETTINGS,
    "region": REGION_SETTINGS,
    "origin": ORIGIN_SETTINGS,
}
"""Tables of a FLEET.toml and their keys. Those of ``LISTS`` may be written several times."""

LISTS = frozenset({"pool", "tenant", "outage", "row", "rack", "region", "origin"})
OPEN = frozenset({"pool", "autoscaler", "prefill_autoscaler", "row", "rack"})
"""Tables that take further keys: a pool any setting of a deployment, an autoscaler, a row and a rack knobs of their
rule."""

BLOCK_EXAMPLES: Mapping[str, str] = {name: f"[[{name}]]" if name in LISTS else f"[{name}]" for name in BLOCKS}

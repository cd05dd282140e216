"""The settings of `orrery shift`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, number, word

JOB = Setting(
    name="job",
    kind="words",
    metavar="NAME=KWH[,KEY=X…]",
    example='["train=400,from=0,until=24,most=50"]',
    help="Work that may wait: its kWh, the hours it may run (from, until), and its most kW; repeat for more.",
)

SHIFT_SETTINGS: tuple[Setting, ...] = (
    word(
        "hours", "A CSV file: usd_per_kwh, carbon_g_per_kwh and power_w of the service, a row an hour.", "h.csv", "FILE"
    ),
    word(
        "fleet", "An answer of `orrery fleet --json`: what the service draws, in place of power_w.", "day.json", "FILE"
    ),
    number("row_limit_w", "The most that the row may draw (default: no limit).", 2e5, most=1e10, metavar="W"),
    number(
        "pue",
        "What the site draws for each watt of the row (default 1).",
        1.2,
        most=10,
        least=1.0,
        excludes_least=False,
    ),
    number(
        "usd_per_tonne",
        "Price of a tonne of CO2 in the goal (default 0: money alone).",
        100,
        most=1e9,
        excludes_least=False,
        metavar="USD",
    ),
)
"""In the order of the help page."""

SHIFT_BY_NAME = {s.name: s for s in (*SHIFT_SETTINGS, JOB)}

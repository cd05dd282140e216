"""``orrery split`` as a page: one network over a device, a link and a server."""

from collections.abc import Sequence
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.catalog.named_files import is_own_file
from orrery.models.image_networks import BUILDERS
from orrery.reports.words import format_value
from orrery.scenario.fields_split import SPLIT_BY_NAME
from orrery.scenario.split import split
from orrery.web.address import Query
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, command_line, form_of
from orrery.web.export import Cell

START = {"model": "vgg-16", "device": "raspberry-pi-4-8gb", "server": "rtx-4090", "link_rates": "0.5,5,50"}
LABELS = {
    "model": "Network",
    "link_rates": "Link rates, Mbit/s",
    "round_trip_s": "Round trip, s",
    "input_bytes": "Bytes of the input",
    "bottleneck": "Bottlenecks, unit:channels",
    "bottleneck_bits": "Bits of a bottleneck's element",
    "filter_pass_frac": "Frames that a filter passes, share",
    "filter_macs": "Multiply-adds of the filter",
    "sending_w": "Power while sending, W",
    "input_tokens": "Tokens of a prompt",
    "sent_bits": "Bits of an element that crosses",
    "exits": "Early exits, unit:share",
    "easy_frac": "Share that an exit answers",
    "converter": "Widths of a converter",
    "link_trace": "Link over time",
    "frames_per_s": "Inputs a second",
    "limit_s": "Delay limit, s",
    "storage_bytes_per_s": "Loading of encoders, bytes/s",
    "battery_wh": "Battery, Wh",
}


def settings(query: Query) -> dict[str, Any]:
    """The settings of `orrery split`."""
    return {name: value for name in SPLIT_BY_NAME if (value := query.get(name, "").strip())}


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    for name in ("device", "server", "model", "link_trace"):
        written = str(inputs.get(name, ""))
        if (
            is_own_file(written)
            or written.startswith((".", "/", "~"))
            or written.endswith((".csv", ".csv.gz", ".json"))
        ):
            raise ScenarioError(f"{name}: a path; write a name here.")
    return split(**inputs).to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """Where splitting is best, the ranges of every cut, and the rates that were asked for."""
    cuts = {cut["name"]: cut for cut in plain["cuts"]}
    inside = " and ".join(f"from {_mbit(a)} to {_mbit(b)}" for a, b in plain["split_ranges_bytes_per_s"])
    ranges = Table(
        caption="Best cut by link rate",
        columns=("Cut after", "From", "To", "Sent", "Device", "Server"),
        rows=tuple(
            (
                r["cut"],
                _mbit(r["from_bytes_per_s"]),
                _mbit(r["to_bytes_per_s"]),
                format_value(cuts[r["cut"]]["sent_bytes"], "bytes"),
                format_value(cuts[r["cut"]]["head_s"], "s"),
                format_value(cuts[r["cut"]]["tail_s"], "s"),
            )
            for r in plain["ranges"]
        ),
    )
    rates = Table(
        caption="At the link rates",
        columns=("Link", "Best", "Delay", "Energy", "All on device", "All on server"),
        rows=tuple(
            (
                _mbit(r["link_bytes_per_s"]),
                r["best"],
                format_value(r["delay_s"], "s"),
                format_value(r["energy_j"], "j"),
                format_value(r["device_s"], "s"),
                format_value(r["server_s"], "s"),
            )
            for r in plain["rates"]
        ),
    )
    verdict = f"Splitting is best {inside or 'at no link rate'}"
    found = (Section(title="Ranges", verdict=verdict, table=ranges), Section(title="Link rates", table=rates))
    return (*found, _session(plain["session"])) if plain["session"] else found


def _session(found: Plain) -> Section:
    table = Table(
        caption=f"{found['num_frames']:,} inputs over {format_value(found['duration_s'], 's')} of the link's trace",
        columns=("Cut", "Mean delay", "p95", "In time", "Energy per input", "Switches", "Battery lasts"),
        rows=tuple(
            (
                one["name"],
                format_value(one["mean_s"], "s"),
                format_value(one["p95_s"], "s"),
                percent(one["in_time_frac"]),
                format_value(one["mean_energy_j"], "j"),
                f"{one['num_switches']:,}",
                "" if lasts_s is None else format_value(lasts_s, "s"),
            )
            for one, lasts_s in zip(found["policies"], found["battery_s"], strict=True)
        ),
    )
    return Section(title="Session", table=table)


def _mbit(rate_bytes_per_s: float | None) -> str:
    return "any" if rate_bytes_per_s is None else f"{8e-6 * rate_bytes_per_s:.3g} Mbit/s"


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each cut."""
    header = ("name", "head_s", "tail_s", "sent_bytes", "passed_frac")
    return header, [[cut[name] for name in header] for cut in plain["cuts"]]


OPEN, FOLDED = form_of(SPLIT_BY_NAME, START, LABELS)
PAGE = CommandPage(
    name="split",
    title="Where should a network be cut?",
    lead="One network over a device, a link and a server: the cut that answers first at each link rate, and the exact "
    "ranges of rates in which each cut does.",
    menu=(46, "Split"),
    page="split.md",
    first=OPEN,
    folded=FOLDED,
    settings=settings,
    names=frozenset(SPLIT_BY_NAME),
    start=START,
    command=command_line("split"),
    sections=sections,
    rows=rows,
    own=frozenset({"model"}),
    choices={"model": tuple(BUILDERS)},
)

"""``orrery cache-size`` as a page: how much cache the turns of agents need, tier by tier."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from orrery.base.units import figures, percent, text
from orrery.catalog.agent_sessions import session_names
from orrery.drawing import Axis, Series, lines
from orrery.scenario.cache_size import cache_size
from orrery.scenario.fields import SETTINGS
from orrery.scenario.jobs import AGENTS
from orrery.scenario.setting import CACHE
from orrery.web.address import Query, settings_of
from orrery.web.both_widths import at_both_widths
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, command_line, form_of
from orrery.web.export import Cell

OWN = {s.name: s for s in SETTINGS if s.commands & CACHE}
FIRST = ("model", "device", "tp", "sessions", "sessions_per_hour", "cache_hit", "host_cache_bytes")
LABELS = {
    "sessions": "Recorded sessions",
    "sessions_per_hour": "Sessions per hour",
    "cache_hit": "Turns that hit (share)",
    "host_cache_bytes": "Host memory (bytes)",
    "nvme_cache_bytes": "NVMe (bytes)",
    "remote_cache_bytes": "Remote store (bytes)",
    "remote_bytes_per_s": "Rate of the remote store (bytes/s)",
    "block_tokens": "Tokens per block",
}
TIERS = {"device": "Device memory", "host": "Host memory", "nvme": "NVMe", "remote": "Remote store"}


def settings(query: Query) -> dict[str, Any]:
    """Settings of the deployment, its sessions and its tiers."""
    return {name: value for name, value in settings_of(query).items() if name in OWN}


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    return cache_size(**inputs).to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """The size that the goal needs with its curve, then the tiers, and what a task computes."""
    if found := plain.get("infeasible"):
        return (Section(title="Infeasible configuration", verdict=found["smallest_change"]),)
    return tuple(_sections(plain))


def _sections(plain: Plain) -> Iterator[Section]:
    shape, task = plain["sessions"], plain["task"]
    yield Section(
        title="Result",
        verdict=f"{text(plain['needed_bytes'], 'bytes')} of KV cache: {percent(plain['cache_hit_frac'])} of the turns "
        f"find all that they share ({figures(plain['needed_tokens'], 4)} tokens)",
        svg=at_both_widths(partial(_curve, plain)),
        table=_tiers(plain),
        reasons=(
            f"{shape['num_turns']:,} requests of {shape['num_sessions']:,} sessions; "
            f"{percent(shape['shared_frac'], 1)} of all input was there before.",
            *(
                f"{percent(r['turns_frac'], 1)} of the turns come back within {text(r['within_s'], 's')}."
                for r in _back(plain)
            ),
        ),
    )
    rows = (
        ("Turns", figures(task["turns_ratio"])),
        ("Input tokens", figures(task["input_tokens"], 3)),
        ("Input tokens that are computed", figures(task["computed_tokens"], 3)),
        ("Output tokens", figures(task["output_tokens"], 3)),
        ("Prefill, time of the replica", text(task["prefill_s"], "s")),
        ("Saved by the cache", text(task["saved_s"], "s")),
        ("Tools and pauses", text(task["think_s"], "s")),
        ("Cost of the prefill", "no price known" if task["prefill_usd"] is None else f"${task['prefill_usd']:.3g}"),
    )
    yield Section(title="One session", table=Table(caption="Means over sessions", columns=("", "Value"), rows=rows))


def _back(plain: Plain) -> list[dict[str, Any]]:
    """Shares of returning turns up to the first that holds all of them."""
    found: list[dict[str, Any]] = plain["returning"]
    whole = next((n for n, r in enumerate(found) if r["turns_frac"] >= 1.0), len(found))
    return found[: whole + 1]


def _tiers(plain: Plain) -> Table:
    rows = tuple(
        (
            TIERS[t["name"]],
            text(t["size_bytes"], "bytes"),
            percent(t["turns_frac"], 1),
            percent(t["tokens_frac"], 1),
            text(t["load_s"], "s") if t["bytes_per_s"] else "",
        )
        for t in plain["tiers"]
    )
    columns = ("Tier", "Size", "Turns that hit", "Tokens that hit", "Mean load per turn")
    return Table(caption="Each tier with those before it", columns=columns, rows=rows)


def _curve(plain: Plain) -> str:
    """Hits over the size of the cache."""
    sizes = [point["cache_tokens"] * plain["token_bytes"] for point in plain["curve"]]
    series = [
        Series(name, sizes, [point[key] for point in plain["curve"]])
        for name, key in (("turns", "turns_frac"), ("tokens", "tokens_frac"))
    ]
    return lines(
        series,
        Axis("KV cache", "bytes", is_log=True),
        Axis("share that hits", ""),
        title="Hits over the size of the cache",
    )


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each point of the curve."""
    header = ("cache_tokens", "cache_bytes", "turns_frac", "tokens_frac")
    cells: list[Sequence[Cell]] = [
        [p["cache_tokens"], p["cache_tokens"] * plain["token_bytes"], p["turns_frac"], p["tokens_frac"]]
        for p in plain.get("curve", ())
    ]
    return header, cells


_first, _folded = form_of(OWN, FIRST, LABELS)

PAGE = CommandPage(
    name="cache-size",
    title="How much cache do agents need?",
    lead="Recorded sessions of agents on one replica: the KV cache that makes their turns hit, what each tier holds, "
    "and what a session computes.",
    menu=(28, "Agents"),
    page="agents.md",
    first=_first,
    folded=_folded,
    settings=settings,
    names=frozenset(OWN),
    start=AGENTS,
    command=command_line("cache-size"),
    sections=sections,
    rows=rows,
    suggested={"sessions": session_names()},
)

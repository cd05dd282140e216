"""``orrery search`` as a page: networks out of a space, one for each device."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.units import figures
from orrery.catalog.named_files import is_own_file
from orrery.reports.words import format_value
from orrery.scenario.fields_search import SEARCH_BY_NAME, SPACES
from orrery.scenario.search.ask import search
from orrery.scenario.search.costs import UNITS
from orrery.web.address import Query
from orrery.web.command_pages.command_page import CommandPage, Plain, Section, Table, command_line, form_of
from orrery.web.export import Cell

START = {
    "space": "mbconv",
    "device": "v100-sxm-16gb,raspberry-pi-5-8gb",
    "objective": "latency,score",
    "scores": "work",
    "min_score_ratio": "1",
}
LABELS = {
    "space": "Space",
    "objective": "Best, and beside it",
    "scores": "Score",
    "min_score_ratio": "Score, share of the reference's",
    "latency_ratio": "Latency, share of the reference's",
    "energy_ratio": "Energy, share of the reference's",
    "memory_ratio": "Memory, share of the reference's",
    "max_parameters": "Parameters at most",
    "first_parameters": "Parameters in the first generation",
    "train_steps": "Steps of training",
}
PATHS = ("space", "scores", "device", "model")
FEW = 8


def settings(query: Query) -> dict[str, Any]:
    """The settings of `orrery search`."""
    return {name: value for name in SEARCH_BY_NAME if (value := query.get(name, "").strip())}


def answer(inputs: Plain) -> dict[str, Any]:
    """The worker's answer: what the command prints with ``--json``."""
    for name in PATHS:
        written = str(inputs.get(name, ""))
        if (
            is_own_file(written)
            or written.startswith((".", "/", "~"))
            or written.endswith((".csv", ".csv.gz", ".json"))
        ):
            raise ScenarioError(f"{name}: a path; write a name here.")
    return search(**inputs).to_json()


def sections(plain: Plain) -> tuple[Section, ...]:
    """The best network of every device beside its reference, then how each does on the others, then the fronts."""
    if "infeasible" in plain:
        found = plain["infeasible"]
        verdict = f"{found['what']}: {found['smallest_change']}"
        return (Section(title="Infeasible", verdict=verdict),)
    names = [name for name in UNITS if name in plain["devices"][0]["best"]["metrics"]]
    goal, against = plain["objective"]
    best = tuple(Section(title=d["device"], verdict=_verdict(d), table=_best(d, names)) for d in plain["devices"])
    fronts = tuple(Section(title=f"Front on {d['device']}", table=_front(d, goal, against)) for d in plain["devices"])
    return (*best, *([_crossed(plain)] if len(plain["devices"]) > 1 else []), *fronts)


def _verdict(found: Plain) -> str:
    proof = "no better network by these sums" if found["is_proven"] else f"best of {found['num_evaluated']:,} looked at"
    taken: dict[str, str] = found["best"]["alternatives"]
    counts = Counter(taken.values())
    listed = [f"{k}: {v}" for k, v in taken.items()] if len(taken) <= FEW else [f"{k} ({n})" for k, n in counts.items()]
    return f"{proof}: {', '.join(listed)}"


def _best(found: Plain, names: list[str]) -> Table:
    rows = [("best", found["best"]["metrics"]), (found["reference_name"], found["reference"])]
    if found["limits"]:
        rows.append(("limit", found["limits"]))
    return Table(
        caption="Beside the reference",
        columns=("", *(name.capitalize() for name in names)),
        rows=tuple((label, *(_shown(n, metrics[n]) if n in metrics else "" for n in names)) for label, metrics in rows),
        marked=frozenset({0}),
    )


def _front(found: Plain, goal: str, against: str) -> Table:
    band = found["band"]
    rows: list[tuple[str, ...]] = []
    for i, point in enumerate(found["front"]):
        cells = [_shown(against, point["metrics"][against]), _shown(goal, point["metrics"][goal])]
        rows.append((*cells, *([f"{_shown(goal, band[i]['low'])} to {_shown(goal, band[i]['high'])}"] if band else [])))
    columns = (against.capitalize(), goal.capitalize(), *(["Over seeds"] if band else []))
    return Table(caption="Nothing of these is beaten in both", columns=columns, rows=tuple(rows))


def _crossed(plain: Plain) -> Section:
    names = [d["device"] for d in plain["devices"]]
    rows = tuple(
        (d["device"], *(format_value(d["latency_s_on"][name], "s") for name in names)) for d in plain["devices"]
    )
    table = Table(caption="Latency of each network on every device", columns=("Searched for", *names), rows=rows)
    return Section(title="On the other devices", table=table)


def _shown(name: str, value: float) -> str:
    return format_value(value, UNITS[name]) if UNITS[name] else figures(value, 4)


def rows(plain: Plain) -> tuple[Sequence[str], list[Sequence[Cell]]]:
    """A row for each network of each front."""
    if "infeasible" in plain:
        return ("what", "smallest_change"), [[plain["infeasible"]["what"], plain["infeasible"]["smallest_change"]]]
    names = [name for name in UNITS if name in plain["devices"][0]["best"]["metrics"]]
    return ("device", *names), [
        [d["device"], *(point["metrics"][name] for name in names)] for d in plain["devices"] for point in d["front"]
    ]


OPEN, FOLDED = form_of(SEARCH_BY_NAME, START, LABELS)
PAGE = CommandPage(
    name="search",
    title="Which network suits my device?",
    lead="A space of networks, one or several devices: the best network for each within limits, how it does on the "
    "others, and the Pareto front, proven or over seeds.",
    menu=(47, "Search"),
    page="search.md",
    first=OPEN,
    folded=FOLDED,
    settings=settings,
    names=frozenset(SEARCH_BY_NAME),
    start=START,
    command=command_line("search"),
    sections=sections,
    rows=rows,
    own=frozenset(SEARCH_BY_NAME),
    choices={"space": SPACES},
)

"""Content of each page of the site: its path, its template, and what the template needs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from orrery.base.units import UNIT_WORDS, text
from orrery.catalog.models import resolve
from orrery.evidence.accuracy import read_tables
from orrery.evidence.find.filters import Filters
from orrery.evidence.judge.page import VERDICTS
from orrery.evidence.paper_file import get_paper
from orrery.scenario.show import show_all, show_one
from orrery.web.cards.drawn import picture
from orrery.web.cards.papers import paper_card
from orrery.web.landing import shipped
from orrery.web.landing.card import card
from orrery.web.landing.choices import ENGINES, MODELS
from orrery.web.landing.shown import shown
from orrery.web.landing.view import Choice
from orrery.web.papers.entry_view import view_of
from orrery.web.papers.index import Index, index_of
from orrery.web.papers.score import judged, score
from orrery.web.site.address import root_of, slug

DEVICES_LEAD = "Every accelerator and processor of the catalogue"
ACCURACY_LEAD = "Absolute errors on measured rows that had no part in a fit; bias is the median with its sign"
MODELS_LEAD = "Every model of the catalogue; linked ones have a chart"
PAPERS_LEAD = "Papers on AI compute, and what became of their claims"

Row = tuple[tuple[str, str], ...]
"""Cells of a row: text, and the path of the page that it leads to; blank where there is none."""

MENU = (
    ("index.html", "Best"),
    ("devices.html", "Devices"),
    ("models.html", "Models"),
    ("scorecard.html", "Scorecard"),
    ("accuracy.html", "Accuracy"),
    ("papers.html", "Papers"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """One page: where it lies, what it is called, its template, and what that needs; ``words`` are searched."""

    path: str
    title: str
    template: str
    context: Mapping[str, Any]
    kind: str
    words: str = ""
    about: str = ""  # a sentence, where it is shared
    card: Callable[[], bytes] | None = None  # its picture there

    @property
    def card_path(self) -> str:
        """Path of the picture."""
        return f"cards/{self.path.removesuffix('.html')}.png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of a page: heads, and rows of (text, path of the page that it leads to)."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def pages() -> Iterator[SitePage]:
    """Every page but the search, which needs to know all others."""
    yield from _best()
    yield from _devices()
    yield _models()
    index = index_of(None)
    yield _scorecard(index)
    yield _accuracy()
    yield from _papers(index)


def best_path(model: str) -> str:
    """Where the chart of a popular model lies."""
    return "index.html" if model == MODELS[0].key else f"best/{model}.html"


def _best() -> Iterator[SitePage]:
    """The chart of each popular model, with the rows of every engine."""
    for popular in MODELS:
        choice = Choice(model=popular.key)
        known = shown(choice)
        data: dict[str, Any] = known["data"] | {
            "isStatic": True,
            "rows": dict[str, Any](),
            "published": list[Any](),
            "engines": {engine: shipped.shipped(popular.key, engine) for engine in ENGINES},
            "runs": {engine: shipped.published(popular.key, engine, choice.traffic) for engine in ENGINES},
            "root": root_of(best_path(popular.key)),
            "pages": {m.title: best_path(m.key) for m in MODELS},
        }
        context: dict[str, Any] = {
            **known,
            "problem": "",
            "data": data,
            "models": tuple(m.title for m in MODELS),
            "jobs": (),
            "traffics": (choice.traffic,),
        }
        words = f"{popular.key} best accelerator cost tokens"
        yield SitePage(
            path=best_path(popular.key),
            title=f"Best accelerator for {popular.title}",
            template="best.html",
            context=context,
            kind="chart",
            words=words,
            about=known["summary"],
            card=partial(card, choice),
        )


def _devices() -> Iterator[SitePage]:
    table = show_all("devices")
    rows: list[Row] = []
    for row in table.rows:
        path = f"devices/{slug(row['name'])}.html"
        rows.append(((row["name"], path), *((_cell(k, v), "") for k, v in row.items() if k != "name")))
        yield _device(row["name"], row["title"], path)
    yield _grid("devices.html", "Devices", tuple(table.rows[0]), rows, DEVICES_LEAD)


def _device(name: str, title: str, path: str) -> SitePage:
    found = show_one("devices", name)
    columns = tuple(k for k in found.rows[0] if k != "note")
    rows = tuple(
        tuple((_cell(row["fact"], row[k]) if k == "value" else str(row[k]), "") for k in columns) for row in found.rows
    )
    grid = Grid(caption="Facts, each with its basis and its source", columns=columns, rows=rows)
    context = {"grids": (grid,), "lead": title, "notes": found.notes}
    return SitePage(
        path=path, title=name, template="site_table.html", context=context, kind="device", words=title, about=title
    )


def _models() -> SitePage:
    table = show_all("models")
    popular = {resolve(m.key)[0]: best_path(m.key) for m in MODELS}
    rows = [
        tuple((_cell(k, v), popular.get(row["name"], "") if k == "name" else "") for k, v in row.items())
        for row in table.rows
    ]
    return _grid("models.html", "Models", tuple(table.rows[0]), rows, MODELS_LEAD)


def _grid(path: str, title: str, columns: tuple[str, ...], rows: list[Row], lead: str) -> SitePage:
    grid = Grid(caption=f"{len(rows):,} {title.lower()}", columns=columns, rows=tuple(rows))
    context = {"grids": (grid,), "lead": lead, "notes": ()}
    return SitePage(path=path, title=title, template="site_table.html", context=context, kind="list", about=lead)


def _scorecard(index: Index) -> SitePage:
    """Verdicts on the papers' claims, by layer."""
    found = score(judged(index, Filters()), 1)
    rows = tuple(
        (
            (layer.name, ""),
            (f"{layer.num_papers}", ""),
            (f"{layer.num_claims}", ""),
            *((f"{n}", "") for n in layer.counts),
        )
        for layer in found.layers
    )
    columns = ("layer", "papers", "claims", *VERDICTS)
    grid = Grid(caption="Claims of papers by layer and verdict", columns=columns, rows=rows)
    context = {"grids": (grid,), "lead": found.says, "notes": (), "svg_text": found.picture}
    return SitePage(
        path="scorecard.html",
        title="Scorecard",
        template="site_table.html",
        context=context,
        kind="list",
        about=found.says,
    )


def _accuracy() -> SitePage:
    """Errors on measured tables."""
    tables: dict[str, dict[str, Any]] = read_tables()
    rows = [
        ((f"{table}: {metric}, {group}", ""), *((_frac(one, k) if k != "rows" else f"{one[k]:,}", "") for k in ERRORS))
        for table, metrics in tables.items()
        for metric, groups in _parts(metrics)
        for group, one in _parts(groups)
        if "median" in one
    ]
    return _grid("accuracy.html", "Accuracy", ("table", *ERRORS), rows, ACCURACY_LEAD)


def _parts(table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Tables inside a table."""
    return [(name, part) for name, part in table.items() if isinstance(part, dict)]


ERRORS = ("rows", "median", "mean", "p90", "bias", "covered_80", "covered_95")


def _papers(index: Index) -> Iterator[SitePage]:
    rows: list[Row] = []
    for document in sorted(index.documents(), key=lambda d: d.title.casefold()):
        found = view_of(get_paper(document.key), index)
        path = f"papers/{slug(document.key)}.html"
        verdicts = ", ".join(f"{n} {word}" for word, n in found.counts)
        rows.append(((found.title, path), (f"{found.entry.year}", ""), (found.entry.layer, ""), (verdicts, "")))
        yield SitePage(
            path=path,
            title=found.title,
            template="site_paper.html",
            about=found.entry.mechanism,
            card=partial(_card_of, document.key),
            context={"view": found, "known": {d.key: f"papers/{slug(d.key)}.html" for d in index.documents()}},
            kind="paper",
            words=" ".join([found.entry.layer, *(t.name for t in found.entry.techniques), found.entry.mechanism]),
        )
    yield _grid(
        "papers.html",
        "Papers",
        ("title", "year", "layer", "claims"),
        rows,
        PAPERS_LEAD,
    )


def _card_of(key: str) -> bytes:
    return picture(paper_card(get_paper(key)))


def _cell(name: str, value: Any) -> str:
    """A value with its unit, as the ending of its name says it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int | float):
        plain = name.removeprefix("also ")
        unit = next((u for u in sorted(UNIT_WORDS, key=len, reverse=True) if plain.endswith(f"_{u}")), "")
        return text(float(value), unit) if unit else f"{value:,.6g}"
    return str(value)


def _frac(one: Mapping[str, Any], name: str) -> str:
    return f"{100 * one[name]:.1f} %" if name in one else ""

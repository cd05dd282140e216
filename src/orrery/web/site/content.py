"""Content of each page of the site: its path, its template, and what the template needs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from orrery.base.units import percent
from orrery.catalog.models import resolve
from orrery.evidence.accuracy import read_tables
from orrery.evidence.find.filters import Filters
from orrery.evidence.judge.page import VERDICTS
from orrery.evidence.paper_file import get_paper
from orrery.scenario.show import cell, show_all, show_one
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
from orrery.web.site.computed import computed
from orrery.web.site.dated import FIRST, by_date, date_path
from orrery.web.site.grid import Grid, grid_of, groups_of

DEVICES_LEAD = "Every accelerator and processor of the catalogue"
ACCURACY_LEAD = (
    "Absolute errors on measured rows that had no part in a fit; bias is the median with its sign, "
    "covered is the share of rows inside the predicted interval"
)
MODELS_LEAD = "Every model of the catalogue; linked ones have a chart"
PAPERS_LEAD = "Papers on AI compute, and what became of their claims"

MENU = (
    ("index.html", "Best"),
    ("devices.html", "Devices"),
    ("models.html", "Models"),
    ("scorecard.html", "Scorecard"),
    ("accuracy.html", "Accuracy"),
    ("papers.html", "Papers"),
    (FIRST, "By date"),
    ("what-if.html", "What-if"),
    ("fleet.html", "Fleet"),
    ("kernel.html", "Kernel"),
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


def pages() -> Iterator[SitePage]:
    """Every page but the search, which needs to know all others."""
    yield from _best()
    yield from _devices()
    yield _models()
    index = index_of(None)
    yield _scorecard(index)
    yield _accuracy()
    yield from _papers(index)
    yield from _dates(index)
    yield from _computed()


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
    rows = show_all("devices").rows
    paths = [f"devices/{slug(row['name'])}.html" for row in rows]
    for row, path in zip(rows, paths, strict=True):
        yield _device(row["name"], row["title"], path)
    grid = grid_of(f"{len(rows):,} devices", rows, paths)
    names = ([str(row[name]) for row in rows] for name in ("vendor", "generation"))
    yield _list("devices.html", "Devices", DEVICES_LEAD, groups_of(grid, *names))


def _device(name: str, title: str, path: str) -> SitePage:
    found = show_one("devices", name)
    rows = [{k: v for k, v in row.items() if k != "note"} for row in found.rows]
    grid = grid_of("Facts, each with its basis and its source", rows)
    context = {"grids": (grid,), "lead": title, "notes": found.notes}
    return SitePage(
        path=path, title=name, template="site_table.html", context=context, kind="device", words=title, about=title
    )


def _models() -> SitePage:
    rows = show_all("models").rows
    popular = {resolve(m.key)[0]: best_path(m.key) for m in MODELS}
    paths = [popular.get(row["name"], "") for row in rows]
    grid = grid_of(f"{len(rows):,} models", rows, paths)
    return _list("models.html", "Models", MODELS_LEAD, groups_of(grid, [row["name"].split("/")[0] for row in rows]))


def _list(path: str, title: str, lead: str, grids: tuple[Grid, ...], **beside: Any) -> SitePage:
    context = {"grids": grids, "lead": lead, "notes": (), **beside}
    return SitePage(path=path, title=title, template="site_table.html", context=context, kind="list", about=lead)


def _scorecard(index: Index) -> SitePage:
    """Verdicts on the papers' claims, by layer."""
    found = score(judged(index, Filters()), 1)
    rows = [
        {
            "layer": layer.name,
            "papers": layer.num_papers,
            "claims": layer.num_claims,
            **dict(zip(VERDICTS, layer.counts, strict=True)),
        }
        for layer in found.layers
    ]
    grid = grid_of("Claims of papers by layer and verdict", rows)
    return _list("scorecard.html", "Scorecard", found.says, (grid,), svg_text=found.picture)


def _accuracy() -> SitePage:
    """Errors on measured tables."""
    tables: dict[str, dict[str, Any]] = read_tables()
    rows = [
        {"table": table, "metric": metric, "group": group, **{name: one.get(name) for name in ERRORS}}
        for table, metrics in tables.items()
        for metric, groups in _parts(metrics)
        for group, one in _parts(groups)
        if "median" in one
    ]
    grid = grid_of(f"{len(rows):,} groups of rows", rows, shown=_error)
    names = ([str(row[name]) for row in rows] for name in ("table", "metric"))
    return _list("accuracy.html", "Accuracy", ACCURACY_LEAD, groups_of(grid, *names, least=1))


def _error(column: str, row: Mapping[str, Any]) -> str:
    """Shares in percent; the number of rows as it is."""
    value = row[column]
    return percent(value, 1) if isinstance(value, float) else cell(column, row)


def _parts(table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Tables inside a table."""
    return [(name, part) for name, part in table.items() if isinstance(part, dict)]


ERRORS = ("rows", "median", "mean", "p90", "bias", "covered_80", "covered_95")


def _papers(index: Index) -> Iterator[SitePage]:
    documents = sorted(index.documents(), key=lambda d: d.title.casefold())
    known = _paths(index)
    rows: list[dict[str, str]] = []
    for document in documents:
        found, path = view_of(get_paper(document.key), index), known[document.key]
        verdicts = ", ".join(f"{n} {word}" for word, n in found.counts)
        rows.append(
            {"title": found.title, "year": f"{found.entry.year}", "layer": found.entry.layer, "claims": verdicts}
        )
        yield SitePage(
            path=path,
            title=found.title,
            template="site_paper.html",
            about=found.entry.mechanism,
            card=partial(_card_of, document.key),
            context={"view": found, "known": known},
            kind="paper",
            words=" ".join([found.entry.layer, *(t.name for t in found.entry.techniques), found.entry.mechanism]),
        )
    grid = grid_of(f"{len(rows):,} papers", rows, [known[document.key] for document in documents])
    yield _list("papers.html", "Papers", PAPERS_LEAD, groups_of(grid, [row["layer"] for row in rows]))


def _paths(index: Index) -> dict[str, str]:
    """Where the page of each paper lies."""
    return {d.key: f"papers/{slug(d.key)}.html" for d in index.documents()}


def _dates(index: Index) -> Iterator[SitePage]:
    """Papers by their date, the latest ones first."""
    known = _paths(index)
    for found in by_date(index):
        if found.period is not None:
            is_first = len(found.sections) > 1
            titles = "; ".join(item.title for item in found.sections[0].items)
            yield SitePage(
                path=FIRST if is_first else date_path(found.period),
                title="Latest papers" if is_first else f"Papers of {found.period.words}",
                template="site_dates.html",
                context={"found": found, "known": known, "path_of": date_path},
                kind="date",
                words=titles,
                about=titles,
            )


def _computed() -> Iterator[SitePage]:
    """Answers for stated inputs."""
    for found in computed():
        yield SitePage(
            path=f"{found.page.name}.html",
            title=found.page.title,
            template="site_command.html",
            context=found.context,
            kind="answer",
            words=f"{found.page.name} {found.context['command']}",
            about=found.page.lead,
        )


def _card_of(key: str) -> bytes:
    return picture(paper_card(get_paper(key)))

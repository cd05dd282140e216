"""The static site: every link leads to a file of it, nothing leads to a server, and no other folder is touched."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from orrery.base.errors import ScenarioError
from orrery.calibrate.kernel import kernel
from orrery.catalog.devices import device_names
from orrery.reports.words import format_value
from orrery.web.command_pages import kernel as kernel_page
from orrery.web.landing.choices import ENGINES, MODELS
from orrery.web.papers.index import index_of
from orrery.web.papers.period import of_document
from orrery.web.site.address import root_of, slug
from orrery.web.site.computed import ASKED
from orrery.web.site.content import best_path
from orrery.web.site.dated import date_path
from orrery.web.site.grid import grid_of, groups_of
from orrery.web.site.write import MARK, export

MAX_BYTES = 300_000


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.headings, self.bare = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src", "action") if found.get(name)]
        self.ids += [found["id"]] if "id" in found else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag == "script" and "src" not in found and found.get("type") != "application/json":
            self.bare.append(tag)


@pytest.fixture(scope="module")
def read(site):
    """Every page, by its file."""
    return {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_every_link_leads_to_a_file_of_the_site_or_to_another_site(site, read):
    broken = []
    for path, page in read.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https") or (not parts.path and parts.fragment):
                continue
            if parts.scheme or link.startswith("/") or not (path.parent / unquote(parts.path)).is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_pages_hold_together(read):
    for path, page in read.items():
        assert page.headings.count(1) == 1, path
        assert len(set(page.ids)) == len(page.ids), path
        assert not page.bare, path


def test_a_long_table_falls_into_groups_and_a_group_too_long_once_more():
    rows = [
        {"name": f"{vendor}{n}", "vendor": vendor}
        for vendor, num in (("b", 4), ("A", 61), ("c", 3))
        for n in range(num)
    ]
    names, kinds = [row["vendor"] for row in rows], [str(n % 2) for n in range(len(rows))]
    found = groups_of(grid_of("68 rows", rows), names, kinds)
    assert [(g.name, len(g.rows)) for g in found] == [("A, 0", 31), ("A, 1", 30), ("b", 4), ("Others", 3)]
    assert found[0].caption == "68 rows: A, 0"
    assert sorted(row[0].text for g in found for row in g.rows) == sorted(row["name"] for row in rows)
    assert [g.name for g in groups_of(grid_of("", rows), names, least=1)] == ["A", "b", "c"]


def test_every_device_and_popular_model_has_a_page(site):
    assert all((site / "devices" / f"{slug(name)}.html").is_file() for name in device_names())
    for model in MODELS:
        path = site / best_path(model.key)
        data = json.loads(
            re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.S)[1]
        )
        assert set(data["engines"]) == set(ENGINES)
        assert data["isStatic"]
        beside = ("style.css", "best.css", "page.js", "best.js", "best-chart.js", "best-points.js")
        assert path.stat().st_size + sum((site / "static" / name).stat().st_size for name in beside) < MAX_BYTES


def test_previews_have_a_picture_at_the_address_of_the_site(site):
    text = (site / "index.html").read_text("utf-8")
    assert 'property="og:image" content="https://example.org/orrery/cards/index.png"' in text
    for page in ("index", f"best/{MODELS[1].key}", "papers/snapkv"):
        assert (site / "cards" / f"{page}.png").read_bytes().startswith(b"\x89PNG")
    paper = (site / "papers" / "snapkv.html").read_text("utf-8")
    assert 'property="og:image" content="https://example.org/orrery/cards/papers/snapkv.png"' in paper
    assert 'property="og:title" content="SnapKV' in paper
    devices = (site / "devices.html").read_text("utf-8")
    assert "og:image" not in devices, "a list has no picture of its own"
    assert '<meta name="description" content="Every accelerator' in devices


def test_the_index_of_the_search_knows_every_page(site):
    text = (site / "static" / "index.js").read_text("utf-8")
    index = json.loads(text.removeprefix("const INDEX = ").rstrip(";\n"))
    assert {path for _, path, *_ in index} == {
        p.relative_to(site).as_posix() for p in site.rglob("*.html") if p.name != "search.html"
    }


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ScenarioError, match="holds other files"):
        export(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(ScenarioError, match="is a file"):
        export(tmp_path / "mine.txt")


def test_an_earlier_export_is_written_anew(site):
    assert (site / MARK).is_file()
    assert root_of("papers/x.html") == "../"
    assert root_of("index.html") == ""
    assert slug("a/b c") == "a-b-c"


def test_cells_have_the_units_of_their_names_and_numbers_stand_at_the_right(site):
    devices = (site / "devices.html").read_text("utf-8")
    assert '<th scope="col" class="number">Memory bandwidth</th>' in devices
    for text in ("85.5 GB", "3.36 TB/s", "989 TFLOP/s", "700 W"):
        assert f'class="number">{text}</td>' in devices
    assert "3.36 TB/s" in (site / "devices" / "h100-sxm.html").read_text("utf-8")
    assert '<td data-label="Parameters" class="number">70.6 B</td>' in (site / "models.html").read_text("utf-8")
    assert '<td data-label="Year">2024</td>' in (site / "papers.html").read_text("utf-8")
    tables = [path.read_text("utf-8") for path in site.rglob("*.html") if path.parent.name != "best"]
    assert not any(re.search(r'"(number|Value)">[^<]*\de[+-]?\d', table) for table in tables)


def test_every_paper_stands_on_the_pages_of_its_dates(site):
    documents = index_of(None).documents()
    dated = {d.key: period for d in documents if (period := of_document(d))}
    assert len(dated) > 0.9 * len(documents)
    for key, period in dated.items():
        page = (site / date_path(period)).read_text("utf-8")
        assert f'href="../papers/{slug(key)}.html"' in page, key
        assert (site / date_path(period.as_("year"))).is_file()
    first = (site / "dates.html").read_text("utf-8")
    assert f'href="papers/{slug(max(dated, key=lambda key: dated[key].first))}.html"' in first


@pytest.mark.parametrize(("page", "settings"), ASKED, ids=lambda one: getattr(one, "name", ""))
def test_computed_pages_state_their_inputs(site, page, settings):
    text = unescape((site / f"{page.name}.html").read_text("utf-8"))
    assert page.command(settings) in text
    for value in settings.values():
        assert ">" + (", ".join(value) if isinstance(value, list) else str(value)) + "<" in text
    assert f'href="{page.name}.html"' in (site / "index.html").read_text("utf-8")


def test_a_computed_kernel_is_that_of_the_command(site):
    text = (site / "kernel.html").read_text("utf-8")
    found = kernel(**kernel_page.START).to_json()["results"]
    assert all(format_value(row["time_s"], "s") in text for row in found)

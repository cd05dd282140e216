"""The documentation in the browser: every page, its links and pictures, and nothing outside of it."""

import re
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from orrery.web.app import application
from orrery.web.manual.pages import folder, manual_page
from orrery.web.manual.parts import LONG_BYTES, parts_of, slug
from orrery.web.place import place_at

LARGE = ("papers", "command-line", "scorecard")
"""Pages that are read in parts."""

NAMES = sorted(str(path.relative_to(folder()).with_suffix("")) for path in folder().rglob("*.md"))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return TestClient(application(place_at(tmp_path_factory.mktemp("web"))), base_url="http://127.0.0.1")


class Read(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.pictures, self.ids, self.scripts = [], [], set(), 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        self.scripts += tag == "script"
        if tag == "a":
            self.links.append(found["href"])
        if tag == "img":
            self.pictures.append(found["src"])


@pytest.mark.parametrize("name", [n for n in NAMES if n not in LARGE])
def test_a_page_has_a_title_and_its_links_lead_somewhere(name, client):
    text = manual_page(name)
    assert text.title
    read = Read(text.content)
    assert read.scripts == 0
    for link in read.links:
        if link.startswith("/docs/"):
            to, _, part = link.removeprefix("/docs/").partition("#")
            assert to in NAMES, link
            assert not part or to in LARGE or part in Read(manual_page(to).content).ids, link
        else:
            assert link.startswith(("https://", "http://", "#")), link
    for picture in read.pictures:
        assert client.get(picture).headers["content-type"].startswith("image/"), picture


@pytest.mark.parametrize("name", LARGE)
def test_a_long_page_is_read_in_parts_and_every_link_finds_its_heading(name, client):
    index = client.get(f"/docs/{name}")
    assert len(index.content) < LONG_BYTES
    read = Read(manual_page(name).content)
    parts = parts_of((folder() / f"{name}.md").read_text())
    assert {f"?part={part}" for part in parts.by_name} <= set(read.links)
    for part, chapter in parts.by_name.items():
        assert {part, *map(slug, chapter.titles)} <= read.ids  # a link into the whole page still lands somewhere
    part = next(iter(parts.by_name))
    page = manual_page(name, part)
    found = Read(page.content)
    assert part in found.ids
    for link in found.links:
        if link.startswith(f"?part={part}#"):
            assert link.partition("#")[2] in found.ids, link
    assert client.get(f"/docs/{name}?part={part}").text.count("<h1") == 1
    assert client.get(f"/docs/{name}?part=nothing").status_code == 404
    assert client.get(f"/docs/what-if?part={part}").status_code == 404


def test_sections_of_a_part_fold_and_a_short_page_stays_open():
    name, part = "papers", "serving"
    content, inside = manual_page(name, part).content, parts_of((folder() / f"{name}.md").read_text()).by_name[part]
    folds = re.findall(r'<details class="fold"><summary><h3 id="([^"]+)">', content)
    assert folds == [slug(title) for title in inside.titles]
    assert content.count("</details>") == len(folds)
    assert "<details" not in manual_page("what-if").content


def test_a_heading_in_code_begins_no_part():
    text = "# T\n\n## one\n\n```\n## no\n```\n\n### two\n\n## three\n" + "x" * LONG_BYTES
    parts = parts_of(text)
    assert list(parts.by_name) == ["one", "three"]
    assert parts.by_name["one"].titles == ("two",)
    assert parts.name_of("two") == "one"
    assert parts.name_of("no") == ""


def test_tables_say_their_columns_on_a_phone(client):
    page = client.get("/docs/metrics").text
    assert '<table class="cards tiles">' in page
    assert '<td data-label="definition">' in page
    assert '<h1 id="every-metric-defined">' in page
    assert client.get("/docs").text.count("<h1") == 1


@pytest.mark.parametrize("name", ["nothing", "../pyproject", "%2e%2e/README", "images/../../pyproject.toml", "x" * 300])
def test_nothing_else_is_served(name, client):
    assert client.get(f"/docs/{name}").status_code == 404


def test_a_name_as_the_files_have_it_leads_to_the_page(client):
    to = client.get("/docs/what-if.md", follow_redirects=False)
    assert (to.status_code, to.headers["location"]) == (301, "/docs/what-if")


def test_html_in_a_page_is_text_and_headings_have_names():
    assert slug("Read this first: two meanings of TPOT") == "read-this-first-two-meanings-of-tpot"
    text = "".join(manual_page(name).content for name in NAMES if name not in LARGE)
    assert not re.search(r"<(script|iframe|style|form|svg)|javascript:|\son\w+=", text)


def test_pages_that_fewer_come_for_unfold_from_the_menu(client):
    page = client.get("/kernel").text
    head = page[: page.index("</header>")]
    shown, more = head.split("<details")
    assert '<a href="/what-if">What if</a>' in shown
    assert '<a href="/kernel" aria-current="page">Kernel</a>' in more
    assert "More: Kernel</span>" in more
    assert ">More</span>" in client.get("/plan").text

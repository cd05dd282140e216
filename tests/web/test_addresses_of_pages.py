"""Links and forms of pages lead to addresses that are read: none has a parameter that its page does not know."""

from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from starlette.datastructures import QueryParams

from orrery.base.errors import ScenarioError
from orrery.web.pages.command_pages import COMMAND_PAGES
from orrery.web.parameters import check_as

ASKED = "model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=256&concurrency=32"
TRAINED = "model=llama-3.1-8b&device=h100-sxm&devices=8&global_batch=64&micro_batch=1&seq_len=4096&tp=2"
PAGES = (
    "/",
    "/plan",
    f"/plans?{ASKED.removesuffix('&concurrency=32')}&rate=1&max_devices=1&slo=tpot:50&whole=1",
    f"/design?{ASKED}",
    f"/design/why?{ASKED}",
    f"/training?{TRAINED}",
    f"/compare?{ASKED}&b.tp=2",
    f"/sweep?{ASKED}&slo=tpot:50&by=tp",
    "/runs",
    *(f"/runs/new?kind={kind}" for kind in ("simulate", "capacity", "sweep", "plan", "train-plan")),
    "/papers",
    "/papers/library?q=cache",
    "/papers/day/2024",
    "/papers/trending",
    "/papers/scorecard",
    "/papers/subscribe",
    "/papers/lists",
    "/papers/sarathi-serve",
    "/papers/sarathi-serve?job=train",
    "/uploads",
    "/docs",
    *(f"/{page.name}" for page in COMMAND_PAGES),
)


class Addresses(HTMLParser):
    """Addresses that a page leads to, and the queries that its forms can send."""

    def __init__(self, text):
        super().__init__()
        self.found, self._form = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        here = dict(attrs)
        for name in ("href", "hx-get", "formaction", "src"):
            if (address := here.get(name) or "").startswith(("/", "?")):
                self.found.append(address)
        if tag == "form":
            self._form = here.get("action") if here.get("method", "get") == "get" else None
        elif self._form and tag in ("input", "select", "textarea") and here.get("name"):
            self.found.append(f"{self._form.partition('#')[0]}?{here['name']}=")

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None


@pytest.mark.parametrize("page", PAGES)
def test_links_and_forms_lead_to_what_is_read(reader, page):
    answer = reader.get(page)
    assert answer.status_code == 200
    assert 'rel="stylesheet"' not in answer.text  # nothing is waited for before the first paint
    found = Addresses(answer.text).found
    assert found
    for address in dict.fromkeys(found):
        parts = urlsplit(unescape(address))
        check(parts.path or urlsplit(page).path, parts.query, reader.app.routes)


def check(path, query, routes):
    try:
        check_as(path, QueryParams(query), routes)
    except ScenarioError as error:
        pytest.fail(f"{path}?{query}: {error}")

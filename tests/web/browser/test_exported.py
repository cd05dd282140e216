"""The exported site, a page of each kind as any server of files hands it out: usable, and alone with its host."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from orrery.web.landing.choices import MODELS
from orrery.web.site.content import best_path

from .test_accessible import grave, too_wide

KINDS = {
    "chart": "index.html",
    "another chart": best_path(MODELS[1].key),
    "devices": "devices.html",
    "device": "devices/h100-sxm.html",
    "models": "models.html",
    "scorecard": "scorecard.html",
    "accuracy": "accuracy.html",
    "papers": "papers.html",
    "paper": "papers/snapkv.html",
    "latest papers": "dates.html",
    "papers of a month": "dates/2025-10.html",
    "fleet": "fleet.html",
    "what-if": "what-if.html",
    "kernel": "kernel.html",
    "search": "search.html?q=kv cache",
}
OFTEN = ("chart", "paper")
LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (1440, 390)]
ALL = [
    pytest.param(path, *look, id=f"{kind}-{look[0]}-{look[1]}", marks=() if is_often else pytest.mark.slow)
    for kind, path in KINDS.items()
    for look in LOOKS
    for is_often in [kind in OFTEN and look == ("dark", 390)]
]


class Files(SimpleHTTPRequestHandler):
    """A server of files that keeps no log."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server(browser, site):
    """The address of the site, as a server of files hands it out."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(site))) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{files.server_port}"
        files.shutdown()


@pytest.mark.parametrize(("path", "scheme", "width"), ALL)
def test_every_kind_of_page_is_usable(profile, path, scheme, width):
    page = profile(color_scheme=scheme, viewport={"width": width, "height": 844}).new_page()
    page.goto(f"/{path}")
    page.evaluate("for (const one of document.querySelectorAll('details')) { one.open = true; }")
    assert grave(page) == []
    assert [too_wide(page, one) for one in (width, 320)] == [0, 0]


MAX_PX = 12_000
LISTS = ("devices", "models", "papers", "accuracy", "scorecard", "dates", "dates/2024", "dates/2025")


def test_no_list_is_long_on_a_phone(profile):
    page = profile(viewport={"width": 390, "height": 844}).new_page()
    for path in LISTS:
        page.goto(f"/{path}.html")
        assert page.evaluate("document.documentElement.scrollHeight") < MAX_PX, path
    for path in ("devices", "models", "papers"):
        page.goto(f"/{path}.html")
        for group in page.locator("details.group > summary").all():
            group.click()
            assert page.evaluate("document.documentElement.scrollHeight") < MAX_PX, path
            group.click()


def test_rows_are_reached_without_scripts(profile):
    page = profile(java_script_enabled=False, viewport={"width": 390, "height": 844}).new_page()
    page.goto("/models.html")
    assert not page.get_by_label("Filter").is_visible()
    page.locator("summary", has_text="meta-llama").click()
    page.get_by_role("link", name="Llama-3.1-8B").click()
    assert "Llama 3.1 8B" in page.locator("h1").inner_text() or page.locator("#chart").count()


def test_a_table_stands_in_its_page_and_its_rows_are_filtered(tab):
    tab.goto("/devices.html")
    tab.get_by_role("button", name="Open all").click()
    assert tab.locator(".scroll").first.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0
    row = tab.locator("tbody tr", has_text="NVIDIA H100 SXM5 80 GB")
    assert "3.36 TB/s" in row.inner_text()
    for width in (1440, 390):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.get_by_label("Filter").fill("h100 sxm5")
        assert 0 < tab.locator("tbody tr:visible").count() < 10
        assert tab.locator("#narrow-words").inner_text() == f"{tab.locator('tbody tr:visible').count()} found"
        tab.get_by_label("Filter").fill("")
        assert tab.locator("details.group:visible").count() > 10
        assert tab.locator("tbody tr:visible").count() == 0
    tab.get_by_label("Filter").fill("h100 sxm5")
    row.get_by_role("link").click()
    assert tab.locator("h1").inner_text() == "h100-sxm"


def test_the_search_leads_to_a_page(tab):
    tab.goto("/search.html?q=snapkv")
    tab.locator("#found a").first.click()
    assert "SnapKV" in tab.locator("h1").inner_text()


def test_a_word_of_the_address_that_no_chart_knows_is_said(tab):
    tab.goto("/index.html?y=dollars&devices=3&engine=vllm")
    said = tab.locator("#slo-problem").inner_text()
    assert said == "y: got 'dollars'; write rate, usd. devices: got '3'; write 1, 2, 4, 8."
    tab.goto("/index.html?y=usd&devices=4")
    assert tab.locator("#slo-problem").inner_text() == ""

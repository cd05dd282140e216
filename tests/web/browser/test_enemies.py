"""Names, papers and other sites that mean harm: no script of theirs runs, and nothing of ours changes."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)><svg onload=alert(3)>"
CONFIG = {
    "model_type": "llama",
    "architectures": [EVIL],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1000,
}
QUERIES = (
    "/?model={}&device={}&trace={}",
    "/plans?model={}&device={}&trace={}&whole=1",
    "/design?model={}&device=h100-sxm",
    "/design?model=llama-3.1-8b&device=h100-sxm&weights={}&slo={}",
    "/training?model={}",
    "/design/why?model=llama-3.1-8b&path={}&at={}",
    "/compare?a.model={}&b.device={}",
    "/sweep?vary={}&by={}&lines={}",
    "/sweep?vary=concurrency&values={}",
    "/runs?kind={}&state={}&text={}",
    "/runs/new?kind={}&model={}&window={}",
    "/papers?q={}&technique={}",
    "/papers/{}",
    "/papers/day/{}",
    "/papers/subscribe?address={}&search={}",
    "/runs/{}",
    "/design?model=javascript:alert(4)&device=upload:../../etc/passwd",
    "/papers/2611.66666",
    "/papers/day",
    "/papers/search?q=kv+cache+traps",
    "/papers/trending",
)


def nodes(page):
    """What only the enemy's text could have made."""
    foreign = "img[src=x], [onerror], [onload], main script:not([type='application/json']), a[href^='javascript:']"
    return page.locator(foreign).count()


def test_what_stands_in_an_address_or_a_paper_is_only_words(profile):
    page = profile(
        may_fail=True
    ).new_page()  # the profile fails on a dialog, a refused script and any request elsewhere
    for query in QUERIES:
        page.goto(query.replace("{}", quote(EVIL, safe="")))
        assert nodes(page) == 0, query
    page.goto("/papers/2611.66666")
    expect(page.locator("h1")).to_contain_text("<script>alert(1)</script>")  # still to be read


NAMES = (f"{EVIL.replace('/', '')}.json", "..\\..\\x.json", "=cmd().json", "a\u202egpj.json")


def test_an_uploads_name_and_content_are_only_words(profile):
    page = profile(may_fail=True).new_page()
    for name in NAMES:
        page.goto("/uploads")
        page.get_by_label("File").set_input_files(
            {"name": name, "mimeType": "application/json", "buffer": json.dumps(CONFIG).encode()}
        )
        page.get_by_label("Name (optional)").fill(EVIL[:40])
        page.get_by_role("button", name="Upload").click()
        expect(page.locator("#uploads [data-say]").first).to_be_visible()
        assert nodes(page) == 0, name
    for delete in page.get_by_role("button", name="Delete").all():
        delete.click()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another site, with a form that is sent here."""

    def do_GET(self):
        """Serve it."""
        target = self.server.target
        page = f"<!doctype html><title>elsewhere</title><form method=post action='{target}'><button>Win</button></form>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        """In silence."""


@pytest.fixture
def elsewhere(server):
    """The address of another site."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as site:
        site.target = f"{server}/papers/mark"
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()
        thread.join()


FETCH = """async ([address, mode]) => {
  const body = new URLSearchParams({key: "distserve", what: "upvoted", on: "1"});
  try { const got = await fetch(address, {method: "POST", mode, body}); return got.type + got.status; }
  catch (error) { return "blocked"; }
}"""


def test_another_site_changes_nothing(browser, server, elsewhere, profile):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(elsewhere)
        with page.expect_navigation() as answered:
            page.get_by_role("button", name="Win").click()
        assert answered.value.status == 403
        expect(page.locator("body")).to_contain_text("Another site may not change anything here")
        page.goto(elsewhere)
        assert page.evaluate(FETCH, [f"{server}/papers/mark", "cors"]) == "blocked"
        assert page.evaluate(FETCH, [f"{server}/papers/mark", "no-cors"]) in ("blocked", "opaque0")
        page.set_content(f"<iframe src='{server}/'></iframe>")
        page.wait_for_timeout(200)
        assert all(frame.url != f"{server}/" or not frame.locator("h1").count() for frame in page.frames[1:])
    mine = profile().new_page()
    mine.goto("/papers/distserve")
    expect(mine.get_by_role("button", name="Upvote")).to_have_attribute("aria-pressed", "false")

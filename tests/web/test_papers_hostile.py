"""Papers that mean harm: whatever stands in a feed, or in somebody's paper file, is shown as words and nothing else."""

import re
from datetime import date
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store
from orrery.web.app import application
from orrery.web.papers.messages import describe, link
from orrery.web.place import place_at

TODAY = date.today()
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
TURNED = "\u202eevil\u202c \u2066x\u2069 \u200b\ufeff"
HOSTILE = Entry(
    id="2611.66666",
    title=f"{SCRIPT}{TURNED}\"'><svg onload=alert(3)>",
    source=SCRIPT,
    published=TODAY,
    abstract=f"{TURNED}{SCRIPT} 3.1x faster than {SCRIPT}. " + "kv cache of prompts " * 20_000,
    authors=(f"Eve {SCRIPT}", *("x" * 3000 for _ in range(300))),
    num_authors=301,
    organisation=SCRIPT,
    categories=(SCRIPT,) * 100,
    url="javascript:alert(4)",
)
OWN = """title = "Own {script}"
year = 2026
layer = "serving"
kind = "system"
fit = "core"
url = "javascript:alert(5)"
mechanism = "{script}\\u202e turned"
techniques = ["{script}"]
gains = "{script}"
costs = "{script}"
[sources.paper]
title = "{script}"
url = "data:text/html,<script>alert(6)</script>"
retrieved = "2026-11-20"
[[claim]]
id = "{script}"
metric = "throughput_ratio"
reported = 2.0
unit = "ratio"
baseline = "{script}"
from = "paper"
at = "{script}"
missing = "{script}"
[unstated]
open = "{script}"
"""
PAGES = (
    "/papers",
    "/papers?q=kv+cache+prompts",
    "/papers/search?q=kv+cache+prompts",
    "/papers/day",
    "/papers/trending",
    "/papers/2611.66666",
    "/papers/own-evil",
    "/papers/scorecard?layer=serving",
    "/papers/subscribe",
    "/papers/subscribe?as=text",
    "/papers?technique=%3Cscript%3Ealert(1)%3C/script%3E",
    "/papers?q=%3Cscript%3Ealert(1)",
    "/papers/%3Cscript%3Ealert(1)",
    "/papers/day/%3Cscript%3E",
    "/papers/trending?by=%3Cscript%3Ealert(1)",
    "/papers/subscribe?address=%22%3E%3Cscript%3Ealert(1)&search=%3Cscript%3E&technique=%3Cscript%3E&by=%3Cscript%3E",
    "/papers/sarathi-serve?model=%22%3E%3Cscript%3Ealert(1)&scenario=%22%3E%3Cscript%3E",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch, Store(folder / "library.sqlite") as store:
        patch.setenv("ORRERY_LIBRARY", str(store.path))
        save_entries(store, [HOSTILE], TODAY)
        (folder / "papers").mkdir()
        (folder / "papers" / "own-evil.toml").write_text(OWN.replace("{script}", SCRIPT), encoding="utf-8")
        yield TestClient(application(place_at(folder / "web")), base_url="http://127.0.0.1")


@pytest.mark.parametrize("address", PAGES)
def test_nothing_of_a_paper_becomes_markup(client, address):
    answer = client.get(address)
    assert answer.status_code in (200, 404, 422)
    text = answer.text
    assert "<script>alert" not in text
    assert "<img" not in text.replace('<img src="/static/icon.svg"', "")
    assert not re.search(r"<[^>]*\son(error|load)\s*=", re.sub(r'"[^"]*"', '""', text))
    assert not re.search(r'href="(?!/|#|https?://)', text)
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff")
    assert len(answer.content) < 300_000


def test_the_paper_itself_is_still_readable(client):
    page = client.get("/papers/2611.66666").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "evil x" in page
    assert "and 289 more" in page


def test_exports_are_no_pages(client):
    for address in (
        "/papers?format=json&among=new",
        "/papers/2611.66666?format=json",
        "/papers/own-evil?format=bibtex",
    ):
        answer = client.get(address)
        assert answer.headers["content-type"].split(";")[0] in ("application/json", "text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        " https://a.example",
        "https://a.example/\u202egpj",
        "//a.example",
        "https:a",
        "http://",
        "https://a.example\\@b.example",
        "file:///etc/passwd",
        "https://[",
        "https://" + "a" * 600,
    ],
)
def test_only_the_web_is_linked_to(address):
    assert link(address) == ""


def test_words_are_cut_and_controls_go():
    assert link("https://arxiv.org/abs/2401.09670") == "https://arxiv.org/abs/2401.09670"
    assert describe("a\u202eb\n\tc\x00d", 20) == "ab c d"
    assert describe("word " * 100, 12) == "word word w…"
    assert len(describe("x" * 10_000_000, 50)) == 50

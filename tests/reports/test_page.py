"""Pages and files: valid, alone, harmless, and with the numbers of the answer."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.drawing.hatch import as_lines
from orrery.reports import page as page_module
from orrery.reports.frame import Frame
from orrery.reports.make import OTHER_NUMBERS, report_of
from orrery.reports.page import page, tied
from orrery.reports.pdf import VARIABLE, browser, pdf
from orrery.reports.source import read_source
from orrery.reports.write import write

VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})
ESTIMATE = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "concurrency": 16}


class Reader(HTMLParser):
    """Elements of a page, each closed as it was opened, with the text of every kind of element."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
            self.text.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.text[tag][-1] += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("estimate") / "answer.json"
    path.write_text(json.dumps(orrery.estimate(**ESTIMATE).to_json()))
    return path


@pytest.fixture(scope="module")
def made(source: Path) -> Any:
    return report_of(read_source(source), Frame(author="A. Engineer", made="2026-05-01"))


def test_page_holds_the_numbers_of_the_answer(made: Any) -> None:
    answer = orrery.estimate(**ESTIMATE)
    reader = read(page(made))
    text = " ".join(reader.text["main"]).replace("\u00a0", " ")
    assert f"{answer.estimate.ttft_s * 1e3:.3g} ms" in reader.text["strong"][0].replace("\u00a0", " ")
    assert f"{answer.estimate.output_tokens_per_s:,.0f}" in text
    assert f"${answer.usd_per_million_tokens:.3g}" in text
    interval = answer.intervals()["tpot_s"]
    assert f"{interval.low_80 * 1e3:.3g} to {interval.high_80 * 1e3:.3g} ms" in text
    assert all(f"{n.text}" in text for n in made.numbers)


def test_page_stands_alone(made: Any) -> None:
    html = page(made)
    reader = read(html)
    assert len(html) < 500_000
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(reader.seen)
    assert not [v for k, v in reader.attributes if k in ("src", "srcset") or k.startswith("on")]
    assert not re.search(r"@import|url\((?!#)", html)
    assert all(v.startswith(("https://", "http://")) for k, v in reader.attributes if k == "href" and v)
    assert reader.text["time"] == ["2026-05-01"]
    assert "A. Engineer" in reader.text["header"][0]


def test_page_can_be_read_aloud(made: Any) -> None:
    reader = read(page(made))
    assert reader.seen.count("h1") == 1
    assert reader.seen.count("table") == reader.seen.count("caption")
    assert reader.seen.count("th") > reader.seen.count("table")
    levels = [int(tag[1]) for tag in reader.seen if tag in ("h1", "h2", "h3")]
    assert all(b - a <= 1 for a, b in pairwise(levels))
    figures = re.findall(r"<svg.*?</svg>", page(made), re.S)
    assert len(figures) == reader.seen.count("figure") >= 4
    for svg in figures:
        root = ElementTree.fromstring(svg)
        assert root.findtext("{http://www.w3.org/2000/svg}title")
    identities = [v for k, v in reader.attributes if k == "id"]
    assert len(identities) == len(set(identities))


def test_hostile_names_are_text(made: Any) -> None:
    evil = '"><script>alert(1)</script>\u202e{{ 7*7 }}'
    hostile = replace(
        made,
        title=evil,
        author=evil,
        headline=evil,
        question=(evil,),
        assumptions=(evil,),
        limits=(evil,),
        settings={"model": evil},
    )
    reader = read(page(hostile))
    assert "script" not in reader.seen
    assert "49" not in reader.text["h1"][0]
    assert "<script>" in reader.text["h1"][0]


def test_a_fact_links_only_to_the_web(made: Any) -> None:
    fact = next(f for f in made.facts if f.source and f.source.url)
    bad = replace(fact, source=replace(fact.source, url="javascript:alert(1)"))
    assert "javascript:" not in page(replace(made, facts=(bad,)))


def test_numbers_keep_their_units() -> None:
    assert tied("52 ms at 80 %, 2 x h100 for 3 days") == "52\u00a0ms at 80\u00a0%, 2\u00a0x h100 for 3\u00a0days"
    assert tied("step 4 of sum") == "step 4 of sum"


def test_without_jinja2_it_says_what_to_install(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(page_module, "import_module", missing)
    with pytest.raises(ScenarioError, match=r"pip install 'orrery-ai\[report\]'"):
        page(made)


def test_the_same_report_is_the_same_file(source: Path, made: Any, tmp_path: Path) -> None:
    again = report_of(read_source(source), Frame(author="A. Engineer", made="2026-05-01"))
    write(made, [tmp_path / "a.html"])
    write(again, [tmp_path / "b.html"])
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_a_file_with_other_numbers_is_noticed(source: Path, made: Any, tmp_path: Path) -> None:
    assert OTHER_NUMBERS not in made.limits
    old = json.loads(source.read_text()) | {"tpot_s": 1.0}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    assert report_of(read_source(path)).limits[0] == OTHER_NUMBERS


def test_without_a_browser_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    if browser() is None:  # a Mac has browsers at fixed places
        with pytest.raises(ScenarioError, match=VARIABLE):
            pdf("<p>")
    monkeypatch.setenv(VARIABLE, "no-such-browser")
    with pytest.raises(ScenarioError, match="no program 'no-such-browser'"):
        browser()


def test_a_browser_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "false")
    with pytest.raises(ScenarioError, match="could not print"):
        pdf("<p>")
    monkeypatch.setenv(VARIABLE, "true")
    with pytest.raises(ScenarioError, match="printed nothing"):
        pdf("<p>")


@pytest.mark.slow
def test_a_browser_prints_it(made: Any) -> None:
    if browser() is None:
        pytest.skip("no Chromium, Chrome or Edge on this machine: nothing to print with")
    found = pdf(as_lines(page(made)))
    assert found.startswith(b"%PDF-")
    assert len(found) < 500_000
    assert len(re.findall(rb"/Type\s*/Page\b", found)) >= 3

"""Percent and microseconds are spelt in one way on every page: ``98.3 %`` and ``8.2 µs``."""

import re
from html.parser import HTMLParser

import pytest

from orrery.scenario.jobs import AGENTS, DAY, SLOW
from orrery.web.address import query_of

OTHER = re.compile(r".{0,40}\d(%| us\b).{0,20}")
LOAD = "model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=256&concurrency=32"
PAGES = (
    "/",
    f"/design?{LOAD}",
    f"/design/why?{LOAD}",
    f"/compare?{LOAD}&b.tp=2",
    f"/sweep?{LOAD}",
    "/training",
    pytest.param(f"/what-if?technique=fp8-weights&{LOAD}&whole=1", marks=pytest.mark.slow),
    pytest.param(
        f"/fleet?{query_of(DAY)}&regions=westeurope,eastus&origins=uksouth%3D0.5,centralus%3D0.5&whole=1",
        marks=pytest.mark.slow,
    ),
    f"/cache-size?{query_of(AGENTS)}&whole=1",
    f"/diagnose?{query_of(SLOW)}&whole=1",
    "/kernel?op=gemm&device=h100-sxm&m=64&n=512&k=512&whole=1",
    "/split?model=vgg-16&device=raspberry-pi-4-8gb&server=rtx-4090&link_rates=0.5,5,50&whole=1",
    f"/report?as=estimate&{LOAD}",
    "/papers/scorecard?layer=release",
    "/docs/metrics",
    "/docs/kernel",
    "/docs/scorecard",
)


class Words(HTMLParser):
    """What a reader sees of a page, drawings and code included."""

    def __init__(self, text):
        super().__init__()
        self.found, self._hidden = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._hidden += tag in ("style", "script", "datalist")
        self.found += [value for name, value in attrs if name in ("title", "aria-label", "placeholder") and value]

    def handle_endtag(self, tag):
        self._hidden -= tag in ("style", "script", "datalist")

    def handle_data(self, data):
        if not self._hidden:
            self.found.append(data)


def test_other_spellings_are_found():
    seen = Words("<p title='9 us'>98.3%<style>a{width:10%}</style></p><b>98.3 %, 4 µs</b>").found
    assert [text for text in seen if OTHER.search(text)] == ["9 us", "98.3%"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page).partition("?")[0])
def test_no_page_spells_them_otherwise(reader, page):
    answer = reader.get(page)
    assert answer.status_code == 200
    assert [found[0] for text in Words(answer.text).found if (found := OTHER.search(text))] == []

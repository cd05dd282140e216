"""One server and one browser for the folder; a fresh browser profile for each test, watched while it is used."""

import importlib.util
import json
import sys
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import pytest

from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.lists import add_papers, make_list
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store
from orrery.evidence.understanding.paper_lookup import marked_as
from orrery.scenario.jobs import AGENTS, DAY, OWN_DEVICE, SLOW
from orrery.web.address import query_of

ROOT = Path(__file__).resolve().parents[3]

PAPERS = (
    Entry(
        id="2611.00001",
        title="Chunked prefill at rest",
        source="arXiv",
        published=date.today(),
        num_authors=1,
        authors=("Ann",),
        url="https://arxiv.org/abs/2611.00001",
        categories=("cs.DC",),
        abstract="We split prompts into chunks beside decodes. Throughput improves by 2.1x over vLLM.",
    ),
    Entry(
        id="2611.66666",
        title="<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)> traps",
        source="<b>arXiv</b>",
        published=date.today(),
        url="javascript:alert(4)",
        authors=("Eve <script>alert(5)</script>",),
        num_authors=1,
        categories=("<script>alert(6)</script>",),
        abstract="<script>alert(7)</script> Throughput of the kv cache is 3.1x higher <img src=x onerror=alert(8)>.",
    ),
)

VIEWS = {
    "best": "/",
    "home": "/plan",
    "plans": "/plans?model=llama-3.1-8b&device=h100-sxm&max_devices=2&trace=chat&slo=tpot:50&weights=fp8,bf16&whole=1",
    "design": "/design?model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=256&concurrency=32",
    "why": "/design/why?model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=256&concurrency=32",
    "infeasible": "/design?model=llama-3.1-70b&device=h100-sxm&input_tokens=1024&output_tokens=256&concurrency=32",
    "training": "/training",
    "compare": "/compare",
    "designs": "/designs?model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=256&concurrency=32"
    "&with=weights%3Dfp8%3B%20device%3Dh200-sxm",
    "what-if": "/what-if?technique=fp8-weights&model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=256"
    "&concurrency=32",
    "disaggregate": "/disaggregate",
    "fleet": "/fleet",
    "kernel": "/kernel?op=gemm&device=h100-sxm&m=64&n=4096&k=4096",
    "agents": f"/cache-size?{query_of(AGENTS)}",
    "diagnose": f"/diagnose?{query_of(SLOW)}",
    "my device": f"/my-device?{query_of(OWN_DEVICE)}",
    "pictures": "/pictures?model=black-forest-labs/FLUX.1-dev&device=h100-sxm&ulysses_degree=4",
    "filled fleet": f"/fleet?{query_of(DAY)}",
    "docs": "/docs",
    "docs of metrics": "/docs/metrics",
    "docs of a long page": "/docs/papers",
    "docs of a part": "/docs/papers?part=serving",
    "gallery": "/docs/gallery",
    "fleet in regions": f"/fleet?{query_of(DAY)}&regions=westeurope,eastus&origins=uksouth%3D0.5,centralus%3D0.5",
    "report of an estimate": "/report?as=estimate&model=llama-3.1-8b&device=h100-sxm&input_tokens=1024"
    "&output_tokens=256&concurrency=32",
    "report of a plan": "/report?as=plan&model=llama-3.1-8b&device=h100-sxm&max_devices=2&trace=chat&slo=tpot:50",
    "split": "/split?model=vgg-16&device=raspberry-pi-4-8gb&server=rtx-4090&link_rates=0.5,5,50",
    "search": "/search?space=cells&device=t4,l4&latency_ratio=0.5",
    "sweep": "/sweep?by=device&lines=h100-sxm,h200-sxm",
    "uploads": "/uploads",
    "runs": "/runs",
    "new run": "/runs/new",
    "papers": "/papers/library?layer=release",
    "papers of a day": "/papers",
    "papers of a month": "/papers/day/2024-03",
    "month without papers": "/papers/day/2017-05",
    "trending": "/papers/trending",
    "lists": "/papers/lists",
    "filled list": "/papers/lists/to%20read",
    "lists of a paper": "/papers/lists?key=distserve",
    "paper": "/papers/distserve",
    "new paper": "/papers/2611.00001",
    "scorecard": "/papers/scorecard?layer=release",
    "subscribe": "/papers/subscribe",
    "error": "/design?model=llama-3.1-8b&device=h100-sxn",
    "nothing": "/nowhere",
}
"""Every kind of page, by name."""

OFTEN = ("best", "home", "plans", "design", "paper", "error")
"""Those that the default run looks at."""


def pytest_generate_tests(metafunc):
    """A test with a ``view`` runs for each kind of page."""
    if "view" in metafunc.fixturenames:
        views = [
            pytest.param(at, id=name, marks=() if name in OFTEN else pytest.mark.slow) for name, at in VIEWS.items()
        ]
        metafunc.parametrize("view", views)


@pytest.fixture(scope="session")
def views():
    """Every kind of page."""
    return VIEWS


@pytest.fixture(scope="session")
def pictures():
    """The tool that takes the README's pictures: it starts a server and finds a browser as these tests do."""
    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "tools" / "screenshots.py")
    found = sys.modules["screenshots"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="package")
def browser(pictures):
    """Chromium."""
    api = pytest.importorskip("playwright.sync_api")
    program = pictures.browser()
    if program is None:
        pytest.skip(pictures.NO_BROWSER)
    api.expect.set_options(timeout=60_000)
    with api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=program, args=list(pictures.FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory, browser, pictures):
    """The address of an ``orrery web`` whose reader's library holds a paper that means well and one that does not."""
    home = tmp_path_factory.mktemp("orrery-web")
    with Store(home / "library.sqlite") as store:
        save_entries(store, PAPERS, date.today())
        name = make_list(store, "to read")
        add_papers(
            store, name, [marked_as(store, key) for key in ("distserve", "splitwise", "2611.00001")], date.today()
        )
    with pictures.served(home) as address:
        yield address


LEFT = ("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")
"""What htmx says of a request whose page was left before the answer came."""


class PageObserver:
    """What went wrong in a browser profile while it was used."""

    def __init__(self, context, server):
        self.faults, self.may_fail = [], False
        context.on("request", lambda inputs: self._inputs(inputs.url, server))
        context.on("console", self._describe)
        context.on("weberror", lambda found: self.faults.append(f"script: {found.error}"))
        context.on("dialog", self._opened)

    def _inputs(self, url, server):
        if not url.startswith((f"{server}/", "data:", f"blob:{server}/")):
            self.faults.append(f"asked another host: {url}")

    def _describe(self, message):
        is_refused = self.may_fail and message.text.startswith("Failed to load resource: the server responded")
        is_left = message.text.startswith(LEFT)
        if message.type == "error" and not is_refused and not is_left:
            self.faults.append(f"console: {message.text} at {message.location}")

    def _opened(self, dialog):
        self.faults.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def profile(browser, server):
    """Makes a fresh browser profile that is watched; ``may_fail``: pages with a mistake are asked for on purpose."""
    watches = []
    with ExitStack() as stack:

        def make(may_fail=False, **options):
            context = stack.enter_context(browser.new_context(base_url=server, reduced_motion="reduce", **options))
            context.set_default_timeout(60_000)
            watches.append(PageObserver(context, server))
            watches[-1].may_fail = may_fail
            return context

        yield make
    assert [fault for watch in watches for fault in watch.faults] == []


@pytest.fixture
def tab(profile):
    """A page in a profile of its own."""
    return profile().new_page()


@pytest.fixture(scope="package")
def finished_run(server):
    """The path of a small simulation that is done."""
    settings = {
        "kind": "simulate",
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "rate": "10",
        "input_tokens": "100",
        "output_tokens": "20",
        "num_requests": "50",
        "seed": "0",
        "window": "0:2",
    }
    with urllib.request.urlopen(f"{server}/runs", urllib.parse.urlencode(settings).encode()) as answer:
        address = answer.url
    until_s = time.monotonic() + 180
    while time.monotonic() < until_s:
        with urllib.request.urlopen(address) as answer:
            page = answer.read()
        if b"<progress" not in page:
            assert b"Requests as CSV" in page
            return address.removeprefix(server)
        time.sleep(0.1)
    raise AssertionError("the simulation does not end")


@pytest.fixture(scope="session")
def table_of():
    """The answer behind a page, as its JSON says it."""

    def read(page, address):
        return json.loads(page.request.get(address).text())

    return read

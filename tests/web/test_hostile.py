"""Enemies: who may ask and how, names that would be markup or paths, and numbers that nobody means.

What papers and uploads bring is in ``test_papers_hostile`` and ``test_uploads``.
"""

import asyncio
import contextlib
import resource
import socket
import threading
import time
from html.parser import HTMLParser

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from orrery.base.listening import listening
from orrery.web.app import application
from orrery.web.guard import HEADERS, MAX_ADDRESS_BYTES, MAX_BODY_BYTES, TOO_LARGE
from orrery.web.place import place_at
from orrery.web.serve import server_for

MAX_S = 10.0
MAX_GROWTH_BYTES = 300_000_000
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
NUMBER = "9" * 5000
DESIGN = "/design?model=llama-3.1-8b&device=h100-sxm&input_tokens=100&output_tokens=10&concurrency=4"
TRAINING = "/training?model=llama-3.1-8b&device=h100-sxm&devices=8&global_batch=64&seq_len=4096"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    made = application(place_at(tmp_path_factory.mktemp("web")))

    async def broken(_):
        raise RuntimeError("a secret")

    made.router.routes.insert(0, Route("/broken", broken))
    made.router.routes.insert(0, Route("/bare", lambda _: PlainTextResponse("bare")))
    return made


@pytest.fixture(scope="module")
def client(app):
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8123", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8123", "my.lan"]
)
def test_it_answers_to_its_names(app, host):
    app.user_middleware[0].kwargs["hosts"] = ["My.Lan"]
    app.middleware_stack = None
    assert TestClient(app, base_url="http://127.0.0.1").get("/bare", headers={"host": host}).text == "bare"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "[::1].evil.example",
        "[::1]evil",
        "127.0.0.1:80@evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:http",
        "127.0.0.1/",
        "",
        "[::1",
    ],
)
def test_it_answers_to_no_other_name(client, host):
    assert client.get("/bare", headers={"host": host}).status_code == 421


FOREIGN = (
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "null"},
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:9"},
    {"origin": "http://127.0.0.1@evil.example"},
    {"sec-fetch-site": "cross-site", "hx-request": "true"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
)
CHANGES = (
    "/runs",
    "/runs/0123456789abcdef/cancel",
    "/runs/0123456789abcdef/again",
    "/runs/0123456789abcdef/report",
    "/runs/0123456789abcdef/forget",
    "/uploads",
    "/uploads/delete",
    "/my-device/keep",
    "/papers/fetch",
    "/papers/mark",
    "/papers/follow",
    "/papers/lists",
    "/papers/subscribe",
)


def test_every_change_is_known_here(app):
    taken = {
        route.path.replace("{id}", "0123456789abcdef")
        for route in app.routes
        if "POST" in (getattr(route, "methods", None) or ())
    }
    assert taken == set(CHANGES)


@pytest.mark.parametrize("path", CHANGES)
def test_another_site_changes_nothing(client, path):
    for headers in FOREIGN:
        assert client.post(path, headers=headers, data={"kind": "simulate"}).status_code == 403, headers
    assert client.get(path.replace("/forget", "/cancel")).status_code in (200, 404, 405, 422)


def test_another_site_may_link_here_and_ask_for_nothing_by_itself(client):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/bare", headers=link).status_code == 200
    for mode, dest in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("no-cors", "script")):
        inputs = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": dest}
        assert client.get("/bare", headers=inputs).status_code == 403
        assert client.get("/bare", headers=inputs | {"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/nothing", "/design?tp=0", "/broken", "/bare"])
def test_every_answer_says_what_a_browser_may_do_with_it(client, path):
    answer = client.get(path)
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "secret" not in answer.text
    assert "unsafe-eval" not in HEADERS["content-security-policy"]


def test_requests_have_a_size(client):
    assert client.get(f"/bare?{'x' * MAX_ADDRESS_BYTES}").status_code == 414
    assert client.post("/runs", content=b"x" * (MAX_BODY_BYTES + 1)).status_code == 413
    form = {"content-type": "application/x-www-form-urlencoded"}  # in parts that tell no size beforehand
    assert client.post("/runs", content=iter([b"x" * 1_000_000] * 5), headers=form).status_code == 413


class Markup(HTMLParser):
    """Every tag and attribute of a page; a block of JSON is data, which no browser runs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.bad += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]
        given = dict(attrs)
        is_ours = given.get("src", "").startswith("/static/") or given.get("type") == "application/json"
        if (tag == "script" and not is_ours) or given.get("src") == "x":
            self.bad.append(tag)


@pytest.mark.parametrize(
    "path",
    [
        f"/?{{}}={EVIL}",
        f"/design?{{}}={EVIL}",
        f"/compare?a.{{}}={EVIL}",
        f"/sweep?{{}}={EVIL}",
        f"/training?{{}}={EVIL}",
        f"/plans?{{}}={EVIL}",
        f"/runs/new?kind=sweep&{{}}={EVIL}",
        f"/runs?text={EVIL}&kind={EVIL}",
        f"/papers?q={EVIL}",
        f"/sweep?vary=tp&values={EVIL}&by={EVIL}",
        f"{DESIGN}&format={EVIL}",
        f"/papers/{EVIL}",
        f"/runs/{EVIL}",
        f"/design/why?path={EVIL}&at={EVIL}",
        f"/papers/subscribe?address={EVIL}&search={EVIL}",
        f"/report?as={EVIL}",
    ],
)
def test_names_are_words_and_no_markup(client, path):
    for name in ("model", "device", "trace", "slo", "load", "engine") if "{}" in path else ("",):
        answer = client.get(path.format(name))
        assert answer.status_code < 500
        assert not Markup(answer.text).bad
        assert "<script>alert" not in answer.text


PATHS = (
    "/etc/passwd",
    "../../etc/passwd",
    "~/.ssh/id_rsa",
    ".",
    "upload:../runs.sqlite",
    "upload:/etc/passwd",
    "upload:..%2f..%2fx.json",
    "/etc/x.toml",
    "x.toml",
    "x.json",
    "a\0b",
    "\\\\host\\share\\x.toml",
    "upload:",
    "upload:.x",
)


@pytest.mark.parametrize("value", PATHS)
def test_no_name_is_a_path_of_this_machine(client, value, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("orrery.catalog.devices._from_user", lambda path: opened.append(str(path)))
    monkeypatch.setattr("orrery.catalog.models.read_model", lambda path: opened.append(str(path)))
    monkeypatch.setattr("orrery.catalog.corrected.read_corrected", lambda name, *_: opened.append(name))
    for name in ("model", "device", "trace", "engine", "draft_model", "prefill_device", "verifier_model"):
        one = {"model": "llama-3.1-8b", "device": "h100-sxm", "concurrency": "4"} | {name: value}
        assert client.get("/design", params=one | {"format": "json"}).status_code in (200, 422)
        assert client.get("/runs/new", params=one).status_code in (200, 422)
        if name != "verifier_model":  # which a run does not read
            assert client.post("/runs", data=one | {"kind": "simulate", "num_requests": "10"}).status_code == 422
    for listed in (f"h100-sxm,{value}", f"{value},h100-sxm", f"h100-sxm,{value},h100-sxm"):
        assert client.get("/plans", params={"model": "llama-3.1-8b", "device": listed}).status_code == 422
    assert opened == []


ABSURD = (
    *(
        f"{DESIGN}&{name}={value}"
        for name in ("tp", "pp", "dp", "devices", "max_num_seqs", "max_num_batched_tokens")
        for value in ("4096", "1000000000000", NUMBER)
    ),
    *(
        f"{DESIGN}&{name}={value}"
        for name in ("concurrency", "rate", "usd_per_hour", "gpu_memory_utilization")
        for value in ("1e308", "-1e308", "nan", "inf", "1e-308", NUMBER)
    ),
    f"{DESIGN}&input_tokens=99999999&output_tokens=99999999",
    f"{DESIGN}&output_tokens=999999999999999999",
    f"/design/why?path=tpot_s&at={NUMBER}",
    "/design/why?path=tpot_s&at=²",
    f"{DESIGN}&format=svg&drawing={NUMBER}",
    f"{TRAINING}&format=svg&drawing={NUMBER}",
    f"{TRAINING}&global_batch=100000000000",
    f"{TRAINING}&pp=8&micro_batch=1&global_batch=100000000",
    f"{TRAINING}&pp=4&vp=1000000",
    f"{TRAINING}&seq_len=1e15",
    f"{TRAINING}&devices=1000000000&pp=1000000000",
    "/sweep?vary=concurrency&from=1&to=1e300&points=60",
    "/sweep?vary=concurrency&from=1&to=2&points=1e18",
    f"/sweep?vary=tp&values={'1,' * 4000}",
    "/sweep?vary=tp&at=1e300",
    f"/sweep?vary=output_tokens&from=1&to={NUMBER}",
    f"/papers?page={NUMBER}",
    "/papers/trending?date=99999-01-01",
    f"/compare?a.tp={NUMBER}&b.tp=2",
    f"/runs/new?num_requests={NUMBER}",
)


@pytest.mark.parametrize("path", ABSURD, ids=range(len(ABSURD)))
def test_absurd_numbers_are_answered_soon_and_small(client, path):
    before, started_s = _most_bytes(), time.perf_counter()
    answer = client.get(path)
    assert answer.status_code in (200, 404, 422), answer.text[:300]
    assert time.perf_counter() - started_s < MAX_S
    assert _most_bytes() - before < MAX_GROWTH_BYTES
    assert len(answer.content) < 1_000_000


def _most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_absurd_runs_are_refused_before_they_wait(client):
    base = {
        "kind": "simulate",
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "rate": "5",
        "input_tokens": "10",
        "output_tokens": "10",
        "num_requests": "100",
    }
    for change in (
        {"num_requests": NUMBER},
        {"num_requests": "1000001"},
        {"rate": "nan"},
        {"window": "0:nan"},
        {"kind": "sweep", "sweep": "num_requests=" + ",".join(map(str, range(1, 400)))},
        {"kind": "sweep", "sweep": "tp=1:1e18:1"},
        {"kind": "os.system"},
        {"kind": "report"},
    ):
        started_s = time.perf_counter()
        assert client.post("/runs", data=base | change).status_code == 422, change
        assert time.perf_counter() - started_s < MAX_S
    assert client.app.state.work.list() == ()


def test_what_a_mistake_says_names_no_place(app, client):
    folder = app.state.place.uploads
    (folder / "mine-12345678.json").write_text("{}")
    for path in (
        f"{DESIGN}&model=upload:mine-12345678.json",
        "/plans?device=upload:mine-12345678.json&model=llama-3.1-8b",
        f"{TRAINING}&model=upload:mine-12345678.json",
        f"{DESIGN}&trace=upload:mine-12345678.json",
        "/compare?a.model=upload:mine-12345678.json&a.device=h100-sxm",
    ):
        answer = client.get(path)
        assert str(folder) not in answer.text
        assert "upload:mine-12345678.json" in answer.text


@contextlib.contextmanager
def served(folder):
    """The address of a server in a thread of its own."""
    server = server_for(place_at(folder))
    with listening("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(20)
    assert not thread.is_alive()


def describe(address, request):
    """All that comes back for some bytes."""
    got = b""
    with socket.create_connection(address, timeout=20) as link, contextlib.suppress(ConnectionError):
        link.sendall(request)
        while piece := link.recv(65536):
            got += piece
    return got


def test_a_request_names_one_host_in_time(tmp_path, monkeypatch):
    """Two names are one too many; and a header that comes a letter now and then would hold a place for ever."""
    with served(tmp_path) as address:
        for hosts, status in (
            (b"", 400),
            (b"host: localhost\r\n" * 2, 400),
            (b"host: localhost\r\nhost: evil.example\r\n", 400),
            (b"host: evil.example\r\n", 421),
            (b"host: localhost\r\n", 200),
            (b"host: 192.168.1.7:8080\r\n", 200),
        ):
            got = describe(address, b"GET /static/style.css HTTP/1.1\r\nconnection: close\r\n" + hosts + b"\r\n")
            assert got.startswith(b"HTTP/1.1 %d" % status), (hosts, got[:200])
        monkeypatch.setattr("orrery.base.connection.PATIENCE_S", 0.3)
        for start in (b"GET / HTTP/1.1\r\nhost: localhost\r\n", b"G", b""):
            begun_s = time.monotonic()
            assert describe(address, start) == b""
            assert time.monotonic() - begun_s < 15
        assert describe(address, b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"a: b\r\n" * 60_000)[:12] in (
            b"HTTP/1.1 431",
            b"",
        )


def test_a_form_that_is_too_large_is_refused_in_words_that_arrive(tmp_path):
    """The client sends all of it before it reads."""
    head = "POST /uploads HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 20000000\r\n\r\n"
    with served(tmp_path) as address:
        got = describe(address, head.encode() + b"x" * 20_000_000)
    assert got.startswith(b"HTTP/1.1 413")
    assert TOO_LARGE.encode() in got


@pytest.mark.parametrize("name", ["model", "device", "engine", "trace", "weights", "load"])
def test_a_name_of_300_letters_is_no_fault_of_ours(client, name):
    inputs = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "concurrency": "4",
        "input_tokens": "9",
        "output_tokens": "9",
    }
    for page in ("/design", "/plans", "/", "/sweep", "/training"):
        answer = client.get(page, params={**inputs, name: "x" * 300})
        assert answer.status_code in (200, 422), (page, answer.status_code)

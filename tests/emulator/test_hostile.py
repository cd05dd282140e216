"""What is done to a server to harm it: it answers, or cuts off, and whoever else is served notices nothing."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import threading
import time
from itertools import pairwise

import httpx
import pytest

JSON = {"content-type": "application/json"}
CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
ALWAYS = {"include_usage": True, "continuous_usage_stats": True}
LONG = {"prompt": [1] * 8, "max_tokens": 1000, "ignore_eos": True, "stream": True}


def address(found):
    host, port = found.url.removeprefix("http://").split(":")
    return host, int(port)


def raw(found, *parts, patience_s=5.0, gap_s=0.0):
    """All that comes back for some bytes."""
    got = b""
    with socket.create_connection(address(found), timeout=patience_s) as link, contextlib.suppress(OSError):
        for part in parts:
            link.sendall(part)
            time.sleep(gap_s)
        while piece := link.recv(65536):
            got += piece
    return got


def post(body, path="/v1/completions", close=True):
    """A request as it goes over the network."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
    )
    return head.encode() + (b"connection: close\r\n" if close else b"") + b"\r\n" + data


def num_tasks(found):
    return len(asyncio.all_tasks(found.pace._loop))


@pytest.fixture(scope="module")
def http(fast):
    with httpx.Client(base_url=fast.url, timeout=10) as found:
        yield found


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"messages": ' + DEEP,
        b'{"nothing": ' + DEEP + b"]" * 100_000 + b', "messages": []}',
        b'{"tools": ' + b'{"a":' * 100_000,
        b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": NaN}',
        b'{"messages": [], "n": 1e999}',
        b"\x00" * 1000,
        b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 9223372036854775808}',
        b'{"messages": [{"role": "user", "content": "a"}], "temperature": 1e400}',
        b"\xef\xbb\xbf{}",
        b"1" * 1_000_000,
    ],
)
def test_bodies_that_are_no_requests(http, body):
    for path in ("chat/completions", "completions", "messages", "embeddings"):
        response = http.post(f"/v1/{path}", content=body, headers=JSON)
        assert response.status_code == 400, (path, response.text[:300])
        assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 2**53},
        {"n": 129},
        {"prompt": ["a"] * 1025},
        {"prompt": [[1]] * 1000, "n": 128},
        {"prompt": [[1] * 4000] * 300, "max_tokens": 1},
        {"n": 128, "prompt": ["a"] * 8, "max_tokens": 8000},
        {"prompt": "a" * 200_000, "max_tokens": 1},
        {"prompt": [2**53 + 1]},
        {"prompt": [-1]},
        {"prompt": []},
        {"stop": ["x" * 257]},
        {"stop": ["x"] * 33},
        {"min_tokens": 8192},
        {"seed": 2**63},
    ],
)
def test_requests_that_are_too_much(http, fast, body):
    begun_s = time.perf_counter()
    response = http.post("/v1/completions", json={"prompt": "a"} | body)
    assert response.status_code == 400, response.text[:300]
    assert time.perf_counter() - begun_s < 10.0, "refused before any work goes into it"
    assert not fast.pace.streams


def test_nothing_long_comes_back_or_is_kept(http, fast):
    for path, field in (
        ("embeddings", "encoding_format"),
        ("completions", "model"),
        ("completions", "prompt_logprobs"),
    ):
        response = http.post(f"/v1/{path}", json={"input": "a", "prompt": "a", field: "x" * 100_000})
        assert response.status_code in (400, 404)
        assert len(response.content) < 2000
    assert http.post("/v1/completions", json={"prompt": "a", "max_tokens": 1, "user": "x" * 100_000}).status_code == 200
    live = fast.pace.live
    assert all(isinstance(name, int) for known in (live._clients, live._sessions) for name in known._numbers)


def test_trailers_without_an_end_are_cut_off(fast, monkeypatch):
    monkeypatch.setattr("orrery.base.connection.MAX_MESSAGE_BYTES", 300_000)
    head = b"POST /nothing HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: "
    begun_s = time.perf_counter()
    got = raw(fast, head, *[b"y" * 50_000] * 20)
    assert got.startswith(b"HTTP/1.1 404") or not got  # a reset may come first
    assert time.perf_counter() - begun_s < 10, "before anybody loses patience"


def test_whoever_has_fallen_behind_listens_meanwhile(start, monkeypatch, until):
    """An hour that passes while the machine does something else is made up for in small pieces."""
    monkeypatch.setattr("orrery.emulator.pace.MAX_ROWS", 50)
    with start(has_admin=True) as found:
        sizes, advance = [], found.pace.live.advance

        def seen(until_s, most_rows=0):
            usage_json = advance(until_s, most_rows)
            sizes.append(usage_json.id.size)
            return usage_json

        found.pace.live.advance = seen
        with httpx.stream("POST", f"{found.url}/v1/completions", json=LONG | {"n": 4}) as response:
            lines = response.iter_lines()
            next(lines)
            found.pace._start -= 3600.0
            found.pace._loop.call_soon_threadsafe(found.pace._ring)
            text = "".join(lines)
        until(lambda: not found.pace.streams)
        assert text.count('"finish_reason":"length"') == 4
        assert max(sizes) <= 50 + 8
        assert sum(sizes) == 4 * 1001, "each token, and an end"


def test_letters_that_no_text_has_are_served(http):
    body = {"prompt": "a\x00b\u0007 \u202e \U0010ffff", "max_tokens": 1, "user": "\x00", "cache_salt": "\x00"}
    assert http.post("/v1/completions", json=body).status_code == 200
    assert http.post("/v1/completions", json={"prompt": "a", "model": "\x00" * 10_000}).status_code == 404


@pytest.mark.parametrize(
    "kind", ["", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_bodies_of_another_kind(http, kind):
    response = http.post("/v1/chat/completions", content=json.dumps(CHAT), headers={"content-type": kind})
    assert response.status_code == 415
    assert "application/json" in response.json()["error"]["message"]


def test_other_methods_are_refused_and_what_may_be_done_is_told(http):
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        response = http.request(method, "/v1/chat/completions")
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert http.request("POST", "/metrics").status_code == 405
    for path in ("/../etc/passwd", "/v1/%2e%2e/admin", "/v1/models/", "//v1/models", "/%00", "/v1/" + "a" * 9000):
        assert http.get(path).status_code in (400, 404)


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: a\x00b\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_400_and_the_door(fast, request_):
    assert raw(fast, request_).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"", 400),
        (b"host: localhost\r\nhost: localhost\r\n", 400),
        (b"host: localhost\r\nhost: evil.example\r\n", 400),
        (b"host: evil.example:1\r\n", 421),
        (b"host: localhost.evil.example\r\n", 421),
        (b"host: \xff\xfe\r\n", 421),
        (b"host: localhost:8000\r\n", 200),
        (b"host: 127.0.0.1\r\n", 200),
        (b"host: [::1]:8000\r\n", 200),
        (b"host: 192.168.1.7:8000\r\n", 200),  # no page of another site stands under an address in numbers
    ],
)
def test_it_is_asked_by_one_name_of_its_own(fast, host, status):
    got = raw(fast, b"GET /health HTTP/1.1\r\n" + host + b"connection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 %d" % status)


def test_other_names_are_allowed_one_by_one(start):
    with start(hosts=("My.Service",)) as found:
        for host, status in ((b"my.service:80", 200), (b"other.service", 421)):
            got = raw(found, b"GET /health HTTP/1.1\r\nhost: " + host + b"\r\nconnection: close\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 %d" % status)


def test_a_body_that_is_announced_too_large_is_not_waited_for(fast):
    for expects in (b"", b"expect: 100-continue\r\n"):
        head = b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" + expects
        begun_s = time.perf_counter()
        got = raw(fast, head + b"content-length: 99999999999\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 413")
        assert time.perf_counter() - begun_s < 10


def test_a_body_that_is_refused_is_thrown_away_until_it_ends(fast):
    """Whoever sends it all before it reads finds the refusal in its words, whether the connection stays or ends."""
    for close in (True, False):
        with socket.create_connection(address(fast), timeout=10) as link:
            link.sendall(post(b" " * 20_000_000, close=close))
            assert b"larger than 10,000,000 bytes" in link.recv(65_536)


def test_a_refused_body_without_an_end_is_cut_off(fast, monkeypatch):
    monkeypatch.setattr("orrery.base.connection.MAX_MESSAGE_BYTES", 20_000_000)
    head = post(b" ", close=True).replace(b"content-length: 1\r\n", b"transfer-encoding: chunked\r\n")
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with socket.create_connection(address(fast), timeout=10) as link:
        link.sendall(head.removesuffix(b" "))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            link.sendall(piece * 1500)


def test_nothing_is_done_behind_the_last_answer(fast):
    """A request behind one that ends the connection is not served, though it came at once."""
    first = post(b" " * 11_000_000, close=True)
    got = raw(fast, first + post(CHAT, "/v1/chat/completions"))
    assert got.count(b"HTTP/1.1 ") == 1
    assert got.startswith(b"HTTP/1.1 413")


def test_many_headers_are_refused(fast):
    flood = b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"a: b\r\n" * 60_000
    assert raw(fast, *[flood[k : k + 50_000] for k in range(0, len(flood), 50_000)])[:12] in (b"HTTP/1.1 431", b"")


@pytest.mark.parametrize("start_of", [b"GET /health HTTP/1.1\r\nhost: localhost\r\n", b"G"])
def test_headers_that_come_too_slowly_are_cut_off(fast, monkeypatch, start_of):
    monkeypatch.setattr("orrery.base.connection.PATIENCE_S", 0.2)
    begun_s = time.perf_counter()
    assert raw(fast, start_of) == b""
    assert 0.15 < time.perf_counter() - begun_s < 10


def test_a_body_that_comes_too_slowly_gets_408(fast, monkeypatch):
    monkeypatch.setattr("orrery.emulator.exchange.PATIENCE_S", 0.2)
    assert raw(fast, post(CHAT)[:-5]).startswith(b"HTTP/1.1 408")


def test_a_body_that_nobody_reads_may_not_trickle_for_ever(fast, monkeypatch):
    monkeypatch.setattr("orrery.base.connection.BODY_PATIENCE_S", 0.4)
    begun_s = time.perf_counter()
    got = raw(fast, post(b" " * 1000, path="/nothing", close=False)[:-999], *[b" "] * 20, gap_s=0.05)
    assert got.startswith(b"HTTP/1.1 404") or not got  # a reset may come first
    assert time.perf_counter() - begun_s < 10


def test_a_client_that_reads_nothing_is_cut_off(start, monkeypatch, until):
    monkeypatch.setattr("orrery.base.connection.PATIENCE_S", 0.5)
    with start(speed_ratio=200.0) as found, socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(address(found))
        link.sendall(post(LONG | {"n": 8, "max_tokens": 8000, "stream_options": ALWAYS}))
        until(lambda: found.pace.streams)
        until(lambda: not found.pace.streams, 20)
        until(lambda: not found.server.server_state.connections)


def test_requests_in_one_go_are_answered_in_order(fast):
    request = (
        post({"prompt": "a", "max_tokens": 3, "seed": 1}, close=False)
        + b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n"
    )
    got = raw(fast, request + b"GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert [x[:3] for x in got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]
    assert got.index(b'"text_completion"') < got.index(b'"version"') < got.index(b"NotFoundError")


def test_a_dropped_stream_ends_though_another_request_waits_behind_it(start, until):
    with start() as found:
        with socket.create_connection(address(found)) as link:
            link.sendall(post(LONG, close=False) + post(LONG))
            assert link.recv(100)
        until(lambda: found.pace.meters.ended[0, "abort"] == 1)
        assert not found.pace.streams


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def drop_streams(found, count, at_once=50):
    """Open streams and reset the connections after the first bytes."""

    async def one():
        reader, writer = await asyncio.open_connection(*address(found))
        writer.write(post(LONG))
        assert (await reader.read(100)).startswith(b"HTTP/1.1 200")
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()

    async def all_of_them():
        for _ in range(0, count, at_once):
            await asyncio.gather(*(one() for _ in range(at_once)))

    asyncio.run(all_of_them())


def check_nothing_is_left(found, until, count):
    until(lambda: num_tasks(found) <= 3)  # the server, the pace, and who looks after it
    idle = num_tasks(found)
    warm = min(200, count // 2)
    drop_streams(found, warm)
    until(lambda: not found.pace.streams)
    before_bytes = resident_bytes()
    drop_streams(found, count)
    until(lambda: not found.pace.streams and not found.server.server_state.connections)
    until(lambda: num_tasks(found) == idle)
    live = found.pace.live
    assert (live.snapshot().running.sum(), live.snapshot().waiting.sum(), live.snapshot().cache_frac.max()) == (0, 0, 0)
    assert found.pace.meters.ended[0, "abort"] == warm + count
    assert not found.pace._by_number
    assert not live._row_of
    return resident_bytes() - before_bytes


def test_dropped_streams_leave_nothing_behind(start, until):
    with start() as found:
        assert check_nothing_is_left(found, until, 100) < 20e6


@pytest.mark.slow
def test_thousands_of_dropped_streams_leave_nothing_behind(start, until):
    with start() as found:
        grown_bytes = check_nothing_is_left(found, until, 6000)
        print(f"\n6000 dropped streams: {grown_bytes / 1e6:.1f} MB more")
        assert grown_bytes < 20e6


@pytest.mark.slow
def test_another_stream_keeps_its_pace_meanwhile(start):
    """150 tokens at 6.5 ms are a second of the service; bad requests come all along."""
    usage_json = []

    def read():
        with httpx.stream(
            "POST", f"{found.url}/v1/completions", json=LONG | {"max_tokens": 150}, timeout=10
        ) as response:
            usage_json.extend(time.monotonic() for line in response.iter_lines() if line.startswith("data: {"))

    with start() as found, httpx.Client(base_url=found.url) as http:
        reader = threading.Thread(target=read)
        reader.start()
        count = 0
        while reader.is_alive():
            assert http.post("/v1/completions", content=DEEP, headers=JSON).status_code == 400
            assert http.post("/v1/completions", json={"prompt": "a" * 200_000}).status_code == 400
            assert raw(found, b"GARBAGE\r\n\r\n").startswith(b"HTTP/1.1 400")
            count += 3
        gaps = [b - a for a, b in pairwise(usage_json)]
        assert len(usage_json) == 150
        assert count > 20
        assert max(gaps) < 0.25
        assert sum(gaps) < 1.6

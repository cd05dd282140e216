"""What is sent wrongly, or to do harm, is answered with the right status and leaves nothing behind."""

import json
import socket

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def http(fast):
    with httpx.Client(base_url=fast.url, timeout=10) as found:
        yield found


def refused(response, status, param=None):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (status, param)
    assert error["type"].endswith("Error")
    return error["message"]


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"messages": ', b"\xff\xfe", b"null", b'{"messages": []}', b"[" * 5000]
)
def test_a_body_that_is_none(http, raw):
    response = http.post("/v1/chat/completions", content=raw, headers=JSON)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("max_tokens", "7"),
        ("max_tokens", -1),
        ("max_tokens", 0),
        ("max_tokens", 2**70),
        ("n", 0),
        ("n", 10**6),
        ("stop", [1]),
        ("stop", ["x"] * 100),
        ("stream", "yes"),
        ("temperature", -1),
        ("min_tokens", 50),
        ("messages", [{"content": "hi"}]),
        ("messages", [{"role": "user", "content": [{"type": "image_url"}]}]),
        ("tool_choice", "required"),
        ("stream_options", {}),
    ],
)
def test_a_field_that_cannot_be(http, param, value):
    message = refused(http.post("/v1/chat/completions", json=CHAT | {param: value}), 400, param)
    assert message


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["prompt", "messages", "max_tokens", "n", "stop", "stream", "seed", "model", "priority", "user"]
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(FIELDS, ANYTHING, max_size=5), path=st.sampled_from(["chat/completions", "completions"]))
def test_any_body_is_answered_or_refused(http, body, path):
    if isinstance(body.get("max_tokens"), int):
        body["max_tokens"] %= 50  # or it may take seconds
    response = http.post(f"/v1/{path}", json=body)
    assert response.status_code in (200, 400, 404), response.text
    if response.status_code != 200:
        assert response.json()["error"]["code"] == response.status_code


def test_what_is_not_there(http):
    refused(http.get("/v1/nothing"), 404)
    response = http.get("/v1/completions")
    refused(response, 405)
    assert response.headers["allow"] == "POST"
    refused(http.post("/v1/completions", content=b"prompt=a", headers={"content-type": "text/plain"}), 415)
    refused(http.post("/v1/completions", json={"prompt": "a", "model": "gpt"}), 404, "model")


def test_a_body_that_is_too_large_is_not_read(http, fast, until):
    def endless():
        for _ in range(300):
            yield b" " * 65_536

    for content in (b'{"prompt": "' + b"a" * 11_000_000 + b'"}', endless()):
        refused(http.post("/v1/completions", content=content, headers=JSON), 413)
    until(lambda: not fast.pace.streams)


def test_headers_without_an_end_are_cut_off(fast):
    host, port = fast.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n")
        got = b""
        try:
            for _ in range(1000):
                link.sendall(b"x: " + b"y" * 1000 + b"\r\n")
            got = link.recv(1000)
        except OSError:
            got = got or b"HTTP/1.1 431"  # reset before the answer was read
    assert got.startswith(b"HTTP/1.1 431")


def test_a_key_is_asked_for_where_there_is_one(start):
    with start(api_key="secret", speed_ratio=20.0) as found, httpx.Client(base_url=found.url) as http:
        refused(http.post("/v1/chat/completions", json=CHAT), 401)
        refused(http.get("/v1/models", headers={"authorization": "Bearer wrong"}), 401)
        assert http.get("/health").status_code == 200
        for headers in ({"authorization": "Bearer secret"}, {"x-api-key": "secret"}):
            assert http.post("/v1/chat/completions", json=CHAT, headers=headers).status_code == 200


def test_a_full_queue_turns_requests_away(start, until):
    body = {"prompt": "a", "max_tokens": 500, "ignore_eos": True, "stream": True}
    with start({"max_num_seqs": 1}, max_queued=1) as found, httpx.Client(base_url=found.url) as http:
        with http.stream("POST", "/v1/completions", json=body) as first:
            lines = first.iter_lines()
            next(lines)
            with http.stream("POST", "/v1/completions", json=body) as second:
                assert second.status_code == 200
                until(lambda: found.pace.live.num_waiting)
                third = http.post("/v1/completions", json=body)
        assert "queue is full" in refused(third, 429)
        assert int(third.headers["retry-after"]) >= 1
        assert found.pace.meters.refused["queue_full"] == 1


def test_requests_fail_on_purpose(start):
    with start(failure_frac=0.5, speed_ratio=20.0) as found, httpx.Client(base_url=found.url) as http:
        got = [http.post("/v1/chat/completions", json=CHAT).status_code for _ in range(40)]
    assert set(got) == {200, 429, 500, 503}
    assert 10 <= got.count(200) <= 30


def test_nothing_is_left(fast, until):
    until(lambda: not fast.pace.streams)
    assert fast.pace.live.snapshot().running.sum() == 0
    assert json.loads(httpx.get(f"{fast.url}/load").text) == {"server_load": 0}

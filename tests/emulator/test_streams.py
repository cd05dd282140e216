"""The events of a stream, byte for byte in their order."""

import asyncio
import json
import socket
import threading
import time

import httpx
import pytest

from orrery.emulator.exchange import Exchange


@pytest.fixture
def http(fast):
    with httpx.Client(base_url=fast.url, timeout=10) as found:
        yield found


def events(response):
    """The data of every event, and the end."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    parts = response.text.split("\n\n")
    assert parts[-1] == ""
    assert all(p.startswith("data: ") for p in parts[:-1])
    assert parts[-2] == "data: [DONE]"
    return [json.loads(p.removeprefix("data: ")) for p in parts[:-2]]


def chat(http, **more):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "stream": True, "seed": 1}
    return http.post("/v1/chat/completions", json=body | more)


def test_a_chat_begins_with_the_role_and_ends_with_the_reason(http):
    found = events(chat(http))
    words = [e["choices"][0]["delta"]["content"] for e in found[1:]]
    same = {"object": "chat.completion.chunk", "model": "llama", "id": found[0]["id"], "created": found[0]["created"]}
    deltas = [{"role": "assistant", "content": ""}, *({"content": w} for w in words)]
    reasons = [None, None, None, "length"]
    assert found == [
        {**same, "choices": [{"index": 0, "delta": d, "logprobs": None, "finish_reason": r}]}
        for d, r in zip(deltas, reasons, strict=True)
    ]
    assert list(found[0]) == ["id", "object", "created", "model", "choices"]
    assert found[0]["id"].startswith("chatcmpl-")


def test_usage_comes_last_with_no_choices(http):
    found = events(chat(http, stream_options={"include_usage": True}))
    assert found[-1]["choices"] == []
    usage = found[-1]["usage"]
    assert usage["completion_tokens"] == 3
    assert usage["total_tokens"] == 3 + usage["prompt_tokens"]
    assert not any("usage" in e for e in found[:-1])


def test_usage_in_every_chunk_is_that_of_its_answer(http):
    """And only where usage is asked for at all, as the engine has it."""
    found = events(chat(http, n=2, stream_options={"include_usage": True, "continuous_usage_stats": True}))
    prompt = found[-1]["usage"]["prompt_tokens"]
    assert found[-1]["usage"]["completion_tokens"] == 6
    for index in (0, 1):
        mine = [e["usage"] for e in found[:-1] if e["choices"][0]["index"] == index]
        assert [u["completion_tokens"] for u in mine] == [0, 1, 2, 3]
        assert [u["total_tokens"] for u in mine] == [prompt + k for k in range(4)]
    assert not any("usage" in e for e in events(chat(http, stream_options={"continuous_usage_stats": True})))


def test_what_has_piled_up_is_sent_in_pieces(fast, monkeypatch):
    """As of a client that reads late: nothing is left out or said twice, though more comes meanwhile."""
    monkeypatch.setattr("orrery.emulator.events.MAX_AT_ONCE", 3)
    begin_events = Exchange.begin_events

    async def late(exchange):
        await begin_events(exchange)
        await asyncio.sleep(0.1)

    monkeypatch.setattr(Exchange, "begin_events", late)
    body = {"prompt": "a", "max_tokens": 400, "n": 2, "stream": True, "seed": 5, "ignore_eos": True}
    whole = httpx.post(f"{fast.url}/v1/completions", json=body | {"stream": False}).json()["choices"]
    found = [e["choices"][0] for e in events(httpx.post(f"{fast.url}/v1/completions", json=body))]
    for index in (0, 1):
        mine = [c for c in found if c["index"] == index]
        assert "".join(c["text"] for c in mine) == whole[index]["text"]
        assert [c["finish_reason"] for c in mine] == [None] * 399 + ["length"]


def test_a_completion_has_no_role(http):
    found = events(http.post("/v1/completions", json={"prompt": "a", "max_tokens": 2, "stream": True}))
    assert [e["choices"][0]["finish_reason"] for e in found] == [None, "length"]
    assert set(found[0]["choices"][0]) == {"index", "text", "logprobs", "finish_reason"}
    assert found[0]["object"] == "text_completion"
    assert found[0]["id"].startswith("cmpl-")


def test_each_of_several_answers_ends(http):
    found = [e["choices"][0] for e in events(chat(http, n=3))]
    assert [c["index"] for c in found if "role" in c["delta"]] == [0, 1, 2]
    assert sorted(c["index"] for c in found if c["finish_reason"]) == [0, 1, 2]
    assert len(found) == 3 + 9


def test_the_request_keeps_its_name(http):
    given = chat(http, stream=False).headers["x-request-id"]
    assert given
    response = http.post("/v1/completions", json={"prompt": "a"}, headers={"x-request-id": "mine-7"})
    assert response.headers["x-request-id"] == "mine-7"
    assert response.json()["id"] == "cmpl-mine-7"


def test_messages_in_the_other_interface(http):
    body = {"model": "llama", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}], "system": "Be brief."}
    whole = http.post("/v1/messages", json=body).json()
    assert whole["stop_reason"] == "max_tokens"
    assert whole["usage"]["output_tokens"] == 2
    assert len(whole["content"][0]["text"].split()) == 2
    lines = http.post("/v1/messages", json=body | {"stream": True}).text.splitlines()
    assert [x.removeprefix("event: ") for x in lines if x.startswith("event: ")] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_a_message_says_which_string_ended_it(http):
    body = {"model": "llama", "max_tokens": 400, "messages": [{"role": "user", "content": "hi"}], "temperature": 0}
    text = http.post("/v1/messages", json=body).json()["content"][0]["text"]
    stop = " ".join(text.split()[20:22])
    body |= {"stop_sequences": ["never", stop]}
    whole = http.post("/v1/messages", json=body).json()
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", stop)
    assert whole["content"][0]["text"] == text[: text.index(stop)]
    lines = http.post("/v1/messages", json=body | {"stream": True}).text.splitlines()
    usage_json = [json.loads(x.removeprefix("data: ")) for x in lines if x.startswith("data: ")]
    assert usage_json[0]["message"]["stop_sequence"] is None
    assert usage_json[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": stop}


def test_tokens_there_and_back(http):
    text = "Größe ist 12345 — naïve 漢字 and 🙂 <tag>!\n  indented\tunbelievably"
    found = http.post("/tokenize", json={"prompt": text, "return_token_strs": True}).json()
    assert found["count"] == len(found["tokens"]) == len(found["token_strs"])
    assert http.post("/detokenize", json={"tokens": found["tokens"]}).json() == {"prompt": text}
    chat = http.post("/tokenize", json={"messages": [{"role": "user", "content": "hi"}]}).json()
    assert chat["count"] > 1
    for wrong in ([3], [353] * 8193):
        assert http.post("/detokenize", json={"tokens": wrong}).status_code == 400


def test_small_pages(http):
    assert http.get("/health").status_code == http.get("/ping").status_code == http.post("/ping").status_code == 200
    assert http.get("/health").content == b""
    assert set(http.get("/version").json()) == {"version"}
    assert http.get("/load").json() == {"server_load": 0}
    assert http.head("/v1/models").status_code == 200


def test_a_client_that_hangs_up_leaves_nothing_behind(start):
    body = {"prompt": "a", "max_tokens": 4000, "stream": True, "ignore_eos": True}
    with start() as found, httpx.Client(base_url=found.url) as http:
        for _ in range(3):
            with http.stream("POST", "/v1/completions", json=body) as response:
                next(response.iter_lines())
        with pytest.raises(httpx.ReadTimeout):
            http.post("/v1/completions", json=body | {"stream": False}, timeout=0.1)
        end = time.monotonic() + 5
        while (found.pace.streams or found.server.server_state.tasks) and time.monotonic() < end:
            time.sleep(0.01)
        assert not found.pace.streams
        assert not found.server.server_state.tasks
        assert found.pace.live.snapshot().running.sum() == 0
        assert found.pace.meters.ended[0, "abort"] == 4


@pytest.mark.slow
def test_a_client_that_reads_late_gets_everything(start):
    body = {
        "prompt": "a",
        "max_tokens": 4000,
        "n": 4,
        "stream": True,
        "ignore_eos": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    raw = json.dumps(body).encode()
    head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(raw)}"
    with start(speed_ratio=20.0) as found, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, port = found.url.removeprefix("http://").split(":")
        client.connect((host, int(port)))
        client.sendall(f"{head}\r\nconnection: close\r\n\r\n".encode() + raw)
        (stream,) = wait_for(lambda: list(found.pace.streams))
        wait_for(lambda: len(stream.pending) > 1000)
        got = bytearray()
        while data := client.recv(1 << 20):
            got += data
    assert got.count(b"data: {") == 16_001
    assert got.count(b'"finish_reason":"length"') == 4
    assert got.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def wait_for(what, most_s=60):
    """The first that is not empty."""
    end_s = time.monotonic() + most_s
    while not (found := what()):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("path", ["completions", "messages"])
def test_a_server_that_stops_ends_its_streams(start, path):
    got = []

    def read():
        body = {"max_tokens": 8000, "stream": True, "model": "llama"}
        body |= {"prompt": "a"} if path == "completions" else {"messages": [{"role": "user", "content": "hi"}]}
        with httpx.stream("POST", f"{url}/v1/{path}", json=body, timeout=10) as response:
            for line in response.iter_lines():
                got.append(line)

    with start() as found:
        url = found.url
        reader = threading.Thread(target=read)
        reader.start()
        while len(got) < 3:
            time.sleep(0.01)
    reader.join(5)
    usage_json = [x for x in got if x]
    if path == "messages":
        assert usage_json[-2] == "event: error"
        error = json.loads(usage_json[-1].removeprefix("data: "))
        assert error == {"type": "error", "error": {"type": "overloaded_error", "message": error["error"]["message"]}}
        return
    assert usage_json[-1] == "data: [DONE]"
    assert json.loads(usage_json[-2].removeprefix("data: "))["error"]["code"] == 503

"""The Responses interface, as the openai client uses it."""

import json

import httpx
import jsonschema_rs
import openai
import pytest
from pydantic import BaseModel

from orrery.emulator.refusal import RequestError
from orrery.emulator.responses import ResponseStore, Stored

TOOL = {
    "type": "function",
    "name": "find",
    "description": "Finds a place.",
    "parameters": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "maxLength": 9}}},
    "strict": True,
}
PERSON = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer", "minimum": 3}}}


class Person(BaseModel):
    name: str
    age: int


@pytest.fixture(scope="module")
def client(fast):
    with openai.OpenAI(base_url=f"{fast.url}/v1", api_key="any", max_retries=0) as found:
        yield found


def create(client, **more):
    return client.responses.create(**{"model": "llama", "input": "What time is it?", "max_output_tokens": 12, **more})


def test_a_response_is_made_whole(client):
    found = create(client, instructions="Be brief.", metadata={"a": "b"}, user="me")
    assert len(found.output_text.split()) == 12
    assert (found.status, found.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (found.usage.output_tokens, found.usage.input_tokens_details.cached_tokens) == (12, 0)
    assert found.usage.total_tokens == found.usage.input_tokens + 12
    assert (found.object, found.metadata, found.instructions) == ("response", {"a": "b"}, "Be brief.")
    (item,) = found.output
    assert (item.type, item.role, item.status) == ("message", "assistant", "incomplete")
    open_ended = client.responses.create(model="llama", input="Hello")
    assert (open_ended.status, open_ended.usage.output_tokens) == ("completed", 256)
    assert create(client, instructions=None).usage.input_tokens < found.usage.input_tokens


ORDER = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    *["response.output_text.delta"] * 256,
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


def test_events_are_typed_numbered_and_in_order(client):
    found = list(client.responses.create(model="llama", input="Hello", stream=True))
    assert [e.type for e in found] == ORDER
    assert [e.sequence_number for e in found] == list(range(len(ORDER)))
    text = "".join(e.delta for e in found if e.type == "response.output_text.delta")
    last = found[-1].response
    assert last.output_text == found[-4].text == found[-2].item.content[0].text == text
    assert last.id == found[0].response.id
    assert found[0].response.usage is None
    assert last.usage.output_tokens == 256
    assert client.responses.retrieve(last.id).output == last.output
    assert list(create(client, stream=True))[-1].type == "response.incomplete"


def test_the_clients_own_stream_puts_it_together(client):
    with client.responses.stream(model="llama", input="Hello") as stream:
        words = [e.delta for e in stream if e.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert final.output_text == "".join(words)
    assert final.usage.output_tokens == len(words) == 256


def test_created_comes_before_the_first_token(start):
    """The prompt of 7,000 words takes the deployment some 0.2 s, here 0.5; the first event does not wait for it."""
    body = {"model": "llama", "input": "word " * 7000, "max_output_tokens": 2, "stream": True}
    with start(speed_ratio=0.4) as found, httpx.stream("POST", f"{found.url}/v1/responses", json=body) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: response.created"
        assert found.pace.streams, "it is still being computed"
        (stream,) = found.pace.streams
        assert stream.choices[0].num_tokens == 0
        assert any("response.incomplete" in line for line in lines)


def test_messages_instructions_and_calls_are_read(client):
    turns = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Where am I?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"city":"Ulm"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Ulm, on the Danube"},
    ]
    counts = [create(client, input=turns[:k]).usage.input_tokens for k in range(1, 6)]
    assert counts == sorted(set(counts))
    assert create(client, input=turns, tools=[TOOL]).usage.input_tokens > counts[-1] + 20


def test_a_forced_function_is_called_whole_and_streamed(client):
    for choice in ("required", {"type": "function", "name": "find"}):
        found = create(client, tools=[TOOL], tool_choice=choice, max_output_tokens=100, temperature=0)
        (call,) = found.output
        assert (call.type, call.name, call.status, found.status) == ("function_call", "find", "completed", "completed")
        jsonschema_rs.validate(TOOL["parameters"], json.loads(call.arguments))
        events = list(
            create(client, tools=[TOOL], tool_choice=choice, max_output_tokens=100, temperature=0, stream=True)
        )
        deltas = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
        assert [e.type for e in events if "delta" not in e.type] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert "".join(deltas) == call.arguments == events[-3].arguments
    assert create(client, tools=[TOOL], tool_choice="auto").output[0].type == "message"


def test_a_loop_of_calls_goes_on_by_id(client):
    """As agents do it: a call, its result, an answer; what was read before comes from the cache."""
    text = "Find my city. " + "It is on a river, and has the tallest church of all. " * 20
    first = create(client, input=text, tools=[TOOL], tool_choice="required", max_output_tokens=100)
    result = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "Ulm"}
    second = create(client, input=[result], previous_response_id=first.id, tools=[TOOL])
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.input_tokens
    assert second.usage.input_tokens_details.cached_tokens >= 0.8 * first.usage.input_tokens
    third = create(client, input="And now?", previous_response_id=second.id)
    assert third.usage.input_tokens > 12


def test_text_of_a_schema(client):
    text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
    found = create(client, text=text, max_output_tokens=200)
    jsonschema_rs.validate(PERSON, json.loads(found.output_text))
    assert found.status == "completed"
    assert isinstance(json.loads(create(client, text={"format": {"type": "json_object"}}).output_text), dict)
    parsed = client.responses.parse(model="llama", input="Who?", text_format=Person, max_output_tokens=900)
    assert isinstance(parsed.output_parsed, Person)


def test_log_probabilities_where_they_are_included(client):
    more = {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "temperature": 0}
    part = create(client, **more).output[0].content[0]
    assert "".join(t.token for t in part.logprobs) == part.text
    assert {len(t.top_logprobs) for t in part.logprobs} == {2}
    events = list(create(client, stream=True, **more))
    deltas = [e.logprobs for e in events if e.type == "response.output_text.delta"]
    assert [d[0].logprob for d in deltas] == [t.logprob for t in part.logprobs]
    assert events[-1].response.output[0].content[0].logprobs == part.logprobs
    assert create(client).output[0].content[0].logprobs == []


def test_what_is_stored_can_be_asked_for_and_deleted(client):
    found = create(client)
    assert client.responses.retrieve(found.id) == found
    client.responses.delete(found.id)
    hidden = create(client, store=False)
    for id in (found.id, hidden.id):
        with pytest.raises(openai.NotFoundError, match="not found"):
            client.responses.retrieve(id)
        with pytest.raises(openai.NotFoundError) as caught:
            create(client, previous_response_id=id)
        assert caught.value.param == "previous_response_id"


def test_the_store_forgets_the_oldest():
    store = ResponseStore(max_count=3, max_bytes=100)
    for k in range(5):
        store.put(str(k), Stored({}, [], 10))
    assert [str(k) in store for k in range(5)] == [False, False, True, True, True]
    store.put("large", Stored({}, [], 85))
    assert ("4" in store, "large" in store, len(store)) == (True, True, 2)
    store.put("too large", Stored({}, [], 101))
    assert len(store) == 0
    store.put("running", Stored({}, [], 60, stream=object()))
    store.put("a", Stored({}, [], 60))
    assert "running" in store
    assert "a" not in store
    with pytest.raises(RequestError) as caught:
        store.check_room(41)
    assert caught.value.status == 429
    store.check_room(40)


def test_a_response_in_the_background(start, until):
    with start(speed_ratio=2.0) as found, openai.OpenAI(base_url=f"{found.url}/v1", api_key="any") as client:
        queued = client.responses.create(model="llama", input="Hello", background=True, max_output_tokens=8)
        assert (queued.status, queued.output) == ("queued", [])
        until(lambda: client.responses.retrieve(queued.id).status == "incomplete")
        assert len(client.responses.retrieve(queued.id).output_text.split()) == 8
        long = client.responses.create(model="llama", input="Hello", background=True, max_output_tokens=8000)
        until(lambda: client.responses.retrieve(long.id).status == "in_progress")
        with pytest.raises(openai.BadRequestError, match="still being made"):
            client.responses.create(model="llama", input="and?", previous_response_id=long.id)
        assert client.responses.cancel(long.id).status == "cancelled"
        assert not found.pace.streams
        assert found.pace.live.snapshot().running.sum() == 0
        assert client.responses.retrieve(long.id).status == "cancelled"
        for id in (long.id, queued.id):
            with pytest.raises(openai.BadRequestError, match="Cannot cancel"):
                client.responses.cancel(id)
        gone = client.responses.create(model="llama", input="Hello", background=True, max_output_tokens=8000)
        client.responses.delete(gone.id)
        assert not found.pace.streams


def test_a_server_that_stops_fails_its_responses(start):
    body = {"model": "llama", "input": "a", "max_output_tokens": 8000, "stream": True}
    with httpx.Client(timeout=10) as http:
        with start() as found:
            response = http.send(http.build_request("POST", f"{found.url}/v1/responses", json=body), stream=True)
            lines = response.iter_lines()
            while "delta" not in next(lines):
                pass
        last = [line for line in lines if line][-1]
    failed = json.loads(last.removeprefix("data: "))
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"]["code"] == "server_error"


@pytest.mark.parametrize(
    ("param", "more"),
    [
        ("input", {"input": []}),
        ("input", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
        ("input", {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}),
        ("max_output_tokens", {"max_output_tokens": 0}),
        ("max_output_tokens", {"max_output_tokens": 9000}),
        ("tools", {"tools": [{"type": "web_search"}]}),
        ("tool_choice", {"tool_choice": "required"}),
        ("tool_choice", {"tools": [TOOL], "tool_choice": {"type": "function", "name": "none"}}),
        ("text.format", {"text": {"format": {"type": "json_schema", "name": "x"}}}),
        ("truncation", {"truncation": "auto"}),
        ("background", {"background": True, "store": False}),
        ("background", {"background": True, "stream": True}),
        ("conversation", {"conversation": "conv_1"}),
        ("model", {"model": "gpt"}),
        ("top_logprobs", {"top_logprobs": 21}),
    ],
)
def test_what_cannot_be_is_refused_by_name(client, param, more):
    with pytest.raises(openai.APIStatusError) as caught:
        create(client, **more)
    assert caught.value.status_code == (404 if param == "model" else 400)
    assert caught.value.param == param


def test_other_paths_and_methods(fast):
    with httpx.Client(base_url=fast.url) as http:
        assert http.get("/v1/responses/resp_none").status_code == 404
        assert http.get("/v1/responses/").status_code == 404
        assert http.put("/v1/responses/resp_none").status_code == 405
        assert http.post("/v1/responses/resp_none/cancel").status_code == 404
        assert http.post("/v1/responses/resp_none/other").status_code == 404
        made = http.post("/v1/responses", json={"input": "a", "max_output_tokens": 1}).json()
        assert http.get(f"/v1/responses/{made['id']}?stream=true").status_code == 400

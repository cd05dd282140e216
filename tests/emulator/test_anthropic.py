"""Tools that a message in Anthropic's interface is made to call, whole and streamed."""

import json

import httpx
import jsonschema_rs
import pytest

HELLO = [{"role": "user", "content": "Where is the tallest church?"}]
FIND = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "maxLength": 9}}}
TOOLS = [
    {"name": "clock", "description": "Tells the time.", "input_schema": {}},
    {"name": "find", "input_schema": FIND},
]


@pytest.fixture(scope="module")
def ask(fast):
    with httpx.Client(base_url=fast.url, timeout=10) as http:

        def message(**more):
            body = {"model": "llama", "max_tokens": 100, "messages": HELLO, "tools": TOOLS, "temperature": 0}
            return http.post("/v1/messages", json=body | more)

        yield message


@pytest.mark.parametrize(("choice", "name"), [({"type": "any"}, "clock"), ({"type": "tool", "name": "find"}, "find")])
def test_a_forced_tool_is_used(ask, choice, name):
    whole = ask(tool_choice=choice).json()
    (block,) = whole["content"]
    assert (block["type"], block["name"], whole["stop_reason"]) == ("tool_use", name, "tool_use")
    assert block["id"].startswith("toolu_")
    jsonschema_rs.validate(FIND if name == "find" else {"type": "object", "maxProperties": 0}, block["input"])
    lines = ask(tool_choice=choice, stream=True).text.splitlines()
    found = [json.loads(x.removeprefix("data: ")) for x in lines if x.startswith("data: ")]
    deltas = [e["delta"] for e in found if e["type"] == "content_block_delta"]
    assert {d["type"] for d in deltas} == {"input_json_delta"}
    assert json.loads("".join(d["partial_json"] for d in deltas)) == block["input"]
    (start,) = [e["content_block"] for e in found if e["type"] == "content_block_start"]
    assert (start["type"], start["name"], start["input"]) == ("tool_use", name, {})
    (end,) = [e["delta"] for e in found if e["type"] == "message_delta"]
    assert end["stop_reason"] == "tool_use"
    assert whole["usage"]["output_tokens"] == len(deltas)


@pytest.mark.parametrize("choice", [None, {"type": "auto"}, {"type": "none"}])
def test_otherwise_it_speaks(ask, choice):
    whole = ask(**({"tool_choice": choice} if choice else {}), max_tokens=3).json()
    assert [b["type"] for b in whole["content"]] == ["text"]
    assert whole["stop_reason"] == "max_tokens"


def test_a_call_that_is_cut_has_no_input(ask):
    whole = ask(tool_choice={"type": "tool", "name": "find"}, max_tokens=2).json()
    assert (whole["content"][0]["input"], whole["stop_reason"]) == ({}, "max_tokens")


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": {"type": "tool", "name": "none"}},
        {"tool_choice": {"type": "tool"}},
        {"tool_choice": {"type": "some"}},
        {"tool_choice": {"type": "any"}, "tools": []},
        {"tool_choice": {"type": "any"}, "tools": [{"input_schema": {}}]},
        {"tool_choice": {"type": "any"}, "tools": [{"name": "x", "input_schema": {"pattern": "a"}}]},
    ],
)
def test_a_choice_that_cannot_be_is_refused(ask, more):
    response = ask(**more)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert "tool" in error["message"]


@pytest.mark.slow
def test_anthropics_own_client_reads_it(fast):
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=fast.url, api_key="any", max_retries=0) as client:
        more = {"model": "llama", "max_tokens": 100, "messages": HELLO, "tools": TOOLS}
        (block,) = client.messages.create(**more, tool_choice={"type": "tool", "name": "find"}).content
        jsonschema_rs.validate(FIND, block.input)
        with client.messages.stream(**more, tool_choice={"type": "any"}) as stream:
            final = stream.get_final_message()
        assert (final.content[0].name, final.stop_reason) == ("clock", "tool_use")

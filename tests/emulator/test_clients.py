"""What clients commonly send beside the question: taken as the engine takes it."""

import httpx
import pytest

COMMON = {
    "top_p": 0.9,
    "top_k": 40,
    "min_p": 0.1,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "repetition_penalty": 1.1,
    "logit_bias": {"1": 2},
    "metadata": {"a": "b"},
    "store": False,
    "parallel_tool_calls": True,
    "user": "me",
    "seed": 1,
    "temperature": 0.7,
    "logprobs": None,
    "response_format": {"type": "text"},
    "service_tier": "auto",
    "skip_special_tokens": True,
    "kv_transfer_params": {},
    "reasoning_effort": "low",
    "modalities": ["text"],
    "chat_template_kwargs": {},
    "nobody_knows": [1, {"a": None}],
}
HELLO = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def http(fast):
    with httpx.Client(base_url=fast.url, timeout=10) as found:
        yield found


@pytest.mark.parametrize("path", ["chat/completions", "completions"])
def test_what_changes_no_time_is_taken_and_left_alone(http, path):
    body = {"messages": HELLO, "prompt": "hi", "max_tokens": 3, **COMMON}
    response = http.post(f"/v1/{path}", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_logprobs", 5),
        ("prompt_logprobs", 1),
        ("use_beam_search", True),
        ("response_format", {"type": "json_schema"}),
        ("guided_regex", "a"),
        ("structured_outputs", {"regex": "a"}),
        ("tool_choice", "required"),
        ("tool_choice", {"type": "function"}),
        ("truncate_prompt_tokens", 5),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(http, field, value):
    response = http.post("/v1/chat/completions", json={"messages": HELLO, "max_tokens": 1, field: value})
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["type"]) == (400, field, "BadRequestError")


def test_tools_are_read_with_the_prompt(http):
    def read(**more):
        return http.post("/v1/chat/completions", json={"messages": HELLO, "max_tokens": 1, **more}).json()

    bare, tooled = read(), read(tools=[TOOL], tool_choice="auto")
    assert tooled["usage"]["prompt_tokens"] > bare["usage"]["prompt_tokens"] + 10
    assert tooled["choices"][0]["finish_reason"] == "length"
    turns = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "weather"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "sun"},
    ]
    assert read(messages=turns, tools=[TOOL])["usage"]["prompt_tokens"] > tooled["usage"]["prompt_tokens"]


AGENT = {
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "so", "signature": "x"},
                {"type": "tool_use", "id": "1", "name": "weather", "input": {"city": "Ulm"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "sun"}]},
            ],
        },
    ],
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "weather", "input_schema": {}}],
    "metadata": {"user_id": "a"},
    "thinking": {"type": "disabled"},
}


def test_turns_of_an_agent_in_the_other_interface(http):
    answer = http.post("/v1/messages", json={"model": "llama", "max_tokens": 4, **AGENT}).json()
    counted = http.post("/v1/messages/count_tokens", json={"model": "llama", **AGENT}).json()
    usage = answer["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == counted["input_tokens"] > 20
    assert usage["output_tokens"] == 4


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"max_tokens": 4, **AGENT}, 400, "invalid_request_error"),
        ({"model": "claude", "max_tokens": 4, **AGENT}, 404, "not_found_error"),
        ({"model": "llama", "max_tokens": 9000, **AGENT}, 400, "invalid_request_error"),
    ],
)
def test_errors_in_the_other_interfaces_words(http, body, status, kind):
    response = http.post("/v1/messages", json=body)
    assert response.status_code == status
    assert response.json()["type"] == "error"
    assert response.json()["error"]["type"] == kind

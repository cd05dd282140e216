"""An agent's loop with tools, as programs around the openai client run it: calls, results, and an answer."""

import json

import openai
import pytest

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "required": ["place"],
                "properties": {"place": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1}},
            },
        },
    }
    for name in ("weather", "traffic")
]


@pytest.fixture
def client(fast):
    with openai.OpenAI(base_url=f"{fast.url}/v1", api_key="any", max_retries=0) as found:
        yield found


@pytest.mark.parametrize("streams", [False, True])
def test_a_loop_calls_its_tools_and_ends_with_an_answer(client, streams):
    """Two forced calls, whose arguments are JSON of the schema, then an answer; the prompt grows, and is cached."""
    messages = [{"role": "user", "content": "Shall I go? " * 20}]
    prompts, called = [], []
    for choice in ("required", {"type": "function", "function": {"name": "traffic"}}, "none"):
        asked = {"model": "llama", "messages": messages, "tools": TOOLS, "tool_choice": choice}
        if streams:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(**asked)
        prompts.append(answer.usage)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        for call in message.tool_calls or ():
            arguments = json.loads(call.function.arguments)
            called.append(call.function.name)
            assert isinstance(arguments["place"], str)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"answer": "fine"})})
    assert called == ["weather", "traffic"]
    assert messages[-1]["content"]
    assert [u.prompt_tokens for u in prompts] == sorted({u.prompt_tokens for u in prompts})
    assert prompts[2].prompt_tokens_details.cached_tokens >= prompts[1].prompt_tokens_details.cached_tokens > 0

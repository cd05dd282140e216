"""Answers that a request gives a form: JSON mode, schemas, and calls of tools."""

import json

import jsonschema_rs
import numpy as np
import openai
import pytest

from orrery.emulator.documents import document
from orrery.emulator.refusal import RequestError
from orrery.emulator.words import Written

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
}
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 3, "maxLength": 12},
        "age": {"type": "integer", "minimum": 18, "exclusiveMaximum": 21},
        "size": {"type": "number", "minimum": 0.1, "maximum": 0.2},
        "kind": {"enum": ['a"b', "ü", 3, None]},
        "is": {"const": {"x": [1]}},
        "tags": {"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 2, "maxItems": 3},
        "any": {"anyOf": [{"type": "null"}, {"type": "string"}]},
    },
    "required": ["name", "age", "more"],
    "additionalProperties": {"type": "boolean"},
}
SCHEMAS = (
    PERSON,
    TREE,
    {},
    {"type": "object"},
    {"type": ["string", "null"], "maxLength": 0},
    {"type": "object", "minProperties": 3, "properties": {"a": {}, "b": True}},
    {"type": "object", "maxProperties": 1, "properties": {"a": {}, "b": {}}, "required": ["b"]},
    {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer", "multipleOf": 7}}}]},
    {"type": "array", "prefixItems": [{"const": 1}], "items": {"type": "null"}, "minItems": 3},
    {"type": "array", "uniqueItems": True, "minItems": 1, "items": {"const": 1}},
    {"type": "number", "exclusiveMinimum": 2, "multipleOf": 0.5},
    {"type": "integer", "maximum": -5},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-9},
    {"type": "string", "minLength": 40},
)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_document_fits_its_schema(schema):
    for seed in range(20):
        text = document(schema, np.random.default_rng(seed), 10_000, "guided_json")
        assert jsonschema_rs.is_valid(schema, json.loads(text)), text


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "pattern": "a+"}, "pattern"),
        ({"$ref": "#"}, "circles"),
        ({"$ref": "#/$defs/none"}, "not there"),
        ({"$ref": "https://example.org/x"}, "elsewhere"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "deeper"),
        ({"type": "array", "minItems": 10**12}, "letters"),
        ({"type": "integer", "minimum": 1.2, "maximum": 1.8}, "no number"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "cannot be"),
        ({"enum": []}, "enum"),
        ({"type": "number", "minimum": 2**50, "multipleOf": 1e-300}, "too large"),
        ({"type": "object", "required": ["a"] * 2000}, "more than 1000"),
        ({"type": "word"}, "none of JSON"),
        ({"type": "array", "items": False, "minItems": 1}, "cannot be"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "more than"),
    ],
)
def test_a_schema_that_cannot_be_met_is_refused(schema, why):
    with pytest.raises(RequestError, match=why):
        document(schema, np.random.default_rng(0), 10**9, "guided_json")


def test_a_text_is_cut_into_tokens_and_stops():
    text = '{"a":"one two","b":[1,2]}'
    whole = Written(text, 99)
    assert b"".join(whole.tokens()).decode() == "".join(map(whole.word, range(whole.num_tokens))) == text
    assert (whole.reason, Written(text, 3).reason, Written(text, 3).num_tokens) == ("stop", "length", 3)
    whole.stop_at(["two"], 0, False)
    assert whole.text(0, whole.num_tokens) == '{"a":"one '
    assert whole.reason == "stop"


@pytest.fixture(scope="module")
def client(fast):
    with openai.OpenAI(base_url=f"{fast.url}/v1", api_key="any", max_retries=0) as found:
        yield found


def chat(client, **more):
    return client.chat.completions.create(
        model="llama", messages=[{"role": "user", "content": "Who?"}], **{"max_tokens": 400, **more}
    )


FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
TOOLS = [
    {"type": "function", "function": {"name": "clock"}},
    {"type": "function", "function": {"name": "find", "parameters": PERSON}},
]


def test_a_chat_answers_in_its_schema_whole_and_streamed(client):
    for more in ({"response_format": FORMAT}, {"extra_body": {"guided_json": json.dumps(PERSON)}}):
        (choice,) = chat(client, seed=1, **more).choices
        jsonschema_rs.validate(PERSON, json.loads(choice.message.content))
        assert choice.finish_reason == "stop"
        chunks = [c.choices[0] for c in chat(client, seed=1, stream=True, **more)]
        assert "".join(c.delta.content for c in chunks) == choice.message.content
        assert chunks[-1].finish_reason == "stop"


def test_a_document_that_does_not_fit_ends_at_its_limit(client):
    (choice,) = chat(client, response_format=FORMAT, max_tokens=5).choices
    assert choice.finish_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(choice.message.content)


def test_json_mode_is_as_long_as_answers_are(client, start):
    answer = chat(client, response_format={"type": "json_object"}, max_tokens=40)
    assert isinstance(json.loads(answer.choices[0].message.content), dict)
    assert answer.usage.completion_tokens == 40


def test_a_forced_tool_is_called(client):
    named = {"type": "function", "function": {"name": "find"}}
    (choice,) = chat(client, tools=TOOLS, tool_choice=named, seed=2).choices
    (call,) = choice.message.tool_calls
    assert (call.function.name, choice.message.content, choice.finish_reason) == ("find", None, "stop")
    jsonschema_rs.validate(PERSON, json.loads(call.function.arguments))
    chunks = [c.choices[0] for c in chat(client, tools=TOOLS, tool_choice=named, seed=2, stream=True)]
    pieces = [c.delta.tool_calls[0] for c in chunks]
    assert (pieces[0].id is None, pieces[0].function.name) == (False, "find")
    assert "".join(p.function.arguments for p in pieces) == call.function.arguments
    (choice,) = chat(client, tools=TOOLS, tool_choice="required").choices
    assert (choice.message.tool_calls[0].function.name, choice.finish_reason) == ("clock", "tool_calls")
    assert choice.message.tool_calls[0].function.arguments == "{}"
    assert chat(client, tools=TOOLS, tool_choice="auto", max_tokens=3).choices[0].message.tool_calls is None


@pytest.mark.parametrize(
    ("param", "more"),
    [
        ("tool_choice", {"tool_choice": "required"}),
        ("tool_choice", {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "none"}}}),
        ("response_format", {"response_format": {"type": "xml"}}),
        ("response_format", {"response_format": {"type": "json_schema"}}),
        ("structured_outputs", {"extra_body": {"structured_outputs": {"regex": "a"}}}),
        ("guided_json", {"extra_body": {"guided_json": "{"}}),
        ("response_format", {"response_format": FORMAT, "tools": TOOLS, "tool_choice": "required"}),
    ],
)
def test_a_form_that_cannot_be_is_refused_by_name(client, param, more):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, **more)
    assert caught.value.param == param

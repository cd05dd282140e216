"""Answers of a form that the request asks for: JSON, JSON of a schema, or a call of a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np

from orrery.emulator.bodies import Chat, Claude, Sampling
from orrery.emulator.documents import MAX_LETTERS, document
from orrery.emulator.refusal import RequestError
from orrery.emulator.tokens import MAX_BYTES, pieces
from orrery.emulator.words import VOCABULARY, Written

ANY = {"type": "object"}
"""The schema of JSON mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The required structure of an answer."""

    field: str  # where the request says so
    schema: Mapping[str, Any] | None = None  # None: any object, as long as the service's answers are
    tool: str = ""  # the name of the tool that is called with it
    is_named: bool = False  # the request named that tool; else it asked for one

    def answer(self, draws: np.random.Generator, own_tokens: int, most_tokens: int) -> Written:
        """A document of this structure; ``own_tokens`` is the length of one that may be anything."""
        if self.schema is None:
            return Written(_object_of(draws, own_tokens), most_tokens)
        return Written(document(self.schema, draws, (most_tokens + 1) * MAX_BYTES, self.field), most_tokens)


def structure_of(body: Sampling) -> Structure | None:
    """The form that a request asks for, if any."""
    found = [x for x in (_tool(body), _format(body), _guided(body)) if x is not None]
    if len(found) > 1:
        raise RequestError(400, f"{found[1].field}: {found[0].field} asks for another form; send one.", found[1].field)
    return found[0] if found else None


def _tool(body: Sampling) -> Structure | None:
    choice = body.tool_choice if isinstance(body, Chat) else None
    if not isinstance(body, Chat) or choice is None or choice in ("auto", "none"):
        return None
    tools = _functions(body.tools)
    if isinstance(choice, Mapping):
        name = _mapping(choice.get("function"), "tool_choice").get("name")
        if choice.get("type") != "function" or name not in tools:
            raise RequestError(400, "tool_choice: names none of the functions in tools.", "tool_choice")
        return Structure(field="tools", schema=tools[name], tool=name, is_named=True)
    if choice != "required" or not tools:
        raise RequestError(400, "tool_choice: write auto, none, or required with functions in tools.", "tool_choice")
    name = next(iter(tools))
    return Structure(field="tools", schema=tools[name], tool=name)


def structure_of_message(body: Claude) -> Structure | None:
    """The tool that a message is to call, where ``tool_choice`` forces one in Anthropic's words."""
    choice = body.tool_choice or {"type": "auto"}
    kind = choice.get("type")
    if kind in ("auto", "none"):
        return None
    tools = _functions(body.tools, "", "input_schema")
    name = choice.get("name") if kind == "tool" else next(iter(tools), "")
    if kind not in ("any", "tool") or name not in tools:
        raise RequestError(
            400, "tool_choice: write auto, none, any with tools, or tool with the name of one of them.", "tool_choice"
        )
    return Structure(field="tools", schema=tools[name], tool=name, is_named=kind == "tool")


def _functions(
    tools: msgspec.Raw, inside: str = "function", arguments: str = "parameters"
) -> dict[str, Mapping[str, Any]]:
    """Name -> schema of the arguments, in the order they were sent; ``inside`` holds both, or each tool itself."""
    rows: Any = msgspec.json.decode(tools) if bytes(tools) else []
    found: dict[str, Mapping[str, Any]] = {}
    for row in cast(list[Any], rows) if isinstance(rows, list) else [None]:
        tool = _mapping(row, "tools")
        function = _mapping(tool.get(inside), "tools") if inside else tool
        name, schema = function.get("name"), function.get(arguments) or ANY | {"maxProperties": 0}
        if not isinstance(name, str) or not name:
            raise RequestError(400, "tools: every function has a name.", "tools")
        found.setdefault(name, _mapping(schema, "tools"))
    return found


def _format(body: Sampling) -> Structure | None:
    found, field = body.response_format, "response_format"
    kind = found.get("type") if found else "text"
    if found is None or kind == "text":
        return None
    if kind == "json_object":
        return Structure(field=field)
    if kind != "json_schema":
        raise RequestError(400, f"{field}: type is to be text, json_object or json_schema.", field)
    return Structure(field=field, schema=_mapping(_mapping(found.get("json_schema"), field).get("schema"), field))


def _guided(body: Sampling) -> Structure | None:
    """vLLM's own ways to ask for the same: an older and a newer one."""
    field, given = "guided_json", body.guided_json
    if body.structured_outputs is not None:
        field, others = "structured_outputs", set(body.structured_outputs) - {"json", "json_object"}
        given = body.structured_outputs.get("json")
        if others:
            raise RequestError(400, f"{field}: of its kinds only json and json_object are emulated.", field)
        if given is None and body.structured_outputs.get("json_object"):
            return Structure(field=field)
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError:
            raise RequestError(400, f"{field}: the schema is no JSON.", field) from None
    return None if given is None else Structure(field=field, schema=_mapping(given, field))


def _mapping(value: Any, field: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RequestError(400, f"{field}: lacks an object that belongs there.", field)
    return cast(Mapping[str, Any], value)


def _object_of(draws: np.random.Generator, num_tokens: int) -> str:
    """An object of one text, of so many tokens where the form leaves room for them."""
    start, end = '{"answer":"', '"}'
    words = VOCABULARY.split()
    count = min(max(1, num_tokens - len(pieces(start)) - len(pieces(end))), MAX_LETTERS)
    places: list[int] = draws.integers(len(words), size=count).tolist()
    return start + " ".join(words[k] for k in places) + end

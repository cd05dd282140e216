"""Bodies of ``/v1/responses``, and their conversion to a chat, whose turns a model reads."""

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Raw, Struct, field

from orrery.emulator.bodies import MAX_TOP, Chat, Count, Message, Part, Word, Words
from orrery.emulator.prompts import content_text
from orrery.emulator.refusal import RequestError

LOGPROBS = "message.output_text.logprobs"
"""Value of ``include`` that asks for log probabilities."""


class TextOptions(Struct):
    """The form of the text: ``{"format": {"type": "json_schema", "schema": …}}``."""

    format: dict[str, Any] | None = None


class InputItem(Struct):
    """A turn of the conversation, a call of a function, or its result."""

    type: str = "message"
    role: str = "user"
    content: str | list[Part] | None = None
    name: str = ""
    arguments: str = ""  # of a function that was called
    call_id: str = ""
    output: str | list[Part] = ""  # what it returned
    summary: list[Part] | None = None  # of what a model thought


class ResponseRequest(Struct, kw_only=True):
    """``POST /v1/responses``."""

    input: str | Annotated[list[InputItem], Meta(min_length=1)]
    model: str | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = True
    background: bool | None = False
    stream: bool | None = False
    max_output_tokens: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    tools: Raw = field(default_factory=Raw)
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = True
    text: TextOptions | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP)] | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    conversation: Any = None
    prompt: Any = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Word | Words | None = None
    ignore_eos: bool = False
    min_tokens: Count = 0
    priority: float = 0.0
    cache_salt: str | None = None


def turns_of(body: ResponseRequest) -> list[Message]:
    """The input as turns of a chat; instructions are none of them."""
    if isinstance(body.input, str):
        return [Message(role="user", content=body.input)]
    return [_turn(item) for item in body.input]


def chat_of(body: ResponseRequest, turns: list[Message]) -> Chat:
    """The request as a chat with these turns behind its instructions."""
    _check(body)
    first = [Message(role="system", content=body.instructions)] if body.instructions else []
    return Chat(
        messages=[*first, *turns],
        model=body.model,
        stream=body.stream,
        max_completion_tokens=body.max_output_tokens,
        tools=_nested(body.tools),
        tool_choice=_choice(body.tool_choice),
        response_format=_format(body.text),
        logprobs=LOGPROBS in (body.include or ()) or None,
        top_logprobs=body.top_logprobs if LOGPROBS in (body.include or ()) else None,
        temperature=body.temperature,
        top_p=body.top_p,
        seed=body.seed,
        stop=body.stop,
        ignore_eos=body.ignore_eos,
        min_tokens=body.min_tokens,
        priority=body.priority,
        cache_salt=body.cache_salt,
        user=body.user,
    )


def _check(body: ResponseRequest) -> None:
    """Refuse what would change an answer in a way that is not emulated."""
    for name in ("conversation", "prompt"):
        if getattr(body, name) is not None:
            raise RequestError(400, f"{name} is not emulated; send the turns as input.", name)
    if body.truncation == "auto":
        raise RequestError(400, "truncation: auto is not emulated; send input that fits.", "truncation")
    if body.background and body.store is False:
        raise RequestError(400, "background: only with store, or nobody could read the answer.", "background")
    if body.background and body.stream:
        raise RequestError(400, "background: streams of it are not emulated; ask for it by its id.", "background")


def _turn(item: InputItem) -> Message:
    if item.type == "message":
        content_text(item.content, "input")  # parts that are no text are refused
        return Message(role=item.role, content=item.content)
    if item.type == "function_call":
        call = {"id": item.call_id, "function": {"name": item.name, "arguments": item.arguments}}
        return Message(role="assistant", tool_calls=Raw(msgspec.json.encode([call])))
    if item.type == "function_call_output":
        return Message(role="tool", content=item.output)
    if item.type == "reasoning":
        parts = [*(item.summary or []), *(item.content if isinstance(item.content, list) else [])]
        return Message(role="assistant", content="".join(part.text for part in parts))
    raise RequestError(400, f"input: items of type {item.type[:40]!r} are not emulated.", "input")


def _nested(tools: Raw) -> Raw:
    """Functions as a chat has them, one level deeper."""
    rows: Any = msgspec.json.decode(tools) if bytes(tools) else None
    if not rows:
        return Raw()
    functions: list[dict[str, Any]] = []
    for found in cast(list[Any], rows) if isinstance(rows, list) else [None]:
        row = cast(dict[str, Any], found) if isinstance(found, dict) else {}
        if row.get("type") != "function":
            raise RequestError(400, "tools: only those of type function are emulated.", "tools")
        functions.append({"type": "function", "function": {k: v for k, v in row.items() if k != "type"}})
    return Raw(msgspec.json.encode(functions))


def _choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    if isinstance(choice, dict):
        return {"type": choice.get("type"), "function": {"name": choice.get("name")}}
    return choice


def _format(text: TextOptions | None) -> dict[str, Any] | None:
    found = text.format if text is not None else None
    if found is None or found.get("type") != "json_schema":
        return found
    return {"type": "json_schema", "json_schema": {k: v for k, v in found.items() if k != "type"}}

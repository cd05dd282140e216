"""Prompts as tokens: texts cut up, conversations written out with a mark before each turn."""

from collections.abc import Sequence

import msgspec

from orrery.emulator.bodies import Message, Part
from orrery.emulator.refusal import RequestError
from orrery.emulator.tokens import MAX_BYTES, pieces

Tokens = Sequence[bytes] | Sequence[int]
"""Tokens that the emulator cut itself, or numbers that a client's own tokeniser gave."""


NO_TOOLS = msgspec.Raw()


def of_text(text: str, context_tokens: int, field: str = "prompt") -> list[bytes]:
    """A text's tokens; one that is far too long is refused before any work goes into it."""
    if len(text) > (context_tokens + 1) * MAX_BYTES:
        raise too_long(f"at least {len(text) // MAX_BYTES}", context_tokens, field=field)
    found = pieces(text)
    if not found:
        raise RequestError(400, "The prompt is empty; write at least one token.", field)
    return found


def of_conversation(messages: Sequence[Message], tools: msgspec.Raw = NO_TOOLS) -> str:
    """A conversation as one text, up to where the answer begins; what a model reads of tools stands before it."""
    turns = [f"<|tools|>\n{_plain(tools)}\n"] if bytes(tools) else []
    turns += [f"<|{m.role}|>\n{content_text(m.content)}{_plain(m.tool_calls)}\n" for m in messages]
    return "".join([*turns, "<|assistant|>\n"])


def content_text(content: str | list[Part] | None, field: str = "messages") -> str:
    """The text of a turn."""
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in PARTS:
            raise RequestError(400, f"content: parts of type {part.type[:40]!r} are not emulated; send text.", field)
    return "".join(f"{p.text}{p.thinking}{p.name}{_plain(p.input)}{_plain(p.content)}" for p in content)


PARTS = ("text", "input_text", "output_text", "thinking", "redacted_thinking", "tool_use", "tool_result")
"""Kinds of parts that are read as text."""


def of_any(prompt: str | list[str | int | list[int]], context_tokens: int, field: str = "prompt") -> list[Tokens]:
    """The prompts of a completion, or inputs of an embedding: one or several, as texts or as tokens."""
    if isinstance(prompt, str):
        return [of_text(prompt, context_tokens, field)]
    numbers = [x for x in prompt if isinstance(x, int)]
    if numbers and len(numbers) < len(prompt):
        raise RequestError(400, f"{field}: mixes tokens with texts; send a list of one kind.", field)
    several = [of_text(x, context_tokens, field) if isinstance(x, str) else x for x in prompt if not isinstance(x, int)]
    found: list[Tokens] = [numbers] if numbers else [*several]
    if not all(found) or not found:
        raise RequestError(400, "The prompt is empty; write at least one token.", field)
    for tokens in found:
        if len(tokens) > context_tokens:
            raise too_long(f"{len(tokens):,}", context_tokens, field=field)
    return found


def too_long(prompt_tokens: str, context_tokens: int, answer_tokens: int = 0, field: str = "prompt") -> RequestError:
    """Prompt and answer do not fit into the context."""
    more = f" and max_tokens asks for {answer_tokens:,} more" if answer_tokens else ""
    return RequestError(
        400,
        f"This model's maximum context length is {context_tokens:,} tokens; the prompt has {prompt_tokens}{more}. "
        "Shorten the prompt or the answer.",
        "max_tokens" if answer_tokens else field,
    )


def _plain(raw: msgspec.Raw) -> str:
    text = bytes(raw).decode(errors="replace")
    return "" if text in ("null", "[]") else text

"""Messages as Anthropic's interface has them: named events around blocks of content."""

from typing import Any

import msgspec

from orrery.emulator.forms.form import Usage
from orrery.emulator.refusal import RequestError

REASONS = {"stop": "end_turn", "length": "max_tokens", "": ""}


class Message:
    """One message, whole or as events."""

    def __init__(self, id: str, model: str, stop: str, tool: str = "") -> None:
        self._id, self._model, self._stop, self._tool = f"msg_{id}", model, stop or None, tool
        self._reasons = REASONS | {"stop": "stop_sequence" if stop else "end_turn"}

    def _about(self, content: list[dict[str, Any]], reason: str | None, usage: Usage) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": self._stop if reason else None,
            "usage": {
                "input_tokens": usage.prompt_tokens - usage.cached_tokens,
                "cache_read_input_tokens": usage.cached_tokens,
                "output_tokens": usage.completion_tokens,
            },
        }

    def whole(self, texts: list[str], reasons: list[str], usage: Usage) -> dict[str, Any]:
        """The message at once."""
        return self._about([self._block(texts[0])], self._reasons[reasons[0]], usage)

    def _block(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def _delta(self, text: str) -> dict[str, Any]:
        return {"type": "text_delta", "text": text}

    def greeting(self) -> bytes:
        """Return no bytes: all comes with the first token."""
        return b""

    def opening(self, num_choices: int, usage: Usage, tells_usage_always: bool) -> bytes:
        """The message begins, and its only block."""
        block = {"type": "content_block_start", "index": 0, "content_block": self._block("")}
        return _named({"type": "message_start", "message": self._about([], None, usage)}) + _named(block)

    def piece(self, index: int, text: str, reason: str, usage: Usage | None) -> bytes:
        """Some text."""
        return _named({"type": "content_block_delta", "index": index, "delta": self._delta(text)})

    def closing(self, reason: str, usage: Usage, tells_usage: bool) -> bytes:
        """The block ends, then the message, with its usage."""
        delta = {"stop_reason": self._reasons[reason], "stop_sequence": self._stop}
        last = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.completion_tokens}}
        return _named({"type": "content_block_stop", "index": 0}) + _named(last) + _named({"type": "message_stop"})

    def failure(self, refusal: RequestError) -> bytes:
        """The error as an event."""
        return _named(refusal.to_anthropic())


class ToolUse(Message):
    """A message whose only block is the call of a tool, its input written piece by piece."""

    def __init__(self, id: str, model: str, stop: str, tool: str) -> None:
        super().__init__(id, model, stop, tool)
        self._call_id, self._reasons = f"toolu_{id}", self._reasons if stop else REASONS | {"stop": "tool_use"}

    def _block(self, text: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": self._call_id, "name": self._tool, "input": _input_of(text)}

    def _delta(self, text: str) -> dict[str, Any]:
        return {"type": "input_json_delta", "partial_json": text}


def _input_of(text: str) -> Any:
    """The input of a call; none where it was cut."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}


def _named(body: dict[str, Any]) -> bytes:
    return f"event: {body['type']}\n".encode() + b"data: " + msgspec.json.encode(body) + b"\n\n"

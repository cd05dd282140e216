"""The common interface of answer formats: a whole body, and the chunks of a stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from orrery.emulator.refusal import RequestError

NONE = b"null"
"""Log probabilities that are not wanted, as JSON."""

END = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a request."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int

    def to_json(self) -> dict[str, Any]:
        """In the words of OpenAI's interface."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


class CompleteResponse(Protocol):
    """One request's answers in one body."""

    def whole(self, texts: list[str], reasons: list[str], usage: Usage) -> Any:
        """The body."""
        ...


class Form(CompleteResponse, Protocol):
    """The same, and as a stream."""

    def greeting(self) -> bytes:
        """Chunks sent at once, before any token; none in most formats."""
        ...

    def opening(self, num_choices: int, usage: Usage, tells_usage_always: bool) -> bytes:
        """Chunks sent with the first token, before its text."""
        ...

    def piece(self, index: int, text: str, reason: str, usage: Usage | None) -> bytes:
        """Some text of one answer; the last with a reason."""
        ...

    def closing(self, reason: str, usage: Usage, tells_usage: bool) -> bytes:
        """Chunks sent after the last text."""
        ...

    def failure(self, refusal: RequestError) -> bytes:
        """An error in the middle of a stream."""
        ...


class TellsLogprobs(Form, Protocol):
    """A form that can also tell the log probabilities of tokens, which come as JSON."""

    def whole(
        self, texts: list[str], reasons: list[str], usage: Usage, logprobs: Sequence[msgspec.Raw | None] | None = None
    ) -> Any:
        """The body."""
        ...

    def piece(self, index: int, text: str, reason: str, usage: Usage | None, logprobs: bytes = NONE) -> bytes:
        """Some text of one answer; the last with a reason."""
        ...


def event(body: Any) -> bytes:
    """One event of a stream."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"

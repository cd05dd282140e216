"""Chat and completions as OpenAI's interface has them, in vLLM's order of chunks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from orrery.emulator.forms.form import END, NONE, Usage, event
from orrery.emulator.refusal import RequestError

GAP = b"\0"
"""Where a chunk's text goes; no JSON holds it."""


class _Chunked:
    """The common part of both formats' chunks: a head, an answer's index, the new text, and the finish reason."""

    kind, whole_kind, prefix = "", "", ""
    before, after = b"", b""
    """Around a chunk's text."""

    def __init__(self, id: str, model: str, created: int) -> None:
        self._id, self._model, self._created = self.prefix + id, model, created
        self._head = event(self._about(self.kind)).removesuffix(b"}\n\n")
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def _about(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def greeting(self) -> bytes:
        """Return no bytes: all comes with the first token."""
        return b""

    def _chunk(self, index: int, middle: bytes, reason: str, usage: Usage | None, logprobs: bytes = NONE) -> bytes:
        ends = f'"{reason}"'.encode() if reason else b"null"
        usage_json = b',"usage":' + msgspec.json.encode(usage.to_json()) if usage else b""
        return b'%b,"choices":[{"index":%d,%b,"logprobs":%b,"finish_reason":%b}]%b}\n\n' % (
            self._head,
            index,
            middle,
            logprobs,
            ends,
            usage_json,
        )

    def piece(self, index: int, text: str, reason: str, usage: Usage | None, logprobs: bytes = NONE) -> bytes:
        """One chunk."""
        letters = msgspec.json.encode(text)[1:-1]
        if reason or usage or logprobs is not NONE:
            return self._chunk(index, self.before + letters + self.after, reason, usage, logprobs)
        around = self._around.get(index)
        if around is None:  # most chunks differ in their text alone
            start, _, end = self._chunk(index, self.before + GAP + self.after, "", None).partition(GAP)
            around = self._around[index] = (start, end)
        return b"%b%b%b" % (around[0], letters, around[1])

    def closing(self, reason: str, usage: Usage, tells_usage: bool) -> bytes:
        """The usage where it is asked for, and the end."""
        last = event({**self._about(self.kind), "choices": [], "usage": usage.to_json()}) if tells_usage else b""
        return last + END

    def failure(self, refusal: RequestError) -> bytes:
        """The error as an event, and the end."""
        return event(refusal.to_json()) + END


class Chat(_Chunked):
    """``chat.completion`` and its chunks."""

    kind, whole_kind, prefix = "chat.completion.chunk", "chat.completion", "chatcmpl-"
    before, after = b'"delta":{"content":"', b'"}'

    def opening(self, num_choices: int, usage: Usage, tells_usage_always: bool) -> bytes:
        """The role of the speaker, once for each answer."""
        role, usage_json = b'"delta":{"role":"assistant","content":""}', usage if tells_usage_always else None
        return b"".join(self._chunk(index, role, "", usage_json) for index in range(num_choices))

    def whole(
        self, texts: list[str], reasons: list[str], usage: Usage, logprobs: Sequence[msgspec.Raw | None] | None = None
    ) -> dict[str, Any]:
        """All answers at once."""
        choices = [
            {"index": k, "message": {"role": "assistant", "content": text}, "logprobs": lp, "finish_reason": reason}
            for k, (text, reason, lp) in enumerate(zip(texts, reasons, logprobs or [None] * len(texts), strict=True))
        ]
        return {**self._about(self.whole_kind), "choices": choices, "usage": usage.to_json()}


class ToolCall(Chat):
    """The same where the answer is the arguments of one function, written piece by piece."""

    before, after = b'"delta":{"tool_calls":[{"index":0,"function":{"arguments":"', b'"}}]}'

    def __init__(self, id: str, model: str, created: int, tool: str, reason: str) -> None:
        super().__init__(id, model, created)
        self._tool, self._reasons = tool, {"stop": reason}

    def _call(self, index: int, arguments: str) -> dict[str, Any]:
        id = f"call-{self._id}-{index}"
        return {"id": id, "type": "function", "function": {"name": self._tool, "arguments": arguments}}

    def opening(self, num_choices: int, usage: Usage, tells_usage_always: bool) -> bytes:
        """The role of the speaker and the function's name, once for each answer."""
        usage_json, found = usage if tells_usage_always else None, b""
        for index in range(num_choices):
            calls = [{"index": 0, **self._call(index, "")}]
            delta = msgspec.json.encode({"role": "assistant", "content": None, "tool_calls": calls})
            found += self._chunk(index, b'"delta":' + delta, "", usage_json)
        return found

    def piece(self, index: int, text: str, reason: str, usage: Usage | None, logprobs: bytes = NONE) -> bytes:
        """Some of the arguments."""
        return super().piece(index, text, self._reasons.get(reason, reason), usage, logprobs)

    def whole(
        self, texts: list[str], reasons: list[str], usage: Usage, logprobs: Sequence[msgspec.Raw | None] | None = None
    ) -> dict[str, Any]:
        """All calls at once."""
        choices = [
            {
                "index": k,
                "message": {"role": "assistant", "content": None, "tool_calls": [self._call(k, text)]},
                "logprobs": lp,
                "finish_reason": self._reasons.get(reason, reason),
            }
            for k, (text, reason, lp) in enumerate(zip(texts, reasons, logprobs or [None] * len(texts), strict=True))
        ]
        return {**self._about(self.whole_kind), "choices": choices, "usage": usage.to_json()}


class Completion(_Chunked):
    """``text_completion`` and its chunks."""

    kind = whole_kind = "text_completion"
    prefix = "cmpl-"
    before, after = b'"text":"', b'"'

    def opening(self, num_choices: int, usage: Usage, tells_usage_always: bool) -> bytes:
        """Return no bytes: the first chunk is text."""
        return b""

    def whole(
        self, texts: list[str], reasons: list[str], usage: Usage, logprobs: Sequence[msgspec.Raw | None] | None = None
    ) -> dict[str, Any]:
        """All answers at once."""
        choices = [
            {"index": k, "text": text, "logprobs": lp, "finish_reason": reason}
            for k, (text, reason, lp) in enumerate(zip(texts, reasons, logprobs or [None] * len(texts), strict=True))
        ]
        return {**self._about(self.whole_kind), "choices": choices, "usage": usage.to_json()}

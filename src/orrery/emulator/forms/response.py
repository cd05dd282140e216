"""A response as OpenAI's Responses interface has it: one object, or typed and numbered events around its only item."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from orrery.emulator.forms.form import NONE, Usage
from orrery.emulator.refusal import RequestError

STATUSES = {"stop": "completed", "length": "incomplete"}


class Response:
    """One response; ``ended`` is given the object once it has come to its end."""

    def __init__(
        self, about: dict[str, Any], answer_text: Callable[[], str], tool: str, ended: Callable[[dict[str, Any]], None]
    ) -> None:
        self._about, self._answer_text, self._tool, self._ended = about, answer_text, tool, ended
        suffix = str(about["id"]).removeprefix("resp_")
        self._item_id = f"fc_{suffix}" if tool else f"msg_{suffix}"
        self._call_id = f"call_{suffix}"
        self._number = 0  # of the next event
        self._logprobs: list[bytes] = []  # entries so far, each in JSON

    # -- whole --------------------------------------------------------------------------------------------------------

    def whole(
        self, texts: list[str], reasons: list[str], usage: Usage, logprobs: Sequence[msgspec.Raw | None] | None = None
    ) -> dict[str, Any]:
        """The response at once."""
        entries = _entries(bytes(logprobs[0])) if logprobs and logprobs[0] is not None else b""
        found = self._over(texts[0], reasons[0], usage, entries)
        self._ended(found)
        return found

    def state(self, status: str) -> dict[str, Any]:
        """The response while nothing of it is known."""
        return {**self._about, "status": status}

    def failed(self, message: str) -> dict[str, Any]:
        """The response that was lost on its way."""
        return {**self.state("failed"), "error": {"code": "server_error", "message": message}}

    def _over(self, text: str, reason: str, usage: Usage, entries: bytes) -> dict[str, Any]:
        status = STATUSES[reason]
        return {
            **self._about,
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if reason == "length" else None,
            "output": [self._item(text, status, entries)],
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
                "output_tokens": usage.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            },
        }

    def _item(self, text: str, status: str, entries: bytes) -> dict[str, Any]:
        if self._tool:
            about = {"id": self._item_id, "type": "function_call", "status": status}
            return {**about, "call_id": self._call_id, "name": self._tool, "arguments": text}
        return {
            "id": self._item_id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [self._part(text, entries)],
        }

    def _part(self, text: str, entries: bytes) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": msgspec.Raw(b"[%b]" % entries)}

    # -- events -------------------------------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """The events that come at once: the response is there, and is being made."""
        created = self._event("response.created", response=self.state("in_progress"))
        return created + self._event("response.in_progress", response=self.state("in_progress"))

    def opening(self, num_choices: int, usage: Usage, tells_usage_always: bool) -> bytes:
        """The item begins with the first token, and so does its text."""
        item = self._item("", "in_progress", b"")
        if self._tool:
            return self._event("response.output_item.added", output_index=0, item=item)
        added = self._event("response.output_item.added", output_index=0, item={**item, "content": []})
        return added + self._event("response.content_part.added", **self._place(), part=self._part("", b""))

    def piece(self, index: int, text: str, reason: str, usage: Usage | None, logprobs: bytes = NONE) -> bytes:
        """Some text, or some arguments."""
        if self._tool:
            about = {"item_id": self._item_id, "output_index": 0}
            return self._event("response.function_call_arguments.delta", **about, delta=text)
        entries = _entries(logprobs)
        if entries:
            self._logprobs.append(entries)
        fresh = msgspec.Raw(b"[%b]" % entries)
        return self._event("response.output_text.delta", **self._place(), delta=text, logprobs=fresh)

    def closing(self, reason: str, usage: Usage, tells_usage: bool) -> bytes:
        """Text, part, item and response end, in this order."""
        text, entries = self._answer_text(), b",".join(self._logprobs)
        found = self._over(text, reason, usage, entries)
        self._ended(found)
        (item,) = found["output"]
        if self._tool:
            about = {"item_id": self._item_id, "output_index": 0}
            done = self._event("response.function_call_arguments.done", **about, name=self._tool, arguments=text)
        else:
            place, listed = self._place(), msgspec.Raw(b"[%b]" % entries)
            done = self._event("response.output_text.done", **place, text=text, logprobs=listed)
            done += self._event("response.content_part.done", **place, part=item["content"][0])
        done += self._event("response.output_item.done", output_index=0, item=item)
        return done + self._event(f"response.{found['status']}", response=found)

    def failure(self, refusal: RequestError) -> bytes:
        """The response failed in the middle of its stream."""
        found = self.failed(refusal.message)
        self._ended(found)
        return self._event("response.failed", response=found)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **body: Any) -> bytes:
        found = msgspec.json.encode({"type": kind, "sequence_number": self._number, **body})
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), found)


def _entries(logprobs: bytes) -> bytes:
    """The entries between the brackets of ``{"content":[…]}``."""
    return b"" if logprobs is NONE else logprobs[len(b'{"content":[') : -len(b"]}")]

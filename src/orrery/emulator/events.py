"""A stream's tokens on their way into the network, as events, at the moment they are due."""

import asyncio
from dataclasses import replace
from typing import cast

from orrery.emulator.exchange import Exchange
from orrery.emulator.forms.form import Form, TellsLogprobs, Usage
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.stream import Choice, Stream

SAID = {
    "refused": (400, "This request can never fit into the cache of the emulated deployment."),
    "shed": (429, "The queue of the replica that would serve this request is full. Ask again later."),
    "failed": (500, "The machine that served this request was lost."),
    "closing": (503, "The server is shutting down."),
}
"""Finish reasons of incomplete answers."""

MAX_AT_ONCE = 1024
"""Pieces that are written in one go: who comes back to a long answer keeps nobody waiting."""


class Events:
    """Sends what is pending whenever there is something; what a slow client does not take yet stays pending."""

    __slots__ = ("_connection", "_form", "_has_opened", "_pace", "_sent", "_stream", "last", "last_s")

    def __init__(self, exchange: Exchange, pace: RealTimeDriver, stream: Stream, form: Form) -> None:
        self._connection, self._pace, self._stream, self._form = exchange.connection, pace, stream, form
        self._sent, self._has_opened = [0] * len(stream.choices), False
        self.last = b""  # what is left to send when the stream is over,
        self.last_s = 0.0  # and when that was due

    def send(self) -> None:
        """Send what is pending, but for the last events, which end the answer."""
        stream = self._stream
        if not self._connection.has_room or not stream.pending or stream.on_tokens is None:
            return
        logprobs = stream.request.logprobs
        most = MAX_AT_ONCE if logprobs is None else max(1, MAX_AT_ONCE // logprobs.num_entries(1))
        found, stream.pending = stream.pending[:most], stream.pending[most:]
        parts = [self._opening()] if not self._has_opened else []
        for index, num_tokens, time_s, end in found:
            if end and end != "done":
                self._finish(b"".join([*parts, self._form.failure(RequestError(*SAID[end]))]), time_s)
                return
            parts.append(self._piece(index, num_tokens))
        if not stream.num_open and not stream.pending:
            request, reason = stream.request, stream.choices[0].job.answer.reason
            parts.append(self._form.closing(reason, usage_of(stream), request.tells_usage))
            self._finish(b"".join(parts), found[-1][2])
            return
        self._connection.write_chunk(b"".join(parts))
        for _, _, time_s, _ in found:
            self._pace.left(time_s)
        if stream.pending:
            asyncio.get_running_loop().call_soon(self.send)

    def _opening(self) -> bytes:
        self._has_opened = True
        usage = replace(usage_of(self._stream), completion_tokens=0)
        return self._form.opening(len(self._sent), usage, self._stream.request.tells_usage_always)

    def _finish(self, body: bytes, due_s: float) -> None:
        self.last, self.last_s, self._stream.on_tokens = body, due_s, None
        self._stream.finish()

    def _piece(self, index: int, num_tokens: int) -> bytes:
        """The event for some tokens of one answer."""
        stream = self._stream
        choice, first = stream.choices[index], self._sent[index]
        answer, end = choice.job.answer, first + num_tokens
        self._sent[index] = end
        usage = _usage(choice, end) if stream.request.tells_usage_always else None
        reason = answer.reason if end == answer.num_tokens else ""
        logprobs = stream.request.logprobs
        if logprobs is None:
            return self._form.piece(index, answer.text(first, end), reason, usage)
        form = cast(TellsLogprobs, self._form)
        return form.piece(index, answer.text(first, end), reason, usage, logprobs.of(answer, first, end))


def _usage(choice: Choice, num_tokens: int) -> Usage:
    """Tokens of one answer, after so many."""
    return Usage(
        prompt_tokens=choice.job.num_prompt_tokens,
        completion_tokens=num_tokens,
        cached_tokens=choice.course.cached_tokens,
    )


def usage_of(stream: Stream) -> Usage:
    """Tokens so far."""
    return Usage(
        prompt_tokens=stream.request.num_prompt_tokens,
        completion_tokens=sum(choice.num_tokens for choice in stream.choices),
        cached_tokens=sum(choice.course.cached_tokens for choice in stream.choices[:: stream.request.num_choices]),
    )

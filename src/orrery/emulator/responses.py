"""``/v1/responses``: a response made, kept, continued, asked for again, cancelled and deleted."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import uuid4

import msgspec

from orrery.emulator.answering import answer
from orrery.emulator.bodies import Message, read
from orrery.emulator.events import SAID, usage_of
from orrery.emulator.exchange import Exchange
from orrery.emulator.forms.response import Response
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import EmulatedRequest, RequestParser
from orrery.emulator.response_bodies import ResponseRequest, chat_of, turns_of
from orrery.emulator.settings import Settings
from orrery.emulator.stream import Stream

RESPONSES = "/v1/responses"

MAX_STORED = 4096
MAX_STORED_BYTES = 2**26
"""Responses that are kept, and their bytes with the conversations before them; the oldest are forgotten first."""

RUNNING = ("queued", "in_progress")


NAMES = {
    "messages": "input",
    "prompt": "input",
    "max_tokens": "max_output_tokens",
    "response_format": "text.format",
}
"""Fields of a chat, and what they are called here."""


@dataclass(slots=True)
class Stored:
    """A response that can be asked for, and the conversation up to its end."""

    found: dict[str, Any]
    turns: list[Message]
    size_bytes: int
    stream: Stream | None = None  # in the background, while it is made


class ResponseStore:
    """The latest responses, up to a number and a size."""

    def __init__(self, max_count: int = MAX_STORED, max_bytes: int = MAX_STORED_BYTES) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._rows: OrderedDict[str, Stored] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: str) -> bool:
        return id in self._rows

    def put(self, id: str, row: Stored) -> None:
        """Keep a response; the oldest that is not being made goes while there are too many."""
        self.drop(id)
        self._rows[id] = row
        self._bytes += row.size_bytes
        while len(self._rows) > self._max_count or self._bytes > self._max_bytes:
            oldest = next((name for name, found in self._rows.items() if found.stream is None), None)
            if oldest is None:
                return
            self.drop(oldest)

    def check_room(self, size_bytes: int) -> None:
        """Refuse a response in the background where those under way leave no room for it: they are not forgotten."""
        running = [row.size_bytes for row in self._rows.values() if row.stream is not None]
        if len(running) >= self._max_count or sum(running) + size_bytes > self._max_bytes:
            raise RequestError(429, "Too much is being made in the background; ask again later.", "background")

    def get(self, id: str, field: str) -> Stored:
        """A response; 404 where there is none of that name (any more)."""
        if id not in self._rows:
            raise RequestError(404, f"Response with id {id[:80]!r} not found; the latest are kept.", field)
        return self._rows[id]

    def drop(self, id: str) -> None:
        """Forget a response, if it is there."""
        row = self._rows.pop(id, None)
        if row is not None:
            self._bytes -= row.size_bytes


class Responses:
    """The paths under ``/v1/responses``."""

    def __init__(
        self,
        pace: RealTimeDriver,
        settings: Settings,
        asker: RequestParser,
        enter: Callable[[Exchange, EmulatedRequest, float], Stream],
    ) -> None:
        self._pace, self._settings, self._asker, self._enter = pace, settings, asker, enter
        self.store = ResponseStore()
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            RESPONSES: {"POST": self._create},
            f"{RESPONSES}/{{response_id}}": {"GET": self._retrieve, "DELETE": self._delete},
            f"{RESPONSES}/{{response_id}}/cancel": {"POST": self._cancel},
        }

    async def _create(self, exchange: Exchange) -> None:
        arrived_s, raw = self._pace.now_s, await exchange.body()
        body = read(ResponseRequest, raw)
        model, turns, size = self._settings.known(body.model), turns_of(body), len(raw)
        if body.previous_response_id is not None:
            before = self.store.get(body.previous_response_id, "previous_response_id")
            if before.found["status"] in RUNNING:
                raise RequestError(400, "previous_response_id: it is still being made.", "previous_response_id")
            turns, size = [*before.turns, *turns], size + before.size_bytes
        request = self._asked(body, turns)
        if request.logprobs is not None:  # the last event repeats them all
            request.logprobs.check(request.jobs[0].answer.num_tokens)
        tool = request.structure.tool if request.structure is not None else ""
        about, text = _about(body, model), request.jobs[0].answer
        ended = partial(self._keep, turns, size) if body.store is not False else _forget
        form = Response(about, lambda: text.text(0, text.num_tokens), tool, ended)
        if body.background:
            self.store.check_room(size)
        stream = self._enter(exchange, request, arrived_s)
        if body.background:
            found = form.state("queued")
            self.store.put(about["id"], Stored(found, turns, size, stream))
            stream.on_tokens = partial(self._go_on, about["id"], stream, form)
            await exchange.json(found)
            return
        await answer(exchange, self._pace, stream, form)

    def _asked(self, body: ResponseRequest, turns: list[Message]) -> EmulatedRequest:
        """The request as the simulator sees it; what is wrong with it is said with this interface's names."""
        try:
            return self._asker.chat(chat_of(body, turns))
        except RequestError as refusal:
            name = NAMES.get(refusal.param or "", refusal.param)
            message = refusal.message.replace(f"{refusal.param}", f"{name}")
            raise RequestError(refusal.status, message, name, refusal.headers) from None

    def _keep(self, turns: list[Message], size_bytes: int, found: dict[str, Any]) -> None:
        """The response is over: it can be asked for, and continued."""
        own = [_turn_of(item) for item in found["output"]]
        size_bytes += len(msgspec.json.encode(found["output"]))
        self.store.put(found["id"], Stored(found, [*turns, *own], size_bytes))

    def _go_on(self, id: str, stream: Stream, form: Response) -> None:
        """Tokens have come for a response in the background."""
        stream.pending.clear()
        if not stream.num_open:
            choice = stream.choices[0]
            self._pace.leave(stream)
            if choice.end in SAID:
                row = self.store.get(id, "id")
                self.store.put(id, Stored(form.failed(SAID[choice.end][1]), row.turns, row.size_bytes))
                return
            text = choice.job.answer.text(0, choice.job.answer.num_tokens)
            wish = stream.request.logprobs
            entries = None if wish is None else [msgspec.Raw(wish.of(choice.job.answer, 0, choice.num_tokens))]
            form.whole([text], [choice.job.answer.reason], usage_of(stream), entries)
        elif id in self.store:
            self.store.get(id, "id").found["status"] = "in_progress"

    async def _retrieve(self, exchange: Exchange) -> None:
        if b"stream=true" in exchange.query:
            raise RequestError(400, "stream: a response is not streamed again; ask for it whole.", "stream")
        await exchange.json(self.store.get(_id_of(exchange), "response_id").found)

    async def _cancel(self, exchange: Exchange) -> None:
        id = _id_of(exchange)
        row = self.store.get(id, "response_id")
        if row.found["status"] not in RUNNING:
            raise RequestError(400, "Cannot cancel a response that is not in the background, or over.", "response_id")
        self._stop(id, row)
        await exchange.json(self.store.get(id, "response_id").found)

    async def _delete(self, exchange: Exchange) -> None:
        id = _id_of(exchange)
        self._stop(id, self.store.get(id, "response_id"))
        self.store.drop(id)
        await exchange.json({"id": id, "object": "response", "deleted": True})

    def _stop(self, id: str, row: Stored) -> None:
        """End what is being made in the background."""
        if row.stream is not None:
            row.stream.on_tokens = None
            self._pace.leave(row.stream)
            self.store.put(id, Stored({**row.found, "status": "cancelled"}, row.turns, row.size_bytes))


def _forget(found: dict[str, Any]) -> None:
    """Keep nothing: the request said so."""


def _id_of(exchange: Exchange) -> str:
    return exchange.path.removeprefix(f"{RESPONSES}/").partition("/")[0]


def _turn_of(item: dict[str, Any]) -> Message:
    """The answer as a turn of the conversation that may follow."""
    if item["type"] == "function_call":
        call = {"id": item["call_id"], "function": {"name": item["name"], "arguments": item["arguments"]}}
        return Message(role="assistant", tool_calls=msgspec.Raw(msgspec.json.encode([call])))
    return Message(role="assistant", content=cast(str, item["content"][0]["text"]))


def _about(body: ResponseRequest, model: str) -> dict[str, Any]:
    """The request's fields that a response repeats."""
    text = body.text.format if body.text is not None and body.text.format is not None else {"type": "text"}
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": bool(body.background),
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": None,
        "metadata": body.metadata or {},
        "model": model,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": body.store is not False,
        "temperature": 1.0 if body.temperature is None else body.temperature,
        "text": {"format": text},
        "tool_choice": body.tool_choice or "auto",
        "tools": msgspec.json.decode(body.tools) or [] if bytes(body.tools) else [],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": 1.0 if body.top_p is None else body.top_p,
        "truncation": "disabled",
        "usage": None,
        "user": body.user,
    }

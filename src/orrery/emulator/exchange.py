"""One request and its answer over HTTP: headers, a body within limits, and what goes back."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from uuid import uuid4

import msgspec

from orrery.emulator.connection_timeouts import CONNECTION, Guarded
from orrery.emulator.refusal import RequestError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 10_000_000
MAX_ID_LETTERS = 256
PATIENCE_S = 30.0
"""For a body to come."""

JSON = b"application/json"
EVENTS = b"text/event-stream; charset=utf-8"


class Exchange:
    """The arguments of a handler."""

    __slots__ = ("_headers", "_send", "connection", "has_begun", "id", "method", "path", "query", "receive")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method, self.path = str(scope["method"]), str(scope["path"])
        self.query = bytes(scope["query_string"])
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self.receive, self._send, self.has_begun = receive, send, False
        self.connection: Guarded = scope["extensions"][CONNECTION]
        self.id = self._headers.get(b"x-request-id", b"")[:MAX_ID_LETTERS] or uuid4().hex.encode()

    def raw_header(self, name: bytes) -> bytes:
        """A header of the request as it was sent; empty where it is missing."""
        return self._headers.get(name, b"")

    def header(self, name: bytes) -> str:
        """A header of the request; empty where it is missing."""
        return self._headers.get(name, b"").decode("latin-1")

    async def body(self, *, kinds: tuple[str, ...] = (JSON.decode(),), most_bytes: int = MAX_BODY_BYTES) -> bytes:
        """The whole body; refused where it is no JSON by its type, too large, or too slow."""
        if self.header(b"content-type").partition(";")[0].strip().lower() not in kinds:
            what = "JSON" if JSON.decode() in kinds else "a form"
            raise RequestError(415, f"Send {what}: content-type: {' or '.join(filter(None, kinds))}.")
        length = self.header(b"content-length")
        if length.isdecimal() and int(length[:20]) > most_bytes:
            raise _too_large(most_bytes)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._read(most_bytes)
        except TimeoutError:
            raise RequestError(408, f"The body did not come within {PATIENCE_S:g} seconds.", headers=CLOSES) from None

    async def _read(self, most_bytes: int) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "The body ended early.")
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > most_bytes:
                raise _too_large(most_bytes)
        return b"".join(parts)

    async def json(self, body: Any, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Answer with an object."""
        await self.whole(msgspec.json.encode(body), JSON, status, headers)

    async def whole(
        self, body: bytes, kind: bytes = JSON, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        """Answer with bytes."""
        sized = ((b"content-length", str(len(body)).encode()), *headers)
        await self._begin(status, ((b"content-type", kind), *sized) if body else sized)
        await self._send({"type": "http.response.body", "body": body})

    async def begin_events(self) -> None:
        """Answer with events that are still to come."""
        await self._begin(200, ((b"content-type", EVENTS), (b"cache-control", b"no-cache")))

    async def last_events(self, body: bytes) -> None:
        """Some events, which are the last; those before went straight to the connection."""
        await self._send({"type": "http.response.body", "body": body})

    async def abandon(self) -> None:
        """The client has gone: nothing more is sent."""
        if self.has_begun:
            await self.last_events(b"")
        else:
            await self.whole(b"", status=503)

    async def _begin(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self.has_begun = True
        given = [*headers, (b"x-request-id", self.id)]
        await self._send({"type": "http.response.start", "status": status, "headers": given})


CLOSES = ((b"connection", b"close"),)


def _too_large(most_bytes: int) -> RequestError:
    return RequestError(413, f"The body is larger than {most_bytes:,} bytes; send less.", headers=CLOSES)

"""A connection with limits that the parser does not have: on headers, and on clients that are too slow."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADER_BYTES = 65_536
PATIENCE_S = 20.0
"""For the headers of a request to come, and for a client to take what waits for it."""


class Guarded(HttpToolsProtocol):
    """A client that sends no whole request in time, or reads nothing of its answer, is cut off; nobody waits for it."""

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """The clock runs from the start."""
        super().connection_made(transport)
        self._late = self.loop.call_later(PATIENCE_S, transport.abort)

    def on_message_begin(self) -> None:
        """And again from each further request's first byte."""
        super().on_message_begin()
        self._header_bytes = 0
        if self._late is None:
            self._late = self.loop.call_later(PATIENCE_S, self.transport.abort)

    def on_url(self, url: bytes) -> None:
        """Counted with the headers."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refused where all of them are too long."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MOST_HEADER_BYTES:
            raise ValueError(f"headers of more than {MOST_HEADER_BYTES} bytes")

    def on_headers_complete(self) -> None:
        """In time."""
        self._in_time()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(PATIENCE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._moves()

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock outlives its connection."""
        self._in_time()
        self._moves()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

"""A connection with limits that the parser does not have: on headers, and on clients that are too slow."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADER_BYTES = 65_536
MOST_MESSAGE_BYTES = 100_000_000
"""With a body in small chunks, and what the parser keeps of trailers behind it."""

PATIENCE_S = 20.0
"""For the headers of a request to come, and for a client to take what waits for it."""

BODY_PATIENCE_S = 40.0
"""For the rest, whether anybody reads it or not; longer than whoever reads it waits, who can say what is wrong."""

CONNECTION = "orrery.connection"
"""The extension of a request's scope that leads here."""

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Guarded(HttpToolsProtocol):
    """A client that sends no whole request in time, or reads nothing of its answer, is cut off; nobody waits for it.

    While a stream is sent, its chunks are written here, with no task between the clock and the network.
    """

    on_room: Callable[[], None] | None = None
    """Called when a client that was slow takes more."""

    on_lost: Callable[[], None] | None = None
    """Called when the client has gone, or was cut off."""

    is_lost = False
    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _bytes, _reads_headers = 0, True

    def connection_made(self, transport: Any) -> None:
        """The clock runs from the start."""
        super().connection_made(transport)
        self._expect(PATIENCE_S)

    def on_message_begin(self) -> None:
        """And again from each further request's first byte."""
        super().on_message_begin()
        cast(dict[str, Any], self.scope)["extensions"] = {CONNECTION: self}
        self._bytes, self._reads_headers = 0, True
        self._expect(PATIENCE_S)

    def data_received(self, data: bytes) -> None:
        """Refused where the headers alone are too long; cut off where there is no end to the rest."""
        super().data_received(data)
        self._bytes += len(data)
        if self._reads_headers and self._bytes > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()
        elif self._bytes > MOST_MESSAGE_BYTES:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """The rest has to come in time, too."""
        self._reads_headers = False
        self._expect(BODY_PATIENCE_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """It came in time."""
        self._in_time()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(PATIENCE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._moves()
        if self.on_room is not None:
            self.on_room()

    @property
    def has_room(self) -> bool:
        """Whether the client takes what is sent."""
        return not self.flow.write_paused

    def write_chunk(self, body: bytes) -> None:
        """Send a chunk of an answer whose head is out."""
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock outlives its connection, and no answer."""
        self.is_lost = True
        if self.on_lost is not None:
            self.on_lost()
        self._in_time()
        self._moves()
        super().connection_lost(exc)

    def _expect(self, patience_s: float) -> None:
        """What is due comes within some seconds, or never."""
        self._in_time()
        self._late = self.loop.call_later(patience_s, self._cut_off, patience_s)

    def _cut_off(self, patience_s: float) -> None:
        if self.flow.read_paused:
            self._expect(patience_s)  # the client cannot send: a request before this one is still being answered
        else:
            self.transport.abort()

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

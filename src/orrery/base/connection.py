"""A connection with limits that the parser does not have: on headers, and on clients that are too slow.

Who sends a header a letter at a time, or takes an answer a byte at a time, would hold a place for ever; many of them
hold all places. Who is answered before its body has come and closed upon would lose the answer: the system resets a
connection whose bytes nobody has read. So only the way out is closed, and the rest of the body is thrown away, within
the same limits. Needs uvicorn and httptools, which the windows that listen bring.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536
MAX_MESSAGE_BYTES = 100_000_000
"""With a body in small chunks, and what the parser keeps of trailers behind it."""

PATIENCE_S = 20.0
"""For the headers of a request to come, and for a client to take what waits for it."""

BODY_PATIENCE_S = 40.0
"""For the rest, whether anybody reads it or not; longer than whoever reads it waits, who can say what is wrong."""

TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class WayOut:
    """Transport of one answer, whose end is that of the connection only when the whole request has come."""

    __slots__ = ("_connection",)

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        """Send a part of the answer."""
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._connection.transport.is_closing()

    def close(self) -> None:
        """End the answer."""
        self._connection.end()


class Connection(HttpToolsProtocol):
    """A client that sends no whole request in time, or reads nothing of its answer, is cut off; nobody waits for it."""

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _bytes, _reads_headers, _has_ended = 0, True, False

    def connection_made(self, transport: Any) -> None:
        """The clock runs from the start."""
        super().connection_made(transport)
        self._expect(PATIENCE_S)

    def on_message_begin(self) -> None:
        """And again from each further request's first byte."""
        super().on_message_begin()
        self._bytes, self._reads_headers = 0, True
        self._expect(PATIENCE_S)

    def data_received(self, data: bytes) -> None:
        """Refused where the headers alone are too long; cut off where there is no end to the rest."""
        super().data_received(data)
        self._bytes += len(data)
        if self._reads_headers and self._bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()
        elif self._bytes > MAX_MESSAGE_BYTES:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """The rest has to come in time, too. Nothing is answered behind the last answer."""
        self._reads_headers = False
        self._expect(BODY_PATIENCE_S)
        if self.transport.is_closing():
            return
        super().on_headers_complete()
        if self.cycle:
            self.cycle.transport = cast(asyncio.Transport, WayOut(self))

    def on_message_complete(self) -> None:
        """It came in time."""
        self._in_time()
        super().on_message_complete()
        if self._has_ended:
            self.transport.close()

    def end(self) -> None:
        """The last answer is out: what is left of its request is read and thrown away."""
        if not self.cycle.more_body:
            self.transport.close()
        elif not self._has_ended:
            self._has_ended = True
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(PATIENCE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        self._moves()

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock outlives its connection."""
        self._in_time()
        self._moves()
        super().connection_lost(exc)

    def _expect(self, patience_s: float) -> None:
        """Close the connection unless the awaited bytes come within ``patience_s``."""
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

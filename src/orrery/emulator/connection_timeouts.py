"""The connection of a stream: chunks are written here, with no task between the clock and the network."""

from collections.abc import Callable
from typing import Any, cast

from orrery.base.connection import Connection

CONNECTION = "orrery.connection"
"""The extension of a request's scope that leads here."""


class Guarded(Connection):
    """Says when a client takes more, and when it has gone or was cut off."""

    on_room: Callable[[], None] | None = None
    """Called when a client that was slow takes more."""

    on_lost: Callable[[], None] | None = None
    """Called when the client has gone, or was cut off."""

    is_lost = False

    def on_message_begin(self) -> None:
        """A request's scope leads to its connection."""
        super().on_message_begin()
        cast(dict[str, Any], self.scope)["extensions"] = {CONNECTION: self}

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
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
        """No answer outlives its connection."""
        self.is_lost = True
        if self.on_lost is not None:
            self.on_lost()
        super().connection_lost(exc)

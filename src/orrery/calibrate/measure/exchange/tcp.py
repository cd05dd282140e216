"""Two processes that exchange FP32 buffers over one TCP connection, with NumPy's addition.

All-reduce goes by halves, as a ring of two does: each sends the half that the other adds up, then the sums go back,
``message_bytes`` each way in two steps.
"""

import select
import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

Buffer = NDArray[np.float32]

KINDS = ("all_reduce", "send_recv", "all_gather", "broadcast")
MIN_BYTES = 8
"""An element for each of the two."""

TIMEOUT_S = 60.0


class Tcp:
    """One end of the connection."""

    def __init__(self, connection: socket.socket, rank: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self._connection, self._rank = connection, rank
        self._scratch = np.zeros(0, dtype=np.float32)

    def buffer(self, message_bytes: int) -> Buffer:
        """Zeros, whose sums stay zeros however often they are added up."""
        return np.zeros(2 * (message_bytes // MIN_BYTES), dtype=np.float32)

    def barrier(self) -> None:
        """Returns once both have called it."""
        self._swap(np.zeros(1, dtype=np.uint8), np.zeros(1, dtype=np.uint8))

    def run(self, kind: str, buffer: Buffer) -> None:
        """One collective; "send_recv" and "broadcast" go there and back."""
        halves = np.split(buffer, 2)
        mine, theirs = halves[self._rank], halves[1 - self._rank]
        match kind:
            case "all_reduce":
                if self._scratch.size != mine.size:
                    self._scratch = np.empty_like(mine)
                self._swap(theirs, self._scratch)
                np.add(mine, self._scratch, out=mine)
                self._swap(mine, theirs)
            case "all_gather":
                self._swap(mine, theirs)
            case _:
                nothing = buffer[:0]
                for sender in (0, 1):
                    self._swap(*((buffer, nothing) if sender == self._rank else (nothing, buffer)))

    def wait(self) -> None:
        """Return at once: the exchange is complete when ``run`` returns."""

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def _swap(self, outgoing: NDArray[Any], incoming: NDArray[Any]) -> None:
        """Sends one and receives the other at the same time, so that neither waits for the other's buffers."""
        out, into = outgoing.data.cast("B"), incoming.data.cast("B")
        while out or into:
            line = [self._connection]
            readable, writable, _ = select.select(line if into else [], line if out else [], [], TIMEOUT_S)
            if not readable and not writable:
                raise TimeoutError(f"the other process was silent for {TIMEOUT_S:.0f} s")
            if writable:
                out = out[self._connection.send(out) :]
            if readable:
                received = self._connection.recv_into(into)
                if not received:
                    raise ConnectionError("the other process has left")
                into = into[received:]

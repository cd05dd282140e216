"""One process of a team: started by ``Team``, told what to do in lines of JSON over a loopback connection.

The first line, on standard input, says where to call and who this is; each further one asks for a sample.
"""

import json
import socket
import sys
import time
from typing import Any, Protocol, cast

from orrery.calibrate.measure.exchange.tcp import TIMEOUT_S, Tcp
from orrery.calibrate.measure.exchange.torch_group import TorchGroup

LOOPBACK = "127.0.0.1"


class Library(Protocol):
    """Interface by which a member of a team exchanges buffers."""

    def buffer(self, message_bytes: int) -> Any:
        """The buffer to be exchanged."""
        ...

    def barrier(self) -> None:
        """Returns once all have called it."""
        ...

    def run(self, kind: str, buffer: Any) -> None:
        """One collective."""
        ...

    def wait(self) -> None:
        """Waits until the device is idle."""
        ...

    def close(self) -> None:
        """Leaves the team."""
        ...


def main() -> None:
    """Serves until it is told to stop or its parent is gone."""
    task = json.loads(sys.stdin.readline())
    with (
        socket.create_connection((LOOPBACK, task["port"]), timeout=TIMEOUT_S) as control,
        socket.create_server((LOOPBACK, 0)) as door,
        control.makefile("rw", encoding="utf-8") as lines,
    ):
        control.settimeout(None)
        _say(lines, token=task["token"], rank=task["rank"], port=door.getsockname()[1])
        if not (line := lines.readline()):
            return
        try:
            library = _join(task, json.loads(line)["ports"], door)
        except Exception as error:
            _say(lines, error=f"{type(error).__name__}: {error}")
            return
        _say(lines, joined=True)
        try:
            _serve(library, lines)
        finally:
            library.close()


def _join(task: dict[str, Any], ports: list[int], door: socket.socket) -> Library:
    rank = int(task["rank"])
    if task["library"] != "tcp":
        return TorchGroup(task["library"], rank, int(task["num_processes"]), task["rendezvous"])
    door.settimeout(TIMEOUT_S)
    token = str(task["token"]).encode()
    if rank == 0:
        connection = door.accept()[0]
        connection.settimeout(TIMEOUT_S)
        if connection.recv(len(token), socket.MSG_WAITALL) != token:
            raise ConnectionError("a stranger called")
    else:
        connection = socket.create_connection((LOOPBACK, ports[0]), timeout=TIMEOUT_S)
        connection.sendall(token)
    return Tcp(connection, rank)


def _serve(library: Library, lines: Any) -> None:
    buffers: dict[int, Any] = {}
    while line := lines.readline():
        message = cast("dict[str, Any]", json.loads(line))
        size = int(message["message_bytes"])
        if size not in buffers:
            buffers = {size: library.buffer(size)}
        try:
            _say(lines, time_s=_sample(library, str(message["kind"]), buffers[size], int(message["repeats"])))
        except Exception as error:
            _say(lines, error=f"{type(error).__name__}: {error}")
            return


def _sample(library: Library, kind: str, buffer: Any, repeats: int) -> float:
    library.barrier()
    before = time.perf_counter()
    for _ in range(repeats):
        library.run(kind, buffer)
    library.wait()
    return time.perf_counter() - before


def _say(lines: Any, **words: Any) -> None:
    lines.write(json.dumps(words) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()

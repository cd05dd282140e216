"""The application on a socket."""

import asyncio
import socket
from collections.abc import Callable, Sequence

import uvicorn

from orrery.base.connection import Connection
from orrery.web.app import application
from orrery.web.place import Place
from orrery.web.warm import warm

MAX_CONNECTIONS = 256
KEEP_ALIVE_S = 30
GOODBYE_S = 3


def serve(
    place: Place,
    listener: socket.socket,
    hosts: Sequence[str] = (),
    on_start: Callable[[], None] = lambda: None,
    fetch_every_s: float | None = None,
) -> None:
    """Serve until a signal comes."""
    server = server_for(place, hosts, fetch_every_s)
    warm(place)
    on_start()
    asyncio.run(server.serve(sockets=[listener]))


def server_for(place: Place, hosts: Sequence[str] = (), fetch_every_s: float | None = None) -> uvicorn.Server:
    """uvicorn around the application, with limits on whoever asks."""
    return uvicorn.Server(
        uvicorn.Config(
            application(place, hosts, fetch_every_s),
            http=Connection,
            ws="none",
            lifespan="on",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GOODBYE_S,
        )
    )

"""The server around the endpoints: a socket, uvicorn with limits, the pace beside it, and an orderly end."""

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from orrery.emulator.app import App
from orrery.emulator.connection_timeouts import Guarded
from orrery.emulator.lag import TICK_S, WINDOW_S, Lag
from orrery.emulator.meters import Meters
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.playback import Playback
from orrery.emulator.settings import Settings
from orrery.emulator.start import Ready
from orrery.emulator.tls import TLSFiles

if TYPE_CHECKING:
    from orrery.emulator.kv_publisher import KVPublisher

MAX_CONNECTIONS = 16_384
KEEP_ALIVE_S = 65
"""Longer than clients' pools keep a connection, so that none is closed while a request is on its way."""

GOODBYE_S = 5
"""For streams to take their last event when the server is told to stop."""


async def serve(
    found: Ready,
    listener: socket.socket,
    on_start: Callable[["Server"], None] = lambda _: None,
    tls: TLSFiles | None = None,
) -> None:
    """Serve until a signal comes, or the simulator fails."""
    live, settings = found.live, found.settings
    allow_connections()
    meters = Meters(settings.context_tokens, settings.guessed_tokens > 0)
    pace = RealTimeDriver(live, settings, meters)
    played = Playback(pace, settings, found.traffic) if found.traffic is not None else None
    server = Server(pace, App(pace, settings, played), tls)
    publisher = _publisher(pace, settings)
    on_start(server)
    running: list[asyncio.Task[None]] = []
    if played is not None:  # before the clock starts, so that its first requests are not late
        running.append(asyncio.create_task(played.run()))
        running[-1].add_done_callback(lambda task: None if task.cancelled() or not task.exception() else server.stop())
    paced, watched = asyncio.create_task(pace.run()), asyncio.create_task(_watch(meters.lag))
    paced.add_done_callback(lambda _: server.stop())
    running.append(paced)
    if publisher is not None:
        running.append(asyncio.create_task(publisher.serve_replays()))
    try:
        await server.serve(sockets=[listener])
    finally:
        watched.cancel()
        for task in running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if publisher is not None:
            publisher.close()


class Server(uvicorn.Server):
    """uvicorn, which first ends the streams when it is told to stop."""

    def __init__(self, pace: RealTimeDriver, app: App, tls: TLSFiles | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                cast(Any, app),
                http=Guarded,
                ws="none",
                lifespan="off",
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=MAX_CONNECTIONS,
                backlog=4096,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=GOODBYE_S,
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        self.pace = pace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Every stream gets its last event; then connections close."""
        self.pace.close()
        await super().shutdown(sockets)

    def stop(self) -> None:
        """As a signal would."""
        self.should_exit = True


def _publisher(pace: RealTimeDriver, settings: Settings) -> "KVPublisher | None":
    """Whoever tells of the caches, where that was asked for."""
    if settings.kv_events is None:
        return None
    from orrery.emulator.kv_publisher import KVPublisher

    publisher = KVPublisher(settings.kv_events, pace.live.watch_cache())
    pace.on_advance = publisher.publish
    return publisher


async def _watch(lag: Lag) -> None:
    """See how late a timer is served, and say when the last seconds' tokens were."""
    loop = asyncio.get_running_loop()
    due_s = said_s = loop.time()
    while True:
        due_s = max(due_s + TICK_S, loop.time())
        await asyncio.sleep(due_s - loop.time())
        lag.loop.add(max(0.0, loop.time() - due_s))
        if due_s - said_s >= WINDOW_S:
            said_s = due_s
            lag.watch(due_s)


def allow_connections() -> None:
    """As many open connections as the system lets a process have."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MAX_CONNECTIONS + 1024
        file_limit = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft != resource.RLIM_INFINITY and soft < file_limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (file_limit, hard))

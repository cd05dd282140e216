"""Events of the prefix caches over ZeroMQ, as vLLM publishes them: a socket for each engine, and one for replays.

As vLLM 0.33.0 does it: a message is a topic, a sequence number from 0 in 8 bytes, and a batch; engine k has the port
that was given plus k. Whoever missed some asks the replay socket from a number on, and gets what is kept of the last
batches, then a number of -1.
"""

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from orrery.base.errors import ScenarioError
from orrery.emulator.kv_events import EventBatch, events_by_cache
from orrery.emulator.kv_settings import KVEventSettings
from orrery.serving.live.cache_watch import CacheWatch

NUM_KEPT = 10_000
"""Batches of an engine that can be replayed: vLLM's own (``buffer_steps``)."""

MAX_QUEUED = 100_000
"""Messages that wait for a slow subscriber, before it misses some: vLLM's own (``hwm``)."""

END = (-1).to_bytes(8, signed=True)
NUMBER_BYTES = 8


class KVPublisher:
    """Publishes changes of a service's caches, from when it is opened until it is closed."""

    def __init__(self, settings: KVEventSettings, watch: CacheWatch) -> None:
        self._spec_kind, self._watch = settings.spec_kind, watch
        self._context = zmq.asyncio.Context()
        self._encoder = msgspec.msgpack.Encoder()
        self._engines: list[_Engine] = []
        try:
            for engine in range(watch.num_caches):
                self._engines.append(_Engine(self._context, settings, engine))
        except zmq.ZMQError as error:
            self.close()
            raise ScenarioError(f"kv-events: {error}; write another address.") from None

    def publish(self) -> None:
        """Send the changes since the last time, if there are any."""
        for engine, events in events_by_cache(self._watch.changes(), self._spec_kind).items():
            batch = EventBatch(ts=time.time(), events=events, data_parallel_rank=engine)
            self._engines[engine].send(self._encoder.encode(batch))

    async def serve_replays(self) -> None:
        """Answer whoever missed something, until cancelled."""
        await asyncio.gather(*(engine.serve_replays() for engine in self._engines))

    def close(self) -> None:
        """Leave the addresses."""
        for engine in self._engines:
            engine.close()
        self._context.term()


class _Engine:
    """One engine's sockets."""

    def __init__(self, context: zmq.asyncio.Context, settings: KVEventSettings, rank: int) -> None:
        self._topic, self._kept, self._count = settings.topic.encode(), deque[tuple[bytes, bytes]](maxlen=NUM_KEPT), 0
        self._out: zmq.Socket[Any] = zmq.Context(context).socket(zmq.PUB)
        self._replay: Any = None
        try:
            self._out.set_hwm(MAX_QUEUED)
            address = settings.address_of(settings.endpoint, rank)
            (self._out.connect if settings.connects else self._out.bind)(address)
            if settings.replay:
                self._replay = context.socket(zmq.ROUTER)
                self._replay.set_hwm(2 * (NUM_KEPT + 1))
                self._replay.bind(settings.address_of(settings.replay, rank))
        except zmq.ZMQError:
            self.close()
            raise

    def send(self, batch: bytes) -> None:
        """Publish, and keep for those that miss it."""
        number = self._count.to_bytes(NUMBER_BYTES)
        self._count += 1
        self._kept.append((number, batch))
        self._out.send_multipart((self._topic, number, batch))

    async def serve_replays(self) -> None:
        """Answer requests for batches from a number on: those that are kept, then the end."""
        if self._replay is None:
            return
        while True:
            client, *rest = await self._replay.recv_multipart()
            if len(rest) != 2 or len(rest[1]) != NUMBER_BYTES:
                continue  # nobody that speaks this protocol
            for number, batch in [message for message in self._kept if message[0] >= rest[1]]:
                await self._replay.send_multipart((client, b"", self._topic, number, batch))
            await self._replay.send_multipart((client, b"", b"", END, b""))

    def close(self) -> None:
        """Close what is open."""
        for socket in (self._out, self._replay):
            if socket is not None:
                with suppress(zmq.ZMQError):
                    socket.close(linger=0)

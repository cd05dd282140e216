"""One job after the other on a device of its own: requests wait for it in their order, on the service's clock."""

import asyncio

from orrery.emulator.exchange import Exchange
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError

MAX_WAITING = 256
"""Requests that may wait for the device."""


class Turns:
    """The queue before a device."""

    def __init__(self, pace: RealTimeDriver, speed_ratio: float) -> None:
        self._pace, self._speed_ratio = pace, speed_ratio
        self._turn, self._num_waiting, self._free_s = asyncio.Lock(), 0, 0.0

    async def wait(self, exchange: Exchange, arrived_s: float, latency_s: float) -> None:
        """Until a job of ``latency_s`` is through; a client that goes while it waits takes no turn."""
        if self._num_waiting >= MAX_WAITING:
            raise RequestError(429, f"{MAX_WAITING} requests wait for this model. Ask again later.")
        gone = asyncio.Event()
        exchange.connection.on_lost = gone.set
        self._num_waiting += 1
        try:
            async with self._turn:
                if gone.is_set():
                    return
                self._free_s = max(self._free_s, arrived_s) + latency_s
                await asyncio.sleep(max(0.0, self._free_s - self._pace.now_s) / self._speed_ratio)
        finally:
            self._num_waiting -= 1
            exchange.connection.on_lost = None

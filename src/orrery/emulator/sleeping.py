"""``/sleep``, ``/wake_up`` and ``/is_sleeping``: an engine that gives up its devices' memory and takes it back.

Waking takes what ``orrery cold-start`` predicts for ``sleep-1`` (weights wait in the host's memory) and ``sleep-2``
(weights come from storage again). Falling asleep takes no time here: nothing is known of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs

from orrery.emulator.exchange import Exchange
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.settings import Settings


class Sleeping:
    """The paths of sleep."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, wake_s: Mapping[int, float]) -> None:
        self._pace, self._settings, self._wake_s = pace, settings, wake_s
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/sleep": {"POST": self._sleep},
            "/wake_up": {"POST": self._wake},
            "/is_sleeping": {"GET": self._tell},
        }

    async def _sleep(self, exchange: Exchange) -> None:
        """Take no more requests, wait for those under way, and give up caches and weights."""
        text = parse_qs(exchange.query.decode("latin-1"), max_num_fields=16).get("level", ["1"])[-1]
        if text not in ("1", "2"):
            raise RequestError(400, f"level: got {text[:20]!r}; write 1 (weights to the host) or 2 (dropped).", "level")
        if not self._pace.sleep_level:
            self._pace.sleep_level = int(text)
            while self._pace.streams and not self._pace.is_closing:
                await asyncio.sleep(0.01)
            self._pace.empty_caches()
        await exchange.whole(b"")

    async def _wake(self, exchange: Exchange) -> None:
        """Answer when the engine is awake; requests that come meanwhile wait with it."""
        level = self._pace.sleep_level
        if level:
            self._pace.wake(self._wake_s[level])
        await asyncio.sleep(max(0.0, self._pace.awake_s - self._pace.now_s) / self._settings.speed_ratio)
        await exchange.whole(b"")

    async def _tell(self, exchange: Exchange) -> None:
        asleep = self._pace.sleep_level > 0 or self._pace.awake_s > self._pace.now_s
        await exchange.json({"is_sleeping": asleep})

"""Cards that were made lately, and a limit on how many are made at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException

from orrery.web.cards.card import ShareCard
from orrery.web.cards.drawn import picture

MAX_KEPT = 128
"""Pictures; one has some 20 kB."""

KEPT_S = 600.0
MAX_WAITING = 8
"""Cards that are made or wait; more are refused, since each may take an answer of seconds."""

MAX_ADDRESS = 2000
"""Letters of an address that has a card."""


class Cards:
    """One server's cards, by the address that they stand for."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._turn = asyncio.Semaphore(1)
        self._num_waiting = 0

    async def picture(self, address: str, ask: Callable[[], Awaitable[ShareCard]]) -> bytes:
        """The card of an address, from memory where it was made lately. HTTPException where too many are asked for."""
        if len(address) > MAX_ADDRESS:
            raise HTTPException(414, f"An address of more than {MAX_ADDRESS} letters has no card.")
        at_s, known = self._made.get(address, (0.0, b""))
        if known and time.monotonic() - at_s < KEPT_S:
            return known
        if self._num_waiting >= MAX_WAITING:
            raise HTTPException(503, "Too many cards are being drawn; try again in a moment.", {"retry-after": "5"})
        self._num_waiting += 1
        try:
            async with self._turn:
                found = await asyncio.to_thread(picture, await ask())
        finally:
            self._num_waiting -= 1
        self._made[address] = time.monotonic(), found
        while len(self._made) > MAX_KEPT:
            self._made.popitem(last=False)
        return found

"""What happens to a request's answers, on its way from the simulator to a client."""

import asyncio
from dataclasses import dataclass
from typing import Literal, NamedTuple

from orrery.emulator.asked import Asked, Job

End = Literal["", "done", "refused", "failed", "closing"]
"""How an answer ended: not yet, in full, because it can never fit, with its machine, or with the server."""


class Delivery(NamedTuple):
    """Tokens of one answer, at a moment of the simulated service; or its end."""

    index: int
    num_tokens: int
    time_s: float
    end: End


@dataclass(slots=True)
class Choice:
    """How far one answer is. Times are the service's."""

    job: Job
    number: int  # of the request, in the simulator
    replica: int = 0
    num_tokens: int = 0
    admitted_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0
    end: End = ""


class Stream:
    """The answers of one request as they come; whoever serves the request waits on them."""

    __slots__ = ("_waiter", "arrived_s", "asked", "choices", "has_left", "pending")

    def __init__(self, asked: Asked, choices: list[Choice], arrived_s: float) -> None:
        self.asked, self.choices, self.arrived_s = asked, choices, arrived_s
        self.pending: list[Delivery] = []
        self.has_left = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def num_open(self) -> int:
        """Answers that have not ended."""
        return sum(not choice.end for choice in self.choices)

    def give(self, delivery: Delivery) -> None:
        """Hand tokens to whoever waits."""
        self.pending.append(delivery)
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def leave(self) -> None:
        """The client has gone."""
        self.has_left = True
        self.wake()

    async def take(self) -> list[Delivery]:
        """All that has come since the last time, at least one delivery; nothing once the client has gone."""
        while not self.pending and not self.has_left:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        found, self.pending = self.pending, []
        return [] if self.has_left else found

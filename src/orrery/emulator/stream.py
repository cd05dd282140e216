"""Streams of a request's answers, from the simulator to a client."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Literal

from orrery.emulator.histogram import Histogram
from orrery.emulator.requests import EmulatedRequest, Job
from orrery.serving.live.result import RequestProgress

End = Literal["", "done", "refused", "shed", "failed", "closing"]
"""End of an answer: not yet, complete, never fits, full queue, failed machine, or server shut down."""

NO_COURSE = RequestProgress(replica=0, admitted_s=nan, cached_tokens=0)


Delivery = tuple[int, int, float, End]
"""Tokens of one answer: its index, their number, when they came in simulated time (s), and how it ended, if so."""


@dataclass(slots=True)
class Choice:
    """Progress of one answer. Times are the service's."""

    job: Job
    number: int  # of the request, in the simulator
    course: RequestProgress = NO_COURSE  # known from the first token on, and again at the end
    num_tokens: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    end: End = ""
    gaps: Histogram | None = None  # where its replica's are counted; known from the first token on


class Stream:
    """The answers of one request as they come; whoever serves the request waits for their end."""

    __slots__ = ("_over", "arrived_s", "choices", "has_left", "num_open", "on_tokens", "pending", "request")

    def __init__(self, request: EmulatedRequest, choices: list[Choice], arrived_s: float) -> None:
        self.request, self.choices, self.arrived_s = request, choices, arrived_s
        self.num_open = len(choices)  # answers that have not ended
        self.pending: list[Delivery] = []
        self.has_left = False
        self.on_tokens: Callable[[], None] | None = None  # sends what is pending, as soon as it is
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, choice: Choice, end: End) -> None:
        """An answer has ended."""
        choice.end = end
        self.num_open -= 1

    def show(self) -> None:
        """Tokens are pending: who sends them as they come does so now; who waits for all of them waits on."""
        if self.on_tokens is not None:
            self.on_tokens()
        elif not self.request.streams:
            self.pending.clear()
            if not self.num_open:
                self.finish()

    def leave(self) -> None:
        """The client has gone."""
        self.has_left, self.on_tokens = True, None
        self.finish()

    def finish(self) -> None:
        """End the stream: no more tokens are to come, or nobody is there to take them."""
        if not self._over.done():
            self._over.set_result(None)

    async def over(self) -> None:
        """Wait for the end."""
        await self._over

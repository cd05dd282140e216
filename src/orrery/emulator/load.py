"""Background load: requests that the server makes itself, so that queues and metrics move without a client.

Arrivals are a Poisson process in the service's time, drawn from the server's seed; every prompt is another one, so that
nothing of it is found in a cache.
"""

import asyncio
from functools import partial

import numpy as np

from orrery.emulator.engine_blocks import names_for
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.prefix import MASK
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import EmulatedRequest, Job
from orrery.emulator.settings import Settings
from orrery.emulator.stream import Stream
from orrery.emulator.words import Answer


class Load:
    """At most one load at a time; a new one takes the place of the old, whose requests run to their end."""

    def __init__(self, pace: RealTimeDriver, settings: Settings) -> None:
        self._pace, self._settings = pace, settings
        self._names = names_for(settings)
        self._draws = np.random.default_rng([settings.seed, 2])
        self._maker: asyncio.Task[None] | None = None
        self.rate_per_s, self.input_tokens, self.output_tokens = 0.0, 0, 0

    def start(self, rate_per_s: float, input_tokens: int, output_tokens: int) -> None:
        """From now on, requests of so many tokens come at this rate; 0 ends it."""
        if self._maker is not None:
            self._maker.cancel()
            self._maker = None
        self.rate_per_s, self.input_tokens, self.output_tokens = rate_per_s, input_tokens, output_tokens
        if rate_per_s:
            self._maker = asyncio.create_task(self._make(self._pace.now_s))

    async def _make(self, next_s: float) -> None:
        """Arrivals at moments of their own, which a late one does not shift."""
        while not self._pace.is_closing:
            next_s += float(self._draws.exponential(1.0 / self.rate_per_s))
            await asyncio.sleep(max(0.0, next_s - self._pace.now_s) / self._settings.speed_ratio)
            self._enter(next_s)

    def _enter(self, arrived_s: float) -> None:
        num_blocks = (self.input_tokens + self.output_tokens) // self._settings.block_tokens
        job = Job(
            num_prompt_tokens=self.input_tokens,
            answer=Answer(0, self.output_tokens, "length"),
            blocks=self._names.unwritten(self._draws.integers(MASK, size=num_blocks).tolist()),
        )
        try:
            stream = self._pace.submit(
                EmulatedRequest(jobs=[job], num_choices=1, most_tokens=self.output_tokens), arrived_s
            )
        except RequestError:
            self._pace.meters.refused["queue_full"] += 1
            return
        stream.on_tokens = partial(self._drop, stream)

    def _drop(self, stream: Stream) -> None:
        """Nobody reads these answers."""
        stream.pending.clear()
        if not stream.num_open:
            self._pace.leave(stream)

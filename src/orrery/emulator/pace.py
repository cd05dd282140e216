"""The simulator on a clock: what happens in the service at t seconds, happens here at start + t / speed.

Moments are absolute, so a late one delays none that follow. Everything that is due is computed in one go; requests that
come together are let in together. Between events nothing runs.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from orrery.base.errors import ScenarioError
from orrery.emulator.meters import Meters
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import EmulatedRequest, Job
from orrery.emulator.settings import Settings
from orrery.emulator.stream import Choice, End, Stream
from orrery.emulator.way_home import Row, WayHome
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.serving.live import Live
from orrery.serving.live.live import MAX_REQUESTS
from orrery.serving.live.result import FAILED, FINISHED, GOES_ON, REFUSED, RequestProgress

RETRY_S = 1
"""After which a client may ask again when the queue is full."""

SPARE_REQUESTS = 1024
"""Ended ones that some batching policies keep in the batch for a while."""

MAX_ROWS = 2048
"""That are handed out in one go: who has fallen behind also listens meanwhile."""

ENDS: dict[int, End] = {GOES_ON: "", FINISHED: "done", REFUSED: "refused", FAILED: "failed"}


class RealTimeDriver:
    """Lets requests into the simulator, and hands out what they get, in time."""

    def __init__(self, live: Live | LiveFleet, settings: Settings, meters: Meters) -> None:
        self.live, self.meters = live, meters
        self.streams: set[Stream] = set()
        self._settings, self._by_number = settings, dict[int, tuple[Stream, int]]()
        self._loop = asyncio.get_running_loop()
        self._start, self._done_s = self._loop.time(), 0.0
        self._alarm: asyncio.Future[None] = self._loop.create_future()
        self.is_closing = False
        self.sleep_level, self.awake_s = 0, 0.0  # 0: awake, from that moment on
        has_full_queues = isinstance(live, LiveFleet) and live.setup.service.max_queue > 0
        self.on_advance: Callable[[], None] | None = None  # called when the clock has moved
        has_ways = isinstance(live, LiveFleet) and live.setup.regions is not None
        self._home = WayHome() if has_ways else None
        self._ends: dict[int, End] = {**ENDS, REFUSED: "shed"} if has_full_queues else ENDS

    @property
    def now_s(self) -> float:
        """The service's time; never before what has been computed."""
        return max(self._done_s, (self._loop.time() - self._start) * self._settings.speed_ratio)

    @property
    def _reached_s(self) -> float:
        """The service's time, but no further than what happens next: what is late is not made up for in one go."""
        return min(self.now_s, self.live.next_s)

    @property
    def _next_s(self) -> float:
        """When something happens next, in the service or at a client."""
        return min(self.live.next_s, self._home.next_s if self._home else float("inf"))

    def left(self, time_s: float) -> None:
        """Record how late, by the wall clock, an event leaves that happened in the service at a time."""
        self.meters.lag.add(self._loop.time() - self._start - time_s / self._settings.speed_ratio)

    def submit(self, request: EmulatedRequest, arrived_s: float) -> Stream:
        """Let a request in that arrived a moment ago, unless the queue is full."""
        if self.is_closing:
            raise RequestError(503, "The server is shutting down.")
        if self.sleep_level:
            raise RequestError(503, "The engine is asleep; POST /wake_up first.")
        most, num_jobs = self._settings.max_queued, len(request.jobs)
        if most and self.live.num_waiting + num_jobs > most:
            raise _full(f"{most} requests may wait")
        if len(self._by_number) + num_jobs > MAX_REQUESTS - SPARE_REQUESTS:
            raise _full(f"{MAX_REQUESTS} answers may be under way")
        now_s = max(self._done_s, arrived_s)
        numbers = self._entered(request, max(now_s, self.awake_s))
        choices = [Choice(job, number) for job, number in zip(request.jobs, numbers, strict=True)]
        stream = Stream(request, choices, now_s)
        self.streams.add(stream)
        self._by_number |= {number: (stream, index) for index, number in enumerate(numbers)}
        self._ring()
        return stream

    def _entered(self, request: EmulatedRequest, now_s: float) -> list[int]:
        """All answers of a request, or none."""
        found: list[int] = []
        try:
            for job in request.jobs:
                found.append(self._enter(job, request, now_s))
        except ScenarioError:
            for number in found:
                self.live.cancel(number, now_s=self._done_s)
            raise _full("no more prompts can be followed") from None
        return found

    def _enter(self, job: Job, request: EmulatedRequest, now_s: float) -> int:
        return self.live.submit(
            now_s=now_s,
            input_tokens=job.num_prompt_tokens,
            output_tokens=job.answer.num_tokens,
            priority=request.priority_ratio,
            adapter=request.adapter,
            origin=request.origin,
            client=hash(request.user),  # names of any length are remembered by their number alone
            session=hash(request.session) if request.session else -1,
            prefix_ids=job.blocks,
        )

    def leave(self, stream: Stream) -> None:
        """Forget a request; what is still being made for it is cancelled."""
        self.streams.discard(stream)
        for choice in stream.choices:
            if self._by_number.pop(choice.number, None) is not None:
                self.live.cancel(choice.number, now_s=self._done_s)
                self.meters.end(stream, choice, "abort")
                self._ring()

    async def run(self) -> None:
        """Start the clock; compute what is due, hand it out, and sleep until the next event or request."""
        self._start = self._loop.time()
        while True:
            self._alarm = self._loop.create_future()
            self._advance()
            next_s = self._next_s
            if next_s == float("inf"):
                await self._alarm
                continue
            timer = self._loop.call_at(self._start + next_s / self._settings.speed_ratio, self._ring)
            try:
                await self._alarm
            finally:
                timer.cancel()

    def close(self) -> None:
        """End every stream; nobody is let in any more."""
        self.is_closing = True
        self._hand_out((number, 0, self._done_s, "closing", None) for number in list(self._by_number))

    def kill(self, replica: int, *, retry: bool = True) -> None:
        """A replica is lost; its requests go to others, or fail."""
        self.live.kill(replica, now_s=self._reached_s, retry=retry)
        self._ring()

    def revive(self, replica: int) -> None:
        """Bring a replica back, with empty caches."""
        self.live.revive(replica, now_s=self._reached_s)
        self._ring()

    def slow(self, replica: int, factor: float) -> None:
        """Its steps take so many times as long from now on."""
        self.live.slow(replica, factor)

    def scale(self, count: int, group: int = -1) -> None:
        """Set the number of replicas that accept new requests; of a fleet, that should run, in a group of pools."""
        if isinstance(self.live, LiveFleet):
            self.live.set_replicas(count, now_s=self._reached_s, group=group)
        else:
            self.live.set_replicas(count, now_s=self._reached_s)
        self._ring()

    def empty_caches(self) -> None:
        """Forget what the caches hold; nobody is there."""
        if isinstance(self.live, Live):
            self.live.empty_caches(now_s=self._reached_s)

    def wake(self, wake_s: float) -> None:
        """Be awake after that time; who comes before waits for it."""
        self.sleep_level, self.awake_s = 0, self.now_s + wake_s

    def _ring(self) -> None:
        if not self._alarm.done():
            self._alarm.set_result(None)

    def _advance(self) -> None:
        emitted = self.live.advance(self.now_s, MAX_ROWS)
        self._done_s = self.live.clock_s
        if self.on_advance is not None:
            self.on_advance()
        columns = (emitted.id.tolist(), emitted.num_tokens.tolist(), emitted.time_s.tolist())
        rows: Iterable[Row] = (
            (number, tokens, at_s, self._ends[end], None)
            for number, tokens, at_s, end in zip(*columns, emitted.end.tolist(), strict=True)
        )
        self._hand_out(rows if self._home is None else self._come_home(rows, self._home))

    def _come_home(self, rows: Iterable[Row], home: WayHome) -> Iterator[Row]:
        """Rows that have arrived at their clients; new ones are on their way."""
        for number, num_tokens, time_s, end, _ in rows:
            if number in self._by_number:
                home.put((number, num_tokens, time_s, end, self.live.course(number)))
        return home.due(self.now_s)

    def _hand_out(self, rows: Iterable[Row]) -> None:
        """Give every stream all that has come for it, then let each send it."""
        shown: list[Stream] = []
        for number, num_tokens, time_s, end, course in rows:
            found = self._by_number.get(number)
            if found is None:
                continue  # its client has left since, or its last token told its end
            stream, index = found
            if not stream.pending:
                shown.append(stream)
            self._deliver(stream, index, num_tokens, time_s, end, course)
        for stream in shown:
            stream.show()

    def _deliver(
        self, stream: Stream, index: int, num_tokens: int, time_s: float, end: End, course: RequestProgress | None
    ) -> None:
        choice = stream.choices[index]
        if num_tokens:
            if not choice.num_tokens:
                choice.course = course or self.live.course(choice.number)
            self.meters.tokens(stream, choice, num_tokens, time_s)
            if choice.num_tokens == choice.job.answer.num_tokens:
                end = "done"
        if end:
            del self._by_number[choice.number]
            stream.end(choice, end)
            if end == "done":
                choice.course = course or self.live.course(choice.number)  # it may have gone on elsewhere
            self.meters.end(stream, choice, choice.job.answer.reason if end == "done" else "error")
        stream.pending.append((index, num_tokens, time_s, end))


def _full(why: str) -> RequestError:
    again = ((b"retry-after", str(RETRY_S).encode()),)
    return RequestError(429, f"The queue is full: {why}. Ask again later.", headers=again)

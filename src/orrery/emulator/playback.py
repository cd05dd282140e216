"""A fleet's own traffic, sent by the server itself on its clock: what ``orrery fleet`` serves, in real time.

Requests are submitted a little before their moments, so that a late server shifts none of them. One that follows
another comes after the pause behind its predecessor's end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Hashable
from functools import partial

from orrery.emulator.engine_blocks import names_for
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import EmulatedRequest, Job
from orrery.emulator.settings import Settings
from orrery.emulator.stream import Stream
from orrery.emulator.words import Answer
from orrery.serving.requests import Requests

AHEAD_S = 2.0
"""How long before its moment, on the wall, a request is submitted."""


class Playback:
    """Recorded requests, each once."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, requests: Requests) -> None:
        self._pace, self._settings, self._requests, self._names = pace, settings, requests, names_for(settings)
        self._followers: defaultdict[int, list[int]] = defaultdict(list)
        for i, before in enumerate(requests.after.tolist()):
            if before >= 0:
                self._followers[before].append(i)
        self.num_sent = self.num_ended = self.num_refused = 0

    def state(self) -> dict[str, int]:
        """State of the playback."""
        return {
            "requests": self._requests.count,
            "sent": self.num_sent,
            "ended": self.num_ended,
            "refused": self.num_refused,
        }

    async def run(self) -> None:
        """Send every request that follows none; the others are sent as their predecessors end."""
        speed, after = self._settings.speed_ratio, self._requests.after
        for i, arrive_s in enumerate(self._requests.arrive_s.tolist()):
            if after.size and after[i] >= 0:
                continue
            ahead_s = (arrive_s - self._pace.now_s) / speed - AHEAD_S
            if ahead_s > 0.0 or (i and i % 256 == 0):
                await asyncio.sleep(max(0.0, ahead_s))
            if self._pace.is_closing:
                return
            self._send(i, arrive_s)

    def _send(self, i: int, at_s: float) -> None:
        self.num_sent += 1
        try:
            stream = self._pace.submit(self._request(i), at_s)
        except RequestError:
            self.num_refused += 1
            self._pace.meters.refused["queue_full"] += 1
            return
        stream.on_tokens = partial(self._drop, i, stream)

    def _request(self, i: int) -> EmulatedRequest:
        r = self._requests
        blocks: list[Hashable] = []
        if r.prefix_start.size:
            ids = r.prefix_ids[r.prefix_start[i] : r.prefix_start[i + 1]].tolist()
            blocks = self._names.unwritten(("played", b) for b in ids)
        num_prompt, num_answer = int(r.input_tokens[i]), int(r.output_tokens[i])
        job = Job(num_prompt_tokens=num_prompt, answer=Answer(0, num_answer, "stop"), blocks=blocks)
        return EmulatedRequest(
            jobs=[job],
            num_choices=1,
            most_tokens=num_answer,
            priority_ratio=float(r.priority[i]) if r.priority.size else 0.0,
            adapter=int(r.adapter[i]) if r.adapter.size else -1,
            origin=int(r.origin[i]) if r.origin.size else 0,
            user=self._client(i),
            session=f"played session {r.session[i]}" if r.session.size and r.session[i] >= 0 else "",
        )

    def _client(self, i: int) -> str:
        """The tenant's name where there are tenants; else a name of the recorded client, if any."""
        client, tenants = self._requests.client, self._settings.tenants
        if not client.size:
            return ""
        return tenants[int(client[i])].name if tenants else f"played client {client[i]}"

    def _drop(self, i: int, stream: Stream) -> None:
        """Nobody reads these answers; who follows is sent at the end of one."""
        stream.pending.clear()
        if stream.num_open:
            return
        self.num_ended += 1
        end_s = stream.choices[0].last_s
        for follower in self._followers.pop(i, ()):
            self._send(follower, end_s + float(self._requests.arrive_s[follower]))
        self._pace.leave(stream)

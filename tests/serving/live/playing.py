"""Live runs of small traffic under limits of a test's choosing."""

import numpy as np
from small_runs import limiting

from orrery.serving.live import Live, TokenEvents
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.prepare import blocks_of
from orrery.serving.simulation.tables import _kernel as k


def live_of(service, requests, *, max_requests=None, **limits):
    """A live run with the tables that a simulation of these requests has."""
    unit = requests.prefix_block_tokens
    with limiting(requests, **limits):
        live = Live.of(
            service,
            max_requests=max_requests or requests.count,
            prefix_block_tokens=unit,
            sizes=Sizes.of(requests, blocks_of(service, unit)[0]),
        )
    assert isinstance(live, Live)
    return live


def submit(live, requests, i, *, later_s=0.0):
    """Request ``i`` of a table comes; its id."""
    ids = ()
    if requests.prefix_start.size:
        ids = requests.prefix_ids[requests.prefix_start[i] : requests.prefix_start[i + 1]].tolist()
    return live.submit(
        now_s=float(requests.arrive_s[i]) + later_s,
        input_tokens=int(requests.input_tokens[i]),
        output_tokens=int(requests.output_tokens[i]),
        priority=float(requests.priority[i]),
        client=int(requests.client[i]),
        session=int(requests.session[i]) if requests.session.size else -1,
        prefix_ids=ids,
    )


class Heard:
    """What a listener has heard, row by row in order of time."""

    def __init__(self):
        self.first, self.last, self.tokens, self.end, self.ended_s, self.now_s = {}, {}, {}, {}, {}, 0.0

    def add(self, emitted: TokenEvents):
        for id, time_s, tokens, end in zip(
            emitted.id.tolist(), emitted.time_s.tolist(), emitted.num_tokens.tolist(), emitted.end.tolist(), strict=True
        ):
            assert time_s >= self.now_s
            assert id not in self.end, "nothing comes after the end"
            assert (tokens > 0) != (end > 0)
            self.now_s = time_s
            if end:
                self.end[id], self.ended_s[id] = end, time_s
            else:
                self.first.setdefault(id, time_s)
                self.last[id] = time_s
                self.tokens[id] = self.tokens.get(id, 0) + tokens
        return self


def play_live(service, requests, rng, **limits):
    """Submit everything in time, the clock going in steps from a nanosecond to all at once; the run, and what came."""
    live, heard = live_of(service, requests, **limits), Heard()
    for i, arrive_s in enumerate(requests.arrive_s.tolist()):
        while live._clock_s < arrive_s and rng.random() < 0.7:
            step_s = rng.choice([1e-9, 1e-4, 3e-3, 1.0])
            heard.add(live.advance(min(live._clock_s + step_s, float(np.nextafter(arrive_s, 0.0)))))
        submit(live, requests, i)
    while live.next_s < np.inf:
        heard.add(live.advance(rng.choice([live.next_s, live.next_s + 0.01, np.inf])))
    return live, heard


def check_empty(live):
    """Nobody is left, and nothing is held: every block is free or may be evicted."""
    w, memory = live._world, live._world.memory
    assert live.next_s == np.inf
    assert (memory.free + memory.evictable == memory.capacity).all()
    assert (memory.users <= 0).all()
    assert (w.req[:, [k.BLOCKS, k.SHARED, k.LENT, k.SOURCE_BLOCKS, k.SOURCE_SHARED, k.LENT_TOKENS]] == 0).all()
    busy = [k.NUM_DECODING, k.NUM_PROMPTS, k.NUM_WAITING, k.RESERVED, k.NUM_READY, k.FAR, k.GUESTS, k.CONTEXT]
    assert (w.lanes[:, busy] == 0).all()
    assert np.abs(w.rates[:, [k.LOAD_REQUESTS, k.LOAD_TOKENS]]).max() < 1e-6
    assert sorted(live._free) == list(range(w.req.shape[0]))
    assert not live._row_of

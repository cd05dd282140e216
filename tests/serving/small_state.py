"""The tables of a simulation in miniature, so that one function of the loop can be played alone."""

from types import SimpleNamespace

import numpy as np

from orrery.engine.queue._kernel import clock_of
from orrery.execution.surface._kernel import CHANNELS
from orrery.serving.simulation.allocation._kernel import enqueue
from orrery.serving.simulation.memory._kernel import memory_of
from orrery.serving.simulation.tables import _kernel as k
from orrery.serving.simulation.world import nowhere

BLOCK_BYTES = 10
"""Of every block but where a test says otherwise; a block has 16 tokens."""

LOAD = [k.N_PROMPTS, k.N_NEW, k.N_PAIRS, k.N_DECODES, k.N_CONTEXT, k.N_EXTRA]
"""Columns of a step's load."""


def rules(**given):
    """Every switch off but those given."""
    off = dict.fromkeys(k.Rules._fields, 0) | {"guess_knob": -1, "transfer_layers": 1}
    return k.Rules(**(off | given))


def state(requests=4, lanes=2, *, blocks=10, host_blocks=0, ids=(), blocks_each=0, places=0, bins=8, **given):
    """Idle lanes, each with a pool of ``blocks`` blocks, a unit and a machine of its own; requests that hold nothing.

    Bytes cross every link in as many seconds, a bin of the timeline is a second wide, and a step costs nothing.
    ``ids`` are those of every request's prefix blocks."""
    req = np.zeros((requests, len(k.REQUEST)), np.int64)
    followers = [k.FIRST_FOLLOWER, k.NEXT_FOLLOWER]
    nobody = [k.SOURCE, k.LENDER, k.MACHINE, *followers, k.SESSION, k.ADAPTER, k.ASKED, k.REGION]
    req[:, nobody] = -1
    when = np.full((requests, len(k.WHEN)), np.nan)
    when[:, k.LAST] = 0.0
    table = np.zeros((lanes, len(k.LANES)), np.int64)
    table[:, k.UNIT] = table[:, k.POOL] = np.arange(lanes)
    table[:, k.MAX_SEQS], table[:, k.BUDGET], table[:, k.POOLED] = 8, 100, blocks * BLOCK_BYTES
    table[:, [k.TWIN, k.WAITING_ROOT, k.UNSEEN]] = -1
    table[:, k.NEXT_END] = k.NEVER
    rates = np.zeros((lanes, len(k.RATES)))
    rates[:, [k.LINK_BYTES_PER_S, k.HOST_BYTES_PER_S, k.LAYERS_FRAC, k.DEVICE_WAYS]] = 1.0
    moments, winners = clock_of(lanes)
    totals = np.zeros(len(k.TOTALS))
    totals[k.WIDTH] = 1.0
    capacity = np.full(lanes, blocks * BLOCK_BYTES, np.int64)
    prefix = np.array([x for each in ids for x in each], np.int64)
    ends = np.cumsum([0, *map(len, ids)]) if ids else np.zeros(requests + 1, np.int64)
    usual = {
        "rules": rules(),
        "knobs": np.zeros((7, 4)),
        "req": req,
        "when": when,
        "number": np.arange(requests),
        "order": np.arange(requests),
        "prefix_start": ends[:-1],
        "prefix_end": ends[1:],
        "prefix_ids": prefix,
        "draws": np.zeros((requests, 2)),
        "key": np.arange(float(requests)),
        "links": np.full((requests, 3), -1),
        "due_s": np.zeros(requests),
        "event_links": np.full((requests, 3), -1),
        "home": np.full(requests, -1),
        "tag": np.zeros(4),
        "counts": np.array([-1, 0, 0, 0, 0, 0]),
        "lanes": table,
        "rates": rates,
        "seats": np.zeros((lanes, len(k.SEATS), 8), np.int64),
        "slots": np.zeros((lanes, 3, places), np.int64),
        "step": np.zeros((lanes, 9)),
        "entry": np.arange(lanes),
        "exit": np.arange(lanes),
        "routed": np.zeros(lanes, np.int64),
        "regions": nowhere(lanes),
        "unit_lane": np.arange(lanes + 1),
        "unit_machine": np.arange(lanes),
        "units": np.array([[np.nan, 0.0, 0.0, 0.0]] * lanes),
        "moments": moments,
        "winners": winners,
        "machines": np.array([[1, 0, 0, 0]] * lanes),
        "send_share": np.zeros(lanes),
        "stage_share": np.ones(lanes),
        "stage_s": np.zeros((lanes, 1)),
        "slowness": np.ones(lanes),
        "clocks": np.ones(lanes),
        "spans": np.ones(lanes),
        "memory": memory_of(
            capacity,
            np.full(lanes, host_blocks * BLOCK_BYTES, np.int64),
            int(prefix.max()) + 1 if ids else 0,
            requests if ids else 0,
        ),
        "held": np.arange(40)[None] * BLOCK_BYTES,
        "block_tokens": 16,
        "blocks_each": blocks_each,
        "num_variants": 1,
        "retained": np.array([[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]),
        "num_layers": 4.0,
        "lending_s": -1.0,
        "lent": np.zeros((requests, lanes, 2), np.int64),
        "cost": np.zeros((2, CHANNELS)),
        "routing": np.zeros((3, lanes)),
        "gaps": np.zeros(8000),
        "timeline": np.zeros((bins, 12)),
        "log": np.zeros((4, 9)),
        "totals": totals,
        "tally": np.zeros((lanes, 6), np.int64),
        "emitted": np.zeros((20, 3), np.int64),
        "emitted_s": np.zeros(20),
        "swapped": np.zeros(requests, np.int64),
        "guesses": np.zeros(3, np.int64),
    }
    return SimpleNamespace(**(usual | given))


def put(w, i, **columns):
    """Set columns of a request's row, by their names in lower case."""
    for name, value in columns.items():
        w.req[i, k.REQUEST.index(name)] = value


def lane_of(w, lane, **columns):
    """Set columns of a lane's row."""
    for name, value in columns.items():
        w.lanes[lane, k.LANES.index(name)] = value


def decode(w, lane, *requests, context=0):
    """Seat requests among the answers of a lane; those whose end is not said have none."""
    for seat, i in enumerate(requests):
        put(w, i, lane=lane, status=k.DECODING)
        w.seats[lane, k.SEAT_DECODING, seat] = i
        w.seats[lane, [k.SEAT_END_DUE, k.SEAT_BLOCK_DUE], seat] = k.NEVER
    lane_of(w, lane, num_decoding=len(requests), context=context)


def prefill(w, lane, *requests, grants=()):
    """Seat requests among the prompts of a lane."""
    for seat, i in enumerate(requests):
        put(w, i, lane=lane, status=k.PREFILLING)
        w.seats[lane, k.SEAT_PROMPTS, seat] = i
        w.seats[lane, k.SEAT_GRANTS, seat] = grants[seat] if grants else 0
    lane_of(w, lane, num_prompts=len(requests))


def copied_s(amount, bytes_per_s, latency_s, knobs):
    """A transfer of bytes at a rate, after a latency."""
    return latency_s + amount / bytes_per_s


def granted(left, budget, taken, step_tokens, knobs):
    """As much as is left of the budget."""
    return min(left, budget)


def waiting(w, lane, *requests):
    """Let requests wait at a lane."""
    for i in requests:
        put(w, i, lane=lane, status=k.WAITING)
        enqueue(w, i, lane)

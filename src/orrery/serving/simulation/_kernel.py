# pyright: basic
"""The event loop of serving: requests arrive, queue, are batched step by step, and leave.

A request has tokens to compute and tokens computed; each step grants tokens until a budget is spent, so prefill, chunks
and decode are the same thing (after vLLM V1). What steps is a *unit* of one or more *lanes*: a lane has a queue, a
batch and a pool of cache. Ranks that share experts are the lanes of one unit and step together; the batches in flight
of a pipeline are units that share its stages; machines for prompts and machines for answers hand requests over.

Decodes advance together: a lane counts its decode steps, and a request only remembers at which count it joined. So a
step costs a scan for what falls due (a block, an end) and one look-up of its price, however long the batch's history.
Sections: the world, leaving, memory, admission, a step's schedule, its price, its outcome, arrivals, the loop.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import cfunc, config, njit, types
from numpy.typing import NDArray

from orrery.engine.fingerprint import stamped
from orrery.engine.queue import _kernel as queue
from orrery.engine.queue._kernel import popped, pushed, set_moment
from orrery.execution.surface import _kernel as surface
from orrery.execution.surface._kernel import device_cost, shared_cost
from orrery.serving.simulation.memory import _kernel as memory
from orrery.serving.simulation.memory._kernel import found, need_of_found, pin, publish, release, room, take

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUMBERS = types.Array(types.float64, 1, "C")
GRANT_RULE = types.int64(types.int64, types.int64, types.int64, types.int64, NUMBERS)
ORDER_RULE = types.float64(*[types.float64] * 5, NUMBERS)
ROUTE_RULE = types.int64(
    NUMBERS, NUMBERS, NUMBERS, types.int64, types.int64, types.float64, types.float64, NUMBERS
)  # fmt: skip
OVERLAP_RULE = types.float64(*[types.float64] * 6, NUMBERS)
TRANSFER_RULE = types.float64(*[types.float64] * 3, NUMBERS)

TO_COME, WAITING, PREFILLING, DECODING, MOVING, SWAPPED, DONE, REFUSED = range(8)
"""What a request is doing."""
BOTH, PROMPTS, ANSWERS = range(3)
"""What a lane serves."""
NEVER = 2**62

# -- the world: tables with one row a request, lane, unit, machine or deployment; their columns ------------------------

REQUEST = (
    "status", "input", "output", "computed", "made", "joined", "blocks", "shared", "lane", "turn", "source",
    "source_blocks", "source_shared", "lender", "lent", "first_follower", "next_follower", "session", "client",
    "dropped", "cached", "preempted", "machine", "lent_tokens", "place",
    "source_lender", "source_lent",
)  # fmt: skip
(STATUS, INPUT, OUTPUT, COMPUTED, MADE, JOINED, BLOCKS, SHARED, LANE, TURN, SOURCE, SOURCE_BLOCKS, SOURCE_SHARED,
 LENDER, LENT, FIRST_FOLLOWER, NEXT_FOLLOWER, SESSION, CLIENT, DROPPED, CACHED, PREEMPTED, MACHINE, LENT_TOKENS,
 PLACE, SOURCE_LENDER, SOURCE_LENT) = range(27)  # fmt: skip
"""``req``: tokens of prompt and answer; tokens whose keys and values exist, and answer tokens made (both, of a decoding
request, when it joined its batch at the lane's count ``joined``); blocks held, leading shared ids of them; its lane;
order of admission; the lane that computed its prompt and still holds it (-1), with what it holds; the lane whose pool
holds its last blocks (-1), and how many; who follows it; prompt tokens that compression drops; what happened to it;
tokens in lent blocks that its next step attends to; whether it holds a place of a closed loop."""

WHEN = ("enter", "priority", "last", "arrived", "admitted", "first", "finish")
ENTER, PRIORITY, LAST, ARRIVED_S, ADMITTED_S, FIRST, FINISH = range(7)
"""``when``, in seconds: at the queue, so after the front end (of followers: the pause before they come); the priority;
the last token; then what is reported."""

LANES = (
    "unit", "pool", "role", "deployment", "max_seqs", "budget", "twin", "pooled", "waiting", "num_waiting",
    "num_decoding", "steps", "context", "far", "guests", "num_prompts", "reserved", "num_ready", "num_fresh",
    "layers_left", "layers_all", "next_end",
)  # fmt: skip
(UNIT, POOL, ROLE, DEPLOYMENT, MAX_SEQS, BUDGET, TWIN, POOLED, WAITING_ROOT, NUM_WAITING, NUM_DECODING, STEPS, CONTEXT,
 FAR, GUESTS, NUM_PROMPTS, RESERVED, NUM_READY, NUM_FRESH, LAYERS_LEFT, LAYERS_ALL, NEXT_END) = range(22)  # fmt: skip
"""``lanes``: where it belongs; its limits; the lane that shares its compute units (-1); bytes that one request may
fill; the root of its queue; decode steps so far; tokens that decoding requests hold, those of them that are on other
machines, and those of others that are here; seats kept for requests on their way; groups of layers that the prompts
under way have still to pass, and all; the count of decode steps at which the next answer ends, at the earliest."""

RATES = (
    "decoded_s", "load_requests", "load_tokens", "link_s", "device_ways", "host_step_s", "host_per_sequence_s",
    "host_overlap_frac", "link_bytes_per_s", "link_latency_s", "host_bytes_per_s", "host_latency_s",
    "layers_frac", "prompt_padding", "answer_padding", "noted_s", "pool_noted_s",
)  # fmt: skip
(DECODED_S, LOAD_REQUESTS, LOAD_TOKENS, LINK_S, DEVICE_WAYS, HOST_STEP_S, HOST_PER_SEQUENCE_S, HOST_OVERLAP_FRAC,
 LINK_BYTES_PER_S, LINK_LATENCY_S, HOST_BYTES_PER_S, HOST_LATENCY_S, LAYERS_FRAC, PROMPT_PADDING, ANSWER_PADDING,
 NOTED_S, POOL_NOTED_S) = range(17)  # fmt: skip
"""``rates``, by lane: end of its last decode step; unfinished requests, and their tokens to come; when its link is
free; devices that work on one pass at a time; the host's part of a step; the ways of its cache to other machines and
to the host's memory; of the step: the share of all layers that its prompts pass, and tokens that are only padding; when
the timeline was brought up to date with the lane and (in the row of a pool's number) with the pool."""

SEATS = ("decoding", "block_due", "end_due", "prompts", "grants", "ready", "fresh")
SEAT_DECODING, SEAT_BLOCK_DUE, SEAT_END_DUE, SEAT_PROMPTS, SEAT_GRANTS, SEAT_READY, SEAT_FRESH = range(7)
"""``seats``, by lane and seat: the decoding requests, with the counts of decode steps at which they need a block and
at which they end; the prompts under way in order of admission, with the tokens granted in this step; requests that
have come over a link; and those that joined since the last decode step."""

N_PROMPTS, N_NEW, N_PAIRS, N_DECODES, N_CONTEXT, N_EXTRA, N_DELAY_S, N_LOAD, N_FILL = range(9)
"""``step``, by lane: what was scheduled."""

BEGAN, SPENT = range(2)
"""``units``: start of the step in flight (nan: none), joules of it."""
STAGES, SPLIT = range(2)
"""``machines``: pipeline stages; which split of its compute units is in force."""
KEPT, COMPRESS_S = range(2)
"""``kept``, by deployment: share of a token's bytes that attention reads; time to compress a prompt token."""
EVENTS, ADMITTED, SERVED, UPCOMING, ARRIVED = range(5)
"""``counts``: root of the queue of events; then how many."""
GRANT, ORDER, ROUTE, OVERLAP, TRANSFER, SWAP, ACCEPT = range(7)
"""``knobs``: rows, of the rules that are called by address; and the chance of each level of guesses to hold."""

TOTALS = (
    "steps", "energy_j", "busy_s", "moved_bytes", "moved_s", "swapped_bytes", "swapped_s", "loaded_bytes",
    "drafted_tokens", "accepted_tokens", "finetune_tokens", "prompt_tokens", "padded_tokens", "host_bound_s",
    "log_rows", "width_s", "window_start_s", "window_end_s", "gap_sum_s", "gap_squares_s2",
)  # fmt: skip
(TOTAL_STEPS, ENERGY, BUSY, MOVED, MOVED_S, SWAPPED_BYTES, SWAPPED_S, LOADED, DRAFTED, ACCEPTED, FINETUNED, PROMPTED,
 PADDED, HOST_BOUND, LOGGED, WIDTH, WINDOW_START, WINDOW_END, GAP_SUM, GAP_SQUARES) = range(20)  # fmt: skip
(B_STEPS, B_BUSY, B_PROMPT, B_DECODE, B_RUNNING, B_WAITING, B_KV, B_ENERGY, B_ARRIVALS, B_FINISHES, B_PREEMPTED,
 B_PADDED) = range(12)  # fmt: skip
"""``timeline``: columns, as in ``result.TIMELINE``."""
GAP_LEAST_S, GAP_BINS_PER_DECADE = 1e-6, 1000


class Rules(NamedTuple):
    """How a lane fills its steps."""

    mixes: bool  # prompts and decodes share steps; otherwise prompts go first, alone
    waits_for_empty: bool  # a batch is formed when the last one has ended
    holds_batch: bool  # answers that are done stay in the batch until all are
    returns_together: bool  # and leave with it
    pads_prompts: bool  # all prompts of a batch are as long as the longest
    reserves_output: bool
    swaps: bool  # preempted sequences go to the host instead of being computed again
    evicts_by_key: bool  # the last in the queue's order is preempted, not the last admitted
    layer_group_tokens: int  # layered prefill: whole prompts, a run of layers a step; 0 = all layers at once
    draft_levels: int  # tokens that a step may add beyond the sure one; 0 = nothing is guessed
    checked_tokens: int  # guesses that a step checks
    draft_s: float  # of guessing, and for each sequence
    draft_per_sequence_s: float
    fill_tokens: int  # fine-tuning fills steps up to so many tokens
    fill_until_s: float  # while a step stays below
    target_s: float  # split machines: step time to hold by moving compute units
    load_hides: bool  # blocks from the host arrive while the step computes
    transfer_hidden_frac: float  # of a hand-over that the prompt's own computing hides
    has_overlap: bool
    overlaps_sends: bool  # pipeline stages send while they compute the next batch
    concurrency: int  # closed loop: requests in flight; 0 = open
    needs_prefix: bool  # the router asks how much of a prompt each lane holds


class World(NamedTuple):
    """Everything there is."""

    rules: Rules
    knobs: Floats
    req: Ints
    when: Floats
    order: Ints  # requests that follow nobody, by time
    prefix_start: Ints
    prefix_ids: Ints
    draws: Floats  # (request, 2): uniform numbers for the router
    key: Floats  # of the lanes' queues
    links: Ints
    due_s: Floats  # of the queue of events: followers, next ones of a closed loop, caches on their way
    event_links: Ints
    home: Ints  # by session: the lane that served it last
    tag: Floats  # virtual time of fair queues; then by client: when its last request ends in it
    counts: Ints
    lanes: Ints
    rates: Floats
    seats: Ints
    step: Floats
    entry: Ints  # lanes that new requests may go to
    exit: Ints  # lanes that take over after the prompt
    unit_lane: Ints  # first lane of each unit, and the end
    unit_machine: Ints
    units: Floats
    moments: Floats  # the clock: by unit
    winners: Ints
    machines: Ints
    stage_share: Floats  # by machine: of a pass, on the slowest pipeline stage
    stage_s: Floats  # (machine, stage): free from
    memory: memory.Memory
    held: Ints  # (deployment, blocks): bytes of a sequence of so many blocks
    block_tokens: int
    blocks_each: int  # of a shared prefix block; 0 = no prefix cache
    surfaces: surface.Surface  # of all deployments (and, of split machines, by split and contention)
    num_variants: int  # of one deployment
    kept: Floats
    num_layers: float
    lending_s: float  # of one step with keys and values on another machine; negative: nothing is lent
    cost: Floats  # scratch of the price
    routing: Floats  # scratch of the router: requests, tokens, blocks found
    gaps: Floats  # histogram
    timeline: Floats  # (bins, columns)
    log: Floats  # (rows, columns): steps inside the window
    totals: Floats


INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
"""Functions that only the loop calls: no doors to Python, no counting of references."""
OUTER: dict[str, Any] = {"cache": True, "_nrt": False}
HOT: dict[str, Any] = {**INNER, "forceinline": True}


# -- leaving ----------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _give_back(w, i):
    """Release everything a request holds where it is."""
    lane, lender = w.req[i, LANE], w.req[i, LENDER]
    if w.req[i, LENT_TOKENS] > 0:
        w.lanes[lender, GUESTS] -= w.req[i, LENT_TOKENS]
        w.lanes[lane, FAR] -= w.req[i, LENT_TOKENS]
    _release(w, i, lane, w.req[i, BLOCKS], w.req[i, SHARED], lender, w.req[i, LENT])
    w.req[i, BLOCKS] = w.req[i, SHARED] = w.req[i, LENT] = w.req[i, LENT_TOKENS] = 0
    w.req[i, LENDER] = -1


@njit(**HOT)
def _release(w, i, lane, blocks, shared, lender, lent):
    """Blocks of a request are free or evictable: those that a lender holds, then those of the lane's own pool."""
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    if lent > 0:
        w.memory.free[w.lanes[lender, POOL]] += held[lent]
    first = w.prefix_start[i] if w.blocks_each else 0
    release(w.memory, w.lanes[lane, POOL], i, held[blocks - lent], w.prefix_ids, first, shared)


@njit(**INNER)
def _share(w, i):
    """Let others find the whole prefix blocks that a request has computed, unless compression changed them or another
    machine holds some."""
    if not w.blocks_each or w.req[i, LENT] > 0 or w.req[i, DROPPED] > 0:
        return
    lane, first = w.req[i, LANE], w.prefix_start[i]
    tokens = min(w.req[i, COMPUTED], w.req[i, BLOCKS] * w.block_tokens)
    whole = min(tokens // (w.blocks_each * w.block_tokens), w.prefix_start[i + 1] - first)
    if whole > w.req[i, SHARED]:
        held = w.held[w.lanes[lane, DEPLOYMENT]]
        publish(w.memory, w.lanes[lane, POOL], w.prefix_ids, first, w.req[i, SHARED], whole, held, w.blocks_each)
        w.req[i, SHARED] = whole


@njit(**INNER)
def _leave_seat(w, lane, seat):
    """Take a decoding request out of its seat; the last one moves there."""
    i, last = w.seats[lane, SEAT_DECODING, seat], w.lanes[lane, NUM_DECODING] - 1
    if w.lanes[lane, STEPS] > w.req[i, JOINED]:
        w.when[i, LAST] = w.rates[lane, DECODED_S]
    w.req[i, MADE] += w.lanes[lane, STEPS] - w.req[i, JOINED]
    w.req[i, COMPUTED] += w.lanes[lane, STEPS] - w.req[i, JOINED]
    w.lanes[lane, CONTEXT] -= w.req[i, COMPUTED]
    w.seats[lane, SEAT_DECODING, seat] = w.seats[lane, SEAT_DECODING, last]
    w.seats[lane, SEAT_BLOCK_DUE, seat] = w.seats[lane, SEAT_BLOCK_DUE, last]
    w.seats[lane, SEAT_END_DUE, seat] = w.seats[lane, SEAT_END_DUE, last]
    w.lanes[lane, NUM_DECODING] = last
    for k in range(w.lanes[lane, NUM_FRESH]):
        if w.seats[lane, SEAT_FRESH, k] == i:
            w.lanes[lane, NUM_FRESH] -= 1
            w.seats[lane, SEAT_FRESH, k] = w.seats[lane, SEAT_FRESH, w.lanes[lane, NUM_FRESH]]
            break


@njit(**INNER)
def _leave_prompts(w, lane, seat):
    """Take a request out of the prompts under way, keeping the order of the others."""
    w.lanes[lane, NUM_PROMPTS] -= 1
    for k in range(seat, w.lanes[lane, NUM_PROMPTS]):
        w.seats[lane, SEAT_PROMPTS, k] = w.seats[lane, SEAT_PROMPTS, k + 1]
        w.seats[lane, SEAT_GRANTS, k] = w.seats[lane, SEAT_GRANTS, k + 1]


@njit(**INNER)
def _schedule_event(w, i, due_s):
    w.counts[EVENTS] = pushed(w.counts[EVENTS], i, due_s, w.due_s, w.event_links)


@njit(**INNER)
def _left(w, i, now_s):
    """A request is done or refused: its followers come. In a closed loop the first of them takes its place, and where
    nobody follows, the next request does."""
    w.counts[SERVED] += 1
    follower = w.req[i, FIRST_FOLLOWER]
    if follower >= 0:
        w.req[follower, PLACE] = w.req[i, PLACE]
    elif w.req[i, PLACE]:
        _enter(w, now_s)
    while follower >= 0:
        _schedule_event(w, follower, now_s + w.when[follower, ENTER])
        follower = w.req[follower, NEXT_FOLLOWER]


@njit(**INNER)
def _enter(w, now_s):
    """The next request of a closed loop, if there is one, takes a place."""
    if w.counts[UPCOMING] < w.order.size:
        i = w.order[w.counts[UPCOMING]]
        w.counts[UPCOMING] += 1
        w.req[i, PLACE] = 1
        _schedule_event(w, i, now_s + w.when[i, ENTER])


@njit(**INNER)
def _finish(w, i, now_s):
    """The last token is out, and nothing is held any more."""
    if w.blocks_each:
        _share(w, i)
    _give_back(w, i)
    _done(w, i, now_s)


@njit(**HOT)
def _done(w, i, now_s):
    """A request is served."""
    lane = w.req[i, LANE]
    w.req[i, STATUS] = DONE
    w.when[i, FINISH] = now_s
    w.req[i, MACHINE] = w.unit_machine[w.lanes[lane, UNIT]]
    w.rates[lane, LOAD_REQUESTS] -= 1.0
    _count(w, now_s, B_FINISHES, 1.0)
    _left(w, i, now_s)


@njit(**INNER)
def _count(w, at_s, column, amount):
    """Add to the timeline."""
    if at_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        _widen(w, at_s)
    w.timeline[int(at_s / w.totals[WIDTH]), column] += amount


@njit(**INNER)
def _touch(w, lane, now_s):
    """Bring the timeline up to date with a lane and its pool, before something changes there."""
    _touch_at_turn(w, lane, now_s)


@njit(**HOT)
def _touch_at_turn(w, lane, now_s):
    """The same, for the one place where every step passes."""
    pool, since_s = w.lanes[lane, POOL], w.rates[lane, NOTED_S]
    pool_since_s = w.rates[pool, POOL_NOTED_S]
    if now_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        _widen(w, now_s)
    running = float(w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] + w.lanes[lane, RESERVED])
    waiting = float(w.lanes[lane, NUM_WAITING])
    used = float(w.memory.capacity[pool] - w.memory.free[pool] - w.memory.evictable[pool])
    k = int(now_s / w.totals[WIDTH])
    if min(since_s, pool_since_s) >= k * w.totals[WIDTH]:
        w.timeline[k, B_RUNNING] += running * (now_s - since_s)
        w.timeline[k, B_WAITING] += waiting * (now_s - since_s)
        w.timeline[k, B_KV] += used * (now_s - pool_since_s)
    elif running + waiting + used > 0.0:
        _spread(w.timeline, w.totals[WIDTH], B_RUNNING, since_s, now_s, running)
        _spread(w.timeline, w.totals[WIDTH], B_WAITING, since_s, now_s, waiting)
        _spread(w.timeline, w.totals[WIDTH], B_KV, pool_since_s, now_s, used)
    w.rates[lane, NOTED_S] = w.rates[pool, POOL_NOTED_S] = now_s


@njit(**INNER)
def _spread(timeline, width_s, column, since_s, now_s, amount):
    """Add an integral over time to the bins that it covers; the timeline reaches far enough."""
    if amount == 0.0 or now_s <= since_s:
        return
    k, end = int(since_s / width_s), int(now_s / width_s)
    if k == end:
        timeline[k, column] += amount * (now_s - since_s)
        return
    timeline[k, column] += amount * ((k + 1) * width_s - since_s)
    for between in range(k + 1, end):
        timeline[between, column] += amount * width_s
    timeline[end, column] += amount * (now_s - end * width_s)


@njit(**INNER)
def _widen(w, at_s):
    """Put bins of the timeline together in pairs until it reaches far enough."""
    bins = w.timeline.shape[0]
    while at_s >= bins * w.totals[WIDTH]:
        for k in range(bins // 2):
            for c in range(w.timeline.shape[1]):
                w.timeline[k, c] = w.timeline[2 * k, c] + w.timeline[2 * k + 1, c]
        for k in range(bins // 2, bins):
            for c in range(w.timeline.shape[1]):
                w.timeline[k, c] = 0.0
        w.totals[WIDTH] *= 2.0


@njit(**INNER)
def _grow(w, i, tokens):
    """Blocks for ``tokens`` tokens of a request, of its own pool or borrowed; False if there are none."""
    lane, want = w.req[i, LANE], (tokens + w.block_tokens - 1) // w.block_tokens
    blocks, pool = w.req[i, BLOCKS], w.lanes[lane, POOL]
    if want <= blocks:
        return True
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    if w.req[i, LENT] == 0 and take(w.memory, pool, held[want] - held[blocks]):
        w.req[i, BLOCKS] = want
        return True
    return w.lending_s >= 0.0 and _borrow(w, i, want)


@njit(**INNER)
def _borrow(w, i, want):
    """Fill what room the own pool has, and borrow the rest of ``want`` blocks from one other lane."""
    lane, lender, lent = w.req[i, LANE], w.req[i, LENDER], w.req[i, LENT]
    blocks, pool = w.req[i, BLOCKS], w.lanes[lane, POOL]
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    own = blocks - lent
    if lent == 0:
        lender = _lender(w, lane)
        own = _own_blocks(held, blocks, want, room(w.memory, pool))
    if lender < 0 or not take(w.memory, w.lanes[lender, POOL], held[want - own] - held[lent]):
        return False
    if lent == 0:
        take(w.memory, pool, held[own] - held[blocks])
    w.req[i, LENDER], w.req[i, LENT], w.req[i, BLOCKS] = lender, want - own, want
    return True


@njit(**INNER)
def _lender(w, lane):
    """The lane with another pool that has most room; -1 if there is none. Lanes for answers do not lend to those for
    prompts: a prompt that waits for room there would hold that very room."""
    best = -1
    for other in range(w.lanes.shape[0]):
        pool = w.lanes[other, POOL]
        if _may_lend(w, other, lane) and (best < 0 or room(w.memory, pool) > room(w.memory, w.lanes[best, POOL])):
            best = other
    return best


@njit(**INNER)
def _may_lend(w, other, lane):
    """Whether another lane may hold blocks for a lane: it has a pool of its own, and does the same work."""
    return w.lanes[other, POOL] != w.lanes[lane, POOL] and w.lanes[other, ROLE] == w.lanes[lane, ROLE]


@njit(**INNER)
def _own_blocks(held, blocks, want, free):
    """The most blocks, up to ``want``, that a sequence of ``blocks`` may have where so many bytes are free."""
    while want > blocks and held[want] - held[blocks] > free:
        want -= 1
    return want


@njit(**HOT)
def _fits(w, lane, tokens):
    """Whether a sequence can ever be held: by the lane's pool and, where caches are lent, one other pool."""
    held, blocks = w.held[w.lanes[lane, DEPLOYMENT]], (tokens + w.block_tokens - 1) // w.block_tokens
    return held[blocks] <= w.lanes[lane, POOLED] and (w.lending_s < 0.0 or _fits_in_two(w, lane, blocks))


@njit(**INNER)
def _fits_in_two(w, lane, blocks):
    """Whether the lane's pool and the largest other one can hold so many blocks of a sequence."""
    held, largest = w.held[w.lanes[lane, DEPLOYMENT]], 0
    for other in range(w.lanes.shape[0]):
        if _may_lend(w, other, lane):
            largest = max(largest, w.memory.capacity[w.lanes[other, POOL]])
    own = _own_blocks(held, 0, blocks, w.memory.capacity[w.lanes[lane, POOL]])
    return held[blocks - own] <= largest


@njit(**INNER)
def _look_far(w, lane):
    """Count the tokens in lent blocks that the next decode step attends to."""
    for seat in range(w.lanes[lane, NUM_DECODING]):
        i = w.seats[lane, SEAT_DECODING, seat]
        if w.req[i, LENT] > 0:
            near = (w.req[i, BLOCKS] - w.req[i, LENT]) * w.block_tokens
            far = max(0, w.req[i, COMPUTED] + w.lanes[lane, STEPS] - w.req[i, JOINED] + 1 - near)
            w.lanes[lane, FAR] += far - w.req[i, LENT_TOKENS]
            w.lanes[w.req[i, LENDER], GUESTS] += far - w.req[i, LENT_TOKENS]
            w.req[i, LENT_TOKENS] = far


@njit(**INNER)
def _victim(w, lane):
    """Who must go when a cache is full: of all that use it the last admitted, or the last in the queue's order. So the
    first one always goes on, and two that need the same blocks cannot drive each other out for ever."""
    worst = -1
    for other in range(w.lanes.shape[0]):
        if w.lanes[other, POOL] == w.lanes[lane, POOL] or (w.lending_s >= 0.0 and _may_lend(w, other, lane)):
            for seat in range(w.lanes[other, NUM_DECODING]):
                worst = _later(w, w.seats[other, SEAT_DECODING, seat], worst)
            for seat in range(w.lanes[other, NUM_PROMPTS]):
                worst = _later(w, w.seats[other, SEAT_PROMPTS, seat], worst)
    return worst


@njit(**INNER)
def _later(w, i, other):
    """Which of two requests is preempted first; ``other`` may be nobody (-1)."""
    if other < 0:
        return i
    if w.rules.evicts_by_key and w.key[i] != w.key[other]:
        return i if w.key[i] > w.key[other] else other
    return i if w.req[i, TURN] > w.req[other, TURN] else other


@njit(**INNER)
def _preempt(w, swap, needy, i, now_s):
    """Send a request back to its queue for a lane that needs room: its cache goes to the host, for which that lane
    waits, or is computed again later."""
    lane = w.req[i, LANE]
    _touch(w, lane, now_s)
    if w.req[i, STATUS] == DECODING:
        for seat in range(w.lanes[lane, NUM_DECODING]):
            if w.seats[lane, SEAT_DECODING, seat] == i:
                _leave_seat(w, lane, seat)
                break
    else:
        for seat in range(w.lanes[lane, NUM_PROMPTS]):
            if w.seats[lane, SEAT_PROMPTS, seat] == i:
                _leave_prompts(w, lane, seat)
                break
    if w.req[i, MADE] >= w.req[i, OUTPUT]:  # complete, and only waited for its batch
        _return_one(w, i, now_s)
        return
    if w.rules.swaps and w.req[i, STATUS] == DECODING:
        _swap(w, swap, needy, w.held[w.lanes[lane, DEPLOYMENT], w.req[i, BLOCKS]])
        w.req[i, STATUS] = SWAPPED
    else:
        if w.req[i, STATUS] == DECODING:
            _share(w, i)
        w.req[i, COMPUTED] = 0
        w.req[i, STATUS] = WAITING
    _give_back(w, i)
    w.req[i, PREEMPTED] += 1
    _count(w, now_s, B_PREEMPTED, 1.0)
    _queue(w, i, lane)


@njit(**HOT)
def _queue(w, i, lane):
    """A request waits at a lane."""
    w.lanes[lane, NUM_WAITING] += 1
    w.lanes[lane, WAITING_ROOT] = pushed(w.lanes[lane, WAITING_ROOT], i, w.key[i], w.key, w.links)


@njit(**INNER)
def _swap(w, swap, lane, amount):
    """A sequence's cache goes to the host or comes back: the step waits for it."""
    time_s = swap(float(amount), w.rates[lane, HOST_BYTES_PER_S], w.rates[lane, HOST_LATENCY_S], w.knobs[SWAP])
    w.step[lane, N_DELAY_S] += time_s
    w.totals[SWAPPED_BYTES] += amount
    w.totals[SWAPPED_S] += time_s


# -- admission --------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _join(w, i, lane):
    """A request whose prompt is computed takes a seat among the decoding ones."""
    seat, left = w.lanes[lane, NUM_DECODING], w.req[i, OUTPUT] - w.req[i, MADE]
    w.lanes[lane, NUM_DECODING] += 1
    w.seats[lane, SEAT_DECODING, seat] = i
    w.req[i, STATUS] = DECODING
    w.req[i, JOINED] = w.lanes[lane, STEPS]
    w.lanes[lane, CONTEXT] += w.req[i, COMPUTED]
    w.seats[lane, SEAT_END_DUE, seat] = NEVER if w.rules.draft_levels and left else w.lanes[lane, STEPS] + left
    w.lanes[lane, NEXT_END] = min(w.lanes[lane, NEXT_END], w.seats[lane, SEAT_END_DUE, seat])
    w.seats[lane, SEAT_BLOCK_DUE, seat] = _block_due(w, i, lane)
    if left:
        w.seats[lane, SEAT_FRESH, w.lanes[lane, NUM_FRESH]] = i
        w.lanes[lane, NUM_FRESH] += 1


@njit(**INNER)
def _block_due(w, i, lane):
    """The count of decode steps that needs a block more than the request holds."""
    if w.rules.draft_levels:
        return w.lanes[lane, STEPS] + 1
    return w.req[i, JOINED] + w.req[i, BLOCKS] * w.block_tokens - w.req[i, COMPUTED] + 1


@njit(**INNER)
def _admit_ready(w, swap, transfer, i, lane, now_s):
    """Seat a request whose prompt was computed before: elsewhere, or here before it was swapped out."""
    source = w.req[i, SOURCE]
    w.req[i, LANE] = lane
    tokens = w.req[i, COMPUTED] + 1
    if w.rules.reserves_output:
        tokens = w.req[i, INPUT] + w.req[i, OUTPUT] - w.req[i, DROPPED]
    if not _grow(w, i, tokens):
        return False
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    amount = held[(w.req[i, COMPUTED] + w.block_tokens - 1) // w.block_tokens]
    if source < 0:  # from the host
        _swap(w, swap, lane, amount)
        _join(w, i, lane)
        return True
    whole_s = transfer(
        float(amount), w.rates[source, LINK_BYTES_PER_S], w.rates[source, LINK_LATENCY_S], w.knobs[TRANSFER]
    )
    time_s = whole_s * (1.0 - w.rules.transfer_hidden_frac)
    start_s = max(now_s, w.rates[source, LINK_S])
    w.rates[source, LINK_S] = start_s + time_s
    w.totals[MOVED] += amount
    w.totals[MOVED_S] += time_s
    w.lanes[lane, RESERVED] += 1
    w.req[i, STATUS] = MOVING
    _schedule_event(w, i, start_s + time_s)
    return True


@njit(**INNER)
def _arrived(w, i):
    """A cache has come over the link: its source is free of it, and the request decodes from the next step on."""
    source, lane = w.req[i, SOURCE], w.req[i, LANE]
    _release(w, i, source, w.req[i, SOURCE_BLOCKS], w.req[i, SOURCE_SHARED], w.req[i, SOURCE_LENDER],
             w.req[i, SOURCE_LENT])  # fmt: skip
    w.req[i, SOURCE] = -1
    w.req[i, SOURCE_BLOCKS] = w.req[i, SOURCE_SHARED] = w.req[i, SOURCE_LENT] = 0
    w.seats[lane, SEAT_READY, w.lanes[lane, NUM_READY]] = i
    w.lanes[lane, NUM_READY] += 1


@njit(**INNER)
def _admit_prompt(w, i, lane, granted, cached_ids):
    """Seat a request whose prompt is to be computed, with blocks for its first grant; False if there are none."""
    pool, bt = w.lanes[lane, POOL], w.block_tokens
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    cached = cached_ids * w.blocks_each * bt
    tokens = cached + granted
    if _reserves(w, lane):
        tokens = w.req[i, INPUT] + w.req[i, OUTPUT]
    w.req[i, LANE] = lane
    if cached_ids:
        first, blocks, want = w.prefix_start[i], cached_ids * w.blocks_each, (tokens + bt - 1) // bt
        pinned, loaded = need_of_found(w.memory, pool, w.prefix_ids, first, cached_ids, held, w.blocks_each)
        left = room(w.memory, pool) - pinned - loaded
        if left < 0 or (left < held[want] - held[blocks] and not _can_borrow(w, lane, blocks, want, left)):
            return False
        pin(w.memory, pool, w.prefix_ids, first, cached_ids, held, w.blocks_each)
        w.step[lane, N_LOAD] += loaded
        w.req[i, BLOCKS] = blocks
        w.req[i, SHARED] = cached_ids
    if not _grow(w, i, tokens):
        return False
    w.req[i, COMPUTED] = cached
    if w.when[i, ADMITTED_S] != w.when[i, ADMITTED_S]:
        w.req[i, CACHED] = cached
    w.req[i, STATUS] = PREFILLING
    w.seats[lane, SEAT_PROMPTS, w.lanes[lane, NUM_PROMPTS]] = i
    w.seats[lane, SEAT_GRANTS, w.lanes[lane, NUM_PROMPTS]] = granted
    w.lanes[lane, NUM_PROMPTS] += 1
    return True


@njit(**HOT)
def _reserves(w, lane):
    """Whether a prompt takes the cache of its answer along: not where another pool will hold it."""
    return w.rules.reserves_output and (w.lanes[lane, ROLE] != PROMPTS or w.lanes[lane, TWIN] >= 0)


@njit(**INNER)
def _can_borrow(w, lane, blocks, want, left):
    """Whether ``want`` blocks are to be had when ``blocks`` of them are here and so many bytes are left."""
    if w.lending_s < 0.0:
        return False
    held, lender = w.held[w.lanes[lane, DEPLOYMENT]], _lender(w, lane)
    return lender >= 0 and held[want - _own_blocks(held, blocks, want, left)] <= room(w.memory, w.lanes[lender, POOL])


@njit(**INNER)
def _cached_ids(w, i, pool):
    """Leading prefix blocks of a request that a pool holds; at least one token is always computed."""
    if not w.blocks_each or w.req[i, DROPPED] > 0:
        return 0
    first = w.prefix_start[i]
    most = (w.req[i, INPUT] + w.req[i, MADE] - 1) // (w.blocks_each * w.block_tokens)
    return found(w.memory, pool, w.prefix_ids, first, min(most, w.prefix_start[i + 1] - first))


@njit(**INNER)
def _admit(w, grant, swap, transfer, lane, now_s, budget, taken):
    """Fill free seats from the queue, in its order, while tokens and blocks last; the prompt tokens granted in all."""
    all_tokens = w.lanes[lane, BUDGET]
    while w.lanes[lane, WAITING_ROOT] >= 0:
        if _seated(w, lane) >= w.lanes[lane, MAX_SEQS]:
            break
        i = w.lanes[lane, WAITING_ROOT]
        if w.req[i, STATUS] == SWAPPED or w.req[i, SOURCE] >= 0:
            before = w.lanes[lane, NUM_DECODING]
            if not _admit_ready(w, swap, transfer, i, lane, now_s):
                break
            if w.rules.mixes:
                budget -= (w.lanes[lane, NUM_DECODING] - before) * (1 + w.rules.checked_tokens)
        else:
            cached_ids = _cached_ids(w, i, w.lanes[lane, POOL])
            cached = cached_ids * w.blocks_each * w.block_tokens
            left = w.req[i, INPUT] + w.req[i, MADE] - cached
            granted = max(0, grant(left, budget - taken, taken, all_tokens, w.knobs[GRANT]))
            if granted == 0 and not w.rules.waits_for_empty:
                break
            if not _admit_prompt(w, i, lane, granted, cached_ids):
                break
            taken += granted
        w.lanes[lane, WAITING_ROOT] = popped(i, w.key, w.links)
        w.lanes[lane, NUM_WAITING] -= 1
        w.counts[ADMITTED] += 1
        w.req[i, TURN] = w.counts[ADMITTED]
        w.tag[0] = max(w.tag[0], w.key[i])
        if w.when[i, ADMITTED_S] != w.when[i, ADMITTED_S]:
            w.when[i, ADMITTED_S] = now_s
    return taken


@njit(**HOT)
def _seated(w, lane):
    """Requests in a lane's batch or on their way to it; the two lanes of a split machine share their seats."""
    twin = w.lanes[lane, TWIN]
    seats = w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] + w.lanes[lane, RESERVED]
    if twin >= 0:
        seats += w.lanes[twin, NUM_DECODING] + w.lanes[twin, NUM_PROMPTS] + w.lanes[twin, RESERVED]
    return seats


# -- a step's schedule ------------------------------------------------------------------------------------------------


@njit(**HOT)
def _grow_decodes(w, swap, lane, now_s):
    """A block for every decoding request that needs one; True if somebody was preempted for it."""
    preempted, seat, due, decodes = False, 0, w.lanes[lane, STEPS] + 1, w.lanes[lane, NUM_DECODING]
    while seat < decodes:
        if w.seats[lane, SEAT_BLOCK_DUE, seat] > due:
            seat += 1
            continue
        i = w.seats[lane, SEAT_DECODING, seat]
        now_tokens = w.req[i, COMPUTED] + w.lanes[lane, STEPS] - w.req[i, JOINED]
        most = w.req[i, INPUT] + w.req[i, OUTPUT]
        if _grow(w, i, min(now_tokens + 1 + w.rules.draft_levels, most)):
            w.seats[lane, SEAT_BLOCK_DUE, seat] = NEVER if now_tokens >= most else max(_block_due(w, i, lane), due + 1)
            seat += 1
        else:
            preempted, seat = True, 0
            _preempt(w, swap, lane, _victim(w, lane), now_s)
            decodes = w.lanes[lane, NUM_DECODING]
    return preempted


@njit(**HOT)
def _continue_prompts(w, grant, swap, lane, now_s, budget):
    """Grant tokens to prompts under way, oldest first; the tokens granted, negative if somebody was preempted."""
    taken, seat, preempted = 0, 0, False
    while seat < w.lanes[lane, NUM_PROMPTS]:
        i = w.seats[lane, SEAT_PROMPTS, seat]
        left = w.req[i, INPUT] + w.req[i, MADE] - w.req[i, COMPUTED]
        granted = grant(left, budget - taken, taken, w.lanes[lane, BUDGET], w.knobs[GRANT])
        w.seats[lane, SEAT_GRANTS, seat] = max(granted, 0)
        if granted > 0 and not _grow(w, i, w.req[i, COMPUTED] + granted):
            preempted = True
            _preempt(w, swap, lane, _victim(w, lane), now_s)
            taken, seat = 0, 0
            continue
        taken += max(granted, 0)
        seat += 1
    return -1 - taken if preempted else taken


@njit(**HOT)
def _schedule(w, grant, swap, transfer, lane, now_s):
    """Decide what a lane computes next; False if nothing."""
    for k in range(w.lanes[lane, NUM_READY]):
        w.lanes[lane, RESERVED] -= 1
        _join(w, w.seats[lane, SEAT_READY, k], lane)
    w.lanes[lane, NUM_READY] = 0
    budget, is_full = w.lanes[lane, BUDGET], False
    is_layered = w.rules.layer_group_tokens > 0
    if w.rules.mixes:
        is_full = _grow_decodes(w, swap, lane, now_s)
        budget -= w.lanes[lane, NUM_DECODING] * (1 + w.rules.checked_tokens)
    taken = 0
    if not (is_layered and w.lanes[lane, LAYERS_LEFT] > 0):
        taken = _continue_prompts(w, grant, swap, lane, now_s, budget)
        if taken < 0:
            taken, is_full = -1 - taken, True
        is_free = not w.rules.waits_for_empty or w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] == 0
        if is_free and not is_full and w.lanes[lane, WAITING_ROOT] >= 0:
            before = w.lanes[lane, NUM_DECODING]
            taken = _admit(w, grant, swap, transfer, lane, now_s, budget, taken)
            if (
                w.rules.mixes and w.lanes[lane, NUM_DECODING] > before
            ):  # some joined with a computed prompt: maybe at a block's end
                _grow_decodes(w, swap, lane, now_s)
    _add_prompts(w, lane)
    if is_layered:
        _group_layers(w, lane)
    if not w.rules.mixes and w.step[lane, N_PROMPTS] == 0.0:
        _grow_decodes(w, swap, lane, now_s)
    if w.rules.mixes or w.step[lane, N_PROMPTS] == 0.0:
        decodes = w.lanes[lane, NUM_DECODING]
        w.step[lane, N_DECODES] = decodes
        if w.lending_s >= 0.0:
            _look_far(w, lane)
        here = w.lanes[lane, CONTEXT] + decodes - w.lanes[lane, FAR] + w.lanes[lane, GUESTS]
        w.step[lane, N_CONTEXT] = here * w.kept[w.lanes[lane, DEPLOYMENT], KEPT]
        w.step[lane, N_EXTRA] = decodes * w.rules.checked_tokens
    return w.step[lane, N_PROMPTS] + w.step[lane, N_DECODES] > 0.0


@njit(**HOT)
def _add_prompts(w, lane):
    """Sum up what was granted to prompts."""
    longest = prompts = 0
    new = pairs = 0.0
    for seat in range(w.lanes[lane, NUM_PROMPTS]):
        q = w.seats[lane, SEAT_GRANTS, seat]
        if q > 0:
            prompts += 1
            new += q
            pairs += q * (w.req[w.seats[lane, SEAT_PROMPTS, seat], COMPUTED] + 0.5 * q)
            longest = max(longest, q)
    if w.rules.pads_prompts and prompts:
        w.rates[lane, PROMPT_PADDING] = prompts * longest - new
        new = float(prompts * longest)
        pairs = 0.5 * prompts * longest * longest
    w.step[lane, N_PROMPTS], w.step[lane, N_NEW], w.step[lane, N_PAIRS] = prompts, new, pairs


@njit(**INNER)
def _group_layers(w, lane):
    """Prompts that start together pass a group of layers a step; when all were preempted there is nothing to pass."""
    if w.step[lane, N_PROMPTS] == 0.0:
        w.lanes[lane, LAYERS_ALL] = w.lanes[lane, LAYERS_LEFT] = 0
    elif w.lanes[lane, LAYERS_LEFT] == 0:
        group = w.rules.layer_group_tokens
        w.lanes[lane, LAYERS_ALL] = w.lanes[lane, LAYERS_LEFT] = (int(w.step[lane, N_NEW]) + group - 1) // group
    w.rates[lane, LAYERS_FRAC] = 1.0 / max(1, w.lanes[lane, LAYERS_ALL])


# -- its price --------------------------------------------------------------------------------------------------------


@njit(**HOT)
def _pass(w, variant, lane, extra, share):
    """The device's cost of a lane's step, or of ``share`` of its sequences, into ``w.cost``."""
    row = w.step[lane]
    prompts, new, pairs = row[N_PROMPTS], row[N_NEW], row[N_PAIRS]
    decodes, context = row[N_DECODES], row[N_CONTEXT]
    answers = decodes * (1 + w.rules.checked_tokens)
    tables, cost = w.surfaces, w.cost
    if share != 1.0:
        prompts = max(1.0, prompts * share) if prompts else 0.0
        new, pairs, decodes, context = new * share, pairs * share, decodes * share, context * share
        answers, extra = answers * share, extra * share
    device_cost(tables, variant, cost[0], prompts, new, pairs, decodes, context, prompts + answers, extra)
    part = w.rates[lane, LAYERS_FRAC]
    if part != 1.0:
        device_cost(tables, variant, cost[1], 0.0, 0.0, 0.0, decodes, context, answers, extra)
        for c in range(cost.shape[1]):
            cost[0, c] = part * cost[0, c] + (1.0 - part) * cost[1, c]


@njit(**HOT)
def _lane_s(w, overlap, variant, lane):
    """Device time of a lane's own part of a step; its energy is added to the unit's."""
    extra = w.step[lane, N_EXTRA]
    _pass(w, variant, lane, extra, 1.0)
    if w.rules.fill_tokens:
        extra = _fill(w, variant, lane, extra)
    time_s = w.cost[0, surface.TIME]
    if w.rules.has_overlap:
        network_s, memory_s = w.cost[0, surface.NETWORK], w.cost[0, surface.MEMORY]
        energy_j = w.cost[0, surface.ENERGY]
        _pass(w, variant, lane, extra, 0.5)
        more_network_s = max(0.0, 2.0 * w.cost[0, surface.NETWORK] - network_s)
        more_s = max(0.0, 2.0 * w.cost[0, surface.TIME] - time_s - more_network_s)
        time_s = overlap(time_s, network_s, memory_s, more_s, more_network_s, w.num_layers, w.knobs[OVERLAP])
        w.cost[0, surface.ENERGY], w.cost[0, surface.NETWORK] = energy_j, network_s
    w.units[w.lanes[lane, UNIT], SPENT] += w.cost[0, surface.ENERGY] * w.rates[lane, DEVICE_WAYS]
    if w.lanes[lane, FAR] > 0:
        time_s += w.lending_s
    if w.rules.draft_levels and w.step[lane, N_DECODES]:
        time_s += w.rules.draft_s + w.rules.draft_per_sequence_s * w.step[lane, N_DECODES]
    return time_s + w.kept[w.lanes[lane, DEPLOYMENT], COMPRESS_S] * w.step[lane, N_NEW] * w.rates[lane, LAYERS_FRAC]


@njit(**INNER)
def _fill(w, variant, lane, extra):
    """Fine-tuning tokens that fit beside a step, under its limits of tokens and time; the tokens beside it in all."""
    row = w.step[lane]
    most = max(0.0, w.rules.fill_tokens - row[N_NEW] - row[N_DECODES] - extra)
    low, high = 0.0, most
    for attempt in range(7):
        _pass(w, variant, lane, extra + high, 1.0)
        if w.cost[0, surface.TIME] <= w.rules.fill_until_s:
            low = high
            if attempt == 0:
                break
            high = min(most, 0.5 * (high + most))
        else:
            most = high
            high = 0.5 * (low + high)
    low = np.floor(low)
    _pass(w, variant, lane, extra + low, 1.0)
    row[N_FILL] = low
    w.totals[FINETUNED] += low
    return extra + low


@njit(**HOT)
def _variant(w, unit, lane):
    """Which tables price a lane: of its deployment and, on a split machine, of its share and its company."""
    k = w.lanes[lane, DEPLOYMENT] * w.num_variants
    twin = w.lanes[lane, TWIN]
    if twin < 0:
        return k
    busy = w.units[w.lanes[twin, UNIT], BEGAN] == w.units[w.lanes[twin, UNIT], BEGAN]
    return k + 2 * w.machines[w.unit_machine[unit], SPLIT] + (1 if busy else 0)


@njit(**HOT)
def _price(w, overlap, swap, unit, now_s):
    """Start the step that was scheduled: when it ends."""
    first, end, machine = w.unit_lane[unit], w.unit_lane[unit + 1], w.unit_machine[unit]
    device_s = host_s = delay_s = load_s = network_s = 0.0
    w.units[unit, SPENT] = 0.0
    for lane in range(first, end):
        row = w.step[lane]
        sequences = row[N_PROMPTS] + row[N_DECODES]
        if sequences > 0.0:
            device_s = max(device_s, _lane_s(w, overlap, _variant(w, unit, lane), lane))
            network_s = max(network_s, w.cost[0, surface.NETWORK])
        host_s = max(host_s, w.rates[lane, HOST_STEP_S] + w.rates[lane, HOST_PER_SEQUENCE_S] * sequences)
        delay_s += row[N_DELAY_S]
        if row[N_LOAD] > 0.0:
            load_s = max(load_s, swap(row[N_LOAD], w.rates[lane, HOST_BYTES_PER_S], w.rates[lane, HOST_LATENCY_S],
                                      w.knobs[SWAP]))  # fmt: skip
            w.totals[LOADED] += row[N_LOAD]
    if end - first > 1:
        device_s += _together_s(w, first, end)
        network_s += w.cost[0, surface.NETWORK]
        w.units[unit, SPENT] += w.cost[0, surface.ENERGY] * w.rates[first, DEVICE_WAYS] * (end - first)
    exposed_s = (1.0 - w.rates[first, HOST_OVERLAP_FRAC]) * host_s
    step_s = max(device_s + exposed_s, host_s)
    if host_s > device_s:
        w.totals[HOST_BOUND] += step_s
    if load_s > 0.0:
        step_s = max(step_s, load_s) if w.rules.load_hides else step_s + load_s
    step_s += delay_s
    w.units[unit, BEGAN] = now_s
    stages = w.machines[machine, STAGES]
    if stages == 1:
        return now_s + step_s
    return _through_stages(w, machine, stages, now_s, step_s, network_s)


@njit(**INNER)
def _together_s(w, first, end):
    """Device time of what the lanes of a unit do together, into ``w.cost`` too. Prompts that pass a part of the layers
    are there for that part of the time."""
    layered = others = 0.0
    part = 1.0
    for lane in range(first, end):
        row, frac = w.step[lane], w.rates[lane, LAYERS_FRAC]
        others += row[N_DECODES] + row[N_EXTRA] + row[N_FILL]
        if frac == 1.0:
            others += row[N_NEW]
        else:
            layered += row[N_NEW]
            part = frac if part == 1.0 else max(part, frac)
    tables, variant, cost = w.surfaces, w.lanes[first, DEPLOYMENT] * w.num_variants, w.cost
    cost[0, :] = 0.0
    shared_cost(tables, variant, cost[0], others + layered)
    if part != 1.0:
        cost[1, :] = 0.0
        shared_cost(tables, variant, cost[1], others)
        for c in range(cost.shape[1]):
            cost[0, c] = part * cost[0, c] + (1.0 - part) * cost[1, c]
    return cost[0, surface.TIME]


@njit(**INNER)
def _through_stages(w, machine, stages, now_s, step_s, network_s):
    """When a batch leaves a pipeline: each stage takes it when the one before is done and its own last one is gone.

    A blocking send holds the stage until it is through; otherwise the stage computes on.
    """
    slowest_s = step_s * w.stage_share[machine]
    others_s = (step_s - slowest_s) / (stages - 1)
    send_s = network_s / stages if w.rules.overlaps_sends else 0.0
    at_s = now_s
    for stage in range(stages):
        work_s = slowest_s if stage == 0 else others_s
        at_s = max(at_s, w.stage_s[machine, stage]) + work_s
        w.stage_s[machine, stage] = at_s - min(send_s, work_s)
    return at_s


# -- its outcome ------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _emit(w, target, i, lane, now_s):
    """A prompt is computed, so its next token is out: the request ends, decodes here, or goes to another lane."""
    w.req[i, MADE] += 1
    w.rates[lane, LOAD_TOKENS] -= 1.0
    if w.req[i, MADE] > 1:
        _gap(w, now_s - w.when[i, LAST], 1.0)
    else:
        w.when[i, FIRST] = now_s
        w.rates[lane, LOAD_TOKENS] -= w.req[i, INPUT]
    w.when[i, LAST] = now_s
    if w.lanes[lane, ROLE] != PROMPTS and (w.rules.holds_batch or w.req[i, MADE] < w.req[i, OUTPUT]):
        _join(w, i, lane)
    elif w.req[i, MADE] >= w.req[i, OUTPUT]:
        _finish(w, i, now_s)
    else:
        _hand_over(w, i, lane, target, now_s)


@njit(**INNER)
def _hand_over(w, i, lane, target, now_s):
    """A request leaves the lane that computed its prompt. Where both use one pool its cache stays; otherwise it waits
    until the other lane has room, and is held here until it has gone over."""
    _touch(w, target, now_s)
    rest = float(w.req[i, OUTPUT] - w.req[i, MADE])
    w.rates[lane, LOAD_REQUESTS] -= 1.0
    w.rates[target, LOAD_REQUESTS] += 1.0
    w.rates[lane, LOAD_TOKENS] -= rest
    w.rates[target, LOAD_TOKENS] += rest
    if w.lanes[lane, POOL] == w.lanes[target, POOL]:
        w.req[i, STATUS], w.req[i, LANE] = MOVING, target
        w.lanes[target, RESERVED] += 1
        w.seats[target, SEAT_READY, w.lanes[target, NUM_READY]] = i
        w.lanes[target, NUM_READY] += 1
        return
    w.req[i, SOURCE], w.req[i, STATUS] = lane, WAITING
    w.req[i, SOURCE_BLOCKS], w.req[i, SOURCE_SHARED] = w.req[i, BLOCKS], w.req[i, SHARED]
    w.req[i, SOURCE_LENDER], w.req[i, SOURCE_LENT] = w.req[i, LENDER], w.req[i, LENT]
    w.req[i, BLOCKS] = w.req[i, SHARED] = w.req[i, LENT] = 0
    w.req[i, LENDER] = -1
    _queue(w, i, target)


@njit(**INNER)
def _exit_lane(w, lane, i):
    """The lane that takes over after a prompt: its twin, or of those that can hold the whole sequence the one with the
    fewest tokens still to come; -1 if none can."""
    if w.lanes[lane, ROLE] != PROMPTS:
        return lane
    if w.lanes[lane, TWIN] >= 0:
        return w.lanes[lane, TWIN]
    best, tokens = -1, w.req[i, INPUT] + w.req[i, OUTPUT]
    for k in range(w.exit.size):
        other = w.exit[k]
        if (best < 0 or w.rates[other, LOAD_TOKENS] < w.rates[best, LOAD_TOKENS]) and _fits(w, other, tokens):
            best = other
    return best


@njit(**HOT)
def _book_prompts(w, lane, now_s):
    """Book the granted prompt tokens; finished prompts move on."""
    if w.lanes[lane, LAYERS_LEFT] > 0:
        w.lanes[lane, LAYERS_LEFT] -= 1
        if w.lanes[lane, LAYERS_LEFT] > 0:
            return
    seat = 0
    while seat < w.lanes[lane, NUM_PROMPTS]:
        i, granted = w.seats[lane, SEAT_PROMPTS, seat], w.seats[lane, SEAT_GRANTS, seat]
        w.req[i, COMPUTED] += granted
        if granted and w.blocks_each:
            _share(w, i)
        if w.req[i, COMPUTED] < w.req[i, INPUT] + w.req[i, MADE]:
            seat += 1
            continue
        _leave_prompts(w, lane, seat)
        if w.req[i, DROPPED] > 0:
            _drop(w, i)
        target = _exit_lane(w, lane, i)
        _emit(w, target, i, lane, now_s)
        if target != lane:
            _wake(w, target, now_s)
    w.lanes[lane, LAYERS_ALL] = 0


@njit(**INNER)
def _drop(w, i):
    """Compress a prompt's cache: tokens are dropped, and the blocks that they leave empty are free, borrowed ones
    first. What an answer was promised stays."""
    lane = w.req[i, LANE]
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    w.req[i, COMPUTED] -= w.req[i, DROPPED]
    tokens = w.req[i, COMPUTED]
    if _reserves(w, lane):
        tokens = w.req[i, INPUT] + w.req[i, OUTPUT] - w.req[i, DROPPED]
    blocks = min(w.req[i, BLOCKS], max(1, (tokens + w.block_tokens - 1) // w.block_tokens))
    lent = w.req[i, LENT]
    own = w.req[i, BLOCKS] - lent
    far = max(0, blocks - own)
    if lent > 0:
        w.memory.free[w.lanes[w.req[i, LENDER], POOL]] += held[lent] - held[far]
        w.req[i, LENT] = far
        w.req[i, LENDER] = w.req[i, LENDER] if far else -1
    w.memory.free[w.lanes[lane, POOL]] += held[own] - held[blocks - far]
    w.req[i, BLOCKS] = blocks


@njit(**HOT)
def _gap(w, gap_s, weight):
    """Note ``weight`` gaps between tokens."""
    k = int(np.log10(max(gap_s, GAP_LEAST_S) / GAP_LEAST_S) * GAP_BINS_PER_DECADE)
    w.gaps[min(k, w.gaps.size - 1)] += weight
    w.totals[GAP_SUM] += gap_s * weight
    w.totals[GAP_SQUARES] += gap_s * gap_s * weight


@njit(**HOT)
def _book_decodes(w, lane, now_s):
    """Every decoding request has a token more (or several, with drafts); those that are done leave."""
    decodes = w.lanes[lane, NUM_DECODING]
    w.step[lane, N_DECODES] = decodes  # some may have been preempted for another lane meanwhile
    live = decodes
    if w.rules.holds_batch:
        live = _live(w, lane)
        w.rates[lane, ANSWER_PADDING] = decodes - live
    w.lanes[lane, STEPS] += 1
    w.lanes[lane, CONTEXT] += decodes
    w.rates[lane, LOAD_TOKENS] -= live
    for k in range(w.lanes[lane, NUM_FRESH]):
        _gap(w, now_s - w.when[w.seats[lane, SEAT_FRESH, k], LAST], 1.0)
    if live > w.lanes[lane, NUM_FRESH]:
        _gap(w, now_s - w.rates[lane, DECODED_S], float(live - w.lanes[lane, NUM_FRESH]))
    w.lanes[lane, NUM_FRESH] = 0
    w.rates[lane, DECODED_S] = now_s
    if w.rules.draft_levels:
        _accept(w, lane, now_s)
    if not w.rules.holds_batch and w.lanes[lane, NEXT_END] <= w.lanes[lane, STEPS]:
        _end_seats(w, lane, now_s)


@njit(**INNER)
def _live(w, lane):
    """Requests of a batch that stays together whose answers are not complete yet."""
    live = 0
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_END_DUE, seat] > w.lanes[lane, STEPS]:
            live += 1
    return live


@njit(**INNER)
def _end_seats(w, lane, now_s):
    """Those whose answer is complete leave; the lane notes when the next one will."""
    seat, due, following = 0, w.lanes[lane, STEPS], NEVER
    while seat < w.lanes[lane, NUM_DECODING]:
        end = w.seats[lane, SEAT_END_DUE, seat]
        if end <= due:
            i = w.seats[lane, SEAT_DECODING, seat]
            _leave_seat(w, lane, seat)
            _finish(w, i, now_s)
        else:
            following = min(following, end)
            seat += 1
    w.lanes[lane, NEXT_END] = following


@njit(**INNER)
def _accept(w, lane, now_s):
    """Draw how many guessed tokens each request accepts: a run of successes, cut at the guesses' and the answer's end.

    The draw belongs to the request and the token, so it is the same in every design.
    """
    w.lanes[lane, NEXT_END] = w.lanes[lane, STEPS]
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_END_DUE, seat] < w.lanes[lane, STEPS]:
            continue
        i = w.seats[lane, SEAT_DECODING, seat]
        made = w.req[i, MADE] + w.lanes[lane, STEPS] - w.req[i, JOINED]
        most = min(w.rules.draft_levels, w.req[i, OUTPUT] - made)
        accepted = 0
        while accepted < most and _uniform(i, made + accepted) < w.knobs[ACCEPT, accepted]:
            accepted += 1
        w.req[i, MADE] += accepted
        w.req[i, COMPUTED] += accepted
        w.lanes[lane, CONTEXT] += accepted
        w.rates[lane, LOAD_TOKENS] -= accepted
        w.totals[ACCEPTED] += accepted
        w.totals[DRAFTED] += w.rules.checked_tokens
        _count(w, now_s, B_DECODE, float(accepted))
        w.seats[lane, SEAT_END_DUE, seat] = w.lanes[lane, STEPS] if made + accepted >= w.req[i, OUTPUT] else NEVER


@njit(**INNER)
def _uniform(i, k):
    """A number in [0, 1) that belongs to token ``k`` of request ``i`` (SplitMix64's finisher)."""
    x = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(**INNER)
def _end_batch(w, lane, now_s):
    """A batch that stays together: complete answers return, or wait for the last one; then all seats are free."""
    ended = 0
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_END_DUE, seat] <= w.lanes[lane, STEPS]:
            i = w.seats[lane, SEAT_DECODING, seat]
            ended += 1
            if not w.rules.returns_together and w.when[i, FINISH] != w.when[i, FINISH]:
                _done(w, i, now_s)
    if ended < w.lanes[lane, NUM_DECODING] or w.lanes[lane, NUM_PROMPTS] > 0:
        return
    while w.lanes[lane, NUM_DECODING] > 0:
        i = w.seats[lane, SEAT_DECODING, w.lanes[lane, NUM_DECODING] - 1]
        _leave_seat(w, lane, w.lanes[lane, NUM_DECODING] - 1)
        _return_one(w, i, now_s)


@njit(**INNER)
def _return_one(w, i, now_s):
    """A request that is complete leaves its batch; its answer may have returned before."""
    if w.req[i, STATUS] == DONE:
        _share(w, i)
        _give_back(w, i)
    else:
        _finish(w, i, now_s)


@njit(**HOT)
def _note(w, unit, start_s, now_s):
    """Add a step to the totals, the timeline and the log."""
    if now_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        _widen(w, now_s)
    bin = w.timeline[int(now_s / w.totals[WIDTH])]
    for lane in range(w.unit_lane[unit], w.unit_lane[unit + 1]):
        row, padding = w.step[lane], w.rates[lane, PROMPT_PADDING]
        new = (row[N_NEW] - padding) * w.rates[lane, LAYERS_FRAC]
        bin[B_PROMPT] += new
        bin[B_DECODE] += row[N_DECODES] - w.rates[lane, ANSWER_PADDING]
        padding += w.rates[lane, ANSWER_PADDING]
        bin[B_PADDED] += padding
        w.totals[PROMPTED] += new
        w.totals[PADDED] += padding
        k = int(w.totals[LOGGED])
        if k < w.log.shape[0] and start_s >= w.totals[WINDOW_START] and now_s <= w.totals[WINDOW_END]:
            _log(w, k, unit, lane, start_s, now_s, new)
    bin[B_STEPS] += 1.0
    bin[B_ENERGY] += w.units[unit, SPENT]
    _spread(w.timeline, w.totals[WIDTH], B_BUSY, start_s, now_s, 1.0)
    w.totals[ENERGY] += w.units[unit, SPENT]
    w.totals[TOTAL_STEPS] += 1.0
    w.totals[BUSY] += now_s - start_s


@njit(**INNER)
def _log(w, k, unit, lane, start_s, now_s, new):
    """Add a row to the log of steps."""
    row, to, pool = w.step[lane], w.log[k], w.lanes[lane, POOL]
    to[0], to[1], to[2] = w.unit_machine[unit], start_s, now_s
    to[3], to[4] = new, row[N_DECODES] - w.rates[lane, ANSWER_PADDING]
    to[5], to[6], to[7] = row[N_PROMPTS], row[N_DECODES], w.lanes[lane, NUM_WAITING]
    to[8] = w.memory.capacity[pool] - w.memory.free[pool] - w.memory.evictable[pool]
    w.totals[LOGGED] += 1.0


@njit(**INNER)
def _wake(w, lane, now_s):
    """A lane has something to do: its unit starts a step now unless one is in flight."""
    unit = w.lanes[lane, UNIT]
    if w.units[unit, BEGAN] != w.units[unit, BEGAN] and w.moments[unit] > now_s:
        set_moment(w.moments, w.winners, unit, now_s)


@njit(**HOT)
def _has_others(w, unit):
    """Whether other units use the pools of a unit."""
    of = w.unit_machine
    return w.lending_s >= 0.0 or (unit > 0 and of[unit - 1] == of[unit]) or (
        unit + 1 < of.size and of[unit + 1] == of[unit]
    )


@njit(**INNER)
def _wake_others(w, unit, now_s):
    """A unit gave something back: others that wait for the same pool look again (all of them where caches are lent)."""
    machine, other = w.unit_machine[unit], 0
    if w.lending_s < 0.0:
        other = unit
        while other > 0 and w.unit_machine[other - 1] == machine:
            other -= 1
    while other < w.unit_machine.size and (w.lending_s >= 0.0 or w.unit_machine[other] == machine):
        if other != unit:
            for lane in range(w.unit_lane[other], w.unit_lane[other + 1]):
                if w.lanes[lane, NUM_WAITING] > 0:
                    _wake(w, lane, now_s)
        other += 1


@njit(**HOT)
def _steer(w, unit, step_s):
    """Move compute units between prompts and answers of a split machine: towards answers while their steps are too
    slow, back while there is slack and prompts wait."""
    machine, lane = w.unit_machine[unit], w.unit_lane[unit]
    if w.lanes[lane, TWIN] < 0 or w.lanes[lane, ROLE] != ANSWERS or w.rules.target_s <= 0.0:
        return
    if step_s > w.rules.target_s:
        w.machines[machine, SPLIT] = min(w.machines[machine, SPLIT] + 1, w.num_variants // 2 - 1)
    elif (
        step_s < 0.85 * w.rules.target_s
        and w.lanes[w.lanes[lane, TWIN], NUM_WAITING] + w.lanes[w.lanes[lane, TWIN], NUM_PROMPTS] > 0
    ):
        w.machines[machine, SPLIT] = max(w.machines[machine, SPLIT] - 1, 0)


# -- arrivals ---------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _route(w, route, i):
    """The lane that a new request goes to."""
    lanes = w.entry
    if lanes.size == 1:
        return lanes[0]
    home = -1
    for k in range(lanes.size):
        lane = lanes[k]
        w.routing[0, k] = w.rates[lane, LOAD_REQUESTS]
        w.routing[1, k] = w.rates[lane, LOAD_TOKENS]
        if w.rules.needs_prefix:
            w.routing[2, k] = float(_cached_ids(w, i, w.lanes[lane, POOL]))
        if w.req[i, SESSION] >= 0 and w.home[w.req[i, SESSION]] == lane:
            home = k
    chosen = route(w.routing[0, : lanes.size], w.routing[1, : lanes.size], w.routing[2, : lanes.size], home,
                   w.counts[ARRIVED], w.draws[i, 0], w.draws[i, 1], w.knobs[ROUTE])  # fmt: skip
    if w.req[i, SESSION] >= 0:
        w.home[w.req[i, SESSION]] = lanes[chosen]
    return lanes[chosen]


@njit(**INNER)
def _arrive(w, order, route, i, now_s):
    """A request comes: it is sent to a lane and queues there, or is refused because it can never fit."""
    w.when[i, ARRIVED_S] = now_s
    _count(w, now_s, B_ARRIVALS, 1.0)
    lane = _route(w, route, i)
    w.counts[ARRIVED] += 1
    w.req[i, LANE] = lane
    tokens, last = w.req[i, INPUT] + w.req[i, OUTPUT], _exit_lane(w, lane, i)
    if last < 0 or not _fits(w, last, tokens) or not _fits(w, lane, w.req[i, INPUT]):
        w.req[i, STATUS] = REFUSED
        _left(w, i, now_s)
        return
    client = w.req[i, CLIENT]
    start = max(w.tag[1 + client], w.tag[0])
    w.tag[1 + client] = start + tokens
    key = order(now_s, w.when[i, PRIORITY], float(w.req[i, INPUT]), float(w.req[i, OUTPUT]), start, w.knobs[ORDER])
    w.req[i, STATUS] = WAITING
    w.rates[lane, LOAD_REQUESTS] += 1.0
    w.rates[lane, LOAD_TOKENS] += tokens
    w.key[i] = key
    _touch(w, lane, now_s)
    _queue(w, i, lane)
    _wake(w, lane, now_s)


# -- the loop ---------------------------------------------------------------------------------------------------------


@njit(**HOT)
def _turn(w, grant, swap, transfer, overlap, unit, now_s):
    """A unit's moment has come: book the step in flight, and start the next one."""
    first, end = w.unit_lane[unit], w.unit_lane[unit + 1]
    start_s = w.units[unit, BEGAN]
    for lane in range(first, end):
        _touch_at_turn(w, lane, now_s)
    if start_s == start_s:
        for lane in range(first, end):
            if w.step[lane, N_DECODES] > 0.0:
                _book_decodes(w, lane, now_s)
            if w.step[lane, N_PROMPTS] > 0.0:
                _book_prompts(w, lane, now_s)
            if w.rules.holds_batch:
                _end_batch(w, lane, now_s)
        _note(w, unit, start_s, now_s)
        _steer(w, unit, now_s - start_s)
        w.units[unit, BEGAN] = np.nan
    for lane in range(first, end):
        w.step[lane, :] = 0.0
        w.rates[lane, LAYERS_FRAC] = 1.0
        w.rates[lane, PROMPT_PADDING] = w.rates[lane, ANSWER_PADDING] = 0.0
    has_work, attempts = False, 0
    while not has_work and attempts < 2:  # when the only one was preempted, it comes back at once
        attempts += 1
        for lane in range(first, end):
            if _schedule(w, grant, swap, transfer, lane, now_s):
                has_work = True
    moment = _price(w, overlap, swap, unit, now_s) if has_work else np.inf
    set_moment(w.moments, w.winners, unit, moment)
    if start_s == start_s and _has_others(w, unit):
        _wake_others(w, unit, now_s)


def _run(w, grant, order, route, overlap, transfer, swap):
    """Serve every request; arrivals go before events, events before steps of the same moment."""
    n = w.req.shape[0]
    if w.rules.concurrency:
        for _ in range(w.rules.concurrency):
            _enter(w, 0.0)
    now_s = 0.0
    while w.counts[SERVED] < n:
        unit = w.winners[1]
        event = w.counts[EVENTS]
        step_s = w.moments[unit]
        event_s = w.due_s[event] if event >= 0 else np.inf
        arrive_s = np.inf
        if not w.rules.concurrency and w.counts[UPCOMING] < w.order.size:
            arrive_s = w.when[w.order[w.counts[UPCOMING]], ENTER]
        now_s = min(arrive_s, event_s, step_s)
        if now_s == np.inf:
            break
        if arrive_s <= event_s and arrive_s <= step_s:
            i = w.order[w.counts[UPCOMING]]
            w.counts[UPCOMING] += 1
            _arrive(w, order, route, i, now_s)
        elif event_s <= step_s:
            w.counts[EVENTS] = popped(event, w.due_s, w.event_links)
            if w.req[event, STATUS] == MOVING:
                source = w.req[event, SOURCE]
                _touch(w, source, now_s)
                _arrived(w, event)
                _wake(w, w.req[event, LANE], now_s)
                _wake(w, source, now_s)
                _wake_others(w, w.lanes[source, UNIT], now_s)
            else:
                _arrive(w, order, route, event, now_s)
        else:
            _turn(w, grant, swap, transfer, overlap, unit, now_s)
    return now_s


run = njit(**OUTER)(stamped(_run, __file__, queue.__file__, surface.__file__, memory.__file__))
"""The loop, compiled for all policies at once and kept on disk."""


def compiled(rule, signature):
    """A rule of a technique as the loop calls it: by address, at a fixed signature."""
    return rule if getattr(config, "DISABLE_JIT", False) else cfunc(signature, cache=True)(rule)

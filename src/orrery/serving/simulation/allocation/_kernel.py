# pyright: reportArgumentType=false
"""Allocations of requests, and their release: seats, blocks of their own and of lenders, their place in a queue."""

from orrery.base.compiled import Ints
from orrery.engine.queue._kernel import (
    popped,
    pushed,
)
from orrery.serving.simulation.ahead._kernel import settle
from orrery.serving.simulation.memory._kernel import (
    publish,
    release,
    room,
    take,
)
from orrery.serving.simulation.tables._kernel import (
    ADAPTER,
    B_FINISHES,
    B_PREEMPTED,
    BLOCKS,
    COMPUTED,
    CONTEXT,
    DECODED_S,
    DECODING,
    DEPLOYMENT,
    DONE,
    DROPPED,
    E_END,
    E_NUMBER,
    E_TOKENS,
    EMITTED,
    ENTER,
    EVENTS,
    FAR,
    FINISH,
    FIRST_FOLLOWER,
    GUESTS,
    HOST_BYTES_PER_S,
    HOST_LATENCY_S,
    INPUT,
    JOINED,
    LANE,
    LAST,
    LENDER,
    LENT,
    LENT_TOKENS,
    LOAD_REQUESTS,
    MACHINE,
    MADE,
    N_DELAY_S,
    NEXT_FOLLOWER,
    NUM_DECODING,
    NUM_FRESH,
    NUM_PROMPTS,
    NUM_WAITING,
    ORIGIN,
    OUTPUT,
    PLACE,
    POOL,
    POOLED,
    PREEMPTED,
    RECV_INTERVAL,
    REGION,
    ROLE,
    SEAT_BLOCK_DUE,
    SEAT_DECODING,
    SEAT_END_DUE,
    SEAT_FRESH,
    SEAT_GRANTS,
    SEAT_PROMPTS,
    SERVED,
    SHARED,
    SLOT_ADAPTER,
    SLOT_REQUESTS,
    STATUS,
    STEPS,
    SWAP,
    SWAPPED,
    SWAPPED_BYTES,
    SWAPPED_S,
    T_PREEMPTED,
    TURN,
    UNIT,
    UNSEEN,
    UNTIL_RECV,
    UPCOMING,
    WAITING,
    WAITING_ROOT,
    SimulationState,
    TransferRule,
)
from orrery.serving.simulation.timeline._kernel import count_event, touch_at_turn


def give_back(w: SimulationState, i: int) -> None:
    """Release everything a request holds where it is."""
    lane, lender = w.req[i, LANE], w.req[i, LENDER]
    if w.req[i, LENT_TOKENS] > 0:
        w.lanes[lender, GUESTS] -= w.req[i, LENT_TOKENS] - _spread_before(w, i)
        _spread_tokens(w, i, 0, 1)
        w.lanes[lane, FAR] -= w.req[i, LENT_TOKENS]
    release_blocks(w, i, lane, w.req[i, BLOCKS], w.req[i, SHARED], lender, w.req[i, LENT])
    w.req[i, BLOCKS] = w.req[i, SHARED] = w.req[i, LENT] = w.req[i, LENT_TOKENS] = 0
    w.req[i, LENDER] = -1


def release_blocks(w: SimulationState, i: int, lane: int, blocks: int, shared: int, lender: int, lent: int) -> None:
    """Blocks of a request are free or evictable: those that lenders hold, then those of the lane's own pool."""
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    if lent > 0:
        give_back_lent(w, i, lender, held[lent])
    first = w.prefix_start[i] if w.blocks_each else 0
    release(w.memory, w.lanes[lane, POOL], i, held[blocks - lent], w.prefix_ids, first, shared)


def give_back_lent(w: SimulationState, i: int, lender: int, amount: int) -> None:
    """Free so many bytes of a request where they were borrowed: of its further lenders first."""
    for other in range(w.lent.shape[1]):
        if w.lent[i, other, 0] > 0 and w.lanes[other, ROLE] == w.lanes[lender, ROLE]:
            part = min(amount, w.lent[i, other, 0])
            w.memory.free[w.lanes[other, POOL]] += part
            w.lent[i, other, 0] -= part
            amount -= part
    w.memory.free[w.lanes[lender, POOL]] += amount


def _spread_tokens(w: SimulationState, i: int, far: int, total: int) -> int:
    """Count the tokens, of ``far`` in ``total`` lent bytes of a request, that lie with lenders beside the first."""
    spread = 0
    for other in range(w.lent.shape[1]):
        if w.lent[i, other, 0] > 0 or w.lent[i, other, 1] > 0:
            here = far * w.lent[i, other, 0] // total
            w.lanes[other, GUESTS] += here - w.lent[i, other, 1]
            w.lent[i, other, 1] = here
            spread += here
    return spread


def _spread_before(w: SimulationState, i: int) -> int:
    """Tokens of a request that lenders beside the first counted last."""
    spread = 0
    for other in range(w.lent.shape[1]):
        spread += w.lent[i, other, 1]
    return spread


def share_prefix(w: SimulationState, i: int) -> None:
    """Let others find the whole prefix blocks that a request has computed, unless compression changed them or another
    machine holds some."""
    if not w.blocks_each or w.req[i, LENT] > 0 or w.req[i, DROPPED] > 0:
        return
    lane, first = w.req[i, LANE], w.prefix_start[i]
    tokens = min(w.req[i, COMPUTED], w.req[i, BLOCKS] * w.block_tokens)
    whole = min(tokens // (w.blocks_each * w.block_tokens), w.prefix_end[i] - first)
    if whole > w.req[i, SHARED]:
        held = w.held[w.lanes[lane, DEPLOYMENT]]
        publish(w.memory, w.lanes[lane, POOL], w.prefix_ids, first, w.req[i, SHARED], whole, held, w.blocks_each)
        w.req[i, SHARED] = whole


def slot_of(w: SimulationState, pool: int, adapter: int) -> int:
    """The place of an adapter in the memory of a cache's devices; -1 where it is not there."""
    for k in range(w.slots.shape[2]):
        if w.slots[pool, SLOT_ADAPTER, k] == adapter:
            return k
    return -1


def use_adapter(w: SimulationState, i: int, lane: int, change: int) -> None:
    """Note that a request of the batch uses its adapter, or does so no longer."""
    if w.slots.shape[2] and w.req[i, ADAPTER] >= 0:
        pool = w.lanes[lane, POOL]
        place = slot_of(w, pool, w.req[i, ADAPTER])
        if place >= 0:
            w.slots[pool, SLOT_REQUESTS, place] += change


def leave_seat(w: SimulationState, lane: int, seat: int) -> None:
    """Take a decoding request out of its seat; the last one moves there."""
    i, last = w.seats[lane, SEAT_DECODING, seat], w.lanes[lane, NUM_DECODING] - 1
    use_adapter(w, i, lane, -1)
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


def leave_prompts(w: SimulationState, lane: int, seat: int) -> None:
    """Take a request out of the prompts under way, keeping the order of the others."""
    use_adapter(w, w.seats[lane, SEAT_PROMPTS, seat], lane, -1)
    w.lanes[lane, NUM_PROMPTS] -= 1
    for k in range(seat, w.lanes[lane, NUM_PROMPTS]):
        w.seats[lane, SEAT_PROMPTS, k] = w.seats[lane, SEAT_PROMPTS, k + 1]
        w.seats[lane, SEAT_GRANTS, k] = w.seats[lane, SEAT_GRANTS, k + 1]


def schedule_event(w: SimulationState, i: int, due_s: float) -> None:
    """Schedule the event of request ``i`` at ``due_s``: it arrives, or its cache does."""
    w.counts[EVENTS] = pushed(w.counts[EVENTS], i, due_s, w.due_s, w.event_links, w.number)


def report(w: SimulationState, i: int, now_s: float, tokens: int, end: int) -> None:
    """Tell whoever listens: a request has so many tokens more, or ends so."""
    row = w.counts[EMITTED]
    w.emitted[row, E_NUMBER], w.emitted[row, E_TOKENS], w.emitted[row, E_END] = w.number[i], tokens, end
    w.emitted_s[row] = now_s
    w.counts[EMITTED] = row + 1


def way_back_s(w: SimulationState, i: int) -> float:
    """Time until the client of a request has what its region sends."""
    return float(w.regions.back_s[w.req[i, ORIGIN], w.req[i, REGION]]) if w.req[i, REGION] >= 0 else 0.0


def leave_run(w: SimulationState, i: int, now_s: float) -> None:
    """A request is done or refused: its followers come. In a closed loop the first of them takes its place, and where
    nobody follows, the next request does."""
    w.counts[SERVED] += 1
    if w.rules.reports:
        report(w, i, now_s, 0, w.req[i, STATUS])
    follower = w.req[i, FIRST_FOLLOWER]
    if follower >= 0:
        w.req[follower, PLACE] = w.req[i, PLACE]
    elif w.req[i, PLACE]:
        enter_next(w, now_s)
    while follower >= 0:
        schedule_event(w, follower, now_s + way_back_s(w, i) + w.when[follower, ENTER])
        follower = w.req[follower, NEXT_FOLLOWER]


def enter_next(w: SimulationState, now_s: float) -> None:
    """The next request of a closed loop, if there is one, takes a place."""
    if w.counts[UPCOMING] < w.order.size:
        i = w.order[w.counts[UPCOMING]]
        w.counts[UPCOMING] += 1
        w.req[i, PLACE] = 1
        schedule_event(w, i, now_s + w.when[i, ENTER])


def finish_request(w: SimulationState, i: int, now_s: float) -> None:
    """The last token is out, and nothing is held any more."""
    if w.blocks_each:
        share_prefix(w, i)
    give_back(w, i)
    mark_done(w, i, now_s)


def mark_done(w: SimulationState, i: int, now_s: float) -> None:
    """A request is served."""
    lane = w.req[i, LANE]
    w.req[i, STATUS] = DONE
    w.when[i, FINISH] = now_s
    w.req[i, MACHINE] = w.unit_machine[w.lanes[lane, UNIT]]
    w.rates[lane, LOAD_REQUESTS] -= 1.0
    count_event(w, now_s, B_FINISHES, 1.0)
    leave_run(w, i, now_s)


def touch_lane(w: SimulationState, lane: int, now_s: float) -> None:
    """Bring a lane up to date, before something else than its own step changes it: its steps that were planned, and the
    timeline of it and its pool."""
    settle(w, lane, now_s, False)
    touch_at_turn(w, lane, now_s)


def grow(w: SimulationState, i: int, tokens: int) -> bool:
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


def _borrow(w: SimulationState, i: int, want: int) -> bool:
    """Fill what room the own pool has, and borrow the rest of ``want`` blocks: from one other lane where two pools can
    hold so many, else from as many as it takes, those with most room first."""
    lane, lender, lent = w.req[i, LANE], w.req[i, LENDER], w.req[i, LENT]
    blocks, pool = w.req[i, BLOCKS], w.lanes[lane, POOL]
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    own = blocks - lent
    if lent == 0:
        lender = lender_for(w, lane)
        own = own_blocks(held, blocks, want, room(w.memory, pool))
    amount = held[want - own] - held[lent]
    if lender < 0 or amount > room_to_lend(w, lane, lender, want):
        return False
    if lent == 0:
        take(w.memory, pool, held[own] - held[blocks])
    part = min(amount, room(w.memory, w.lanes[lender, POOL]))
    take(w.memory, w.lanes[lender, POOL], part)
    amount -= part
    while amount > 0:
        other = lender_for(w, lane)
        part = min(amount, room(w.memory, w.lanes[other, POOL]))
        take(w.memory, w.lanes[other, POOL], part)
        w.lent[i, other, 0] += part
        amount -= part
    w.req[i, LENDER], w.req[i, LENT], w.req[i, BLOCKS] = lender, want - own, want
    return True


def lender_for(w: SimulationState, lane: int) -> int:
    """The lane with another pool that has most room; -1 if there is none. Lanes for answers do not lend to those for
    prompts: a prompt that waits for room there would hold that very room."""
    best = -1
    for other in range(w.lanes.shape[0]):
        pool = w.lanes[other, POOL]
        if _may_lend(w, other, lane) and (best < 0 or room(w.memory, pool) > room(w.memory, w.lanes[best, POOL])):
            best = other
    return best


def room_to_lend(w: SimulationState, lane: int, lender: int, blocks: int) -> int:
    """Bytes that a lane could borrow now for a sequence of so many blocks: of one lender where two pools can hold it,
    else of all."""
    if _fits_in(w, lane, blocks, False):
        return room(w.memory, w.lanes[lender, POOL])
    found = 0
    for other in range(w.lanes.shape[0]):
        if _may_lend(w, other, lane):
            found += room(w.memory, w.lanes[other, POOL])
    return found


def _may_lend(w: SimulationState, other: int, lane: int) -> bool:
    """Whether another lane may hold blocks for a lane: it has a pool of its own, and does the same work."""
    return w.lanes[other, POOL] != w.lanes[lane, POOL] and w.lanes[other, ROLE] == w.lanes[lane, ROLE]


def own_blocks(held: Ints, blocks: int, want: int, free: int) -> int:
    """The most blocks, up to ``want``, that a sequence of ``blocks`` may have where so many bytes are free."""
    while want > blocks and held[want] - held[blocks] > free:
        want -= 1
    return want


def fits_lane(w: SimulationState, lane: int, tokens: int) -> bool:
    """Whether a sequence can ever be held: by the lane's pool and, where caches are lent, all others."""
    held, blocks = w.held[w.lanes[lane, DEPLOYMENT]], (tokens + w.block_tokens - 1) // w.block_tokens
    if blocks >= held.size or held[blocks] > w.lanes[lane, POOLED]:
        return False
    return w.lending_s < 0.0 or _fits_in(w, lane, blocks, True)


def _fits_in(w: SimulationState, lane: int, blocks: int, all_lend: bool) -> bool:
    """Whether the lane's pool, and the largest or all of those that may lend to it, can hold so many blocks."""
    held, lent = w.held[w.lanes[lane, DEPLOYMENT]], 0
    for other in range(w.lanes.shape[0]):
        if _may_lend(w, other, lane):
            capacity = w.memory.capacity[w.lanes[other, POOL]]
            lent = lent + capacity if all_lend else max(lent, capacity)
    own = own_blocks(held, 0, blocks, w.memory.capacity[w.lanes[lane, POOL]])
    return held[blocks - own] <= lent


def look_far(w: SimulationState, lane: int) -> None:
    """Count the tokens in lent blocks that the next decode step attends to."""
    for seat in range(w.lanes[lane, NUM_DECODING]):
        i = w.seats[lane, SEAT_DECODING, seat]
        if w.req[i, LENT] > 0:
            near = (w.req[i, BLOCKS] - w.req[i, LENT]) * w.block_tokens
            far = max(0, w.req[i, COMPUTED] + w.lanes[lane, STEPS] - w.req[i, JOINED] + 1 - near)
            w.lanes[lane, FAR] += far - w.req[i, LENT_TOKENS]
            held, lender = w.held[w.lanes[lane, DEPLOYMENT]], w.req[i, LENDER]
            w.lanes[lender, GUESTS] += _spread_before(w, i) - w.req[i, LENT_TOKENS]
            w.lanes[lender, GUESTS] += far - _spread_tokens(w, i, far, held[w.req[i, LENT]])
            w.req[i, LENT_TOKENS] = far


def victim_in(w: SimulationState, lane: int) -> int:
    """Choose who must go when a cache is full: of all that use it the last admitted, or the last in the queue's order.
    So the first one always goes on, and two that need the same blocks cannot drive each other out for ever."""
    worst = -1
    for other in range(w.lanes.shape[0]):
        if w.lanes[other, POOL] == w.lanes[lane, POOL] or (w.lending_s >= 0.0 and _may_lend(w, other, lane)):
            for seat in range(w.lanes[other, NUM_DECODING]):
                worst = _later(w, w.seats[other, SEAT_DECODING, seat], worst)
            for seat in range(w.lanes[other, NUM_PROMPTS]):
                worst = _later(w, w.seats[other, SEAT_PROMPTS, seat], worst)
    return worst


def _later(w: SimulationState, i: int, other: int) -> int:
    """Which of two requests is preempted first; ``other`` may be nobody (-1)."""
    if other < 0:
        return i
    if w.rules.evicts_by_key and w.key[i] != w.key[other]:
        return i if w.key[i] > w.key[other] else other
    return i if w.req[i, TURN] > w.req[other, TURN] else other


def preempt(w: SimulationState, swap: TransferRule, needy: int, i: int, now_s: float) -> None:
    """Send a request back to its queue for a lane that needs room: its cache goes to the host, for which that lane
    waits, or is computed again later."""
    lane = w.req[i, LANE]
    touch_lane(w, lane, now_s)
    if w.req[i, STATUS] == DECODING:
        for seat in range(w.lanes[lane, NUM_DECODING]):
            if w.seats[lane, SEAT_DECODING, seat] == i:
                leave_seat(w, lane, seat)
                break
    else:
        for seat in range(w.lanes[lane, NUM_PROMPTS]):
            if w.seats[lane, SEAT_PROMPTS, seat] == i:
                leave_prompts(w, lane, seat)
                break
    if w.req[i, MADE] >= w.req[i, OUTPUT]:  # complete, and only waited for its batch
        return_one(w, i, now_s)
        return
    if w.rules.swaps and w.req[i, STATUS] == DECODING:
        if w.rules.guess_knob >= 0:  # what leaves is decrypted beside the steps
            w.knobs[SWAP, w.rules.guess_knob] = 1.0
            if w.guesses[0] < w.swapped.shape[0]:
                w.swapped[w.guesses[0]] = i
                w.guesses[0] += 1
        move_over_host(w, swap, needy, w.held[w.lanes[lane, DEPLOYMENT], w.req[i, BLOCKS]])
        w.req[i, STATUS] = SWAPPED
    else:
        if w.req[i, STATUS] == DECODING:
            share_prefix(w, i)
        w.req[i, COMPUTED] = 0
        w.req[i, STATUS] = WAITING
    give_back(w, i)
    w.req[i, PREEMPTED] += 1
    w.tally[lane, T_PREEMPTED] += 1
    count_event(w, now_s, B_PREEMPTED, 1.0)
    enqueue(w, i, lane)


def tokens_left(w: SimulationState, i: int) -> int:
    """Tokens to come of a request, its prompt's until its first token is out."""
    left = max(0, w.req[i, OUTPUT] - w.req[i, MADE])
    return left if w.req[i, MADE] else left + w.req[i, INPUT]


def enqueue(w: SimulationState, i: int, lane: int) -> None:
    """A request waits at a lane."""
    w.lanes[lane, NUM_WAITING] += 1
    w.lanes[lane, WAITING_ROOT] = pushed(w.lanes[lane, WAITING_ROOT], i, w.key[i], w.key, w.links, w.number)


def hold_back(w: SimulationState, i: int, lane: int) -> None:
    """A request has come while a step runs: it waits unseen until the lane looks for new ones."""
    w.lanes[lane, NUM_WAITING] += 1
    w.lanes[lane, UNSEEN] = pushed(w.lanes[lane, UNSEEN], i, w.key[i], w.key, w.links, w.number)


def receive(w: SimulationState, lane: int) -> None:
    """A lane looks for new requests: all that have come join its queue."""
    w.lanes[lane, UNTIL_RECV] = w.lanes[lane, RECV_INTERVAL]
    while w.lanes[lane, UNSEEN] >= 0:
        i = w.lanes[lane, UNSEEN]
        w.lanes[lane, UNSEEN] = popped(i, w.key, w.links, w.number)
        w.lanes[lane, NUM_WAITING] -= 1
        enqueue(w, i, lane)


def move_over_host(w: SimulationState, swap: TransferRule, lane: int, amount: int) -> None:
    """A sequence's cache goes to the host or comes back: the step waits for it."""
    time_s = swap(float(amount), w.rates[lane, HOST_BYTES_PER_S], w.rates[lane, HOST_LATENCY_S], w.knobs[SWAP])
    w.step[lane, N_DELAY_S] += time_s
    w.totals[SWAPPED_BYTES] += amount
    w.totals[SWAPPED_S] += time_s


def return_one(w: SimulationState, i: int, now_s: float) -> None:
    """A request that is complete leaves its batch; its answer may have returned before."""
    if w.req[i, STATUS] == DONE:
        share_prefix(w, i)
        give_back(w, i)
    else:
        finish_request(w, i, now_s)

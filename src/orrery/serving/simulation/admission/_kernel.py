# pyright: reportArgumentType=false
"""Admission to a batch, and what a step computes: blocks for decodes, grants for prompts, seats for the queue."""

from orrery.engine.queue._kernel import (
    popped,
    pushed,
)
from orrery.serving.simulation.ahead._kernel import block_due
from orrery.serving.simulation.allocation._kernel import (
    grow,
    lender_for,
    look_far,
    move_over_host,
    own_blocks,
    preempt,
    release_blocks,
    report,
    room_to_lend,
    schedule_event,
    slot_of,
    victim_in,
)
from orrery.serving.simulation.memory._kernel import (
    found,
    need_of_found,
    pin,
    room,
)
from orrery.serving.simulation.sleeping._kernel import must_yield
from orrery.serving.simulation.tables._kernel import (
    ADAPTER,
    ADAPTER_BYTES,
    ADAPTER_LOAD_S,
    ADAPTER_LOADS,
    ADMITTED,
    ADMITTED_S,
    BLOCKS,
    BUDGET,
    CACHED,
    COMPUTED,
    CONTEXT,
    DECODES_NEXT,
    DECODING,
    DEPLOYMENT,
    DROPPED,
    FAR,
    FIRST,
    GRANT,
    GUESSED,
    GUESTS,
    HOST_BYTES_PER_S,
    HOST_LATENCY_S,
    INPUT,
    JOINED,
    KEPT,
    LANE,
    LAST,
    LAYERS_ALL,
    LAYERS_FRAC,
    LAYERS_LEFT,
    LINK_BYTES_PER_S,
    LINK_LATENCY_S,
    LINK_S,
    MADE,
    MAX_SEQS,
    MOVED,
    MOVED_S,
    MOVING,
    N_CONTEXT,
    N_DECODES,
    N_DELAY_S,
    N_EXTRA,
    N_LOAD,
    N_NEW,
    N_PAIRS,
    N_PROMPTS,
    NEVER,
    NEXT_END,
    NUM_DECODING,
    NUM_FRESH,
    NUM_PROMPTS,
    NUM_READY,
    NUM_WAITING,
    OUTPUT,
    POOL,
    PREFILLING,
    PROMPT_PADDING,
    PROMPTS,
    RESERVED,
    RIGHT,
    ROLE,
    SEAT_BLOCK_DUE,
    SEAT_DECODING,
    SEAT_END_DUE,
    SEAT_FRESH,
    SEAT_GRANTS,
    SEAT_PROMPTS,
    SEAT_READY,
    SHARED,
    SLOT_ADAPTER,
    SLOT_REQUESTS,
    SLOT_TURN,
    SOURCE,
    SOURCE_BLOCKS,
    SOURCE_LENDER,
    SOURCE_LENT,
    SOURCE_SHARED,
    STATUS,
    STEPS,
    SWAP,
    SWAPPED,
    T_HIT,
    T_QUERIED,
    TRANSFER,
    TURN,
    TWIN,
    WAITING_ROOT,
    GrantRule,
    SimulationState,
    TransferRule,
)


def join_batch(w: SimulationState, i: int, lane: int) -> None:
    """A request whose prompt is computed takes a seat among the decoding ones."""
    seat, left = w.lanes[lane, NUM_DECODING], w.req[i, OUTPUT] - w.req[i, MADE]
    w.lanes[lane, NUM_DECODING] += 1
    w.seats[lane, SEAT_DECODING, seat] = i
    w.req[i, STATUS] = DECODING
    w.req[i, JOINED] = w.lanes[lane, STEPS]
    w.lanes[lane, CONTEXT] += w.req[i, COMPUTED]
    w.seats[lane, SEAT_END_DUE, seat] = NEVER if w.rules.draft_levels and left else w.lanes[lane, STEPS] + left
    w.lanes[lane, NEXT_END] = min(w.lanes[lane, NEXT_END], w.seats[lane, SEAT_END_DUE, seat])
    w.seats[lane, SEAT_BLOCK_DUE, seat] = block_due(w, i, lane)
    if left:
        w.seats[lane, SEAT_FRESH, w.lanes[lane, NUM_FRESH]] = i
        w.lanes[lane, NUM_FRESH] += 1


def _admit_ready(
    w: SimulationState, swap: TransferRule, transfer: TransferRule, i: int, lane: int, now_s: float
) -> bool:
    """Seat a request whose prompt was computed before: elsewhere, or here before it was swapped out."""
    source = w.req[i, SOURCE]
    w.req[i, LANE] = lane
    tokens = w.req[i, COMPUTED] + 1
    if w.rules.reserves_output:
        tokens = w.req[i, INPUT] + w.req[i, OUTPUT] - w.req[i, DROPPED]
    if not grow(w, i, tokens):
        return False
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    amount = held[(w.req[i, COMPUTED] + w.block_tokens - 1) // w.block_tokens]
    if source < 0:  # from the host
        if w.rules.guess_knob >= 0:
            _guess_return(w, i)
        move_over_host(w, swap, lane, amount)
        join_batch(w, i, lane)
        return True
    start_s = max(now_s, w.rates[source, LINK_S])
    end_s = _moved_s(w, transfer, i, source, float(amount), start_s)
    w.rates[source, LINK_S] = end_s
    w.totals[MOVED] += amount
    w.totals[MOVED_S] += end_s - start_s
    w.lanes[lane, RESERVED] += 1
    w.req[i, STATUS] = MOVING
    schedule_event(w, i, end_s)
    return True


def _moved_s(w: SimulationState, transfer: TransferRule, i: int, source: int, amount: float, start_s: float) -> float:
    """When a cache has come: after all of it, or, sent layer by layer since the first one was computed, after what is
    left of it, the last layer at least."""
    layers = w.rules.transfer_layers
    each_s = transfer(
        amount / layers, w.rates[source, LINK_BYTES_PER_S], w.rates[source, LINK_LATENCY_S], w.knobs[TRANSFER]
    )
    if layers == 1 or w.req[i, MADE] > 1:
        return start_s + layers * each_s
    first_s = w.when[i, ADMITTED_S] + (w.when[i, LAST] - w.when[i, ADMITTED_S]) / layers
    return max(max(first_s, w.rates[source, LINK_S]) + layers * each_s, start_s + each_s)


def _guess_return(w: SimulationState, i: int) -> None:
    """A request comes back from the host: whether the predictor had it, which takes the newest or the oldest of those
    that its machine has there, whichever came first more often so far."""
    pool, newest, oldest, at = w.lanes[w.req[i, LANE], POOL], -1, -1, -1
    for k in range(w.guesses[0]):
        other = w.swapped[k]
        if other == i:
            at = k
        if w.lanes[w.req[other, LANE], POOL] == pool:
            newest = other
            if oldest < 0:
                oldest = other
    guess = newest if w.guesses[1] >= w.guesses[2] else oldest
    w.guesses[1] += 1 if newest == i else 0
    w.guesses[2] += 1 if oldest == i else 0
    w.knobs[SWAP, w.rules.guess_knob] = 1.0 if guess == i else 0.0
    w.totals[GUESSED] += 1.0
    w.totals[RIGHT] += 1.0 if guess == i else 0.0
    if at >= 0:
        for k in range(at, w.guesses[0] - 1):
            w.swapped[k] = w.swapped[k + 1]
        w.guesses[0] -= 1


def book_arrival(w: SimulationState, i: int, now_s: float) -> None:
    """A cache has come over the link: its source is free of it, and the request decodes from the next step on. The
    first token comes with it: clients hear from the machines that answer (SGLang's decode server streams it once it has
    the transfer, TensorRT-LLM's generation server and vLLM's likewise), so what a request waits for its place there
    comes before its first token; but where the machines of the prompts send it themselves.
    """
    if w.req[i, MADE] == 1 and not w.rules.prompts_stream_first:
        w.when[i, FIRST] = w.when[i, LAST] = now_s
        if w.rules.reports:
            report(w, i, now_s, 1, 0)
    source, lane = w.req[i, SOURCE], w.req[i, LANE]
    release_blocks(
        w, i, source, w.req[i, SOURCE_BLOCKS], w.req[i, SOURCE_SHARED], w.req[i, SOURCE_LENDER], w.req[i, SOURCE_LENT]
    )
    w.req[i, SOURCE] = -1
    w.req[i, SOURCE_BLOCKS] = w.req[i, SOURCE_SHARED] = w.req[i, SOURCE_LENT] = 0
    w.seats[lane, SEAT_READY, w.lanes[lane, NUM_READY]] = i
    w.lanes[lane, NUM_READY] += 1


def _admit_prompt(w: SimulationState, i: int, lane: int, granted: int, cached_ids: int) -> bool:
    """Seat a request whose prompt is to be computed, with blocks for all of it; False if there are none. (With blocks
    for a first chunk alone it would be thrown out at the next one, and come back, until somebody ends.)"""
    pool, bt = w.lanes[lane, POOL], w.block_tokens
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    cached = cached_ids * w.blocks_each * bt
    tokens = w.req[i, INPUT] + (w.req[i, OUTPUT] if reserves_at(w, lane) else w.req[i, MADE])
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
    if not grow(w, i, tokens):
        return False
    w.req[i, COMPUTED] = cached
    if w.when[i, ADMITTED_S] != w.when[i, ADMITTED_S]:
        w.req[i, CACHED] = cached
        w.tally[lane, T_QUERIED] += w.req[i, INPUT]
        w.tally[lane, T_HIT] += cached
    w.req[i, STATUS] = PREFILLING
    w.seats[lane, SEAT_PROMPTS, w.lanes[lane, NUM_PROMPTS]] = i
    w.seats[lane, SEAT_GRANTS, w.lanes[lane, NUM_PROMPTS]] = granted
    w.lanes[lane, NUM_PROMPTS] += 1
    return True


def reserves_at(w: SimulationState, lane: int) -> bool:
    """Whether a prompt takes the cache of its answer along: not where another pool will hold it."""
    return w.rules.reserves_output and (w.lanes[lane, ROLE] != PROMPTS or w.lanes[lane, TWIN] >= 0)


def _can_borrow(w: SimulationState, lane: int, blocks: int, want: int, left: int) -> bool:
    """Whether ``want`` blocks are to be had when ``blocks`` of them are here and so many bytes are left."""
    if w.lending_s < 0.0:
        return False
    held, lender = w.held[w.lanes[lane, DEPLOYMENT]], lender_for(w, lane)
    return lender >= 0 and held[want - own_blocks(held, blocks, want, left)] <= room_to_lend(w, lane, lender, want)


def cached_ids_of(w: SimulationState, i: int, pool: int) -> int:
    """Leading prefix blocks of a request that a pool holds; at least one token is always computed."""
    if not w.blocks_each or w.req[i, DROPPED] > 0:
        return 0
    first = w.prefix_start[i]
    most = (w.req[i, INPUT] + w.req[i, MADE] - 1) // (w.blocks_each * w.block_tokens)
    return found(w.memory, pool, w.prefix_ids, first, min(most, w.prefix_end[i] - first))


def _admit(
    w: SimulationState,
    grant: GrantRule,
    swap: TransferRule,
    transfer: TransferRule,
    lane: int,
    now_s: float,
    budget: int,
    taken: int,
) -> int:
    """Fill free seats from the queue, in its order, while tokens and blocks last; the prompt tokens granted in all."""
    all_tokens, aside = w.lanes[lane, BUDGET], -1
    while w.lanes[lane, WAITING_ROOT] >= 0:
        if seated(w, lane) >= w.lanes[lane, MAX_SEQS]:
            break
        i = w.lanes[lane, WAITING_ROOT]
        if w.slots.shape[2] and _place_for(w, i, w.lanes[lane, POOL]) < 0:
            w.lanes[lane, WAITING_ROOT] = popped(i, w.key, w.links, w.number)
            aside = pushed(aside, i, w.key[i], w.key, w.links, w.number)
            continue
        if w.req[i, STATUS] == SWAPPED or w.req[i, SOURCE] >= 0:
            before = w.lanes[lane, NUM_DECODING]
            if not _admit_ready(w, swap, transfer, i, lane, now_s):
                break
            if w.rules.mixes:
                budget -= (w.lanes[lane, NUM_DECODING] - before) * (1 + w.rules.checked_tokens)
        else:
            cached_ids = cached_ids_of(w, i, w.lanes[lane, POOL])
            cached = cached_ids * w.blocks_each * w.block_tokens
            left = w.req[i, INPUT] + w.req[i, MADE] - cached
            granted = max(0, grant(left, budget - taken, taken, all_tokens, w.knobs[GRANT]))
            if granted == 0 and not w.rules.waits_for_empty:
                break
            if not _admit_prompt(w, i, lane, granted, cached_ids):
                break
            taken += granted
        w.lanes[lane, WAITING_ROOT] = popped(i, w.key, w.links, w.number)
        w.lanes[lane, NUM_WAITING] -= 1
        w.counts[ADMITTED] += 1
        w.req[i, TURN] = w.counts[ADMITTED]
        if w.slots.shape[2]:
            _take_place(w, swap, i, lane)
        w.tag[0] = max(w.tag[0], w.key[i])
        if w.when[i, ADMITTED_S] != w.when[i, ADMITTED_S]:
            w.when[i, ADMITTED_S] = now_s
    while aside >= 0:
        i = aside
        aside = popped(i, w.key, w.links, w.number)
        w.lanes[lane, WAITING_ROOT] = pushed(w.lanes[lane, WAITING_ROOT], i, w.key[i], w.key, w.links, w.number)
    return taken


def _place_for(w: SimulationState, i: int, pool: int) -> int:
    """Where a request's adapter is on the devices, else the place that is longest unused; -1 if all are in use. Without
    an adapter any place will do (0)."""
    if w.req[i, ADAPTER] < 0:
        return 0
    place = slot_of(w, pool, w.req[i, ADAPTER])
    if place >= 0:
        return place
    for k in range(w.slots.shape[2]):
        if w.slots[pool, SLOT_REQUESTS, k] == 0 and (
            place < 0 or w.slots[pool, SLOT_TURN, k] < w.slots[pool, SLOT_TURN, place]
        ):
            place = k
    return place


def _take_place(w: SimulationState, swap: TransferRule, i: int, lane: int) -> None:
    """A request that joins the batch uses its adapter, which comes from the host where it is not there; the step waits
    for it."""
    adapter, pool = w.req[i, ADAPTER], w.lanes[lane, POOL]
    if adapter < 0:
        return
    place = _place_for(w, i, pool)
    if w.slots[pool, SLOT_ADAPTER, place] != adapter:
        amount = w.retained[w.lanes[lane, DEPLOYMENT], ADAPTER_BYTES]
        time_s = swap(amount, w.rates[lane, HOST_BYTES_PER_S], w.rates[lane, HOST_LATENCY_S], w.knobs[SWAP])
        w.step[lane, N_DELAY_S] += time_s
        w.totals[ADAPTER_LOADS] += 1.0
        w.totals[ADAPTER_LOAD_S] += time_s
        w.slots[pool, SLOT_ADAPTER, place] = adapter
    w.slots[pool, SLOT_REQUESTS, place] += 1
    w.slots[pool, SLOT_TURN, place] = w.counts[ADMITTED]


def seated(w: SimulationState, lane: int) -> int:
    """Requests in a lane's batch or on their way to it; the two lanes of a split machine share their seats."""
    twin = w.lanes[lane, TWIN]
    seats = w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] + w.lanes[lane, RESERVED]
    if twin >= 0:
        seats += w.lanes[twin, NUM_DECODING] + w.lanes[twin, NUM_PROMPTS] + w.lanes[twin, RESERVED]
    return seats


# -- a step's schedule ------------------------------------------------------------------------------------------------


def _grow_decodes(w: SimulationState, swap: TransferRule, lane: int, now_s: float) -> bool:
    """A block for every decoding request that needs one; True if somebody was preempted for it."""
    preempted, seat, due, decodes = False, 0, w.lanes[lane, STEPS] + 1, w.lanes[lane, NUM_DECODING]
    while seat < decodes:
        if w.seats[lane, SEAT_BLOCK_DUE, seat] > due:
            seat += 1
            continue
        i = w.seats[lane, SEAT_DECODING, seat]
        now_tokens = w.req[i, COMPUTED] + w.lanes[lane, STEPS] - w.req[i, JOINED]
        most = w.req[i, INPUT] + w.req[i, OUTPUT]
        if grow(w, i, min(now_tokens + 1 + w.rules.draft_levels, most)):
            w.seats[lane, SEAT_BLOCK_DUE, seat] = NEVER if now_tokens >= most else max(block_due(w, i, lane), due + 1)
            seat += 1
        else:
            preempted, seat = True, 0
            preempt(w, swap, lane, victim_in(w, lane), now_s)
            decodes = w.lanes[lane, NUM_DECODING]
    return preempted


def _continue_prompts(
    w: SimulationState, grant: GrantRule, swap: TransferRule, lane: int, now_s: float, budget: int
) -> int:
    """Grant tokens to prompts under way, oldest first; the tokens granted, negative if somebody was preempted."""
    taken, seat, preempted = 0, 0, False
    while seat < w.lanes[lane, NUM_PROMPTS]:
        i = w.seats[lane, SEAT_PROMPTS, seat]
        left = w.req[i, INPUT] + w.req[i, MADE] - w.req[i, COMPUTED]
        granted = grant(left, budget - taken, taken, w.lanes[lane, BUDGET], w.knobs[GRANT])
        w.seats[lane, SEAT_GRANTS, seat] = max(granted, 0)
        if granted > 0 and not grow(w, i, w.req[i, COMPUTED] + granted):
            preempted = True
            preempt(w, swap, lane, victim_in(w, lane), now_s)
            taken, seat = 0, 0
            continue
        taken += max(granted, 0)
        seat += 1
    return -1 - taken if preempted else taken


def schedule_lane(
    w: SimulationState, grant: GrantRule, swap: TransferRule, transfer: TransferRule, lane: int, now_s: float
) -> bool:
    """Decide what a lane computes next; False if nothing."""
    for k in range(w.lanes[lane, NUM_READY]):
        w.lanes[lane, RESERVED] -= 1
        join_batch(w, w.seats[lane, SEAT_READY, k], lane)
    w.lanes[lane, NUM_READY] = 0
    budget, is_full = w.lanes[lane, BUDGET], False
    is_layered = w.rules.layer_group_tokens > 0
    if w.rules.mixes:
        is_full = _grow_decodes(w, swap, lane, now_s)
        budget -= w.lanes[lane, NUM_DECODING] * (1 + w.rules.checked_tokens)
    taken = 0
    if w.rules.alternates and w.lanes[lane, DECODES_NEXT] > 0 and w.lanes[lane, NUM_DECODING] > 0:
        for seat in range(w.lanes[lane, NUM_PROMPTS]):
            w.seats[lane, SEAT_GRANTS, seat] = 0
    elif not (is_layered and w.lanes[lane, LAYERS_LEFT] > 0):
        taken = _continue_prompts(w, grant, swap, lane, now_s, budget)
        if taken < 0:
            taken, is_full = -1 - taken, True
        is_free = not w.rules.waits_for_empty or w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] == 0
        is_free = is_free and not must_yield(w, lane, now_s)
        if is_free and not is_full and w.lanes[lane, WAITING_ROOT] >= 0:
            before = w.lanes[lane, NUM_DECODING]
            taken = _admit(w, grant, swap, transfer, lane, now_s, budget, taken)
            if (
                w.rules.mixes and w.lanes[lane, NUM_DECODING] > before
            ):  # some joined with a computed prompt: maybe at a block's end
                _grow_decodes(w, swap, lane, now_s)
    _add_prompts(w, lane)
    w.lanes[lane, DECODES_NEXT] = 1 if w.step[lane, N_PROMPTS] > 0.0 else 0
    if is_layered:
        _group_layers(w, lane)
    if not w.rules.mixes and w.step[lane, N_PROMPTS] == 0.0:
        _grow_decodes(w, swap, lane, now_s)
    if w.rules.mixes or w.step[lane, N_PROMPTS] == 0.0:
        decodes = w.lanes[lane, NUM_DECODING]
        w.step[lane, N_DECODES] = decodes
        if w.lending_s >= 0.0:
            look_far(w, lane)
        here = w.lanes[lane, CONTEXT] + decodes - w.lanes[lane, FAR] + w.lanes[lane, GUESTS]
        w.step[lane, N_CONTEXT] = here * w.retained[w.lanes[lane, DEPLOYMENT], KEPT]
        w.step[lane, N_EXTRA] = decodes * w.rules.checked_tokens
    return w.step[lane, N_PROMPTS] + w.step[lane, N_DECODES] > 0.0


def _add_prompts(w: SimulationState, lane: int) -> None:
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


def _group_layers(w: SimulationState, lane: int) -> None:
    """Prompts that start together pass a group of layers a step; when all were preempted there is nothing to pass."""
    if w.step[lane, N_PROMPTS] == 0.0:
        w.lanes[lane, LAYERS_ALL] = w.lanes[lane, LAYERS_LEFT] = 0
    elif w.lanes[lane, LAYERS_LEFT] == 0:
        group = w.rules.layer_group_tokens
        w.lanes[lane, LAYERS_ALL] = w.lanes[lane, LAYERS_LEFT] = (int(w.step[lane, N_NEW]) + group - 1) // group
    w.rates[lane, LAYERS_FRAC] = 1.0 / max(1, w.lanes[lane, LAYERS_ALL])

# pyright: reportArgumentType=false
"""Results of a finished step: tokens, hand-overs, ends, and the record of it all."""

import numpy as np

from orrery.engine.queue._kernel import (
    set_moment,
)
from orrery.serving.simulation.admission._kernel import (
    join_batch,
    reserves_at,
    seated,
)
from orrery.serving.simulation.ahead._kernel import settle, tokens_to_come
from orrery.serving.simulation.allocation._kernel import (
    enqueue,
    finish_request,
    fits_lane,
    give_back,
    give_back_lent,
    leave_prompts,
    leave_run,
    leave_seat,
    mark_done,
    report,
    return_one,
    share_prefix,
    touch_lane,
    use_adapter,
)
from orrery.serving.simulation.memory._kernel import room
from orrery.serving.simulation.tables._kernel import (
    ACCEPT,
    ACCEPTED,
    ANSWER_PADDING,
    ANSWERS,
    B_BUSY,
    B_DECODE,
    B_ENERGY,
    B_PADDED,
    B_PROMPT,
    B_STEPS,
    BEGAN,
    BLOCKS,
    BUSY,
    BUSY_S,
    COMPUTED,
    CONTEXT,
    DECODED_S,
    DEPLOYMENT,
    DRAFTED,
    DROPPED,
    ENERGY,
    FAILED,
    FINISH,
    FIRST,
    INPUT,
    JOINED,
    LANE,
    LAST,
    LAYERS_ALL,
    LAYERS_FRAC,
    LAYERS_LEFT,
    LENDER,
    LENT,
    LOAD_REQUESTS,
    LOAD_TOKENS,
    LOGGED,
    MADE,
    MAX_SEQS,
    MOVING,
    N_DECODES,
    N_NEW,
    N_PROMPTS,
    NEVER,
    NEXT_END,
    NUM_DECODING,
    NUM_FRESH,
    NUM_PROMPTS,
    NUM_READY,
    NUM_WAITING,
    OUTPUT,
    PADDED,
    POOL,
    PROMPT_PADDING,
    PROMPTED,
    PROMPTS,
    RESERVED,
    ROLE,
    SEAT_DECODING,
    SEAT_END_DUE,
    SEAT_FRESH,
    SEAT_GRANTS,
    SEAT_PROMPTS,
    SEAT_READY,
    SHARED,
    SOURCE,
    SOURCE_BLOCKS,
    SOURCE_LENDER,
    SOURCE_LENT,
    SOURCE_SHARED,
    SPENT,
    SPENT_J,
    SPLIT,
    STATUS,
    STEPS,
    T_ANSWERED,
    T_PROMPTED,
    T_STEPS,
    TOTAL_STEPS,
    TWIN,
    UNIT,
    WAITING,
    WIDTH,
    WINDOW_END,
    WINDOW_START,
    SimulationState,
)
from orrery.serving.simulation.timeline._kernel import (
    count_event,
    gap_bin,
    note_gaps,
    spread_over,
    widen_timeline,
)


def _emit(w: SimulationState, target: int, i: int, lane: int, now_s: float) -> None:
    """A prompt is computed, so its next token is out: the request ends, decodes here, or goes to another lane."""
    w.req[i, MADE] += 1
    w.rates[lane, LOAD_TOKENS] -= 1.0
    if w.req[i, MADE] > 1:
        _gap(w, now_s - w.when[i, LAST], 1.0)
    else:
        w.when[i, FIRST] = now_s
        w.rates[lane, LOAD_TOKENS] -= w.req[i, INPUT]
        w.tally[lane, T_PROMPTED] += w.req[i, INPUT]
    w.when[i, LAST] = now_s
    w.tally[lane, T_ANSWERED] += 1
    if w.rules.reports and not _is_sent_on(w, target, i, lane):
        report(w, i, now_s, 1, 0)
    if target == lane and (w.rules.holds_batch or w.req[i, MADE] < w.req[i, OUTPUT]):
        use_adapter(w, i, lane, 1)
        join_batch(w, i, lane)
    elif w.req[i, MADE] >= w.req[i, OUTPUT]:
        finish_request(w, i, now_s)
    elif target >= 0:
        _hand_over(w, i, lane, target, now_s)
    else:
        _fail(w, i, lane, now_s)


def _is_sent_on(w: SimulationState, target: int, i: int, lane: int) -> bool:
    """Whether a first token goes to a client from other machines, with the cache that they wait for."""
    if w.rules.prompts_stream_first or w.lanes[lane, ROLE] != PROMPTS or target < 0:
        return False
    if w.req[i, MADE] > 1 or w.req[i, OUTPUT] <= 1:
        return False
    return w.lanes[lane, POOL] != w.lanes[target, POOL]


def _fail(w: SimulationState, i: int, lane: int, now_s: float) -> None:
    """A prompt is computed, and nobody is left to take it over."""
    give_back(w, i)
    w.rates[lane, LOAD_REQUESTS] -= 1.0
    w.rates[lane, LOAD_TOKENS] -= w.req[i, OUTPUT] - w.req[i, MADE]
    w.req[i, STATUS] = FAILED
    leave_run(w, i, now_s)


def _hand_over(w: SimulationState, i: int, lane: int, target: int, now_s: float) -> None:
    """A request leaves the lane that computed its prompt. Where both use one pool its cache stays; otherwise it waits
    until the other lane has room, and is held here until it has gone over."""
    touch_lane(w, target, now_s)
    rest = float(w.req[i, OUTPUT] - w.req[i, MADE])
    w.rates[lane, LOAD_REQUESTS] -= 1.0
    w.rates[target, LOAD_REQUESTS] += 1.0
    w.rates[lane, LOAD_TOKENS] -= rest
    w.rates[target, LOAD_TOKENS] += rest
    w.req[i, LANE] = target
    if w.lanes[lane, POOL] == w.lanes[target, POOL]:
        w.req[i, STATUS] = MOVING
        use_adapter(w, i, target, 1)
        w.lanes[target, RESERVED] += 1
        w.seats[target, SEAT_READY, w.lanes[target, NUM_READY]] = i
        w.lanes[target, NUM_READY] += 1
        return
    w.req[i, SOURCE], w.req[i, STATUS] = lane, WAITING
    w.req[i, SOURCE_BLOCKS], w.req[i, SOURCE_SHARED] = w.req[i, BLOCKS], w.req[i, SHARED]
    w.req[i, SOURCE_LENDER], w.req[i, SOURCE_LENT] = w.req[i, LENDER], w.req[i, LENT]
    w.req[i, BLOCKS] = w.req[i, SHARED] = w.req[i, LENT] = 0
    w.req[i, LENDER] = -1
    enqueue(w, i, target)


def exit_lane(w: SimulationState, lane: int, i: int, now_s: float) -> int:
    """The lane that takes over after a prompt: its twin, or of those that can hold the whole sequence the one with the
    fewest tokens still to come, in its region; -1 if none can."""
    if w.lanes[lane, ROLE] != PROMPTS:
        return lane
    if w.lanes[lane, TWIN] >= 0:
        return w.lanes[lane, TWIN]
    best, least, tokens = -1, 0.0, w.req[i, INPUT] + w.req[i, OUTPUT]
    for k in range(w.exit.size):
        other = w.exit[k]
        if w.regions.lane_region[other] != w.regions.lane_region[lane]:
            continue
        to_come = tokens_to_come(w, other, now_s)
        if (best < 0 or to_come < least) and fits_lane(w, other, tokens):
            best, least = other, to_come
    return best


def _stays(w: SimulationState, i: int, lane: int, target: int, now_s: float) -> bool:
    """Whether an answer is made where its prompt was computed, since no place is free where it would go."""
    if w.rules.prefill_queue == 0 or target < 0 or w.lanes[lane, TWIN] >= 0:
        return False
    if not fits_lane(w, lane, w.req[i, INPUT] + w.req[i, OUTPUT]):
        return False
    settle(w, target, now_s, False)  # steps that have ended there have taken blocks
    held = w.held[w.lanes[target, DEPLOYMENT]]
    need = int(held[w.req[i, COMPUTED] // w.block_tokens + 1])
    is_full = seated(w, target) >= int(w.lanes[target, MAX_SEQS])
    return is_full or room(w.memory, w.lanes[target, POOL]) < need


def book_prompts(w: SimulationState, lane: int, now_s: float) -> None:
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
            share_prefix(w, i)
        if w.req[i, COMPUTED] < w.req[i, INPUT] + w.req[i, MADE]:
            seat += 1
            continue
        leave_prompts(w, lane, seat)
        if w.req[i, DROPPED] > 0:
            _drop(w, i)
        target = exit_lane(w, lane, i, now_s)
        if _stays(w, i, lane, target, now_s):
            target = lane
        _emit(w, target, i, lane, now_s)
        if target >= 0 and target != lane:
            wake_lane(w, target, now_s)
    w.lanes[lane, LAYERS_ALL] = 0


def _drop(w: SimulationState, i: int) -> None:
    """Compress a prompt's cache: tokens are dropped, and the blocks that they leave empty are free, borrowed ones
    first. What an answer was promised stays."""
    lane = w.req[i, LANE]
    held = w.held[w.lanes[lane, DEPLOYMENT]]
    w.req[i, COMPUTED] -= w.req[i, DROPPED]
    tokens = w.req[i, COMPUTED]
    if reserves_at(w, lane):
        tokens = w.req[i, INPUT] + w.req[i, OUTPUT] - w.req[i, DROPPED]
    blocks = min(w.req[i, BLOCKS], max(1, (tokens + w.block_tokens - 1) // w.block_tokens))
    lent = w.req[i, LENT]
    own = w.req[i, BLOCKS] - lent
    far = max(0, blocks - own)
    if lent > 0:
        give_back_lent(w, i, w.req[i, LENDER], held[lent] - held[far])
        w.req[i, LENT] = far
        w.req[i, LENDER] = w.req[i, LENDER] if far else -1
    w.memory.free[w.lanes[lane, POOL]] += held[own] - held[blocks - far]
    w.req[i, BLOCKS] = blocks


def _gap(w: SimulationState, gap_s: float, weight: float) -> None:
    """Note ``weight`` gaps between tokens."""
    note_gaps(w, gap_bin(gap_s), gap_s, weight)


def book_decodes(w: SimulationState, lane: int, now_s: float) -> None:
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
    w.tally[lane, T_ANSWERED] += live
    for k in range(w.lanes[lane, NUM_FRESH]):
        _gap(w, now_s - w.when[w.seats[lane, SEAT_FRESH, k], LAST], 1.0)
    if live > w.lanes[lane, NUM_FRESH]:
        _gap(w, now_s - w.rates[lane, DECODED_S], float(live - w.lanes[lane, NUM_FRESH]))
    w.lanes[lane, NUM_FRESH] = 0
    w.rates[lane, DECODED_S] = now_s
    if w.rules.draft_levels:
        _accept(w, lane, now_s)
    elif w.rules.reports:
        _report_decodes(w, lane, now_s)
    if not w.rules.holds_batch and w.lanes[lane, NEXT_END] <= w.lanes[lane, STEPS]:
        _end_seats(w, lane, now_s)


def _live(w: SimulationState, lane: int) -> int:
    """Requests of a batch that stays together whose answers are not complete yet."""
    live = 0
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_END_DUE, seat] > w.lanes[lane, STEPS]:
            live += 1
    return live


def _report_decodes(w: SimulationState, lane: int, now_s: float) -> None:
    """Tell of a token of every request whose answer was not complete before the step."""
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_END_DUE, seat] >= w.lanes[lane, STEPS]:
            report(w, w.seats[lane, SEAT_DECODING, seat], now_s, 1, 0)


def _end_seats(w: SimulationState, lane: int, now_s: float) -> None:
    """Remove the requests whose answer is complete; the lane notes when the next one will be."""
    seat, due, following = 0, w.lanes[lane, STEPS], NEVER
    while seat < w.lanes[lane, NUM_DECODING]:
        end = w.seats[lane, SEAT_END_DUE, seat]
        if end <= due:
            i = w.seats[lane, SEAT_DECODING, seat]
            leave_seat(w, lane, seat)
            finish_request(w, i, now_s)
        else:
            following = min(following, end)
            seat += 1
    w.lanes[lane, NEXT_END] = following


def _accept(w: SimulationState, lane: int, now_s: float) -> None:
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
        while accepted < most and _uniform(w.number[i], made + accepted) < w.knobs[ACCEPT, accepted]:
            accepted += 1
        w.req[i, MADE] += accepted
        w.req[i, COMPUTED] += accepted
        w.lanes[lane, CONTEXT] += accepted
        w.rates[lane, LOAD_TOKENS] -= accepted
        w.tally[lane, T_ANSWERED] += accepted
        w.totals[ACCEPTED] += accepted
        w.totals[DRAFTED] += w.rules.checked_tokens
        count_event(w, now_s, B_DECODE, float(accepted))
        if w.rules.reports:
            report(w, i, now_s, 1 + accepted, 0)
        w.seats[lane, SEAT_END_DUE, seat] = w.lanes[lane, STEPS] if made + accepted >= w.req[i, OUTPUT] else NEVER


def _uniform(i: int, k: int) -> float:
    """A number in [0, 1) that belongs to token ``k`` of request ``i`` (SplitMix64's finisher)."""
    x = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(k) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


def end_batch(w: SimulationState, lane: int, now_s: float) -> None:
    """A batch that stays together: complete answers return, or wait for the last one; then all seats are free."""
    ended = 0
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_END_DUE, seat] <= w.lanes[lane, STEPS]:
            i = w.seats[lane, SEAT_DECODING, seat]
            ended += 1
            if not w.rules.returns_together and w.when[i, FINISH] != w.when[i, FINISH]:
                mark_done(w, i, now_s)
    if ended < w.lanes[lane, NUM_DECODING] or w.lanes[lane, NUM_PROMPTS] > 0:
        return
    while w.lanes[lane, NUM_DECODING] > 0:
        i = w.seats[lane, SEAT_DECODING, w.lanes[lane, NUM_DECODING] - 1]
        leave_seat(w, lane, w.lanes[lane, NUM_DECODING] - 1)
        return_one(w, i, now_s)


def note_step(w: SimulationState, unit: int, start_s: float, now_s: float) -> None:
    """Add a step to the totals, the timeline and the log."""
    if now_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        widen_timeline(w, now_s)
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
    spread_over(w.timeline, w.totals[WIDTH], B_BUSY, start_s, now_s, 1.0)
    w.totals[ENERGY] += w.units[unit, SPENT]
    w.totals[TOTAL_STEPS] += 1.0
    w.tally[w.unit_lane[unit], T_STEPS] += 1
    w.totals[BUSY] += now_s - start_s
    w.rates[w.unit_lane[unit], BUSY_S] += now_s - start_s
    w.rates[w.unit_lane[unit], SPENT_J] += w.units[unit, SPENT]


def _log(w: SimulationState, k: int, unit: int, lane: int, start_s: float, now_s: float, new: float) -> None:
    """Add a row to the log of steps."""
    row, to, pool = w.step[lane], w.log[k], w.lanes[lane, POOL]
    to[0], to[1], to[2] = w.unit_machine[unit], start_s, now_s
    to[3], to[4] = new, row[N_DECODES] - w.rates[lane, ANSWER_PADDING]
    to[5], to[6], to[7] = row[N_PROMPTS], row[N_DECODES], w.lanes[lane, NUM_WAITING]
    to[8] = w.memory.capacity[pool] - w.memory.free[pool] - w.memory.evictable[pool]
    w.totals[LOGGED] += 1.0


def wake_lane(w: SimulationState, lane: int, now_s: float) -> None:
    """A lane has something to do: its unit starts a step now unless one is in flight."""
    unit = w.lanes[lane, UNIT]
    if w.units[unit, BEGAN] != w.units[unit, BEGAN] and w.moments[unit] > now_s:
        set_moment(w.moments, w.winners, unit, now_s)


def has_others(w: SimulationState, unit: int) -> bool:
    """Whether other units use the pools of a unit."""
    of = w.unit_machine
    return (
        w.lending_s >= 0.0
        or (unit > 0 and of[unit - 1] == of[unit])
        or (unit + 1 < of.size and of[unit + 1] == of[unit])
    )


def wake_others(w: SimulationState, unit: int, now_s: float) -> None:
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
                    wake_lane(w, lane, now_s)
        other += 1


def steer_split(w: SimulationState, unit: int, step_s: float) -> None:
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

# pyright: reportArgumentType=false
"""Steps that a lane takes while nothing but its own answers goes on, priced together and booked together.

Once a step of decodes alone has begun and nobody may join, what follows is known up to the end of the next answer:
every sequence grows by a token a step, and takes a block when its last one is full. So the lane's next moment is the
end of the last of those steps, and not the next one. Whatever comes in between (a request, a pause of the clock) first
*settles* the lane: the steps that have ended by then are booked, and the one in flight is as if nothing had been
planned. Every step is priced by itself, from the same tables, so that its end is the same to the bit; sums over steps
are added up in another order.
"""

from orrery.engine.queue._kernel import set_moment
from orrery.execution.surface import _kernel as surface
from orrery.execution.surface._kernel import decode_costs
from orrery.kernels.energy._kernel import power_near
from orrery.serving.simulation.price._kernel import launches_of, with_host_s
from orrery.serving.simulation.tables._kernel import (
    AHEAD,
    AHEAD_END_S,
    AHEAD_HOST_BOUND_S,
    AHEAD_MATRIX_S,
    AHEAD_MEMORY_S,
    AHEAD_S,
    B_BUSY,
    B_DECODE,
    B_ENERGY,
    B_KV,
    B_RUNNING,
    B_STEPS,
    B_WAITING,
    BEGAN,
    BLOCKS,
    BUSY,
    BUSY_S,
    COMPUTED,
    CONCAVE_POWER,
    CONTEXT,
    DECODED_S,
    DEPLOYMENT,
    DEVICE_WAYS,
    ENDED,
    ENERGY,
    FETCH_S,
    HOST_BOUND,
    HOST_PER_SEQUENCE_S,
    HOST_STEP_S,
    INPUT,
    JOINED,
    KEPT,
    LAST,
    LOAD_TOKENS,
    MAX_AHEAD,
    MAX_SEQS,
    N_CONTEXT,
    NEVER,
    NEXT_END,
    NOTED_S,
    NUM_DECODING,
    NUM_FRESH,
    NUM_PROMPTS,
    NUM_WAITING,
    OUTPUT,
    POOL,
    POOL_NOTED_S,
    RESERVED,
    SAMPLING_S,
    SEAT_BLOCK_DUE,
    SEAT_DECODING,
    SEAT_FRESH,
    SPAN_W,
    SPENT,
    SPENT_J,
    STEPS,
    T_ANSWERED,
    T_STEPS,
    TOTAL_STEPS,
    UNIT,
    WIDTH,
    SimulationState,
)
from orrery.serving.simulation.timeline._kernel import gap_bin, note_gaps, spread_over, widen_timeline

LEAST = 3
"""Fewer steps are not worth planning."""

LONGER = 4
"""Steps by which a plan is longer than one before that held to its end."""


def block_due(w: SimulationState, i: int, lane: int) -> int:
    """The count of decode steps that needs a block more than the request holds."""
    if w.rules.draft_levels:
        return w.lanes[lane, STEPS] + 1
    return w.req[i, JOINED] + w.req[i, BLOCKS] * w.block_tokens - w.req[i, COMPUTED] + 1


# -- planning ---------------------------------------------------------------------------------------------------------


def plan_ahead(w: SimulationState, unit: int, end_s: float) -> float:
    """Price the steps after the one that ends at ``end_s``, up to the next answer's end; the end of the last one."""
    lane = w.unit_lane[unit]
    if w.clocks[w.unit_machine[unit]] != 1.0:
        return end_s
    steps = min(w.lanes[lane, MAX_AHEAD], w.lanes[lane, NEXT_END] - w.lanes[lane, STEPS] - 1)
    if steps < LEAST or w.lanes[lane, NUM_PROMPTS] + w.lanes[lane, RESERVED] > 0:
        return end_s
    if w.lanes[lane, NUM_WAITING] > 0 and w.lanes[lane, NUM_DECODING] < w.lanes[lane, MAX_SEQS]:
        return end_s
    if _blocks_bytes(w, lane, w.lanes[lane, STEPS] + steps) > w.memory.free[w.lanes[lane, POOL]]:
        return end_s
    w.ahead[lane, AHEAD_END_S, 0] = end_s
    w.lanes[lane, AHEAD], w.lanes[lane, ENDED] = steps, 0
    return _price_ahead(w, unit, lane, steps)


def _blocks_bytes(w: SimulationState, lane: int, steps: int) -> int:
    """Bytes of the blocks that decoding requests take until the step after so many is scheduled."""
    held, need = w.held[w.lanes[lane, DEPLOYMENT]], 0
    for seat in range(w.lanes[lane, NUM_DECODING]):
        if w.seats[lane, SEAT_BLOCK_DUE, seat] <= steps + 1:
            i = w.seats[lane, SEAT_DECODING, seat]
            need += held[_blocks_at(w, i, steps)] - held[w.req[i, BLOCKS]]
    return need


def _blocks_at(w: SimulationState, i: int, steps: int) -> int:
    """Blocks that a decoding request holds for the step after so many."""
    tokens = min(w.req[i, COMPUTED] + steps - w.req[i, JOINED] + 1, w.req[i, INPUT] + w.req[i, OUTPUT])
    return (tokens + w.block_tokens - 1) // w.block_tokens


def _price_ahead(w: SimulationState, unit: int, lane: int, steps: int) -> float:
    """Price so many steps, each of which attends to a token more of every sequence; the end of the last one."""
    deployment, decodes, machine = w.lanes[lane, DEPLOYMENT], w.lanes[lane, NUM_DECODING], w.unit_machine[unit]
    held = float(w.lanes[lane, CONTEXT] + 2 * decodes)
    fetch_s, slowness = w.retained[deployment, FETCH_S], w.slowness[machine]
    decode_costs(
        w.surfaces,
        deployment * w.num_variants,
        w.ahead_cost,
        float(decodes),
        held,
        w.retained[deployment, KEPT],
        steps,
    )
    launch_s, sampling_s = launches_of(w, lane), w.rates[lane, SAMPLING_S] * decodes
    host_s = w.rates[lane, HOST_STEP_S] + w.rates[lane, HOST_PER_SEQUENCE_S] * decodes
    now_s = w.ahead[lane, AHEAD_END_S, 0]
    for k in range(steps):
        device_s = max(w.ahead_cost[k, surface.TIME], fetch_s)
        step_s = with_host_s(w, lane, device_s, launch_s, sampling_s, host_s)
        w.ahead[lane, AHEAD_HOST_BOUND_S, k + 1] = step_s if host_s + launch_s > device_s else 0.0
        step_s *= slowness
        w.ahead[lane, AHEAD_MATRIX_S, k + 1] = w.ahead_cost[k, surface.MATRIX_WORK]
        w.ahead[lane, AHEAD_MEMORY_S, k + 1] = w.ahead_cost[k, surface.MEMORY_WORK]
        w.ahead[lane, AHEAD_S, k + 1] = step_s
        now_s += step_s
        w.ahead[lane, AHEAD_END_S, k + 1] = now_s
    return now_s


# -- settling ---------------------------------------------------------------------------------------------------------


def tokens_to_come(w: SimulationState, lane: int, now_s: float) -> float:
    """Tokens to come of a lane's unfinished requests, before what happens to it now."""
    if w.lanes[lane, AHEAD] == 0:
        return w.rates[lane, LOAD_TOKENS]
    _pass_ended(w, lane, now_s, False)
    return w.rates[lane, LOAD_TOKENS] - w.lanes[lane, NUM_DECODING] * w.lanes[lane, ENDED]


def _pass_ended(w: SimulationState, lane: int, now_s: float, with_now: bool) -> None:
    """Count the planned steps that have ended before ``now_s``, or by then; never the last one, which is booked as any
    other is."""
    ended, most = w.lanes[lane, ENDED], w.lanes[lane, AHEAD]
    while ended < most and (
        w.ahead[lane, AHEAD_END_S, ended] < now_s or (with_now and w.ahead[lane, AHEAD_END_S, ended] == now_s)
    ):
        ended += 1
    w.lanes[lane, ENDED] = ended


def settle(w: SimulationState, lane: int, now_s: float, with_now: bool) -> None:
    """Book the planned steps of a lane that have ended; the one after them is in flight, and nothing is planned."""
    if w.lanes[lane, AHEAD] == 0:
        return
    _pass_ended(w, lane, now_s, with_now)
    ended, unit = w.lanes[lane, ENDED], w.lanes[lane, UNIT]
    is_whole = ended == w.lanes[lane, AHEAD]
    w.lanes[lane, AHEAD] = 0
    most = w.lanes[lane, MAX_AHEAD]  # what is planned beyond the next arrival is in vain
    most += LONGER if is_whole else ended - most // 2
    w.lanes[lane, MAX_AHEAD] = min(w.ahead_cost.shape[0], max(2 * LEAST, most))
    if ended > 0:
        _book(w, unit, lane, ended)
        w.units[unit, BEGAN] = w.ahead[lane, AHEAD_END_S, ended - 1]
    set_moment(w.moments, w.winners, unit, w.ahead[lane, AHEAD_END_S, ended])


def settle_all(w: SimulationState, now_s: float) -> None:
    """Book the planned steps of all lanes that have ended by ``now_s``."""
    for lane in range(w.lanes.shape[0]):
        settle(w, lane, now_s, True)


def _book(w: SimulationState, unit: int, lane: int, ended: int) -> None:
    """Book so many steps, and what the one after them took when it began."""
    decodes, start_s = w.lanes[lane, NUM_DECODING], w.units[unit, BEGAN]
    end_s = w.ahead[lane, AHEAD_END_S, ended - 1]
    if end_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        widen_timeline(w, end_s)
    _book_gaps(w, lane, ended)
    _book_steps(w, unit, lane, ended, start_s)
    _note_held(w, lane, end_s)
    w.lanes[lane, STEPS] += ended
    w.lanes[lane, CONTEXT] += ended * decodes
    w.rates[lane, LOAD_TOKENS] -= ended * decodes
    w.tally[lane, T_ANSWERED] += ended * decodes
    w.rates[lane, DECODED_S] = end_s
    w.step[lane, N_CONTEXT] = (w.lanes[lane, CONTEXT] + decodes) * w.retained[w.lanes[lane, DEPLOYMENT], KEPT]
    _take_blocks(w, lane, ended, end_s)


def _book_gaps(w: SimulationState, lane: int, ended: int) -> None:
    """Note the gaps between tokens; those who joined for the first step have waited since their prompt's end."""
    decodes, fresh, before_s = w.lanes[lane, NUM_DECODING], w.lanes[lane, NUM_FRESH], w.rates[lane, DECODED_S]
    first_s = w.ahead[lane, AHEAD_END_S, 0]
    for k in range(fresh):
        gap_s = first_s - w.when[w.seats[lane, SEAT_FRESH, k], LAST]
        note_gaps(w, gap_bin(gap_s), gap_s, 1.0)
    if decodes > fresh:
        note_gaps(w, gap_bin(first_s - before_s), first_s - before_s, float(decodes - fresh))
    w.lanes[lane, NUM_FRESH] = 0
    if ended < 2:
        return
    low_s = w.ahead[lane, AHEAD_END_S, 1] - first_s
    high_s = w.ahead[lane, AHEAD_END_S, ended - 1] - w.ahead[lane, AHEAD_END_S, ended - 2]
    low = gap_bin(low_s)
    is_one = low == gap_bin(high_s)
    for k in range(1, ended):
        gap_s = w.ahead[lane, AHEAD_END_S, k] - w.ahead[lane, AHEAD_END_S, k - 1]
        bin = low if is_one and low_s <= gap_s and gap_s <= high_s else gap_bin(gap_s)
        note_gaps(w, bin, gap_s, float(decodes))


def _book_steps(w: SimulationState, unit: int, lane: int, ended: int, start_s: float) -> None:
    """Add the steps to the totals and to the timeline."""
    law = w.retained[w.lanes[lane, DEPLOYMENT]]
    decodes, width_s, power = float(w.lanes[lane, NUM_DECODING]), w.totals[WIDTH], law[CONCAVE_POWER]
    span_w, end_s = law[SPAN_W] * w.rates[lane, DEVICE_WAYS], w.ahead[lane, AHEAD_END_S, ended - 1]
    spent_j, joules = w.units[unit, SPENT], 0.0
    matrix_frac = memory_frac = matrix_power = memory_power = 1.0
    for k in range(ended):
        bin = w.timeline[int(w.ahead[lane, AHEAD_END_S, k] / width_s)]
        bin[B_STEPS] += 1.0
        bin[B_DECODE] += decodes
        bin[B_ENERGY] += spent_j
        joules += spent_j
        step_s = w.ahead[lane, AHEAD_S, k + 1]
        frac = w.ahead[lane, AHEAD_MATRIX_S, k + 1] / step_s
        matrix_power = power_near(frac, power, matrix_frac, matrix_power)
        matrix_frac, frac = frac, w.ahead[lane, AHEAD_MEMORY_S, k + 1] / step_s
        memory_power = power_near(frac, power, memory_frac, memory_power)
        memory_frac = frac
        spent_j = min(1.0, matrix_power + memory_power) * span_w * step_s
        w.totals[HOST_BOUND] += w.ahead[lane, AHEAD_HOST_BOUND_S, k + 1]
    w.units[unit, SPENT] = spent_j
    spread_over(w.timeline, width_s, B_BUSY, start_s, end_s, 1.0)
    w.totals[ENERGY] += joules
    w.totals[TOTAL_STEPS] += ended
    w.totals[BUSY] += end_s - start_s
    w.tally[lane, T_STEPS] += ended
    w.rates[lane, BUSY_S] += end_s - start_s
    w.rates[lane, SPENT_J] += joules


def _note_held(w: SimulationState, lane: int, end_s: float) -> None:
    """Bring the timeline up to date with what ran and was held since the first of the steps began."""
    pool, width_s = w.lanes[lane, POOL], w.totals[WIDTH]
    used = float(w.memory.capacity[pool] - w.memory.free[pool] - w.memory.evictable[pool])
    running, waiting = float(w.lanes[lane, NUM_DECODING]), float(w.lanes[lane, NUM_WAITING])
    spread_over(w.timeline, width_s, B_RUNNING, w.rates[lane, NOTED_S], end_s, running)
    spread_over(w.timeline, width_s, B_WAITING, w.rates[lane, NOTED_S], end_s, waiting)
    spread_over(w.timeline, width_s, B_KV, w.rates[pool, POOL_NOTED_S], end_s, used)
    w.rates[lane, NOTED_S] = w.rates[pool, POOL_NOTED_S] = end_s


def _take_blocks(w: SimulationState, lane: int, ended: int, end_s: float) -> None:
    """Take every block that the steps needed, held since the step began that it was taken for."""
    held, pool, now = w.held[w.lanes[lane, DEPLOYMENT]], w.lanes[lane, POOL], w.lanes[lane, STEPS]
    for seat in range(w.lanes[lane, NUM_DECODING]):
        i = w.seats[lane, SEAT_DECODING, seat]
        due = w.seats[lane, SEAT_BLOCK_DUE, seat]
        while due <= now + 1:
            blocks = _blocks_at(w, i, due - 1)
            amount = held[blocks] - held[w.req[i, BLOCKS]]
            since_s = w.ahead[lane, AHEAD_END_S, due - 2 - (now - ended)]
            spread_over(w.timeline, w.totals[WIDTH], B_KV, since_s, end_s, float(amount))
            w.memory.free[pool] -= amount
            w.req[i, BLOCKS] = blocks
            is_last = w.req[i, COMPUTED] + due - 1 - w.req[i, JOINED] >= w.req[i, INPUT] + w.req[i, OUTPUT]
            due = NEVER if is_last else max(block_due(w, i, lane), due + 1)
        w.seats[lane, SEAT_BLOCK_DUE, seat] = due

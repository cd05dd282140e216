"""Outside events of a live run: a client hangs up, a machine is lost.

Both take a request out of whatever holds it: the queue of events (on its way here, or its cache on its way to another
lane), a lane's queue, the prompts under way, a seat in the batch, a seat kept for it. A step in flight runs to its end,
as kernels that are launched do; the next one finds the seat and the blocks free.
"""

import numpy as np

from orrery.base.compiled import compiled
from orrery.engine.queue._kernel import (
    pushed,
    removed,
    set_moment,
)
from orrery.serving.simulation.allocation._kernel import (
    give_back,
    leave_prompts,
    leave_run,
    leave_seat,
    receive,
    release_blocks,
    schedule_event,
    share_prefix,
    tokens_left,
    touch_lane,
    use_adapter,
)
from orrery.serving.simulation.memory._kernel import (
    forget,
)
from orrery.serving.simulation.step_results._kernel import (
    wake_lane,
)
from orrery.serving.simulation.tables._kernel import (
    BEGAN,
    BLOCKS,
    COMPUTED,
    DECODING,
    DONE,
    EVENTS,
    FAILED,
    LANE,
    LAYERS_ALL,
    LAYERS_LEFT,
    LINK_S,
    LOAD_REQUESTS,
    LOAD_TOKENS,
    MADE,
    MOVING,
    NEVER,
    NEXT_END,
    NUM_DECODING,
    NUM_PROMPTS,
    NUM_READY,
    NUM_WAITING,
    POOL,
    PREFILLING,
    RESERVED,
    SEAT_DECODING,
    SEAT_PROMPTS,
    SEAT_READY,
    SLOT_ADAPTER,
    SLOT_REQUESTS,
    SOURCE,
    SOURCE_BLOCKS,
    SOURCE_LENDER,
    SOURCE_LENT,
    SOURCE_SHARED,
    SPENT,
    STATUS,
    SWAPPED,
    TO_COME,
    UNIT,
    WAITING,
    WAITING_ROOT,
    SimulationState,
)


@compiled
def expect(w: SimulationState, i: int, due_s: float) -> None:
    """Request ``i`` comes then."""
    w.counts[EVENTS] = pushed(w.counts[EVENTS], i, due_s, w.due_s, w.event_links, w.number)


def _seat_of(w: SimulationState, lane: int, kind: int, count: int, i: int) -> int:
    """The seat of a kind that a request sits in."""
    seat = 0
    while seat < count and w.seats[lane, kind, seat] != i:
        seat += 1
    return seat


def _leave_ready(w: SimulationState, lane: int, i: int) -> None:
    """Give up the seat that is kept for a request: its cache has come, or needed not move."""
    w.lanes[lane, NUM_READY] -= 1
    for k in range(_seat_of(w, lane, SEAT_READY, w.lanes[lane, NUM_READY], i), w.lanes[lane, NUM_READY]):
        w.seats[lane, SEAT_READY, k] = w.seats[lane, SEAT_READY, k + 1]


def _leave_place(w: SimulationState, lane: int, i: int) -> None:
    """Take a request out of the queue or the batch that it is in."""
    status = w.req[i, STATUS]
    if status in (WAITING, SWAPPED):
        receive(w, lane)  # word of a client that hung up comes the way that requests do
        w.lanes[lane, WAITING_ROOT] = removed(w.lanes[lane, WAITING_ROOT], i, w.key, w.links, w.number)
        w.lanes[lane, NUM_WAITING] -= 1
    elif status == PREFILLING:
        leave_prompts(w, lane, _seat_of(w, lane, SEAT_PROMPTS, w.lanes[lane, NUM_PROMPTS], i))
    elif status == MOVING:
        w.lanes[lane, RESERVED] -= 1
        use_adapter(w, i, lane, -1)
        if w.req[i, SOURCE] >= 0:
            w.counts[EVENTS] = removed(w.counts[EVENTS], i, w.due_s, w.event_links, w.number)
        else:
            _leave_ready(w, lane, i)
    else:
        leave_seat(w, lane, _seat_of(w, lane, SEAT_DECODING, w.lanes[lane, NUM_DECODING], i))


def _leave_source(w: SimulationState, i: int, now_s: float) -> None:
    """The lane that computed a prompt holds its cache no longer."""
    touch_lane(w, w.req[i, SOURCE], now_s)
    release_blocks(
        w,
        i,
        w.req[i, SOURCE],
        w.req[i, SOURCE_BLOCKS],
        w.req[i, SOURCE_SHARED],
        w.req[i, SOURCE_LENDER],
        w.req[i, SOURCE_LENT],
    )
    w.req[i, SOURCE] = -1
    w.req[i, SOURCE_BLOCKS] = w.req[i, SOURCE_SHARED] = w.req[i, SOURCE_LENT] = 0


def _let_go(w: SimulationState, i: int, now_s: float) -> None:
    """A request leaves every table but its own row, with all that it holds; what others can use of its prompt stays."""
    if w.req[i, STATUS] == TO_COME:
        w.counts[EVENTS] = removed(w.counts[EVENTS], i, w.due_s, w.event_links, w.number)
        return
    lane = w.req[i, LANE]
    touch_lane(w, lane, now_s)
    _leave_place(w, lane, i)
    if w.req[i, SOURCE] >= 0:
        _leave_source(w, i, now_s)
    if w.req[i, STATUS] == DECODING or w.req[i, STATUS] == DONE:
        share_prefix(w, i)
    give_back(w, i)
    if w.req[i, STATUS] != DONE:
        w.rates[lane, LOAD_REQUESTS] -= 1.0
        w.rates[lane, LOAD_TOKENS] -= tokens_left(w, i)


def _wake_all(w: SimulationState, now_s: float) -> None:
    """Every lane where somebody waits looks again: there may be room now."""
    for lane in range(w.lanes.shape[0]):
        if w.lanes[lane, NUM_WAITING] > 0:
            wake_lane(w, lane, now_s)


@compiled
def withdraw(w: SimulationState, i: int, now_s: float) -> None:
    """The client of request ``i`` hung up."""
    _let_go(w, i, now_s)
    w.req[i, STATUS] = FAILED
    _wake_all(w, now_s)


def _stands_on(w: SimulationState, i: int, machine: int) -> bool:
    """Whether a request is on a machine, or cache of it is."""
    status = w.req[i, STATUS]
    if status == TO_COME or status > DONE or (status == DONE and w.req[i, BLOCKS] == 0):
        return False
    return _is_of(w, w.req[i, LANE], machine) or _is_of(w, w.req[i, SOURCE], machine)


def _is_of(w: SimulationState, lane: int, machine: int) -> bool:
    """Whether a lane, which may be none (-1), belongs to a machine."""
    return lane >= 0 and w.unit_machine[w.lanes[lane, UNIT]] == machine


def _stop(w: SimulationState, unit: int) -> None:
    """A unit's step in flight is lost."""
    w.units[unit, BEGAN], w.units[unit, SPENT] = np.nan, 0.0
    set_moment(w.moments, w.winners, unit, np.inf)
    for lane in range(w.unit_lane[unit], w.unit_lane[unit + 1]):
        w.step[lane, :] = 0.0
        w.lanes[lane, LAYERS_ALL] = w.lanes[lane, LAYERS_LEFT] = 0
        w.lanes[lane, NEXT_END] = NEVER
        w.rates[lane, LINK_S] = 0.0
        forget(w.memory, w.lanes[lane, POOL])
        for k in range(w.slots.shape[2]):
            w.slots[w.lanes[lane, POOL], SLOT_ADAPTER, k] = -1
            w.slots[w.lanes[lane, POOL], SLOT_REQUESTS, k] = 0


def _is_unsent(w: SimulationState, i: int) -> bool:
    """Whether a request's first token has not gone out yet: it goes with the cache, which has not come over."""
    return w.req[i, SOURCE] >= 0 and w.req[i, MADE] == 1 and not w.rules.prompts_stream_first


@compiled
def lose(w: SimulationState, machine: int, now_s: float, retries: bool) -> None:
    """A machine is lost with all that it holds. Its requests go back to the router, which knows the tokens that have
    gone out so far, so that only their cache is computed again; or they fail."""
    for i in range(w.req.shape[0]):
        if not _stands_on(w, i, machine):
            continue
        is_over, is_unsent = w.req[i, STATUS] == DONE, _is_unsent(w, i)
        _let_go(w, i, now_s)
        if is_over:
            continue
        w.req[i, COMPUTED] = 0
        if is_unsent:
            w.req[i, MADE] = 0
        if retries:
            w.req[i, STATUS] = TO_COME
            schedule_event(w, i, now_s)
        else:
            w.req[i, STATUS] = FAILED
            leave_run(w, i, now_s)
    for unit in range(w.unit_machine.size):
        if w.unit_machine[unit] == machine:
            _stop(w, unit)
    w.stage_s[machine, :] = 0.0
    _wake_all(w, now_s)

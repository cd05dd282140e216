# pyright: reportArgumentType=false, reportReturnType=false
"""The event loop of serving: requests arrive, queue, are batched step by step, and leave.

A request has tokens to compute and tokens computed; each step grants tokens until a budget is spent, so prefill, chunks
and decode are the same thing (after vLLM V1). What steps is a *unit* of one or more *lanes*: a lane has a queue, a
batch and a pool of cache. Ranks that share experts are the lanes of one unit and step together; the batches in flight
of a pipeline are units that share its stages; machines for prompts and machines for answers hand requests over.

Decodes advance together: a lane counts its decode steps, and a request only remembers at which count it joined. So a
step costs a scan for what falls due (a block, an end) and one look-up of its price, however long the batch's history.
Beside this file: the ``tables`` it runs on, the ``allocation`` of the ``memory`` to requests, ``admission`` to a batch,
a step's ``price``, and its ``step_results``.
"""

import numpy as np

from orrery.base.compiled import compiled
from orrery.engine.queue._kernel import (
    popped,
    set_moment,
)
from orrery.serving.simulation.admission._kernel import (
    book_arrival,
    cached_ids_of,
    schedule_lane,
)
from orrery.serving.simulation.ahead._kernel import (
    plan_ahead,
    settle,
    settle_all,
    tokens_to_come,
)
from orrery.serving.simulation.allocation._kernel import (
    enqueue,
    enter_next,
    fits_lane,
    hold_back,
    leave_run,
    receive,
    schedule_event,
    slot_of,
    tokens_left,
    touch_lane,
)
from orrery.serving.simulation.price._kernel import (
    price_step,
)
from orrery.serving.simulation.regions._kernel import cheapest_region, has_open, weighted_region
from orrery.serving.simulation.sleeping._kernel import wake_model
from orrery.serving.simulation.step_results._kernel import (
    book_decodes,
    book_prompts,
    end_batch,
    exit_lane,
    has_others,
    note_step,
    steer_split,
    wake_lane,
    wake_others,
)
from orrery.serving.simulation.tables._kernel import (
    ADAPTER,
    ANSWER_PADDING,
    ARRIVED,
    ARRIVED_S,
    ASKED,
    B_ARRIVALS,
    BEGAN,
    BY_SLEEP,
    CLIENT,
    DEPLOYMENT,
    EMITTED,
    ENTER,
    EVENTS,
    FAILED,
    FIRST,
    INPUT,
    LANE,
    LAYERS_FRAC,
    LOAD_REQUESTS,
    LOAD_TOKENS,
    MAX_AHEAD,
    MOVING,
    N_DECODES,
    N_PROMPTS,
    NEVER,
    NUM_DECODING,
    NUM_PROMPTS,
    NUM_WAITING,
    ORDER,
    ORIGIN,
    OUTPUT,
    POOL,
    PRIORITY,
    PROMPT_PADDING,
    RECV_INTERVAL,
    REFUSED,
    REGION,
    ROUTE,
    SERVED,
    SESSION,
    SHARING,
    SOURCE,
    STATUS,
    UNIT,
    UNTIL_RECV,
    UPCOMING,
    WAITING,
    WAITING_ROOT,
    GrantRule,
    OrderRule,
    OverlapRule,
    RouteRule,
    SimulationState,
    TransferRule,
)
from orrery.serving.simulation.timeline._kernel import count_event, touch_at_turn


def _route(w: SimulationState, route: RouteRule, i: int, now_s: float) -> int:
    """The lane that a new request goes to; -1 if there is none."""
    lanes = _lanes_for(w, i)
    if lanes == 0:
        return -1
    if lanes == 1:
        return w.routed[0]
    home = -1
    for k in range(lanes):
        lane = w.routed[k]
        w.routing[0, k] = w.rates[lane, LOAD_REQUESTS]
        w.routing[1, k] = tokens_to_come(w, lane, now_s)
        if w.rules.needs_prefix:
            w.routing[2, k] = float(cached_ids_of(w, i, w.lanes[lane, POOL]))
        if w.rules.needs_adapter:
            w.routing[2, k] = float(slot_of(w, w.lanes[lane, POOL], w.req[i, ADAPTER]) >= 0)
        if w.req[i, SESSION] >= 0 and w.home[w.req[i, SESSION]] == lane:
            home = k
    chosen = route(
        w.routing[0, :lanes],
        w.routing[1, :lanes],
        w.routing[2, :lanes],
        home,
        _turn_of(w, i),
        w.draws[i, 0],
        w.draws[i, 1],
        w.knobs[ROUTE],
    )
    if w.req[i, SESSION] >= 0:
        w.home[w.req[i, SESSION]] = w.routed[chosen]
    return w.routed[chosen]


def _relieved(w: SimulationState, i: int, lane: int, now_s: float) -> int:
    """The lane for answers that computes a prompt itself, where prompts wait at the one for them and not there."""
    other = exit_lane(w, lane, i, now_s)
    if other < 0 or w.lanes[other, NUM_WAITING] >= w.lanes[lane, NUM_WAITING]:
        return lane
    return other


def _turn_of(w: SimulationState, i: int) -> int:
    """Requests that have come before to where this one is routed: to its region, or to the service."""
    return w.counts[ARRIVED] if w.req[i, REGION] < 0 else w.regions.arrived[w.req[i, REGION]]


def _lanes_for(w: SimulationState, i: int) -> int:
    """Gather the lanes that a new request may go to: those of its region, of the model that it asks for; how many there
    are."""
    count, region = 0, w.req[i, REGION]
    for k in range(w.entry.size):
        is_here = region < 0 or w.regions.lane_region[w.entry[k]] == region
        if is_here and (w.req[i, ASKED] < 0 or w.lanes[w.entry[k], DEPLOYMENT] == w.req[i, ASKED]):
            w.routed[count] = w.entry[k]
            count += 1
    return count


def _note_loads(w: SimulationState) -> None:
    """Bring the load of every region up to date: unfinished requests for each replica that takes new ones."""
    r = w.regions
    r.loads[:] = 0.0
    for lane in range(r.lane_region.size):
        r.loads[r.lane_region[lane]] += w.rates[lane, LOAD_REQUESTS]
    for k in range(r.loads.size):
        if r.replicas[k] > 0:
            r.loads[k] /= r.replicas[k]


def _is_there(w: SimulationState, i: int, now_s: float) -> bool:
    """Whether a request is in a region that takes it; one that is not is on its way to one, or back to its client, who
    sends it elsewhere. A first token that came from a region before is where it was for the client."""
    origin, region = w.req[i, ORIGIN], w.req[i, REGION]
    if region >= 0 and (w.regions.replicas[region] > 0 or not has_open(w.regions, origin)):
        return True
    if region >= 0:
        w.req[i, REGION] = -1
        w.when[i, FIRST] += w.regions.back_s[origin, region]
        if w.regions.back_s[origin, region] > 0.0:
            schedule_event(w, i, now_s + w.regions.back_s[origin, region])
            return False
    region = weighted_region(w.regions, origin)
    if region < 0:
        _note_loads(w)
        region = cheapest_region(w.regions, origin)
    w.req[i, REGION] = region
    w.when[i, FIRST] -= w.regions.back_s[origin, region]
    if w.regions.reach_s[origin, region] > 0.0:
        schedule_event(w, i, now_s + w.regions.reach_s[origin, region])
        return False
    return True


def _arrive(w: SimulationState, order: OrderRule, route: RouteRule, i: int, now_s: float) -> None:
    """A request comes, or comes back from a machine that was lost: it is sent to a region and there to a lane, and
    queues; or is refused because it can never fit or finds a full queue."""
    if w.when[i, ARRIVED_S] != w.when[i, ARRIVED_S]:
        w.when[i, ARRIVED_S] = now_s
        count_event(w, now_s, B_ARRIVALS, 1.0)
    if w.regions.replicas.size > 0 and not _is_there(w, i, now_s):
        return
    lane = _route(w, route, i, now_s)
    if lane >= 0 and w.rules.prefill_queue > 0 and w.lanes[lane, NUM_WAITING] >= w.rules.prefill_queue:
        lane = _relieved(w, i, lane, now_s)
    w.counts[ARRIVED] += 1
    if w.req[i, REGION] >= 0:
        w.regions.arrived[w.req[i, REGION]] += 1
    if lane < 0 or w.exit.size == 0:
        w.req[i, STATUS] = FAILED
        leave_run(w, i, now_s)
        return
    w.req[i, LANE] = lane
    tokens, last = w.req[i, INPUT] + w.req[i, OUTPUT], exit_lane(w, lane, i, now_s)
    is_full = w.rules.max_queue > 0 and w.lanes[lane, NUM_WAITING] >= w.rules.max_queue
    if is_full or last < 0 or not fits_lane(w, last, tokens) or not fits_lane(w, lane, w.req[i, INPUT]):
        w.req[i, STATUS] = REFUSED
        leave_run(w, i, now_s)
        return
    client = w.req[i, CLIENT]
    start = max(w.tag[1 + client], w.tag[0])
    w.tag[1 + client] = start + tokens
    key = order(now_s, w.when[i, PRIORITY], float(w.req[i, INPUT]), float(w.req[i, OUTPUT]), start, w.knobs[ORDER])
    w.req[i, STATUS] = WAITING
    w.rates[lane, LOAD_REQUESTS] += 1.0
    w.rates[lane, LOAD_TOKENS] += tokens_left(w, i)
    w.key[i] = key
    touch_lane(w, lane, now_s)
    began_s = w.units[w.lanes[lane, UNIT], BEGAN]
    if w.lanes[lane, RECV_INTERVAL] > 1 and began_s == began_s:
        hold_back(w, i, lane)
    else:
        enqueue(w, i, lane)
    wake_lane(w, lane, now_s)


def _look_for_new(w: SimulationState, first: int, end: int) -> None:
    """The lanes of a unit look for new requests after so many decode steps; after a step of prompts, and where nothing
    is left to do, at once (after SGLang: a decode step counts 1, one of prompts 1000)."""
    had_prompts, is_idle = False, True
    for lane in range(first, end):
        had_prompts |= w.step[lane, N_PROMPTS] > 0.0
        is_idle &= w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] == 0 and w.lanes[lane, WAITING_ROOT] < 0
    for lane in range(first, end):
        w.lanes[lane, UNTIL_RECV] -= 1
        if had_prompts or is_idle or w.lanes[lane, UNTIL_RECV] <= 0:
            receive(w, lane)


def _turn(
    w: SimulationState,
    grant: GrantRule,
    swap: TransferRule,
    transfer: TransferRule,
    overlap: OverlapRule,
    unit: int,
    now_s: float,
) -> None:
    """A unit's moment has come: book the step in flight, and start the next one."""
    first, end = w.unit_lane[unit], w.unit_lane[unit + 1]
    settle(w, first, now_s, True)
    start_s = w.units[unit, BEGAN]
    for lane in range(first, end):
        touch_at_turn(w, lane, now_s)
    if start_s == start_s:
        for lane in range(first, end):
            if w.step[lane, N_DECODES] > 0.0:
                book_decodes(w, lane, now_s)
            if w.step[lane, N_PROMPTS] > 0.0:
                book_prompts(w, lane, now_s)
            if w.rules.holds_batch:
                end_batch(w, lane, now_s)
        note_step(w, unit, start_s, now_s)
        steer_split(w, unit, now_s - start_s)
        w.units[unit, BEGAN] = np.nan
        if w.lanes[first, RECV_INTERVAL] > 1:
            _look_for_new(w, first, end)
    for lane in range(first, end):
        w.step[lane, :] = 0.0
        w.rates[lane, LAYERS_FRAC] = 1.0
        w.rates[lane, PROMPT_PADDING] = w.rates[lane, ANSWER_PADDING] = 0.0
    has_work, attempts = False, 0
    is_on = w.machines[w.unit_machine[unit], SHARING] != BY_SLEEP or wake_model(w, unit, now_s)
    while is_on and not has_work and attempts < 2:  # when the only one was preempted, it comes back at once
        attempts += 1
        for lane in range(first, end):
            if schedule_lane(w, grant, swap, transfer, lane, now_s):
                has_work = True
    moment = price_step(w, overlap, swap, unit, now_s) if has_work else np.inf
    if has_work and w.lanes[first, MAX_AHEAD] > 0:
        moment = plan_ahead(w, unit, moment)
    set_moment(w.moments, w.winners, unit, moment)
    if start_s == start_s and has_others(w, unit):
        wake_others(w, unit, now_s)


@compiled
def run(
    w: SimulationState,
    until_s: float,
    most_rows: int,
    grant: GrantRule,
    order: OrderRule,
    route: RouteRule,
    overlap: OverlapRule,
    transfer: TransferRule,
    swap: TransferRule,
) -> float:
    """Serve every request, or up to ``until_s``, or until more than ``most_rows`` are reported; the last moment at
    which something happened. Arrivals go before events, events before steps of the same moment."""
    n = NEVER if w.rules.reports else w.req.shape[0]
    if w.rules.concurrency:
        for _ in range(w.rules.concurrency):
            enter_next(w, 0.0)
    now_s = 0.0
    while w.counts[SERVED] < n and w.counts[EMITTED] <= most_rows:
        unit = w.winners[1]
        event = w.counts[EVENTS]
        step_s = w.moments[unit]
        event_s = w.due_s[event] if event >= 0 else np.inf
        arrive_s = np.inf
        if not w.rules.concurrency and w.counts[UPCOMING] < w.order.size:
            arrive_s = w.when[w.order[w.counts[UPCOMING]], ENTER]
        moment_s = min(arrive_s, event_s, step_s)
        if moment_s > until_s:
            settle_all(w, until_s)
            break
        now_s = moment_s
        if arrive_s <= event_s and arrive_s <= step_s:
            i = w.order[w.counts[UPCOMING]]
            w.counts[UPCOMING] += 1
            _arrive(w, order, route, i, now_s)
        elif event_s <= step_s:
            w.counts[EVENTS] = popped(event, w.due_s, w.event_links, w.number)
            if w.req[event, STATUS] == MOVING:
                source = w.req[event, SOURCE]
                touch_lane(w, source, now_s)
                book_arrival(w, event, now_s)
                wake_lane(w, w.req[event, LANE], now_s)
                wake_lane(w, source, now_s)
                wake_others(w, w.lanes[source, UNIT], now_s)
            else:
                _arrive(w, order, route, event, now_s)
        else:
            _turn(w, grant, swap, transfer, overlap, unit, now_s)
    return now_s

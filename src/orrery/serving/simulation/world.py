"""The tables that the loop runs on, filled for the start of a run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.queue._kernel import clock_of
from orrery.engine.streams import stream
from orrery.execution.compression import Compression, kept_tokens
from orrery.execution.surface._kernel import CHANNELS
from orrery.serving.batching import DRAWS
from orrery.serving.requests import Floats, Ints, Requests
from orrery.serving.simulation.assemble import Assembled
from orrery.serving.simulation.memory._kernel import Memory, memory_of
from orrery.serving.simulation.prepare import Prepared
from orrery.serving.simulation.regions._kernel import Regions
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, GAP_DECADES, STEP, TIMELINE
from orrery.serving.simulation.rules import ROUTERS
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables

BINS = 2048
"""Bins of the timeline; they double in width as often as the run needs."""

FIRST_WIDTH_S = 1e-3
"""Their width at the start."""

NUM_COUNTS = tables.EMITTED + 1
"""Numbers that the loop counts in."""

MAX_AHEAD = 64
"""Decode steps that are planned at a time, at most."""

MAX_CACHE_NODES = 400_000_000
"""Shared blocks x pools that a run may follow, at 40 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Steps between these times are logged, ``rows`` of them at most."""

    start_s: float = 0.0
    end_s: float = 0.0
    rows: int = 0


def build(
    service: Service, requests: Requests, prepared: Prepared, *, seed: int, window: Window
) -> tables.SimulationState:
    """Build the state at time 0: no request has arrived, every cache is empty."""
    assembled, blocks_each = prepared.assembled, prepared.blocks_each
    n, lanes = requests.count, assembled.lanes.shape[0]
    table = assembled.lanes.copy()
    roles = table[:, tables.ROLE]
    if prepared.budget_tokens:
        table[:, tables.BUDGET] = prepared.budget_tokens
    table[:, tables.MAX_AHEAD] = _max_ahead(prepared, table, window)
    units, stages = assembled.unit_machine.size, assembled.machines[:, tables.STAGES]
    moments, winners = clock_of(units)
    is_drawn = DRAWS in ROUTERS.get(service.router).traits
    return tables.SimulationState(
        rules=prepared.switches,
        knobs=prepared.knobs,
        req=request_table(service, requests),
        when=time_table(service, requests, has_order=not prepared.switches.concurrency),
        number=np.arange(n),
        order=_order(requests, is_capped=bool(prepared.switches.concurrency)),
        prefix_start=requests.prefix_start[:-1] if blocks_each else np.zeros(1, dtype=np.int64),
        prefix_end=requests.prefix_start[1:] if blocks_each else np.zeros(1, dtype=np.int64),
        prefix_ids=requests.prefix_ids if blocks_each else np.zeros(1, dtype=np.int64),
        draws=stream(seed, "router").random((n, 2)) if is_drawn else np.zeros((n, 2)),
        key=np.zeros(n),
        links=np.full((n, 3), -1, dtype=np.int64),
        due_s=np.zeros(n),
        event_links=np.full((n, 3), -1, dtype=np.int64),
        home=np.full(_distinct(requests.session), -1, dtype=np.int64),
        tag=np.zeros(1 + _distinct(requests.client)),
        counts=np.array([-1, 0, 0, 0, 0, 0], dtype=np.int64),
        lanes=table,
        rates=assembled.rates.copy(),
        seats=np.zeros((lanes, len(tables.SEATS), min(n, int(table[:, tables.MAX_SEQS].max()))), dtype=np.int64),
        slots=_slots(service, assembled.capacity.size),
        step=np.zeros((lanes, 9)),
        entry=np.flatnonzero(roles != tables.ANSWERS),
        exit=np.flatnonzero(roles != tables.PROMPTS),
        unit_lane=assembled.unit_lane,
        unit_machine=assembled.unit_machine,
        units=np.column_stack([np.full(units, np.nan), np.zeros((units, 3))]),
        moments=moments,
        winners=winners,
        machines=assembled.machines.copy(),
        send_share=assembled.send_share,
        stage_share=assembled.stage_share,
        stage_s=np.zeros((stages.size, int(stages.max()))),
        slowness=np.ones(stages.size),
        clocks=np.ones(stages.size),
        spans=np.ones(stages.size),
        memory=_memory(assembled, requests, blocks_each),
        held=assembled.held,
        lent=np.zeros((n, lanes, 2) if assembled.lending_s >= 0.0 else (0, 0, 2), dtype=np.int64),
        block_tokens=prepared.block_tokens,
        blocks_each=blocks_each,
        surfaces=assembled.surfaces,
        num_variants=assembled.num_variants,
        retained=assembled.retained,
        num_layers=assembled.num_layers,
        lending_s=assembled.lending_s,
        cost=np.zeros((2, CHANNELS)),
        ahead=np.zeros((lanes, 5, MAX_AHEAD + 1)),
        ahead_cost=np.zeros((MAX_AHEAD, CHANNELS)),
        routing=np.zeros((3, lanes)),
        routed=np.zeros(lanes, dtype=np.int64),
        gaps=np.zeros(GAP_BINS_PER_DECADE * GAP_DECADES),
        timeline=np.zeros((BINS, len(TIMELINE))),
        log=np.zeros((window.rows, len(STEP))),
        totals=_totals(window),
        tally=np.zeros((lanes, 6), dtype=np.int64),
        regions=nowhere(lanes),
        emitted=np.zeros((0, 3), dtype=np.int64),
        emitted_s=np.zeros(0),
        swapped=np.zeros(n if prepared.switches.guess_knob >= 0 else 0, dtype=np.int64),
        guesses=np.zeros(3, dtype=np.int64),
    )


def nowhere(lanes: int) -> Regions:
    """No regions: all lanes are in one place, where requests are at once."""
    none, table = np.zeros(0), np.zeros((0, 0))
    return Regions(
        lane_region=np.zeros(lanes, dtype=np.int64),
        replicas=none.astype(np.int64),
        arrived=none.astype(np.int64),
        reach_s=table,
        back_s=table,
        cost=table,
        weight=table,
        credit=table,
        full_requests=none,
        loads=none,
    )


def _max_ahead(prepared: Prepared, lanes: Ints, window: Window) -> Ints:
    """Decode steps that each lane may plan: none where its steps depend on others, on guesses or on what else they do,
    or where each of them is told of."""
    rules, assembled = prepared.switches, prepared.assembled
    is_plain = not (
        rules.draft_levels
        or rules.reports
        or rules.holds_batch
        or rules.fill_tokens
        or rules.has_overlap
        or assembled.lending_s >= 0.0
        or window.rows
        or any(d.adapters is not None for d in assembled.deployments)
    )
    machine = assembled.unit_machine[lanes[:, tables.UNIT]]
    is_alone = np.bincount(machine)[machine] == 1
    is_one_stage = assembled.machines[machine, tables.STAGES] == 1
    is_seen = lanes[:, tables.RECV_INTERVAL] <= 1
    return np.where(is_plain & is_alone & is_one_stage & is_seen, MAX_AHEAD // 4, 0)


def _totals(window: Window) -> Floats:
    totals = np.zeros(len(tables.TOTALS))
    totals[[tables.WIDTH, tables.WINDOW_START, tables.WINDOW_END]] = FIRST_WIDTH_S, window.start_s, window.end_s
    return totals


def request_table(service: Service, requests: Requests) -> Ints:
    """The requests' table: one row that all start from, and the columns in which they differ."""
    start = np.zeros(len(tables.REQUEST), dtype=np.int64)
    start[
        [
            tables.SOURCE,
            tables.LENDER,
            tables.MACHINE,
            tables.FIRST_FOLLOWER,
            tables.NEXT_FOLLOWER,
            tables.SESSION,
            tables.ADAPTER,
            tables.ASKED,
            tables.REGION,
        ]
    ] = -1
    table = np.broadcast_to(start, (requests.count, start.size)).copy()
    table[:, tables.INPUT], table[:, tables.OUTPUT] = requests.input_tokens, requests.output_tokens
    if requests.after.size:
        table[:, tables.FIRST_FOLLOWER], table[:, tables.NEXT_FOLLOWER] = _followers(requests.after)
    for column, values in (
        (tables.SESSION, requests.session),
        (tables.CLIENT, requests.client),
        (tables.ADAPTER, requests.adapter),
        (tables.ASKED, requests.model),
        (tables.ORIGIN, requests.origin),
    ):
        if values.size:
            table[:, column] = values
    compression = service.compression
    if compression.kept_tokens_frac < 1.0 or compression.budget_tokens:
        table[:, tables.DROPPED] = _dropped(compression, requests)
    return table


def _slots(service: Service, caches: int) -> NDArray[np.int64]:
    """Places for adapters, in which the most popular ones are at the start; none where requests choose no adapter."""
    places = [p.deployment.adapters.slots for p in service.pools if p.deployment.adapters is not None]
    table = np.zeros((caches, 3, min(places, default=0)), dtype=np.int64)
    table[:, tables.SLOT_ADAPTER, :] = np.arange(table.shape[2])
    return table


def _followers(after: Ints) -> tuple[Ints, Ints]:
    """Linked lists: who comes first after a request, and who comes after the same one next."""
    first, following = np.full(after.size, -1, dtype=np.int64), np.full(after.size, -1, dtype=np.int64)
    for i in np.flatnonzero(after >= 0)[::-1].tolist():
        following[i] = first[after[i]]
        first[after[i]] = i
    return first, following


def _dropped(compression: Compression, requests: Requests) -> Ints:
    """Prompt tokens whose keys and values are dropped once the prompt is computed."""
    lengths, back = np.unique(requests.input_tokens, return_inverse=True)
    return np.array([x - kept_tokens(compression, x) for x in lengths.tolist()], dtype=np.int64)[back]


def reached_s(service: Service, requests: Requests, *, has_order: bool) -> Floats:
    """When each request reaches the first queue; of one that follows another, after how long.

    A front end takes longer over longer prompts, and where ``has_order`` it hands on in the order of arrival: who comes
    behind a longer prompt waits for it.
    """
    found = requests.arrive_s + service.entry_s(requests.input_tokens)
    if has_order:
        came = _independent(requests)
        found[came] = np.maximum.accumulate(found[came])
    return found


def _independent(requests: Requests) -> Ints:
    """Requests that follow no other, as they arrive."""
    first = np.flatnonzero(requests.after < 0) if requests.after.size else np.arange(requests.count)
    return first[np.argsort(requests.arrive_s[first], kind="stable")]


def _order(requests: Requests, *, is_capped: bool) -> Ints:
    """Requests that follow no other, as they reach the first queue, or in the order in which clients hold them back."""
    found = _independent(requests)
    return np.sort(found) if is_capped else found


def time_table(service: Service, requests: Requests, *, has_order: bool = False) -> Floats:
    """Return the table of times: when each request reaches the first queue, and its priority."""
    table = np.full((requests.count, len(tables.WHEN)), np.nan)
    table[:, tables.ENTER] = reached_s(service, requests, has_order=has_order)
    table[:, tables.PRIORITY] = requests.priority if requests.priority.size else 0.0
    table[:, tables.LAST] = 0.0
    return table


def _distinct(values: Ints) -> int:
    """One more than the largest of some numbers from 0; 1 for none."""
    return max(1, int(values.max()) + 1) if values.size else 1


def _memory(assembled: Assembled, requests: Requests, blocks_each: int) -> Memory:
    ids = int(requests.prefix_ids.max()) + 1 if blocks_each and requests.prefix_ids.size else 0
    pools = assembled.capacity.size
    if ids * pools > MAX_CACHE_NODES:
        raise ScenarioError(
            f"requests: {ids:,} shared blocks on {pools} replicas are more than can be followed "
            f"({MAX_CACHE_NODES:,} in all); use fewer requests or replicas, or prefix_caching = false."
        )
    return memory_of(assembled.capacity, assembled.host_capacity, ids, requests.count if ids else 0)

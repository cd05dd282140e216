"""Serve recorded requests over days: the serving loop, paused at every moment of its controller."""

from math import inf, nextafter

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.fleet.service.controller import FleetController
from orrery.fleet.service.replicas import ReplicaStates
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.fleet.service.rows import BATCH, RequestRows
from orrery.fleet.service.setup import FleetService
from orrery.serving.requests import Floats, Requests
from orrery.serving.simulation import _kernel
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.prepare import blocks_of, prepare
from orrery.serving.simulation.simulate import check
from orrery.serving.simulation.tables import _kernel as tables

LONGEST_AFTER_S = 7 * 86_400.0
"""A run ends so long after the last arrival, whatever is still there."""


def run_fleet(setup: FleetService, requests: Requests, *, seed: int = 0, batch: int = BATCH) -> FleetRun | Infeasible:
    """Serve ``requests`` with replicas that start, stop and fail; Infeasible where a model does not fit."""
    check(requests)
    block_tokens, blocks_each = blocks_of(setup.service, requests.prefix_block_tokens)
    prepared = prepare(setup.service, Sizes.of(requests, block_tokens), blocks_each=blocks_each)
    if isinstance(prepared, Infeasible):
        return prepared
    rows = RequestRows(setup.service, requests, prepared, seed, batch)
    control = FleetController(setup, rows, ReplicaStates(setup, rows), seed)
    horizon_s = max(setup.horizon_s, float(earliest_s(requests).max()))
    control.begin(horizon_s)
    while rows.unfinished() if control.clock_s >= horizon_s else True:
        if control.next_s > horizon_s + LONGEST_AFTER_S:
            break
        _serve_to(rows, control.next_s)
        control.pass_time(control.next_s)
        control.happen()
    return _result(control, rows, requests, horizon_s)


def earliest_s(requests: Requests) -> Floats:
    """When each request comes at the earliest: one that follows another its pause after that one has come."""
    found = requests.arrive_s.copy()
    ahead = requests.after.copy() if requests.after.size else np.full(requests.count, -1, dtype=np.int64)
    while (waits := np.flatnonzero(ahead >= 0)).size:  # each round doubles how far back a request has looked
        at = ahead[waits]
        found[waits], ahead[waits] = found[waits] + found[at], ahead[at]
    return found


def _serve_to(rows: RequestRows, until_s: float) -> None:
    """Let the loop run up to a moment, which itself comes after what is decided there."""
    rows.load(until_s)
    rows.world.counts[tables.SERVED] = 0
    _kernel.run(rows.typed, nextafter(until_s, -inf), 0, *rows.calls)


def _result(control: FleetController, rows: RequestRows, requests: Requests, horizon_s: float) -> FleetRun:
    """Result of the finished run."""
    outcome = rows.outcome()
    finished_s = outcome.finish_s[np.isfinite(outcome.finish_s)]
    end_s = max(horizon_s if control.setup.horizon_s else 0.0, float(finished_s.max()) if finished_s.size else 0.0)
    control.states.close(max(end_s, control.clock_s))
    totals = rows.world.totals
    frames, pools = np.array(control.frames), len(control.setup.terms)
    return FleetRun(
        setup=control.setup,
        requests=requests,
        outcome=outcome,
        events=tuple(control.states.events),
        spans=tuple(control.states.spans),
        frames=frames[:, : len(FRAME)],
        paid=frames[:, len(FRAME) : len(FRAME) + pools],
        spent_j=np.vstack((frames[:, len(FRAME) + pools :], control.states.spent_by_pool())),
        end_s=end_s,
        energy_above_idle_j=float(totals[tables.ENERGY]),
        busy_s=float(totals[tables.BUSY]),
        gap_counts=rows.world.gaps,
        power=control.meter.collected() if control.meter else None,
        model_busy_s=control.states.by_model(tables.BUSY_S),
        model_spent_j=control.states.by_model(tables.SPENT_J),
        wakes=int(totals[tables.WAKES]),
        adapter_loads=int(totals[tables.ADAPTER_LOADS]),
        adapter_load_s=float(totals[tables.ADAPTER_LOAD_S]),
    )

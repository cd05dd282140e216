"""Serve recorded requests over days: the serving loop, paused at every moment of its controller."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nextafter

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.fleet.service.controller import FleetController
from orrery.fleet.service.power_meter import PowerMeter
from orrery.fleet.service.power_readings import PowerCap, PowerReadings
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


@dataclass(slots=True, eq=False)
class _Served:
    """One service as its run goes on."""

    requests: Requests
    rows: RequestRows
    control: FleetController
    horizon_s: float

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do, or nothing more is waited for."""
        control = self.control
        if control.next_s > self.horizon_s + LONGEST_AFTER_S:
            return True
        return control.clock_s >= self.horizon_s and not self.rows.unfinished()

    def serve_to(self, until_s: float) -> None:
        """Let the loop run up to a moment, which itself comes after what is decided there."""
        self.rows.load(until_s)
        self.rows.world.counts[tables.SERVED] = 0
        _kernel.run(self.rows.typed, nextafter(until_s, -inf), 0, *self.rows.calls)
        self.control.pass_time(until_s)


def run_fleet(setup: FleetService, requests: Requests, *, seed: int = 0, batch: int = BATCH) -> FleetRun | Infeasible:
    """Serve ``requests`` with replicas that start, stop and fail; Infeasible where a model does not fit."""
    one = _served(setup, requests, seed, batch)
    if isinstance(one, Infeasible):
        return one
    one.control.begin(one.horizon_s)
    while not one.is_over:
        one.serve_to(one.control.next_s)
        one.control.happen()
    return _result(one, one.control.meter.collected() if one.control.meter else None)


def run_behind_limits(
    cap: PowerCap, services: Sequence[tuple[FleetService, Requests, int]]
) -> tuple[FleetRun | Infeasible, ...]:
    """Serve several services (each with its requests and seed) whose replicas stand behind the same limits on power.

    All loops pause at every moment at which something is decided for one of them, so that a reading is of what all
    have drawn up to it; the first service's plan has the meters' moments.
    """
    found = [_served(replace(setup, power_cap=None), requests, seed, BATCH) for setup, requests, seed in services]
    runs = [one for one in found if isinstance(one, _Served)]
    if len(runs) < len(found):
        return tuple(one for one in found if isinstance(one, Infeasible))
    meter = PowerMeter(cap, *(one.control.states for one in runs))
    runs[0].control.meter = meter
    for one in runs:
        one.control.begin(one.horizon_s)
    while not all(one.is_over for one in runs):
        next_s = min(one.control.next_s for one in runs)
        for one in runs:
            one.serve_to(next_s)
        for one in runs:
            if one.control.next_s <= next_s:
                one.control.happen()
    return tuple(_result(one, meter.collected(k)) for k, one in enumerate(runs))


def _served(setup: FleetService, requests: Requests, seed: int, batch: int) -> _Served | Infeasible:
    """A service before its first moment."""
    check(requests)
    block_tokens, blocks_each = blocks_of(setup.service, requests.prefix_block_tokens)
    prepared = prepare(setup.service, Sizes.of(requests, block_tokens), blocks_each=blocks_each)
    if isinstance(prepared, Infeasible):
        return prepared
    rows = RequestRows(setup.service, requests, prepared, seed, batch)
    control = FleetController(setup, rows, ReplicaStates(setup, rows), seed)
    horizon_s = max(setup.horizon_s, float(earliest_s(requests).max()))
    return _Served(requests, rows, control, horizon_s)


def earliest_s(requests: Requests) -> Floats:
    """When each request comes at the earliest: one that follows another its pause after that one has come."""
    found = requests.arrive_s.copy()
    ahead = requests.after.copy() if requests.after.size else np.full(requests.count, -1, dtype=np.int64)
    while (waits := np.flatnonzero(ahead >= 0)).size:  # each round doubles how far back a request has looked
        at = ahead[waits]
        found[waits], ahead[waits] = found[waits] + found[at], ahead[at]
    return found


def _result(one: _Served, power: PowerReadings | None) -> FleetRun:
    """Result of the finished run."""
    control, rows, requests = one.control, one.rows, one.requests
    outcome = rows.outcome()
    finished_s = outcome.finish_s[np.isfinite(outcome.finish_s)]
    least_s = one.horizon_s if control.setup.horizon_s else 0.0
    end_s = max(least_s, float(finished_s.max()) if finished_s.size else 0.0)
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
        power=power,
        model_busy_s=control.states.by_model(tables.BUSY_S),
        model_spent_j=control.states.by_model(tables.SPENT_J),
        wakes=int(totals[tables.WAKES]),
        adapter_loads=int(totals[tables.ADAPTER_LOADS]),
        adapter_load_s=float(totals[tables.ADAPTER_LOAD_S]),
    )

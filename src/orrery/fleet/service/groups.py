"""Pools that one autoscaler scales together: all of them, or those for prompts apart from those for answers."""

from dataclasses import dataclass

import numpy as np

from orrery.fleet.service.replicas import SERVING, STARTING, ReplicaStates
from orrery.fleet.service.setup import Scaler
from orrery.fleet.service.signals import Sample, Signals
from orrery.serving.requests import Ints
from orrery.serving.simulation.tables import _kernel as tables


@dataclass(slots=True, kw_only=True, eq=False)
class ScaledGroup:
    """Pools that are scaled together, and what their autoscaler has seen of them. ``ahead`` are the lanes that requests
    pass before they reach this group's."""

    states: ReplicaStates
    pools: tuple[int, ...]
    scaler: Scaler | None
    pace_s: float
    signals: Signals
    lanes: Ints
    caches: Ints  # its rows of the memory
    ahead: Ints
    region: int = 0
    target: int = -1  # replicas that should run; below 0: every pool's minimum
    since_s: float = 0.0  # of the sample before
    arrived: int = 0
    busy_s: float = 0.0
    serving_s: float = 0.0  # replica-seconds of serving since the sample before

    def passed(self, length_s: float) -> None:
        """Count a stretch of time with the replicas that serve now."""
        self.serving_s += self.states.count(SERVING, pools=self.pools) * length_s

    def look(self, now_s: float) -> None:
        """Take a sample for the autoscaler."""
        w = self.states.rows.world
        mine, memory = w.lanes[self.lanes].sum(axis=0), w.memory
        free = memory.free[self.caches] + memory.evictable[self.caches]
        capacity = memory.capacity[self.caches]
        serving = self.states.count(SERVING, pools=self.pools)
        each = capacity.sum() / max(1, self.states.size_of(self.pools))
        came = w.regions.arrived[self.region] if w.regions.arrived.size else w.counts[tables.ARRIVED]
        arrived = int(came - w.rates[self.ahead, tables.LOAD_REQUESTS].sum())
        busy_s = float(w.rates[self.lanes, tables.BUSY_S].sum())
        self.signals.add(
            Sample(
                now_s=now_s,
                serving=serving,
                starting=self.states.count(STARTING, pools=self.pools),
                waiting=int(mine[tables.NUM_WAITING]),
                running=int(mine[tables.NUM_DECODING] + mine[tables.NUM_PROMPTS] + mine[tables.RESERVED]),
                arrivals=max(0, arrived - self.arrived),
                since_s=now_s - self.since_s,
                busy_frac=(busy_s - self.busy_s) / self.serving_s if self.serving_s > 0 else 0.0,
                kv_frac=min(1.0, float((capacity - free).sum()) / (each * serving)) if serving else 0.0,
            )
        )
        self.since_s, self.arrived, self.busy_s, self.serving_s = now_s, arrived, busy_s, 0.0

    def decide(self) -> None:
        """Ask the autoscaler how many replicas should run."""
        if self.scaler is not None:
            self.target = int(np.ceil(self.scaler.rule(self.signals, self.scaler.knobs) - 1e-9))

    def targets(self) -> dict[int, int]:
        """Replicas that should run, by pool: every pool's minimum, then pools in their order up to their maximum."""
        terms = self.states.setup.terms
        found = {p: terms[p].replicas_min for p in self.pools}
        more = self.target - sum(found.values())
        for p in self.pools:
            add = min(max(0, more), terms[p].replicas_max - found[p])
            found[p] += add
            more -= add
        return found


def groups_of(states: ReplicaStates) -> tuple[ScaledGroup, ...]:
    """The groups of a run: in every region one, or one for prompts and one for answers."""
    return tuple(group for region in range(states.setup.num_regions) for group in _groups_in(states, region))


def _groups_in(states: ReplicaStates, region: int) -> tuple[ScaledGroup, ...]:
    """The groups of a region."""
    setup = states.setup
    roles = [p.role for p in setup.service.own_pools]
    pools = [k for k, at in enumerate(setup.region_numbers) if at == region]
    capacity, prefill_capacity = setup.capacities(region)
    if "prompts" not in roles:
        return (_group(states, region, tuple(pools), setup.scaler, capacity, setup.limits_s),)
    prompts = tuple(k for k in pools if roles[k] == "prompts")
    answers = tuple(k for k in pools if roles[k] != "prompts")
    first, then = ({m: s for m, s in setup.limits_s.items() if m != other} for other in ("tpot", "ttft"))
    entry = _group(states, region, prompts, setup.prefill_scaler, prefill_capacity, first)
    return (entry, _group(states, region, answers, setup.scaler, capacity, then, ahead=entry.lanes))


def _group(
    states: ReplicaStates,
    region: int,
    pools: tuple[int, ...],
    scaler: Scaler | None,
    capacity_requests_per_s: float,
    limits_s: dict[str, float],
    ahead: Ints | None = None,
) -> ScaledGroup:
    setup, w = states.setup, states.rows.world
    terms = [setup.terms[p] for p in pools]
    lanes = np.concatenate([r.lanes for r in states.replicas if r.pool in pools])
    at = region if setup.regions else -1
    return ScaledGroup(
        states=states,
        pools=pools,
        scaler=scaler,
        pace_s=setup.pace_of(scaler),
        lanes=lanes,
        caches=np.unique(w.lanes[lanes, tables.POOL]),
        ahead=np.zeros(0, dtype=np.int64) if ahead is None else ahead,
        region=region,
        signals=Signals(
            replicas_min=sum(t.replicas_min for t in terms),
            replicas_max=sum(t.replicas_max for t in terms),
            cold_start_s=max(t.cold_start_s for t in terms),
            capacity_requests_per_s=capacity_requests_per_s,
            limits_s=limits_s,
            recent=lambda since_s: states.rows.recent(since_s, at),
            past=setup.rate_forecast,
        ),
    )

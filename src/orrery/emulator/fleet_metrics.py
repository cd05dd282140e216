"""Metrics of a fleet as a whole: replicas by state, what should run, what waits for a replica, and what was paid."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from orrery.fleet.service.live_fleet import LiveFleet
from orrery.fleet.service.replicas import STATES
from orrery.serving.live.result import Snapshot


def fleet_metrics(live: LiveFleet, now: Snapshot) -> Iterator[Metric]:
    """All families, of every pool."""
    names = [t.name for t in live.setup.terms]
    yield _replicas(live, names)
    yield _by_pool("fleet_replicas_wanted", "Replicas that should run.", names, live.targets)
    terms = live.setup.terms
    yield _by_pool("fleet_replicas_min", "The fewest replicas that run.", names, [t.replicas_min for t in terms])
    yield _by_pool("fleet_replicas_max", "The most replicas that may run.", names, [t.replicas_max for t in terms])
    parked = float(now.waiting[now.is_up == 0].sum())
    yield GaugeMetricFamily(
        "orrery:fleet_requests_without_replica", "Requests that wait for a replica to be ready.", value=parked
    )
    yield CounterMetricFamily("orrery:fleet_requests_lost", "Requests whose replica was lost.", value=live.num_lost)
    paid_s = live.paid_s()
    family = CounterMetricFamily("orrery:fleet_replica_seconds", "Time of replicas that was paid for.", labels=["pool"])
    costs = CounterMetricFamily("orrery:fleet_cost_usd", "What that costs.", labels=["pool"])
    for name, seconds_s, t in zip(names, paid_s, terms, strict=True):
        family.add_metric([name], seconds_s)
        costs.add_metric([name], seconds_s * t.usd_per_s)
    yield from (family, costs)
    if live.power:
        yield from _power(live)


def _power(live: LiveFleet) -> Iterator[Metric]:
    """The draw at every power limit, its limit, and how far its rule has lowered clocks."""
    labels = ["kind", "name"]
    drawn = GaugeMetricFamily("orrery:fleet_power_watts", "Draw at the latest reading.", labels=labels)
    carried = GaugeMetricFamily("orrery:fleet_power_limit_watts", "What it carries.", labels=labels)
    clocks = GaugeMetricFamily("orrery:fleet_power_clock_ratio", "The lowest clock its rule allows.", labels=labels)
    for limit, watts, clock in live.power:
        drawn.add_metric([limit.kind, limit.name], watts)
        carried.add_metric([limit.kind, limit.name], limit.limit_w)
        clocks.add_metric([limit.kind, limit.name], clock)
    yield from (drawn, carried, clocks)


def _replicas(live: LiveFleet, names: list[str]) -> Metric:
    family = GaugeMetricFamily("orrery:fleet_replicas", "Replicas by what they do.", labels=["pool", "state"])
    found = [(pool, state) for pool, state, _, _ in live.replicas]
    for pool, name in enumerate(names):
        for state, word in enumerate(STATES):
            family.add_metric([name, word], float(found.count((pool, state))))
    return family


def _by_pool(name: str, says: str, pools: list[str], values: list[int]) -> Metric:
    family = GaugeMetricFamily(f"orrery:{name}", says, labels=["pool"])
    for pool, value in zip(pools, values, strict=True):
        family.add_metric([pool], float(value))
    return family

"""Replicas that are told what to do: who starts, who goes, what is paid, what an autoscaler sees, moment by moment."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.service.disruptions import Disruptions, Outage
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms, Scaler
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests

TINY, LONG = 20, 3500  # tokens of an output: a tenth of a second, and more than 20 s


@pytest.fixture(scope="module")
def service():
    """One replica of a small model on a fast device."""
    return service_for(read_scenario({"model": "llama-3.1-8b", "device": "h100-sxm", "output_tokens": 60}))[0]


def play(service, pools, requests, targets=None, period_s=10.0, **more):
    """A run with an autoscaler that asks every period for what ``targets`` says, else for one; and what it saw."""
    seen = []

    def rule(signals, _):
        seen.append(signals.now)
        return targets.get(signals.now.now_s, 1.0)

    held = replace(service, pools=tuple(replace(service.pools[0], replicas=t.replicas_max) for t in pools))
    scaler = Scaler(name="told", rule=rule, knobs=None, period_s=period_s) if targets is not None else None
    count = len(requests)
    run = run_fleet(
        FleetService(service=held, terms=pools, scaler=scaler, **more),
        Requests(
            arrive_s=np.array([at for at, _ in requests], dtype=float),
            input_tokens=np.full(count, 500),
            output_tokens=np.array([tokens for _, tokens in requests]),
        ),
    )
    return run, seen


def pool(low, most, cold_start_s=0.0, **given):
    return PoolTerms(name="p", replicas_min=low, replicas_max=most, cold_start_s=cold_start_s, **given)


TWO = (pool(1, 2, 15.0, purchase="reserved"), pool(0, 3, 25.0))


def test_pools_fill_in_their_order_and_the_newest_go_first(service):
    """A part of a replica is a whole one; the second pool starts when the first is full; who is starting goes first."""
    targets = {10.0: 1.5, 20.0: 5.0, 30.0: 2.0 + 1e-12, 40.0: 3.0, 50.0: 0.0, 60.0: 9.0}
    requests = [(0.0, TINY), (1.0, TINY), (2.0, TINY), (19.0, TINY), (21.0, TINY), (52.0, TINY)]
    run, seen = play(service, TWO, requests, targets, horizon_s=69.0)
    assert [(e.at_s, e.pool, e.replica, e.what, e.why) for e in run.events] == [
        (10.0, 0, 1, "start", "2 should run"),
        *((20.0, 1, k, "start", "3 should run") for k in (2, 3, 4)),
        (25.0, 0, 1, "ready", ""),
        *((30.0, 1, k, "release", "") for k in (4, 3, 2)),
        (40.0, 1, 2, "start", "1 should run"),
        (50.0, 0, 1, "drain", "1 should run"),
        (50.0, 1, 2, "release", ""),
        (50.0, 0, 1, "release", ""),
        (60.0, 0, 1, "start", "2 should run"),
        *((60.0, 1, k, "start", "3 should run") for k in (2, 3, 4)),
        (70.0, 0, 1, "release", ""),
        *((70.0, 1, k, "release", "") for k in (4, 3, 2)),
    ]
    assert [(s.now_s, s.serving, s.starting, s.arrivals, s.since_s) for s in seen] == [
        (10.0, 1, 0, 3, 10.0),
        (20.0, 1, 1, 1, 10.0),
        (30.0, 2, 3, 1, 10.0),
        (40.0, 2, 0, 0, 10.0),
        (50.0, 2, 1, 0, 10.0),
        (60.0, 1, 0, 1, 10.0),
        (70.0, 1, 4, 0, 10.0),
    ]
    assert run.frames[:, :6].tolist() == [
        [0, 1, 0, 0, 0, 2],
        [10, 1, 0, 0, 0, 2],
        [20, 1, 1, 0, 0, 2],
        [30, 2, 3, 0, 0, 5],
        [40, 2, 0, 0, 0, 2],
        [50, 2, 1, 0, 0, 3],
        [60, 1, 0, 0, 0, 2],
        [70, 1, 4, 0, 0, 5],
    ]
    assert run.paid[:, 1].tolist() == [0, 0, 0, 3, 0, 1, 0, 3]
    assert (run.end_s, run.paid_s) == (69.0, (138.0, 30.0 + 10.0 + 3 * 9.0))


def test_a_start_that_was_given_up_is_not_ready_when_it_would_have_been(service):
    """Begun at 10 and at 30 with 25 s each: the first was given up at 20, so 35 s is nobody's moment."""
    run, _ = play(
        service, (pool(1, 2, 25.0),), [(0.0, TINY), (70.0, TINY)], {10.0: 2.0, 30.0: 2.0, 40.0: 2.0, 50.0: 2.0}
    )
    assert [(e.at_s, e.what) for e in run.events][:4] == [
        (10.0, "start"),
        (20.0, "release"),
        (30.0, "start"),
        (55.0, "ready"),
    ]


def test_who_drains_ends_what_it_has_and_takes_nothing_new(service):
    """Both serve a long output; the second is told to go at 20 s, and given back at the first look after its end."""
    run, seen = play(service, (pool(2, 2),), [(0.0, LONG), (0.0, LONG)], {}, horizon_s=1.0)
    assert (run.events, set(run.outcome.machine[:2].tolist())) == ((), {0, 1})
    assert (seen[0].running, seen[0].waiting, seen[0].busy_frac) == (2, 0, pytest.approx(1.0, abs=1e-2))
    run, _ = play(service, (pool(1, 2),), [(11.0, LONG), (11.0, LONG), (21.0, TINY), (22.0, TINY)], {10.0: 2.0})
    (start, ready, drain, release) = run.events
    assert [e.what for e in run.events] == ["start", "ready", "drain", "release"]
    assert (start.at_s, ready.at_s, drain.at_s) == (10.0, 10.0, 20.0)
    last_s = run.outcome.finish_s[run.outcome.machine == 1].max()
    assert 30.0 < last_s <= release.at_s < last_s + 10.0
    assert sorted(run.outcome.machine[:2].tolist()) == [0, 1]
    assert run.outcome.machine[2:].tolist() == [0, 0]
    assert run.frames[run.frames[:, 0] == 30.0, 1:8].tolist() == [[1, 0, 1, 0, 2, 0, 2]]
    assert run.spans[0].start_s == 10.0
    assert run.spans[0].end_s == release.at_s


def test_what_an_autoscaler_sees_of_a_busy_service(service):
    """One output for 20 s on one of two: half busy; its cache is the same share of one replica, whoever is off."""
    _, alone = play(service, (pool(1, 1),), [(0.0, LONG)], {})
    _, idle = play(service, (pool(1, 4),), [(0.0, LONG)], {})
    _, two = play(service, (pool(2, 2),), [(0.0, LONG)], {})
    assert alone[0].busy_frac == pytest.approx(1.0, abs=1e-2)
    assert two[0].busy_frac == pytest.approx(0.5, abs=5e-3)
    assert idle[0].kv_frac == pytest.approx(alone[0].kv_frac)
    assert two[0].kv_frac == pytest.approx(alone[0].kv_frac / 2)
    assert 0.0 < alone[0].kv_frac < alone[1].kv_frac < 0.1
    _, none = play(service, (pool(0, 1, 12.0),), [(0.0, TINY), (5.0, TINY)], {20.0: 1.0, 10.0: 0.0})
    assert [(s.waiting, s.running, s.serving, s.starting, s.busy_frac, s.kv_frac) for s in none[:3]] == [
        (2, 0, 0, 0, 0.0, 0.0),
        (2, 0, 0, 0, 0.0, 0.0),
        (2, 0, 0, 1, 0.0, 0.0),
    ]


def outage(start_s, length_s, zone="b", **law):
    return {"disruptions": Disruptions(outages=(Outage(zone=zone, start_s=start_s, length_s=length_s),), **law)}


ZONED = (pool(2, 3, 6.0, zones=("a", "b")),)  # replicas 0 and 2 in a, 1 in b


def test_what_a_lost_replica_had_is_served_again_or_fails(service):
    """The second of two is lost at 5.5 s for 8 s; the third, which was off, starts in its place at once."""
    requests = [(0.0, LONG), (0.0, LONG), (7.0, TINY)]
    run, _ = play(service, ZONED, requests, **outage(5.5, 8.0))
    assert [(e.at_s, e.replica, e.what) for e in run.events] == [
        (5.5, 1, "zone"),
        (5.5, 2, "start"),
        (11.5, 2, "ready"),
        (13.5, 1, "repaired"),
    ]
    assert run.fates == {"served": 3, "refused": 0, "failed": 0, "unfinished": 0}
    assert sorted(run.outcome.was_lost.tolist()) == [False, False, True]
    assert run.outcome.machine.tolist() == [0, 0, 0]
    assert run.spans[0].end_s == 5.5
    assert {(s.start_s, s.end_s) for s in run.spans[1:]} == {(0.0, run.spans[1].end_s), (5.5, run.spans[1].end_s)}
    dropped, _ = play(service, ZONED, requests, **outage(5.5, 8.0, retries=False))
    assert dropped.fates == {"served": 2, "refused": 0, "failed": 1, "unfinished": 0}
    assert run.frames[0, 1:6].tolist() == [2, 0, 0, 0, 2]


def test_an_outage_finds_replicas_that_start_and_that_are_off(service):
    """In zone a the first serves, and the third is off: both are lost; nothing can start but the second's zone."""
    run, _ = play(service, ZONED, [(0.0, TINY), (30.0, TINY)], **outage(5.0, 10.0, zone="a"))
    assert [(e.at_s, e.replica, e.what) for e in run.events] == [
        (5.0, 0, "zone"),
        (5.0, 2, "start"),
        (5.0, 2, "zone"),
        (15.0, 0, "repaired"),
        (15.0, 0, "start"),
        (15.0, 2, "repaired"),
        (21.0, 0, "ready"),
    ]
    assert [(s.start_s, s.end_s) for s in run.spans[:1]] == [(0.0, 5.0)]
    with pytest.raises(ScenarioError, match="no zone 'c'; the pools have a, b"):
        play(service, ZONED, [(0.0, TINY)], **outage(1.0, 1.0, zone="c"))


def test_without_an_autoscaler_a_service_is_looked_at_every_so_often(service):
    run, _ = play(service, (pool(1, 1),), [(0.0, TINY)], horizon_s=50.0, sample_s=20.0)
    assert run.frames[:, 0].tolist() == [0.0, 20.0, 40.0, 60.0]
    assert (run.end_s, run.events, run.paid_s) == (50.0, (), (50.0,))
    short, _ = play(service, (pool(1, 1),), [(3.0, TINY)])
    assert short.end_s == short.outcome.finish_s[0]  # without a horizon, to the end of the last request


def test_a_run_ends_a_week_after_its_last_request_whoever_still_waits(service):
    """Nothing ever runs: looks every 100,000 s up to 604,800 s after the request of second 4,000, not beyond."""
    never = {100_000.0 * k: 0.0 for k in range(20)}
    run, _ = play(service, (pool(0, 1),), [(4000.0, TINY)], never, period_s=100_000.0)
    assert run.frames[:, 0].tolist() == [100_000.0 * k for k in range(7)]
    assert run.fates == {"served": 0, "refused": 0, "failed": 0, "unfinished": 1}
    assert (run.end_s, run.paid_s, run.events) == (0.0, (0.0,), ())

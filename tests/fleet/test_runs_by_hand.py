"""What a run over days leaves behind, and its hours in steady state, worked out on a few requests and replicas."""

from math import exp, inf, nan
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service import steady
from orrery.fleet.service.replicas import ScaleEvent, Span
from orrery.fleet.service.result import FleetRun
from orrery.fleet.service.rows import Outcome
from orrery.fleet.service.setup import FleetService, PoolTerms, Scaler
from orrery.serving.requests import Requests
from orrery.serving.simulation.tables import _kernel as tables

# reached, admitted, first token, finish, output tokens, status, flags
SERVED = (
    ("good", 0.5, 1.0, 2.0, 3.0, 11, "done", ""),  # TTFT of 2 s and TPOT of 0.1 s, each at its limit
    ("shed", 1.5, nan, nan, nan, 5, "refused", "lost preempted"),
    ("fault", 2.5, nan, nan, nan, 5, "failed", "preempted"),
    ("fault", 3.5, 4.0, 9.0, 9.1, 2, "done", "lost preempted"),
    ("preemption", 4.5, 4.5, 5.0, 7.0, 11, "done", "preempted"),  # TPOT of 0.2 s
    ("cold-start", 10.5, 13.5, 14.0, 14.05, 2, "done", ""),  # 4 s, of them 3 in the queue; a replica starts at 13
    ("queue", 30.5, 33.5, 34.0, 34.05, 2, "done", ""),  # one became ready at 30.5, and the next starts at 33.5
    ("cold-start", 30.5, 33.5, 34.0, 34.05, 2, "done", "parked"),
    ("slow", 20.0, 20.0, 23.0, 23.05, 2, "done", ""),  # no wait at all
    ("slow", 20.0, 21.0, 24.0, 24.05, 2, "done", ""),  # 4.5 s, of them 1 in the queue: too slow without it
    ("slow", 20.0, 23.0, 23.5, 25.5, 11, "done", ""),  # TPOT of 0.2 s, whatever the wait
    ("good", 15.5, 16.0, 16.5, 16.5, 1, "done", ""),  # one token
    ("cold-start", 50.5, nan, nan, nan, 3, "waiting", ""),  # never taken, and a replica starts at 58
)
STATUS = {"done": tables.DONE, "refused": tables.REFUSED, "failed": tables.FAILED, "waiting": tables.WAITING}
EVENTS = (
    (13.0, 0, "start"),
    (14.0, 1, "start"),
    (15.0, 1, "release"),  # given up again
    (18.0, 0, "ready"),
    (25.0, 0, "drain"),
    (26.0, 2, "start"),
    (30.5, 2, "ready"),
    (33.5, 1, "start"),
    (40.0, 1, "ready"),
    (58.0, 0, "start"),  # still starting at the end
)
TERMS = (
    PoolTerms(name="o", replicas_min=0, replicas_max=2, purchase="owned", idle_power_w=100.0, host_power_w=1.0),
    PoolTerms(
        name="r",
        replicas_min=0,
        replicas_max=3,
        purchase="reserved",
        usd_per_s=0.01,
        idle_power_w=10.0,
        host_power_w=2.0,
    ),
    PoolTerms(name="d", replicas_min=0, replicas_max=4, usd_per_s=0.1, idle_power_w=1.0, host_power_w=3.0),
)


def run_of(rows, **limits_s):
    """A run whose requests are those rows; prompts take half a second to the first queue."""
    columns = list(zip(*rows, strict=True))
    times = [np.array(c, dtype=float) for c in columns[1:5]]
    return FleetRun(
        setup=SimpleNamespace(
            limits_s=limits_s,
            terms=TERMS,
            service=SimpleNamespace(entry_s=lambda prompts: 0.0005 * prompts),
            regions=None,
        ),
        requests=Requests(
            arrive_s=times[0] - 0.5, input_tokens=np.full(len(rows), 1000), output_tokens=np.array(columns[5])
        ),
        outcome=Outcome(
            reached_s=times[0],
            admitted_s=times[1],
            first_token_s=times[2],
            finish_s=times[3],
            status=np.array([STATUS[s] for s in columns[6]], dtype=np.int8),
            machine=np.zeros(len(rows), dtype=np.int32),
            preemptions=np.array(["preempted" in f for f in columns[7]], dtype=np.int32),
            cached_tokens=np.zeros(len(rows), dtype=np.int32),
            was_lost=np.array(["lost" in f for f in columns[7]]),
            was_parked=np.array(["parked" in f for f in columns[7]]),
        ),
        events=tuple(ScaleEvent(at_s=at, pool=0, replica=r, what=what) for at, r, what in EVENTS),
        spans=(
            Span(pool=0, start_s=0.0, end_s=5.0),
            Span(pool=1, start_s=10.0, end_s=30.0),
            Span(pool=2, start_s=5.0, end_s=15.0),
            Span(pool=2, start_s=50.0, end_s=70.0),  # the run ends at 60 s
            Span(pool=2, start_s=61.0, end_s=70.0),
        ),
        frames=np.zeros((0, 0)),
        paid=np.zeros((0, 0)),
        end_s=60.0,
        energy_above_idle_j=5.0,
        busy_s=80.0,
        gap_counts=np.zeros(0),
    )


def test_every_miss_has_its_cause():
    run = run_of(SERVED, ttft=2.0, tpot=0.1)
    names = [row[0] for row in SERVED]
    assert run.within.tolist() == [name == "good" for name in names]
    assert list(run.hurt) == ["shed", "fault", "preemption", "cold-start", "power-cap", "queue", "slow"]
    for cause, which in run.hurt.items():
        assert which.tolist() == [name == cause for name in names], cause
    assert run.fates == {"served": 10, "refused": 1, "failed": 1, "unfinished": 1}


def test_latencies_of_a_request_by_hand():
    run = run_of(SERVED[:2])
    assert [run.arrive_s[0], run.ttft_s[0], run.e2el_s[0], run.waited_s[0]] == [0.0, 2.0, 3.0, 0.5]
    assert run.tpot_s[0] == pytest.approx(0.1)
    assert np.isnan([run.ttft_s[1], run.tpot_s[1], run.e2el_s[1]]).all()
    assert run.latency_s("e2el")[0] == 3.0
    assert run_of(SERVED[11:12]).tpot_s.tolist() == [0.0]
    assert run_of(SERVED[:1], e2el=2.9).hurt["queue"].tolist() == [True]  # 2.5 s without the wait
    assert run_of(SERVED[:1], e2el=2.9).within.tolist() == [False]
    assert run_of(SERVED[:2]).within.tolist() == [True, False]  # without limits, whoever was served


def test_money_and_energy_of_three_purchases():
    """Owned 2 x 60 s, reserved 3 x 60 s, on demand 10 + 10 s; the reserved ones draw power only in their 20 s."""
    run = run_of(SERVED)
    assert run.paid_s == (120.0, 180.0, 20.0)
    assert run.powered_s == (120.0, 20.0, 20.0)
    assert run.cost_usd == pytest.approx(1.8 + 2.0)
    assert run.energy_j == pytest.approx(12_000 + 200 + 20 + 5)
    assert run.host_energy_j == pytest.approx(120 + 40 + 60)
    assert run.busy_frac == pytest.approx(0.25)


POOLS = (
    PoolTerms(
        name="a",
        replicas_min=1,
        replicas_max=2,
        purchase="reserved",
        usd_per_s=1.0,
        idle_power_w=10.0,
        host_power_w=5.0,
    ),
    PoolTerms(name="b", replicas_min=0, replicas_max=3, usd_per_s=2.0, idle_power_w=30.0, host_power_w=7.0),
)


@pytest.fixture
def hours(monkeypatch):
    """Hours of two pools; a replica has a TTFT of its rate, ten times that power, and stands no more than 15/s but with
    a backlog."""
    asked = []

    def estimate(_, workload):
        rate = workload.request_rate_per_s
        if not workload.num_requests:
            asked.append((workload.mode, workload.input_tokens, workload.output_tokens, rate))
        if rate > 15.0 and not workload.num_requests:
            return Infeasible(what="rate", need=rate, have=15.0, unit="1/s", smallest_change="wait")
        return SimpleNamespace(
            ttft_s=rate, tpot_s=rate / 100, power_w=rate * 10, rate_used_frac=rate / 15, concurrency=rate / 10
        )

    monkeypatch.setattr(steady, "estimate", estimate)

    def of(rates, running=None, scaler=True, capacity=10.0, router="round-robin"):
        setup = SimpleNamespace(
            terms=POOLS,
            power_cap=None,
            capacity_requests_per_s=capacity,
            scaler=scaler,
            service=SimpleNamespace(
                router=router,
                pools=(SimpleNamespace(deployment=SimpleNamespace(layout=SimpleNamespace(dp=1, pp=1))),),
            ),
        )
        return steady.steady_hours(setup, np.array(rates), 50.0, 7.0, running)

    return SimpleNamespace(of=of, asked=asked)


def test_an_hour_runs_what_its_rate_needs(hours):
    """One of ten a second at 0 and 10/s, three at 24/s, all five at 100/s, where each would have 20."""
    found = hours.of([0.0, 10.0, 24.0, 100.0])
    assert [h.num_replicas for h in found] == [1, 1, 3, 5]
    assert [h.start_s for h in found] == [0.0, 3600.0, 7200.0, 10_800.0]
    assert [h.rate_requests_per_s for h in found] == [0.0, 10.0, 24.0, 100.0]
    assert [h.ttft_s for h in found] == [0.0, 10.0, 8.0, inf]
    assert [h.tpot_s for h in found] == [0.0, 0.1, 0.08, 0.2]
    assert [h.used_frac for h in found] == [0.0, pytest.approx(2 / 3), pytest.approx(8 / 15), 1.0]
    assert [h.power_w for h in found] == [
        20.0,
        100.0,
        240.0,
        1000.0,
    ]  # idle: the mean of 10 and 30 W each; five that are full
    assert [h.host_power_w for h in found] == [5.0, 5.0, 17.0, 31.0]
    assert [h.usd_per_s for h in found] == [2.0, 2.0, 4.0, 8.0]  # both of the reserved pool are paid for always
    assert hours.asked == [("open", 50.0, 7.0, 10.0), ("open", 50.0, 7.0, 8.0), ("open", 50.0, 7.0, 20.0)]


def test_replicas_that_are_kept_equally_full_work_more_of_the_time(hours):
    """0.8 in flight each: one is at work 1 - exp(-0.8) of the time; of three with N = Poisson(2.4) there are
    P(N > 0) + P(N > 1) + P(N > 2) = 0.909 + 0.692 + 0.430 at work. Power above idle (70 W) grows so."""
    assert steady.balanced_frac(0.8, 1.0) == pytest.approx(1 - exp(-0.8))
    three = 3 - exp(-2.4) * (3 + 2 * 2.4 + 2.4**2 / 2)
    assert steady.balanced_frac(0.8, 3.0) == pytest.approx(three / 3)
    both = 0.5 * three / 3 + 0.5 * (4 - exp(-3.2) * (4 + 3 * 3.2 + 2 * 3.2**2 / 2 + 3.2**3 / 6)) / 4
    assert steady.balanced_frac(0.8, 3.5) == pytest.approx(both)
    assert steady.balanced_frac(0.8, 1e4) == pytest.approx(0.8, rel=1e-3)
    assert steady.balanced_frac(50.0, 3.0) == pytest.approx(1.0)
    (found,) = hours.of([24.0], router="least-loaded")
    assert found.power_w == pytest.approx(3 * (10.0 + 70.0 * three / 3 / (1 - exp(-0.8))))
    (one,) = hours.of([8.0], router="least-loaded")
    assert one.power_w == pytest.approx(80.0)


def test_hours_of_a_fixed_service_and_of_a_run(hours):
    assert [h.num_replicas for h in hours.of([0.0, 12.0, 24.0], scaler=None)] == [1, 1, 1]
    found = hours.of([6.0, 6.0, 0.0], running=np.array([1.5, 0.0]))
    assert [h.num_replicas for h in found] == [1.5, 0.0, 0.0]
    assert [h.ttft_s for h in found] == [4.0, 0.0, 0.0]
    assert [h.host_power_w for h in found] == [5.0 + 2.5, 5.0, 5.0]


def test_contradictory_fleets_are_refused():
    for wrong, words in (
        ({"replicas_min": 3}, "exclude"),
        ({"replicas_min": -1}, "exclude"),
        ({"replicas_min": 0, "replicas_max": 0}, "at least 1"),
        ({"cold_start_s": -1.0}, "seconds from 0"),
        ({"cold_start_s": nan}, "seconds from 0"),
    ):
        with pytest.raises(ScenarioError, match=words):
            PoolTerms(**({"name": "p", "replicas_min": 0, "replicas_max": 2} | wrong))
    assert PoolTerms(name="p", replicas_min=1, replicas_max=1).is_committed is False
    pools = (SimpleNamespace(replicas=2, role="all"),)
    (plain, lending) = (SimpleNamespace(pools=pools, own_pools=pools, lends_cache=lends) for lends in (False, True))
    two = PoolTerms(name="p", replicas_min=1, replicas_max=2)
    scaler = Scaler(name="s", rule=lambda *_: 1.0, knobs=None, period_s=7.0)
    assert (FleetService(service=plain, terms=(two,)).pace_s) == 15.0
    assert (FleetService(service=plain, terms=(two,), scaler=scaler).pace_s) == 7.0
    assert FleetService(service=lending, terms=(two,)).wait_limit_s == inf
    with pytest.raises(ScenarioError, match="start and stop together"):
        FleetService(service=lending, terms=(two,), scaler=scaler)
    with pytest.raises(ScenarioError, match="1 serve and 2 have terms"):
        FleetService(service=plain, terms=(two, two))
    with pytest.raises(ScenarioError, match="2 replicas serve and replicas_max = 1"):
        FleetService(service=plain, terms=(PoolTerms(name="p", replicas_min=1, replicas_max=1),))

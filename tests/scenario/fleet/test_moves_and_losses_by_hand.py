"""Caches that move between regions, pools' ranges, and the search for a fleet that survives: worked out by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.regions.moves import HeldElsewhere, Moves, WideArea
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet import build, cache_moves, origins, regret
from orrery.scenario.fleet.loss_tries import Tries, ZoneTries
from orrery.serving.simulation.tables import _kernel as tables

NAN = float("nan")
DONE = tables.DONE


def asked(after, region, cached, status=None, prompt=(10, 100, 100, 100), output=(5, 5, 5, 5)):
    """Requests, each after another one or none."""
    count = len(region)
    return SimpleNamespace(
        requests=SimpleNamespace(
            after=np.array(after, dtype=np.int64),
            count=count,
            input_tokens=np.array(prompt[:count]),
            output_tokens=np.array(output[:count]),
        ),
        outcome=SimpleNamespace(
            region=np.array(region),
            cached_tokens=np.array(cached),
            status=np.full(count, DONE) if status is None else np.array(status),
        ),
    )


def test_what_another_region_holds_of_a_prompt():
    """A turn's prompt and output, but never the whole of the next prompt: 15 tokens, 105 cut to 99, and 15."""
    run = asked([-1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0])
    picked, tokens = cache_moves._held_elsewhere(run)
    assert cache_moves._holders(run).tolist() == [-1, 0, 1, 0]
    assert (picked.tolist(), tokens.tolist()) == ([1, 2], [15, 99])
    held = asked([-1, 0, 1, 0], [0, 1, 0, 0], [0, 15, 98, 0])
    assert cache_moves._held_elsewhere(held)[0].tolist() == [2]  # as much is there already
    failed = asked([-1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [DONE, DONE, tables.FAILED, DONE])
    assert cache_moves._held_elsewhere(failed)[0].tolist() == [1]
    alone = asked([], [0, 1], [0, 0])
    assert cache_moves._holders(alone).tolist() == [-1, -1]
    assert cache_moves._held_elsewhere(alone)[0].tolist() == []


@pytest.fixture
def lines(monkeypatch):
    """A prompt of n tokens takes 1 + n / 100 s, and its cache 10 bytes a token."""
    monkeypatch.setattr(cache_moves, "ttft_alone_s", lambda deployment, tokens: 1.0 + tokens / 100.0)
    monkeypatch.setattr(cache_moves, "kv_bytes", lambda deployment, tokens: 10.0 * tokens)


def placed(run):
    """Two regions of one pool each; the first costs 2 $/s."""
    regions = SimpleNamespace(regions=(SimpleNamespace(name="eu"), SimpleNamespace(name="us")))
    pools = [SimpleNamespace(deployment="in eu"), SimpleNamespace(deployment="in us")]
    run.setup = SimpleNamespace(
        regions=regions,
        region_numbers=[0, 1],
        service=SimpleNamespace(own_pools=pools),
        terms=[SimpleNamespace(usd_per_s=2.0), SimpleNamespace(usd_per_s=3.0)],
    )
    return run


def test_lengths_of_prompts_are_a_quarter_octave_apart(lines):
    """From 16 tokens past 40, which is 1.32 octaves up: 6 steps are 1.5 octaves, and one more stands behind."""
    lengths, times = cache_moves._prompt_times("any", 40.0)
    assert lengths == pytest.approx(16.0 * 2.0 ** (np.arange(8) / 4))
    assert times == pytest.approx((lengths - 16.0) / 100.0)
    shortest, _ = cache_moves._prompt_times("any", 1.0)
    assert shortest[-1] >= 32.0  # an octave at least
    assert shortest.size <= 7


def test_computing_again_is_what_is_held_less_what_is_there(lines):
    """From 20 to 100 tokens, in one region, and from 0, which counts as 16, to 50 in the other."""
    run = placed(asked([-1, 0], [0, 1], [20, 0]))
    again, sizes = cache_moves._computed_again(run, np.array([0, 1]), np.array([100.0, 50.0]))
    assert again == pytest.approx([0.8, (50 - 16) / 100])
    assert sizes == pytest.approx([800, 500])


def test_where_moving_begins_to_pay(lines):
    """n tokens save (n - 16) / 100 s and take 0.1 s and n / 1000: from 0.26 / 0.009 = 28.9 tokens; none by 20."""
    assert cache_moves.shortest_moved("any", 0.1, 1e4, 100.0) == pytest.approx(0.26 / 0.009)
    assert cache_moves.shortest_moved("any", 1.0, 1e4, 20.0) is None
    assert cache_moves.shortest_moved("any", 0.0, 1e30, 20.0) == pytest.approx(16.0, abs=1e-6)
    assert cache_moves.shortest_moved("any", -1.0, 1e9, 20.0) == 16.0  # at once


def test_what_moves_save_and_cost(lines):
    """Three caches, two of which move: 5 - 2 s and 4 - 3 s are saved of 5, 4 and 6 s of computing at 2, 3 and 3 $/s."""
    run = placed(asked([-1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]))
    run.ttft_s, run.end_s = np.array([1.0, 10.0, NAN, 20.0]), 40.0
    held = HeldElsewhere(
        asked_s=np.zeros(3),
        holder=np.array([1, 0, 0]),
        region=np.array([0, 1, 1]),
        size_bytes=np.array([100.0, 50.0, 500.0]),
        again_s=np.array([5.0, 4.0, 6.0]),
    )
    done = Moves(
        is_moved=np.array([True, True, False]),
        move_s=np.array([2.0, 3.0, 9.0]),
        wait_s=np.array([0.5, 1.5, 7.0]),
        busy_s={(1, 0): 8.0, (0, 1): 2.0},
    )
    area = WideArea(way="sooner", bytes_per_s=10.0, round_trip_s=np.array([[0, 1.0], [1.0, 0]]), usd_per_byte=0.5)
    found = cache_moves._summary(run, area, np.array([1, 2, 3]), np.array([30.0, 20.0, 60.0]), held, done)
    assert (found.num_elsewhere, found.num_moved, found.moved_bytes, found.egress_usd) == (3, 2, 150.0, 75.0)
    assert (found.mean_wait_s, found.mean_move_s, found.mean_again_s) == (1.0, 2.5, 5.0)
    assert found.mean_saved_s == pytest.approx(4 / 3)
    assert (found.busiest_link_frac, found.prefill_spared_s, found.prefill_spared_usd) == (0.2, 9.0, 5 * 2 + 4 * 3)
    assert found.p99_ttft_s == pytest.approx(10 + 0.98 * 10)
    assert found.p99_ttft_moved_s == pytest.approx(7 + 0.98 * 13)  # 1, 10 - 3 and 20
    to_us, to_eu = found.break_even
    assert (to_us.holder, to_us.region, to_us.num_requests, to_us.cache_tokens) == ("eu", "us", 2, 40.0)
    assert (to_us.again_s, to_us.above_bytes_per_s) == (5.0, pytest.approx(275 / 4))
    assert (to_eu.holder, to_eu.num_requests, to_eu.above_bytes_per_s) == ("us", 1, 25.0)
    far = replace(area, round_trip_s=np.array([[0, 5.0], [5.0, 0]]), usd_per_byte=None)
    none = cache_moves._summary(run, far, np.array([1, 2, 3]), np.array([30.0, 20.0, 60.0]), held, done)
    assert none.egress_usd is None
    assert [row.above_bytes_per_s for row in none.break_even] == [None, None]


# --- ranges of pools


def ends(low=None, high=None, fixed=None, top_low=None, top_high=None):
    block = SimpleNamespace(replicas_min=low, replicas_max=high)
    top = SimpleNamespace(replicas_min=top_low, replicas_max=top_high)
    scenario = SimpleNamespace(replicas=fixed)
    return build._range(SimpleNamespace(top=top), block, scenario, "replicas")


def test_the_range_of_a_pool():
    """Its own ends, else the fleet's; one end alone makes the other as near as it can be."""
    assert ends() is None
    assert ends(fixed=3) == (3, 3)
    assert ends(2, 5) == ends(2, top_high=5) == ends(top_low=2, top_high=5) == (2, 5)
    assert ends(0, 0, top_low=2, top_high=5) == (0, 0)
    assert ends(low=0) == (0, 1)
    assert ends(low=4) == (4, 4)
    assert ends(high=0) == (0, 0)
    assert ends(high=7) == (1, 7)
    with pytest.raises(ScenarioError, match="excludes replicas_min"):
        ends(low=1, fixed=2)


def pools(*roles_and_ends):
    kinds = [SimpleNamespace(role=role) for role, _, _ in roles_and_ends]
    return kinds, [SimpleNamespace(replicas_min=a, replicas_max=b) for _, a, b in roles_and_ends]


@pytest.mark.parametrize(
    ("listed", "scalers", "starts"),
    [
        ([("all", 1, 1)], ("", ""), []),
        ([("all", 1, 1), ("all", 1, 3)], ("", ""), ["autoscaler: none is given"]),
        ([("all", 1, 1), ("all", 1, 3)], ("hpa", ""), []),
        ([("all", 2, 2)], ("hpa", ""), ["autoscaler: hpa has nothing to decide"]),
        (
            [("prompts", 1, 4), ("answers", 2, 2)],
            ("hpa", ""),
            ["autoscaler: hpa has nothing", "prefill_autoscaler: none"],
        ),
        ([("prompts", 1, 4), ("answers", 1, 2)], ("hpa", "hpa"), []),
    ],
)
def test_ranges_that_nobody_uses_are_noted(listed, scalers, starts):
    inputs = SimpleNamespace(autoscaler=scalers[0], prefill_autoscaler=scalers[1], faults=None)
    notes = build._scaler_notes(inputs, *pools(*listed))
    assert len(notes) == len(starts)
    assert all(note.startswith(start) for note, start in zip(notes, starts, strict=True))


def test_a_range_is_used_by_faults_too():
    inputs = SimpleNamespace(autoscaler="", prefill_autoscaler="", faults={"node_mtbf_s": 1.0})
    assert build._scaler_notes(inputs, *pools(("all", 1, 3))) == ()


def setup_of(scaler, prefill_scaler, *listed):
    kinds, terms = pools(*listed)
    own = SimpleNamespace(own_pools=kinds)
    return SimpleNamespace(service=own, terms=terms, scaler=scaler, prefill_scaler=prefill_scaler)


def test_replicas_that_nobody_starts_are_refused():
    build.check_runs(setup_of(None, None, ("all", 0, 2), ("all", 1, 1)))
    build.check_runs(setup_of("hpa", None, ("all", 0, 2)))
    build.check_runs(setup_of(None, "hpa", ("prompts", 0, 2), ("answers", 1, 2)))
    with pytest.raises(ScenarioError, match="replicas_min: got 0 and no autoscaler"):
        build.check_runs(setup_of(None, None, ("all", 0, 2)))
    with pytest.raises(ScenarioError, match="prefill_replicas_min: got 0 and no prefill_autoscaler"):
        build.check_runs(setup_of("hpa", None, ("prompts", 0, 2), ("answers", 0, 2)))


# --- origins of conversations


def test_followers_have_the_first_ones_origin():
    """Request 3 follows 2, which follows 0; 1 and 4 are of one session."""
    plain = SimpleNamespace(count=5, session=np.zeros(0), after=np.zeros(0))
    assert origins._firsts(plain).tolist() == [0, 1, 2, 3, 4]
    followed = SimpleNamespace(count=5, session=np.zeros(0), after=np.array([-1, -1, 0, 2, -1]))
    assert origins._firsts(followed).tolist() == [0, 1, 0, 0, 4]
    sessions = SimpleNamespace(count=5, session=np.array([7, 3, -1, -1, 3]), after=np.zeros(0))
    assert origins._firsts(sessions).tolist() == [0, 1, 2, 3, 1]
    both = SimpleNamespace(count=5, session=np.array([0, 3, -1, -1, 3]), after=np.array([-1, -1, -1, 2, 2]))
    assert origins._firsts(both).tolist() == [0, 1, 2, 2, 2]


# --- regret


def scaled(**more):
    """A region of one pool of 1 to 4 replicas, one request a second each; 90 s with requests in both minutes."""
    deployment = SimpleNamespace(cluster=SimpleNamespace(device=SimpleNamespace(name="a")), layout=1)
    terms = [SimpleNamespace(replicas_min=1, replicas_max=4, cold_start_s=0.0)]
    span = lambda pool, start_s, end_s: SimpleNamespace(pool=pool, start_s=start_s, end_s=end_s)  # noqa: E731
    run = SimpleNamespace(
        setup=SimpleNamespace(
            service=SimpleNamespace(own_pools=[SimpleNamespace(deployment=deployment)]), terms=terms, regions=None
        ),
        end_s=90.0,
        spans=[span(0, 0.0, 60.0), span(0, 80.0, 999.0), span(0, 95.0, 999.0), span(1, 0.0, 90.0)],
        arrive_s=np.concatenate([np.arange(120) / 2.0, [NAN]]),
        outcome=SimpleNamespace(region=np.array([0] * 60 + [1] * 61)),
    )
    usual = {"run": run, "region": 0, "pools": (0,), "capacity_requests_per_s": 1.0}
    return regret._Scaled(**usual | more)


def test_replica_seconds_against_the_cheapest_schedule():
    """60 s and the last 10 s ran. Two requests a second in the first minute take two replicas, in the second one stays:
    180 s of two whole minutes, of which the run has three quarters."""
    one = scaled()
    assert one.paid_s == 70.0
    assert one.cheapest_s == pytest.approx((2 * 60 + 60) * 90 / 120)
    assert one.is_known
    assert not scaled(capacity_requests_per_s=0.0).is_known
    assert regret.Regret(paid_s=150.0, cheapest_s=100.0).regret_frac == 0.5
    assert regret.Regret(paid_s=150.0, cheapest_s=0.0).regret_frac == 0.0
    plain = regret.Regret(paid_s=3.0, cheapest_s=2.0, phases={"prefill": regret.Regret(paid_s=1.0, cheapest_s=1.0)})
    assert plain.to_json()["phases"] == {"prefill": {"paid_s": 1.0, "cheapest_s": 1.0, "regret_frac": 0.0}}
    assert "phases" not in regret.Regret(paid_s=1.0, cheapest_s=1.0).to_json()


def test_a_region_s_schedule_is_for_the_requests_that_were_sent_there():
    """Half of the requests, one a second for a minute: one replica."""
    one = scaled()
    one.run.setup.regions = "two"
    one.run.outcome.region = np.array([0, 1] * 60 + [0])
    assert one.cheapest_s == pytest.approx(120 * 90 / 120)


# --- losses


class Known(Tries):
    """A fleet that meets its SLOs from so many replicas on, without and with its loss."""

    def __init__(self, needs, needs_lost, start=1, least=1):
        scenario = SimpleNamespace(slo=["ttft:1000"], attainment=0.9)
        super().__init__(SimpleNamespace(scenario=scenario))
        self.needs, self.least, self._start, self.tried = {False: needs, True: needs_lost}, least, start, []

    def cases(self, replicas, *, lost):
        return [{"replicas": replicas, "lost": lost}]

    def _simulated(self, plain, key):
        self.tried.append(key)
        return {"ttft": 0.9 if plain["replicas"] >= self.needs[plain["lost"]] else 0.89}


@pytest.mark.parametrize("needs", [1, 2, 3, 6, 13, 64])
@pytest.mark.parametrize("start", [1, 4, 20])
def test_the_fewest_replicas_are_found_from_below_and_above(needs, start):
    assert Known(needs, needs + 1).fewest(lost=False) == needs
    assert Known(1, needs).fewest(lost=True, start=start) == max(needs, start)
    assert Known(needs, 1, start=start).fewest(lost=False) == needs  # a first guess that is too high
    assert Known(1, needs, least=start).fewest(lost=True) == max(needs, start)


def test_every_fleet_is_simulated_once_and_the_found_one_without_its_loss_too():
    tries = Known(2, 5)
    assert tries.fewest(lost=True, start=2) == 5
    assert len(tries.tried) == len(set(tries.tried))
    assert (5, False) in tries.tried
    assert not Known(2, 5).meets(4, lost=True)
    with pytest.raises(ScenarioError, match="4,096 replicas do not meet"):
        Known(10_000, 1).fewest(lost=False)


def test_the_worst_loss_counts_and_what_does_not_fit_meets_nothing():
    class Several(Known):
        def cases(self, replicas, *, lost):
            return [{"ttft": 0.95}, {"ttft": 0.91}, {"ttft": 0.99}]

        def _simulated(self, plain, key):
            return plain

    assert Several(1, 1).at(1, lost=True) == {"ttft": 0.91}
    assert Several(1, 1).meets(1, lost=True)
    lacks = InfeasibleAnswer(
        infeasible=Infeasible(what="memory", need=2.0, have=1.0, unit="bytes", smallest_change=""), settings={}
    )
    full = Several(1, 1)
    full._simulated = lambda plain, key: lacks
    assert full.at(1, lost=False) is lacks
    assert not full.meets(1, lost=False)


def test_the_busiest_stretch_of_a_fleet_that_loses_its_first_zone_or_replica():
    """600 s before, 1200 s of loss and 300 s after are 2100 / 86,400 of a day."""
    block = SimpleNamespace(cold_start_s=None)
    pool = SimpleNamespace(scenario=SimpleNamespace(written=dict), block=block)
    inputs = SimpleNamespace(
        scenario=SimpleNamespace(written=lambda: {"model": "m"}, trace=None),
        pools=[pool],
        top=SimpleNamespace(cold_start_s=7.0),
    )
    zones = ZoneTries(inputs, ("a", "b"), "zone", 5.0)
    (whole,), (hurt,) = zones.cases(3, lost=False), zones.cases(3, lost=True)
    assert (whole["zones"], whole["outage"], whole["rate"], whole["replicas"]) == ("a,b", None, 5.0, 3)
    assert (whole["model"], whole["cold_start_s"]) == ("m", 7.0)
    assert whole["days"] == pytest.approx(2100 / 86400)
    assert hurt["outage"] == [{"zone": "a", "start_s": 600.0, "length_s": 1200.0}]
    block.cold_start_s = 3.0
    (each,) = ZoneTries(inputs, ("a", "b"), "replica", 5.0).cases(3, lost=True)
    assert (each["zones"], each["outage"][0]["zone"], each["cold_start_s"]) == ("r0,r1,r2", "r0", 3.0)

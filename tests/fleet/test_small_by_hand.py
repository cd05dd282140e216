"""Sessions, hours, games, federations, faults and rows of a service, each on a case of a few numbers."""

from math import nan
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.agents.turns import Turns, shape_of, started
from orrery.fleet.decentral import COMPRESSORS
from orrery.fleet.decentral.saddle import Game, compressed, extragradient
from orrery.fleet.federated import FEDERATED
from orrery.fleet.federated.techniques import federated_compass as compass
from orrery.fleet.hours.shift import Hours, Job, at_once, shifted
from orrery.fleet.money import first_month_cheaper
from orrery.fleet.service.controller import TAKEN, FleetController
from orrery.fleet.service.disruptions import Disruption, Disruptions, Exposure, drawn
from orrery.fleet.service.hindsight import cheapest, demand_of
from orrery.fleet.service.registry import scaler_of
from orrery.fleet.service.replicas import LOST, OFF, SERVING, STARTING
from orrery.fleet.service.rows import RequestRows
from orrery.fleet.service.signals import Sample, Signals
from orrery.scenario.experiment import run_experiment
from orrery.serving.simulation.tables import _kernel as tables


def turns(rows):
    """Rows of (second, session, chain, prompt, output, shared, pause)."""
    at, session, chain, prompt, output, shared, think = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (session, chain, prompt, output, shared)]
    return Turns(
        at_s=np.array(at, dtype=float),
        session=whole[0],
        chain=whole[1],
        input_tokens=whole[2],
        output_tokens=whole[3],
        shared_tokens=whole[4],
        think_s=np.array(think, dtype=float),
    )


SESSIONS = turns(
    [
        (0.0, 0, 0, 100, 9, 0, 0.0),
        (0.0, 1, 1, 300, 8, 0, 0.0),
        (5.0, 0, 0, 160, 7, 100, 1.0),  # grows by 60
        (6.0, 0, 2, 40, 6, 0, 0.0),  # a sub-agent
        (9.0, 1, 1, 300, 5, 149, 3.0),  # keeps less than half of 300, and does not grow
        (10.0, 1, 1, 320, 4, 150, 7.0),  # keeps half; grows by 20
    ]
)


def test_what_sessions_are_like():
    found = shape_of(SESSIONS)
    assert (found.num_sessions, found.num_turns, found.num_chains, found.turns_per_session_p50) == (2, 6, 3, 3)
    assert (found.input_p50_tokens, found.input_p99_tokens) == (230.0, 319.0)  # 160 to 300; 300 to 320 at 4.95 of 5
    assert found.growth_mean_tokens == 40.0
    assert found.compacted_frac == pytest.approx(1 / 3)
    assert (found.think_p50_s, found.think_p90_s) == (3.0, pytest.approx(6.2))
    assert found.shared_frac == pytest.approx(399 / 1220)
    first = shape_of(turns([(0.0, 0, 0, 10, 1, 0, 0.0)]))
    assert (first.growth_mean_tokens, first.compacted_frac, first.think_p50_s, first.think_p90_s) == (0, 0, 0, 0)


def test_a_session_begins_later_and_keeps_its_turns():
    found = started(SESSIONS, 0.01, 5)
    assert (np.diff(found.at_s) >= 0.0).all()
    begins = {s: found.at_s[found.session == s][0] for s in (0, 1)}
    assert min(begins.values()) > 0.0
    assert found.at_s[found.session == 0] - begins[0] == pytest.approx([0.0, 5.0, 6.0])
    assert found.at_s[found.session == 1] - begins[1] == pytest.approx([0.0, 9.0, 10.0])
    for session, want in ((0, [(0, 100, 9, 0, 0), (0, 160, 7, 100, 1), (2, 40, 6, 0, 0)]),):
        mine = found.session == session
        columns = (found.chain, found.input_tokens, found.output_tokens, found.shared_tokens, found.think_s)
        assert list(zip(*(c[mine].tolist() for c in columns), strict=True)) == want


def hours(base_w=(0.0, 0.0, 0.0)):
    return Hours(
        length_s=100.0,
        base_w=np.array(base_w),
        usd_per_j=np.array([3.0, 1.0, 2.0]),
        carbon_g=np.array([0.0, 5.0, 0.5]),
    )


def test_work_goes_to_the_cheapest_hour_with_its_carbon_priced():
    """5000 J at up to 60 W in stretches of 100 s: 50 W in the cheapest one, 20 % more at the meter."""
    job = Job(name="j", energy_j=5000.0, first=0, last=3, limit_w=60.0)
    cheap = shifted(hours(), [job], 100.0, 1.2, 0.0)
    assert cheap.job_w == pytest.approx(np.array([[0.0, 50.0, 0.0]]))
    assert (cheap.usd, cheap.carbon_g) == (pytest.approx(6000.0), pytest.approx(30_000.0))
    clean = shifted(hours(), [job], 100.0, 1.2, 0.5)  # 3, 3.5 and 2.25
    assert clean.job_w == pytest.approx(np.array([[0.0, 0.0, 50.0]]))
    assert (clean.usd, clean.carbon_g) == (pytest.approx(12_000.0), pytest.approx(3000.0))
    assert at_once(hours(), [job], 100.0, 1.2).job_w == pytest.approx(np.array([[50.0, 0.0, 0.0]]))
    full = shifted(hours((0.0, 80.0, 0.0)), [job], 100.0, 1.0, 0.0)  # 20 W are left in the second
    assert full.job_w == pytest.approx(np.array([[0.0, 20.0, 30.0]]))
    early = Job(name="e", energy_j=7000.0, first=0, last=2, limit_w=60.0)
    assert shifted(hours(), [early], 100.0, 1.0, 0.0).job_w == pytest.approx(np.array([[10.0, 60.0, 0.0]]))
    both = shifted(hours(), [early, job], 100.0, 1.0, 0.0)
    assert both.job_w.sum(axis=1) == pytest.approx([70.0, 50.0])
    assert both.job_w.sum(axis=0) == pytest.approx([10.0, 100.0, 10.0])
    assert shifted(hours((50.0, 90.0, 0.0)), [early], 100.0, 1.0, 0.0) is None


def one(num_workers=1):
    return Game(
        matrices=np.ones((num_workers, 1, 1)),
        offsets=-np.ones((num_workers, 1)),
        solution=np.array([1.0]),
        steepness_ratio=1.0,
    )


def test_bits_that_go_up_alone_and_of_some_of_the_workers():
    """A reference that always moves: 32 bits first, then 32 of the difference and 32 of the new reference a step."""
    technique = COMPRESSORS.get("send-all")
    given = {"remembers": False, "step_ratio": 0.5, "num_steps": 2, "until_frac": 0.0}
    up = compressed(one(), technique, technique.knobs(), move_frac=1.0, compresses_down=False, **given)
    assert up.num_bits.tolist() == [32.0, 96.0, 160.0]
    assert up.error_frac.tolist() == [1.0, 0.5625, 0.31640625]
    some = compressed(one(4), technique, technique.knobs(), move_frac=0.0, participating_frac=0.25, **given)
    assert some.num_bits.tolist() == [64.0, 104.0, 144.0]  # of 32 up a quarter, and 32 down
    assert some.error_frac.tolist() == [1.0, 0.5625, 0.390625]


def test_a_game_is_lost_beyond_a_million_times_its_first_error():
    """A step s multiplies the distance by s² - s + 1: 993 squared is below a million, 1100 squared is above."""
    assert extragradient(one(), 32.0, 3, 0.0).error_frac.size == 3
    assert extragradient(one(), 33.6536, 3, 0.0).error_frac.tolist() == [1.0, pytest.approx(1.21e6, rel=1e-3)]


def test_a_client_joins_the_group_that_lets_it_take_most_steps():
    """Groups due at 2, 10 and 30 s: two steps, ten, or more than the most of twelve."""
    groups = [compass._Group(due_s=due_s, fastest_s=2.0, num_away=1) for due_s in (2.0, 10.0, 30.0)]
    knobs = FEDERATED.get("federated-compass").knobs(num_least=2, num_most=12)
    steps, group = compass._turn(groups, SimpleNamespace(step_s=(5.0, 1.0)), knobs, 1, 0.0)
    assert (steps, group) == (10, groups[1])
    assert group.fastest_s == 1.0
    # the other one: 6 fit by 30 s, 2 by 10 s
    assert compass._turn(groups, SimpleNamespace(step_s=(5.0, 1.0)), knobs, 0, 0.0) == (6, groups[2])


@pytest.mark.parametrize(
    ("name", "knob", "least", "most"),
    [
        ("federated-average", "num_steps", 1, 100_000),
        ("federated-async", "num_steps", 1, 100_000),
        ("federated-compass", "num_most", 20, 100_000),
    ],
)
def test_ends_of_the_ranges_of_schedules(name, knob, least, most):
    knobs = FEDERATED.get(name).knobs
    assert getattr(knobs(**{knob: least}), knob) == least
    assert getattr(knobs(**{knob: most}), knob) == most
    for wrong in (least - 1, most + 1):
        with pytest.raises(ScenarioError, match=knob):
            knobs(**{knob: wrong})


def test_only_spot_replicas_are_called_back():
    exposed = [Exposure(num_devices=1, num_nodes=1, is_spot=k == 2, zone="") for k in range(4)]
    found = drawn(Disruptions(spot_mtbi_s=100.0, spot_notice_s=2.0), exposed, 1000.0, 0)
    assert {(d.replica, d.cause, d.notice_s, d.length_s) for d in found} == {(2, "spot", 2.0, 600.0)}
    assert all(0.0 < d.at_s <= 1000.0 for d in found)
    assert [d.at_s for d in found] == sorted(d.at_s for d in found)


def test_demand_of_the_last_period_holds_what_comes_at_the_end():
    arrivals = np.array([0.0, 9.9, 10.0, 19.9, 20.0, 25.0, 30.0, 31.0])
    assert demand_of(arrivals, 0.1, 10.0, 30.0, 9).tolist() == [2, 2, 4]
    assert demand_of(arrivals, 0.15, 10.0, 30.0, 9).tolist() == [2, 2, 3]  # 4 over 1.5 a period
    assert demand_of(np.array([0.5]), 0.1, 10.0, 0.0, 9).tolist() == [1]


def test_a_schedule_by_hand_with_a_least():
    """Demand 0 3 1 of 10 s, a start of 15 s, one always: the second and third need 10 s and 10 s of their start."""
    found = cheapest(np.array([0, 3, 1]), 10.0, 15.0, least=1)
    assert found.paid_s.tolist() == [30.0, 20.0, 20.0]
    assert (found.running.tolist(), found.starts, found.total_s) == ([3, 3, 1], 2, 70.0)
    late = cheapest(np.array([0, 0, 1, 0]), 10.0, 15.0)
    assert (late.paid_s.tolist(), late.running.tolist()) == ([25.0], [1, 1, 1, 0])
    assert cheapest(np.array([0, 0]), 10.0, 15.0).paid_s.size == 0


def test_recent_latencies_count_from_the_way_in():
    """A first token at 9 s of what reached its queue at 5 after half a second: 4.5 s; 10 more tokens in 5 s."""
    when, req = np.full((4, 16), nan), np.zeros((4, 32), dtype=np.int64)
    when[:, tables.ARRIVED_S] = [5.0, 1.0, 1.0, 8.0]
    when[:, tables.FIRST] = [9.0, 2.0, 2.0, nan]
    when[:, tables.FINISH] = [14.0, 7.9, 9.0, nan]
    req[:, tables.INPUT] = [1000, 1000, 1000, 1000]
    req[:, tables.OUTPUT] = [11, 11, 1, 5]
    rows = SimpleNamespace(
        world=SimpleNamespace(when=when, req=req), _service=SimpleNamespace(entry_s=lambda prompts: 0.0005 * prompts)
    )
    ttft_s, tpot_s = RequestRows.recent(rows, 8.0)
    assert (ttft_s.tolist(), tpot_s.tolist()) == ([4.5], [0.5])
    ttft_s, tpot_s = RequestRows.recent(rows, 2.0)
    assert ttft_s.tolist() == [4.5, 1.5, 1.5]
    assert tpot_s == pytest.approx([0.5, 0.59])


def test_the_first_month_that_is_cheaper():
    def way(*cash_usd):
        return SimpleNamespace(cash_usd=cash_usd)

    assert first_month_cheaper(way(1, 9, 9), way(2, 3, 4)) == 1
    assert first_month_cheaper(way(9, 9, 3), way(2, 3, 4)) == 3


def seen_at(now_s, by_minute, past=None):
    """Signals of a service at a moment, quiet but for the arrivals of those minutes."""
    found = Signals(
        replicas_min=0,
        replicas_max=99,
        cold_start_s=60.0,
        capacity_requests_per_s=10.0,
        limits_s={},
        recent=lambda _: (np.zeros(0), np.zeros(0)),
        past=past,
    )
    found.add(
        Sample(
            now_s=now_s,
            serving=1,
            starting=0,
            waiting=0,
            running=0,
            arrivals=0,
            since_s=60.0,
            busy_frac=0.0,
            kv_frac=0.0,
        )
    )
    found.by_minute.update(by_minute)
    return found


def test_the_rate_of_some_time_ago():
    """Two minutes before 300 s is 180 s: a width of 60 touches the minutes 2 and 3, of 180 those from 1 to 4."""
    found = seen_at(300.0, {0: 60, 1: 120, 2: 180, 3: 240, 4: 60})
    assert found.rate_before(120.0, 60.0) == 3.5
    assert found.rate_before(120.0, 180.0) == 2.5
    assert found.rate_before(240.0, 120.0) == 2.0  # from the start: minutes 0, 1 and 2
    assert np.isnan(found.rate_before(241.0, 120.0))
    earlier = seen_at(300.0, {}, (np.array([-120.0, -60.0]), np.array([1.0, 4.0])))
    assert [earlier.rate_before(ago, 60.0) for ago in (390.0, 420.0, 360.0, 345.0)] == [2.5, 1.0, 4.0, 4.0]
    assert np.isnan(earlier.rate_before(421.0, 60.0))
    assert np.isnan(seen_at(300.0, {}, (np.zeros(0), np.zeros(0))).rate_before(421.0, 60.0))


def test_a_season_ago_is_ten_minutes_wide():
    """An hour less two minutes before 7200 s is 3720 s: the minutes from 57 to 67, at 17.6/s of 8/s each."""
    scaler = scaler_of("predictive", {"season_s": "3600"})
    inside = dict.fromkeys(range(57, 68), 1056)
    assert scaler.rule(seen_at(7200.0, inside), scaler.knobs) == 3.0
    assert scaler.rule(seen_at(7200.0, inside | {56: 9999, 68: 9999}), scaler.knobs) == 3.0
    assert scaler.rule(seen_at(7200.0, inside | {57: 1056 + 11 * 60 * 7}), scaler.knobs) == 4.0  # 24.6/s


def test_rows_are_free_when_their_request_has_ended_and_holds_nothing():
    """Done, refused and failed ones are copied out once; one that still holds blocks, or waits, is not."""
    req = np.zeros((6, 32), dtype=np.int64)
    req[:, tables.STATUS] = [tables.DONE, tables.REFUSED, tables.FAILED, tables.WAITING, tables.DONE, tables.DONE]
    req[:, tables.BLOCKS] = [0, 0, 0, 0, 3, 0]
    copied = []
    rows = SimpleNamespace(
        world=SimpleNamespace(req=req),
        _is_free=np.array([False, False, False, False, False, True]),
        _copy_out=lambda which: copied.extend(which.tolist()),
    )
    RequestRows._collect(rows)
    assert copied == [0, 1, 2]
    assert rows._is_free.tolist() == [True, True, True, False, False, True]


@pytest.mark.parametrize(
    ("cause", "notice_s", "state", "is_committed", "done"),
    [
        ("spot", 0.5, SERVING, False, ["drain", "planned 10.5"]),  # however short, it is told
        ("spot", 0.0, SERVING, False, ["taken"]),
        ("spot", 30.0, STARTING, False, ["taken"]),  # nothing to drain
        ("spot", 30.0, LOST, False, []),
        ("device", 0.0, OFF, False, []),  # what is not rented does not fail
        ("device", 0.0, OFF, True, ["taken"]),
        ("zone", 0.0, OFF, False, ["taken"]),
    ],
)
def test_a_disruption_by_what_its_replica_does(cause, notice_s, state, is_committed, done):
    found = []
    states = SimpleNamespace(
        replicas=[SimpleNamespace(state=state, pool=0)],
        drain=lambda *of: found.append("drain"),
        open=lambda: None,
    )
    controller = SimpleNamespace(
        states=states,
        setup=SimpleNamespace(terms=[SimpleNamespace(is_committed=is_committed)]),
        _plan=lambda at_s, kind, replica, d: found.append(f"planned {at_s}") if kind == TAKEN else None,
        _steer=lambda now_s: None,
        _take=lambda d, now_s: found.append("taken"),
    )
    disruption = Disruption(at_s=10.0, replica=0, cause=cause, length_s=60.0, notice_s=notice_s)
    FleetController._disrupt(controller, disruption, 10.0)
    assert found == done


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        (("speeds=1,2000",), "from 0.01 to 1000"),
        (("speeds=1",), "two clients or more"),
        (("run_s=0",), "above 0"),
        (("learning_ratio=0",), "above 0"),
        (("target_frac=1",), "between 0 and 1"),
        (("num_classes=1",), "2 to 100"),
        (("num_classes=101",), "2 to 100"),
        (("num_least_held=7",), "write 1 to 6, the least first"),
        (("num_least_held=3", "num_most_held=2"), "the least first"),
        (("num_most_held=2",), "write 1 to"),
        (("speeds=1,1", "num_classes=9", "num_least_held=1", "num_most_held=4"), "2 clients hold all 9"),
        (("num_least_steps=41",), "write 1 to 40"),
    ],
)
def test_federations_that_cannot_be_are_refused(sizes, why):
    with pytest.raises(ScenarioError, match=why):
        run_experiment("federated", sizes=sizes)


def test_classes_are_held_as_they_are_dealt():
    """Three clients of two classes each hold all six; each schedule ends with what its last moment says."""
    sizes = ("speeds=1,1,1", "num_classes=6", "num_least_held=2", "num_most_held=2", "run_s=2", "num_local_steps=10")
    rows = run_experiment("federated", sizes=sizes).rows
    assert len(rows) == 3 * 24
    assert {row["schedule"] for row in rows if row["time_s"] == 2.0} == {row["schedule"] for row in rows}
    assert all(0.0 <= row["accuracy_frac"] <= 1.0 for row in rows)

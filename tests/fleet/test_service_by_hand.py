"""Rates, faults, budgets, money, autoscalers and starts of a service, worked out on a few numbers."""

from dataclasses import asdict
from math import exp, inf, log
from types import SimpleNamespace

import numpy as np
import pytest
from two_paths import TwoPaths, two_paths

from orrery.base.errors import ScenarioError
from orrery.fleet.cold_start.start import (
    Constants,
    Engine,
    before_process,
    cold_start,
    num_captured,
)
from orrery.fleet.cold_start.weights import Loader, Path, Rates, ReplicaWeights, load
from orrery.fleet.money import ApiPrice, Demand, Machines, Terms, compare, first_month_cheaper
from orrery.fleet.service.disruptions import Disruptions, Exposure, Outage, drawn
from orrery.fleet.service.rate_curve import RateCurve, bent, hourly_means, steady_length_s
from orrery.fleet.service.registry import scaler_of
from orrery.fleet.service.signals import Sample, Signals
from orrery.fleet.service.tenants import beyond

MINUTES = 168 * 60


def test_a_sinusoid_peaks_at_its_hour():
    """Three times apart: 1.5 at 14 h, 0.5 at 2 h; minutes are taken at their middles."""
    week = RateCurve(peak_to_trough_ratio=3.0).weekly()
    assert (week.size, week.mean()) == (MINUTES, pytest.approx(1.0))
    assert week[14 * 60] == pytest.approx(1.5, abs=1e-5)
    assert week[2 * 60] == pytest.approx(0.5, abs=1e-5)
    assert week[8 * 60 - 1] == pytest.approx(week[20 * 60])  # as long before the peak as after it
    assert RateCurve().weekly().tolist() == [1.0] * MINUTES


def test_hours_of_a_day_and_weekends():
    """An hour at 3, the others at 1: mean 26/24; half of it on two days of seven."""
    day = (3.0, *[1.0] * 23)
    week = RateCurve(hourly_ratio=day).weekly()
    assert (week[0], week[59], week[60], week[24 * 60]) == tuple(pytest.approx(x * 24 / 26) for x in (3, 3, 1, 3))
    calm = RateCurve(weekend_frac=0.5).weekly()
    assert calm[120 * 60 - 1] == pytest.approx(7 / 6)
    assert calm[120 * 60] == pytest.approx(3.5 / 6)
    only = RateCurve(hourly_ratio=(0.0, 1.0, *[0.0] * 22)).weekly()
    assert (only[0], only[60]) == (0.0, pytest.approx(24.0))
    for wrong in ((1.0,) * 23, (-1.0, *[1.0] * 23), (0.0,) * 24):
        with pytest.raises(ScenarioError, match="rate_curve"):
            RateCurve(hourly_ratio=wrong)
    with pytest.raises(ScenarioError, match="nothing comes"):
        RateCurve(hourly_ratio=(0.0,) * 120 + (1.0,) * 48, weekend_frac=0.0).weekly()
    with pytest.raises(ScenarioError, match="number from 1"):
        RateCurve(peak_to_trough_ratio=0.99)


def test_a_run_starts_in_its_minute_and_goes_round_the_week():
    curve = RateCurve(weekend_frac=0.5, start_s=MINUTES * 60.0 - 60.0)
    assert curve.along(120.0, 0).tolist() == [pytest.approx(3.5 / 6), pytest.approx(7 / 6)]
    assert curve.along(61.0, 0).size == 2
    assert curve.along(0.0, 0).size == 1
    burst = RateCurve(bursts_per_day=2.0, burst_ratio=4.0, burst_length_s=120.0).along(864_000.0, 3)
    assert set(burst.tolist()) <= {1.0, 4.0, 16.0}
    assert (burst > 1.0).sum() == pytest.approx(40, abs=20)  # twenty bursts of two minutes
    assert asdict(RateCurve()) == {
        "peak_to_trough_ratio": 1.0,
        "peak_s": 50_400.0,
        "hourly_ratio": (),
        "weekend_frac": 1.0,
        "bursts_per_day": 0.0,
        "burst_ratio": 3.0,
        "burst_length_s": 300.0,
        "start_s": 0.0,
    }


def test_a_bent_clock_by_hand():
    """A minute at 2 and one at 0.5: 120 s of the steady clock pass in the first, 30 in the second, then one to one."""
    curve = np.array([2.0, 0.5])
    assert bent(np.array([0.0, 60.0, 120.0, 135.0, 150.0, 160.0]), curve).tolist() == [0, 30, 60, 90, 120, 130]
    assert steady_length_s(curve) == 150.0
    assert hourly_means(np.concatenate([np.full(60, 2.0), np.full(30, 4.0)])).tolist() == [2.0, 4.0]


def test_a_bucket_fills_at_its_rate_up_to_its_burst():
    """Two at once empty it; half a second later there is half a token, 1.5 s later there are two again at most."""
    assert beyond(np.array([0.0, 0.0, 0.0, 0.5, 2.0, 9.0, 9.0, 9.0]), 1.0, 2.0).tolist() == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert beyond(np.array([1.0, 1.25]), 4.0, 1.0).tolist() == [False, False]


def test_faults_have_the_rates_of_their_parts():
    """Four devices fail four times as often as one, on two nodes twice as often as one node; spots by themselves."""
    many = [Exposure(num_devices=4, num_nodes=2, is_spot=k % 2 == 0, zone="ab"[k % 2]) for k in range(200)]

    def counts(**law):
        found = drawn(Disruptions(**law), many, 1000.0, 0)
        return len(found) / 200, {(d.length_s, d.notice_s) for d in found}

    assert counts(device_mtbf_s=400.0, repair_s=7.0) == (pytest.approx(10, rel=0.1), {(7.0, 0.0)})
    assert counts(node_mtbf_s=400.0, repair_s=7.0) == (pytest.approx(5, rel=0.1), {(7.0, 0.0)})
    assert counts(slow_mtbf_s=400.0, slow_length_s=9.0) == (pytest.approx(10, rel=0.1), {(9.0, 0.0)})
    spot = counts(spot_mtbi_s=100.0, spot_away_s=3.0, spot_notice_s=2.0)
    assert spot == (pytest.approx(5, rel=0.1), {(3.0, 2.0)})
    lost = drawn(Disruptions(outages=(Outage(zone="b", start_s=5.0, length_s=6.0),)), many[:4], 1000.0, 0)
    assert [(d.replica, d.at_s, d.length_s, d.cause) for d in lost] == [(1, 5.0, 6.0, "zone"), (3, 5.0, 6.0, "zone")]
    late = Disruptions(outages=(Outage(zone="b", start_s=1001.0, length_s=6.0),))
    assert drawn(late, many, 1000.0, 0) == ()
    assert (late.any, Disruptions().any, Disruptions(slow_mtbf_s=1.0).any) == (True, False, True)
    with pytest.raises(ScenarioError, match="check the unit"):
        drawn(Disruptions(device_mtbf_s=1e-3), many, 1000.0, 0)
    assert asdict(Disruptions()) == {
        "device_mtbf_s": inf,
        "node_mtbf_s": inf,
        "link_mtbf_s": inf,
        "repair_s": 3600.0,
        "spot_mtbi_s": inf,
        "spot_notice_s": 0.0,
        "spot_away_s": 600.0,
        "zone_mtbf_s": inf,
        "zone_away_s": 7200.0,
        "region_mtbf_s": inf,
        "region_away_s": 7200.0,
        "slow_mtbf_s": inf,
        "slow_length_s": 3600.0,
        "slow_ratio": 1.5,
        "outages": (),
        "retries": True,
    }
    for wrong in ({"device_mtbf_s": 0.0}, {"slow_ratio": 0.0}, {"repair_s": -1.0}, {"spot_away_s": inf}):
        with pytest.raises(ScenarioError, match="write"):
            Disruptions(**wrong)


MONTH_S = 2_628_000.0
DEMAND = Demand(requests_per_s=2.0, input_tokens=10.0, output_tokens=5.0, cached_frac=0.4, busy_frac=0.5)
API = ApiPrice(input_usd_per_tokens=1e-6, output_usd_per_tokens=4e-6, cached_usd_per_tokens=0.5e-6)
MACHINES = Machines(num_devices=4, power_w=1000.0, idle_power_w=200.0, used_frac=0.25)


def terms(**given):
    usual = {"rent_usd_per_s": None, "spot_usd_per_s": None, "device_usd": None, "life_months": 2, "upkeep_frac": 0.5}
    usual |= {"people_usd": 7.0, "electricity_usd_per_j": 1e-9, "pue_ratio": 1.5, "is_power_in_rent": True}
    return Terms(**(usual | given))


def test_an_api_by_hand():
    """6 fresh, 4 cached and 5 written tokens: 28 millionths a request, 56 a second, half of the month."""
    assert DEMAND.api_usd_per_s(API) == pytest.approx(56e-6)
    (way,) = compare(DEMAND, MACHINES, terms(), API, 3)
    month = 56e-6 * MONTH_S / 2
    assert (way.name, way.month_usd, way.fixed_usd, way.break_even_frac) == ("api", pytest.approx(month), 0.0, 0.0)
    assert way.cash_usd == pytest.approx((month, 2 * month, 3 * month))
    assert way.million_output_usd == pytest.approx(month / (10 * MONTH_S / 2) * 1e6)


def test_machines_by_hand():
    """Rent 4 x 1e-6; power 1.5e-9 x (200 + 800 / 2) W; people 7. Bought for 10 each: 60 over two months, again then."""
    joule = 1.5e-9 * MONTH_S
    ways = {w.name: w for w in compare(DEMAND, MACHINES, terms(rent_usd_per_s=1e-6, device_usd=10.0), API, 3)}
    assert ways["rent"].month_usd == ways["rent"].fixed_usd == pytest.approx(4e-6 * MONTH_S + 7)
    full_api, fixed = 56e-6 * MONTH_S * 4, 4e-6 * MONTH_S + 7
    assert ways["rent"].break_even_frac == pytest.approx(fixed / full_api)
    own = ways["own"]
    assert own.month_usd == pytest.approx(30 + 7 + 600 * joule)
    assert own.fixed_usd == pytest.approx(30 + 7 + 200 * joule)
    cash = 10 + 7 + 600 * joule  # upkeep of 20 over two months
    assert own.cash_usd == pytest.approx((40 + cash, 40 + 2 * cash, 80 + 3 * cash))
    assert own.break_even_frac == pytest.approx(own.fixed_usd / (full_api - 800 * joule * 4))
    apart = terms(rent_usd_per_s=1e-6, is_power_in_rent=False)
    assert compare(DEMAND, MACHINES, apart, None, 1)[0].month_usd == pytest.approx(fixed + 600 * joule)
    assert compare(DEMAND, MACHINES, apart, None, 1)[0].break_even_frac == inf
    free = ApiPrice(input_usd_per_tokens=0.0, output_usd_per_tokens=0.0, cached_usd_per_tokens=0.0)
    assert compare(DEMAND, MACHINES, terms(device_usd=1.0), free, 1)[-1].break_even_frac == inf
    assert first_month_cheaper(SimpleNamespace(cash_usd=(5, 6)), SimpleNamespace(cash_usd=(5, 7))) == 2
    assert first_month_cheaper(SimpleNamespace(cash_usd=(5, 7)), SimpleNamespace(cash_usd=(5, 7))) is None


KNOBS = {
    "hpa": {
        "metric": "in-flight",
        "target": 32.0,
        "tolerance_frac": 0.1,
        "period_s": 15.0,
        "up_window_s": 0.0,
        "down_window_s": 300.0,
        "up_replicas": 4.0,
        "up_frac": 1.0,
        "down_frac": 1.0,
    },
    "keda-queue": {"threshold_requests": 5.0, "period_s": 30.0, "cooldown_s": 300.0, "down_window_s": 300.0},
    "knative-concurrency": {
        "target_requests": 100.0,
        "utilization_frac": 0.7,
        "period_s": 2.0,
        "stable_window_s": 60.0,
        "panic_window_frac": 0.1,
        "panic_threshold_ratio": 2.0,
        "max_up_ratio": 1000.0,
        "max_down_ratio": 2.0,
        "zero_grace_s": 30.0,
    },
    "slo-planner": {
        "period_s": 60.0,
        "percentile_frac": 0.9,
        "headroom_frac": 0.8,
        "most_correction_ratio": 2.0,
        "down_window_s": 300.0,
    },
    "predictive": {
        "period_s": 60.0,
        "season_s": 604_800.0,
        "level_frac": 0.5,
        "trend_frac": 0.1,
        "headroom_frac": 0.8,
        "ahead_s": 60.0,
    },
}


@pytest.mark.parametrize("name", sorted(KNOBS))
def test_an_autoscaler_is_by_default_what_its_project_ships(name):
    assert asdict(scaler_of(name, {}).knobs) == KNOBS[name]


@pytest.mark.parametrize(
    ("name", "knob", "wrong"),
    [
        ("hpa", "target", 0),
        ("hpa", "tolerance_frac", 1.1),
        ("keda-queue", "threshold_requests", 0),
        ("knative-concurrency", "panic_window_frac", 1.5),
        ("knative-concurrency", "utilization_frac", 0.001),
        ("slo-planner", "headroom_frac", 1.5),
        ("slo-planner", "percentile_frac", 1.0),
        ("predictive", "level_frac", 1.5),
    ],
)
def test_a_knob_out_of_its_range_is_refused(name, knob, wrong):
    with pytest.raises(ScenarioError, match=knob):
        scaler_of(name, {knob: str(wrong)})
    fine = {"hpa": ("tolerance_frac", 1), "knative-concurrency": ("panic_window_frac", 1)}
    fine |= {"slo-planner": ("headroom_frac", 0.01), "predictive": ("level_frac", 0), "keda-queue": ("period_s", 1)}
    assert scaler_of(name, {fine[name][0]: str(fine[name][1])})


def sample(now_s, **given):
    usual = {"serving": 4, "starting": 0, "waiting": 0, "running": 0, "arrivals": 0, "since_s": 15.0}
    return Sample(now_s=now_s, **(usual | {"busy_frac": 0.0, "kv_frac": 0.0} | given))


def signals(capacity=10.0, ttft=()):
    return Signals(
        replicas_min=0,
        replicas_max=100,
        cold_start_s=60.0,
        capacity_requests_per_s=capacity,
        limits_s={"ttft": 1.0},
        recent=lambda since_s: (np.array(ttft, dtype=float), np.array([])),
    )


def asked(name, *history, seen=None, **knobs):
    scaler, seen, found = scaler_of(name, {k: str(v) for k, v in knobs.items()}), seen or signals(), []
    for one in history:
        seen.add(one)
        found.append(scaler.rule(seen, scaler.knobs))
    return found


def test_hpa_by_each_metric():
    given = {"waiting": 8, "running": 12, "busy_frac": 0.9, "kv_frac": 0.3}
    for metric, target, replicas in (("in-flight", 2.5, 8), ("waiting", 1, 8), ("busy", 0.6, 6), ("kv", 0.2, 6)):
        assert asked("hpa", sample(15, **given), metric=metric, target=target) == [replicas]
    assert asked("hpa", sample(15, serving=0, waiting=3)) == [1]
    assert asked("hpa", sample(15, serving=0)) == [0]
    assert asked("hpa", sample(15, serving=0, starting=2, waiting=3)) == [2]
    # 40 in flight on four with a target of 8 are five, but three more are starting already
    assert asked("hpa", sample(15, starting=3, running=40), target=8) == [7]
    assert asked("hpa", sample(15, running=8), target=8, down_window_s=0) == [1]
    assert asked("hpa", sample(15, running=8), target=8, down_window_s=0, down_frac=0.25) == [3]


def test_keda_counts_waiting_requests_and_lets_the_last_go():
    assert asked("keda-queue", sample(30, serving=1, waiting=15)) == [3]
    assert asked("keda-queue", sample(30, serving=1, waiting=16)) == [4]
    calm = [sample(30, serving=1, running=1), sample(329, serving=1), sample(330, serving=1)]
    assert asked("keda-queue", *calm) == [1, 1, 0]


def test_knative_panics_at_twice_its_replicas():
    # 70 each: 559 in flight are eight replicas, twice four: panic, kept for a minute
    full = [sample(2, running=559), sample(10, running=1), sample(61.9, running=1), sample(62, running=1)]
    assert asked("knative-concurrency", *full) == [8, 8, 8, 2]  # then no more than half go at once
    assert asked("knative-concurrency", sample(2, running=280)) == [4]
    assert asked("knative-concurrency", sample(2, running=281)) == [5]
    assert asked("knative-concurrency", sample(2, running=1)) == [2]  # no more than half at once
    assert asked("knative-concurrency", sample(29, serving=1), sample(30, serving=1)) == [1, 0]


def test_the_planner_divides_by_what_a_replica_carries():
    """8/s of 10 each: 320 arrivals in 10 s are 32/s, four replicas; 60 waiting are one more a second."""
    assert asked("slo-planner", sample(60, arrivals=320, since_s=10.0)) == [4]
    assert asked("slo-planner", sample(60, arrivals=320, since_s=10.0, waiting=60)) == [5]
    late = signals(ttft=[1.5] * 10)
    assert asked("slo-planner", sample(60, arrivals=320, since_s=10.0), seen=late) == [6]
    later = signals(ttft=[5.0] * 10)  # at most twice
    assert asked("slo-planner", sample(60, arrivals=320, since_s=10.0), seen=later) == [8]
    assert asked("slo-planner", sample(60, starting=1), seen=signals(capacity=0.0)) == [5]
    falling = [sample(60, arrivals=320, since_s=10.0), sample(360, running=1), sample(361, running=1)]
    assert asked("slo-planner", *falling) == [4, 4, 1]


def test_samples_and_recommendations_of_a_window():
    seen = signals()
    for now_s, running in ((10.0, 1), (20.0, 2), (30.0, 6)):
        seen.add(sample(now_s, running=running, arrivals=3))
    assert [seen.mean(lambda s: s.running, w) for w in (1.0, 10.0, 11.0, 100.0)] == [6.0, 6.0, 4.0, 3.0]
    assert (seen.now.in_flight, seen.now.rate_per_s, sample(1.0, since_s=0.0).rate_per_s) == (6, 0.2, 0.0)
    assert seen.by_minute == {0: 9}
    seen.add(sample(60.0, arrivals=2))
    seen.add(sample(61.0, arrivals=4))
    assert seen.by_minute == {0: 11, 1: 4}
    seen.remember(5.0, 100.0)
    seen.add(sample(161.0))
    seen.remember(3.0, 100.0)
    assert (seen.extreme(max, 100.0), seen.extreme(max, 99.0), seen.extreme(min, 100.0)) == (5.0, 3.0, 3.0)
    seen.add(sample(162.0))
    seen.remember(4.0, 100.0)
    assert len(seen.recommended) == 2
    seen.add(sample(3620.0))
    assert seen.samples[0].now_s == 20.0
    assert seen.rate_before(3620.0 - 90.0, 0.0) == pytest.approx(4 / 60)
    assert seen.rate_before(3620.0 - 60.0, 60.0) == pytest.approx(15 / 120)


RATES = Rates(link_bytes_per_s=10.0, copy_frac=0.5, host_bytes_per_s=4.0)
HELD = ReplicaWeights(model_bytes=100.0, device_bytes=30.0, node_devices=2)
STREAMING = Loader(name="s", is_streaming=True, reads_whole=False)
MAPPING = Loader(name="m", is_streaming=False, reads_whole=True)


def took(path, loader, held=HELD):
    found = load(path, loader, held, RATES)
    return found.read_s, found.host_s, found.copy_s, found.seconds_s, found.limit


def test_weights_on_their_way_by_hand():
    """Two devices hold 30 of 100 bytes each: 60 are read once, copies go at 5 B/s beside."""
    assert HELD.node_bytes == 60.0
    assert ReplicaWeights(model_bytes=50.0, device_bytes=30.0, node_devices=2).node_bytes == 50.0
    disk = Path(name="d", bytes_per_s=20.0, stream_bytes_per_s=1.5, num_streams=4)
    assert took(disk, STREAMING) == (5.0, 0.0, 6.0, 6.0, "copy")  # eight streams of 1.5
    # one process, one stream, the whole model; then each handles all of it at 4 B/s
    assert took(disk, MAPPING) == (pytest.approx(100 / 1.5), 25.0, 6.0, pytest.approx(100 / 1.5 + 25), "reading")
    alone = ReplicaWeights(model_bytes=100.0, device_bytes=30.0, node_devices=1)
    assert took(disk, MAPPING, alone)[:2] == (20.0, 25.0)
    fetched = Path(name="f", bytes_per_s=0.0, stream_bytes_per_s=1.5, num_streams=4, is_fetched=True)
    assert took(fetched, MAPPING)[0] == pytest.approx(100 / 6)
    assert took(Path(name="0", bytes_per_s=0.0), STREAMING)[0] == 0.0
    peer = Path(name="p", bytes_per_s=3.0, is_per_device=True)
    assert took(peer, STREAMING) == (10.0, 0.0, 0.0, 10.0, "reading")
    sharded = Loader(name="m", is_streaming=False, reads_whole=False)
    assert took(disk, sharded)[1:] == (7.5, 6.0, 40.0 + 7.5, "reading")


CONSTANTS = Constants(
    node_s=100.0,
    image_bytes=60.0,
    image_bytes_per_s=3.0,
    process_s=10.0,
    trace_layer_s=0.5,
    compile_layer_s=1.0,
    compiled_layer_s=0.25,
    profile_s=4.0,
    capture_layer_s=0.1,
    registration_layer_s=0.2,
    wake_s=2.0,
    wake_frac=0.5,
    restore_s=3.0,
    state_bytes=20.0,
)
DISK, PEER = Path(name="d", bytes_per_s=20.0), Path(name="p", bytes_per_s=3.0, is_per_device=True)


def stages(start, path=DISK, **given):
    usual = {"num_layers": 8, "num_captured": 5, "compiles": True, "host_time_ratio": 2.0}
    found = cold_start(start, path, STREAMING, HELD, RATES, Engine(**(usual | given)), CONSTANTS)
    return {s.name: pytest.approx(s.seconds_s) for s in found.stages}


def test_a_start_stage_by_stage():
    """A host of half the speed: 20 s of process, (0.5 + 1) x 8 x 2 of compiling, 8 of profiling, 0.1 x 8 x 5 x 2."""
    cold = {"node": 100.0, "image": 20.0, "process": 20.0, "weights": 6.0, "compile": 24.0, "profile": 8.0}
    assert stages("new-node") == cold | {"capture": 8.0}
    assert list(stages("new-pod"))[:2] == ["image", "process"]
    assert next(iter(stages("new-process"))) == "process"
    assert stages("new-process", has_compile_cache=True)["compile"] == 12.0
    assert "compile" not in stages("new-process", compiles=False)
    assert "capture" not in stages("new-process", num_captured=0)
    assert stages("new-process", PEER)["registration"] == 1.6
    assert stages("sleep-2") == {"wake": 2.0, "weights": 6.0}
    assert stages("sleep-2", PEER) == {"wake": 2.0, "weights": 10.0, "registration": 1.6}
    assert stages("sleep-1") == {"wake": 2.0 + 6.0}  # 30 bytes at half of 10 B/s
    assert stages("snapshot") == {"restore": 3.0 + 10.0}  # 50 bytes a device at 5 B/s
    assert stages("snapshot", PEER) == {"restore": pytest.approx(3.0 + 50 / 3)}
    assert before_process("new-process", CONSTANTS) == ()
    whole = cold_start(
        "new-node", DISK, STREAMING, HELD, RATES, Engine(num_layers=8, num_captured=0, compiles=False), CONSTANTS
    )
    assert (whole.seconds_s, whole.longest.name) == (pytest.approx(140.0), "node")
    assert [num_captured(n) for n in (0, 1, 3, 4, 8, 16, 23)] == [0, 1, 2, 3, 4, 5, 5]


def test_two_paths_by_hand():
    """Half of the loads around 1 s, half around 100 s: the quantiles of both halves, and the share below each."""
    law = TwoPaths(near_frac=0.5, near_median_s=1.0, far_median_s=100.0, near_spread_ratio=0.1, far_spread_ratio=0.2)
    assert law.below_frac(1.0) == pytest.approx(0.25)
    assert law.below_frac(100.0) == pytest.approx(0.75)
    assert law.quantile_s(0.25) == pytest.approx(1.0)
    assert law.quantile_s(0.75) == pytest.approx(100.0)
    assert law.quantile_s(0.75 + 0.5 * 0.341344746) == pytest.approx(100.0 * exp(0.2))
    unlike = TwoPaths(near_frac=0.2, near_median_s=1.0, far_median_s=100.0, near_spread_ratio=0.1, far_spread_ratio=0.2)
    assert unlike.below_frac(10.0) == pytest.approx(0.2)
    times = [0.9, 1.0, 1.1, *[80.0, 100.0, 125.0] * 3]
    found = two_paths(times)
    assert found.near_frac == pytest.approx(0.25)
    assert found.near_median_s == pytest.approx(exp((log(0.9) + log(1.1)) / 3))
    assert found.far_median_s == pytest.approx(100.0)
    assert found.far_spread_ratio == pytest.approx((2 / 3 * log(1.25) ** 2) ** 0.5, rel=1e-6)
    assert two_paths([5.0] * 8 + [50.0] * 8).near_spread_ratio == 0.02

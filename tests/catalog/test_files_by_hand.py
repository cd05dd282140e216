"""Files of facts by hand: what a user's file may say, which rule of several speaks, and what stands where none does."""

from datetime import date
from math import log
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import FactError
from orrery.base.sources import Basis, Fact, Source
from orrery.catalog import backends, calibrations, engines, faults, frameworks, prices, releases, scripts
from orrery.catalog.calibrations import calibrations_for, is_measured, own_calibrations
from orrery.catalog.corrected import read_corrected
from orrery.catalog.devices import get_device
from orrery.catalog.named_files import is_own_file
from orrery.catalog.residuals import read_forests, read_row_spreads
from orrery.catalog.rl_frameworks import _number, release_of
from orrery.catalog.workloads import PublishedWorkload

NAME = Path("mine.toml")
SPREAD = {"low_80": 0.9, "high_80": 1.1, "low_95": 0.8, "high_95": 1.2}
CALIBRATION = {
    "op": "gemm",
    "format": "bf16",
    "engine": "own",
    "from": "runs",
    "at": "9 rows",
    "constants": {"ratio": 0.5},
    "spread": SPREAD,
}


def own(**changes):
    entry = {k: v for k, v in (CALIBRATION | changes).items() if v is not None}
    return own_calibrations(NAME, {"sources": {"runs": {"title": "Runs"}}, "calibration": [entry]})


def test_a_users_calibration_is_the_devices_own():
    found = own(range={"m": [1, 8]}, law="host")["gemm", "bf16", "own"]
    assert (found.origin, found.constants, found.range, found.law) == (
        "device",
        {"ratio": 0.5},
        {"m": (1.0, 8.0)},
        "host",
    )
    assert (found.spread.low_80_ratio, found.spread.high_95_ratio) == (0.9, 1.2)
    assert own()["gemm", "bf16", "own"].range == {}
    assert own_calibrations(NAME, {}) == {}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"op": 3}, "op: got 3; write it in quotes"),
        ({"law": ["x"]}, "law: got"),
        ({"constants": {"ratio": "half"}}, "constants.ratio"),
        ({"constants": {"ratio": True}}, "constants.ratio"),
        ({"constants": {"ratio": 1e30}}, "constants.ratio"),
        ({"constants": {"ratio": -1e30}}, "constants.ratio"),
        ({"spread": {"low_80": 1.0}}, "high_80, high_95, low_80, low_95"),
        ({"range": {"m": [1, "2"]}}, "range.m"),
        ({"range": {"m": [1]}}, "range.m"),
        ({"range": {"m": 1}}, "range.m"),
        ({"from": "elsewhere"}, "say from"),
        ({"at": None}, "say from"),
        ({"engine": None}, "lacks engine"),
        ({"constants": None}, "lacks constants"),
    ],
)
def test_a_calibration_that_a_rule_could_not_use_is_refused(changes, says):
    with pytest.raises(FactError, match=says):
        own(**changes)


def test_the_nearest_calibration_speaks(monkeypatch):
    def one(origin, op="gemm"):
        entry = CALIBRATION | {"op": op} | ({"device": "d"} if origin == "device" else {"generation": origin})
        return calibrations.calibration_of(NAME, entry, {"runs": Source(title="Runs")})

    def keyed(*found):
        return {(c.op, c.format, c.engine): c for c in found}

    everybody = keyed(one(""), one("", "copy"), one("", "norm"))
    of_generation = keyed(one("hopper"), one("hopper", "copy"))
    entries = (
        {"d": keyed(one("device")), "twin": keyed(one("device", "norm"))},
        {
            "": everybody,
            "hopper": of_generation,
            "volta": keyed(one("volta", "attention_decode"), one("volta", "gemm")),
        },
    )
    monkeypatch.setattr(calibrations, "_entries", lambda: entries)

    def origins(*asked):
        return {op: c.origin for (op, _, _), c in calibrations_for(*asked).items()}

    assert origins("d", "hopper") == {"gemm": "device", "copy": "generation", "norm": "any"}
    assert origins("d", "hopper", "twin") == {"gemm": "device", "copy": "generation", "norm": "generation"}
    assert origins("other", "hopper") == {"gemm": "generation", "copy": "generation", "norm": "any"}
    assert origins("other", "new") == {"gemm": "any", "copy": "any", "norm": "any"}
    assert (is_measured("volta"), is_measured("hopper"), is_measured("new")) == (True, False, False)


def corrected(folder, **changes):
    lines = {
        "kind": '"engine"',
        "base": '"vllm"',
        "device": '"h100-sxm"',
        "at": '"12 runs"',
        "version": '"0.11.0"',
    } | changes
    tail = lines.pop("tail", "[constants]\nstep_s = 0.002\n")
    path = folder / "mine.toml"
    path.write_text("\n".join(f"{k} = {v}" for k, v in lines.items() if v) + "\n" + tail, encoding="utf-8")
    return read_corrected(str(path), "engine", ["step_s"])


RISING = '[constants]\nstep_s = 1\n[spread."closed.tpot_s"]\nlow_95 = {}\nlow_80 = {}\nhigh_80 = {}\nhigh_95 = {}\n'


def test_own_runs_hold_on_their_device(tmp_path):
    found = corrected(tmp_path)
    assert (found.name, found.base, found.version, found.precision) == ("mine", "vllm", "0.11.0", "")
    assert found.facts["step_s"].value == 0.002
    assert found.facts["step_s"].source.title == "mine"
    assert found.spreads == {}
    assert found.holds_on(get_device("h100-sxm"))
    assert not found.holds_on(get_device("h200-sxm"))
    assert not found.holds_on(None)
    assert found.note(get_device("h100-sxm")) == "mine: vllm corrected by own runs (12 runs)"
    assert "measured on h100-sxm; vllm as shipped" in found.note(get_device("h200-sxm"))
    titled = corrected(tmp_path, tail='[constants]\nstep_s = 1\n[sources.runs]\ntitle = "My runs"\n')
    assert titled.facts["step_s"].source.title == "My runs"
    assert corrected(tmp_path, tail=RISING.format(0.8, 0.8, 1.0, 1.0)).spreads["closed.tpot_s"]["low_95"] == 0.8
    assert is_own_file("mine.toml")
    assert not is_own_file("vllm")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": '"framework"'}, "says kind = 'framework'"),
        ({"base": ""}, "has no base"),
        ({"tail": ""}, "has no constants"),
        ({"version": "11"}, "version: got 11; write it in quotes"),
        ({"tail": "[constants]\nspeed = 1\n"}, "no such constant; known: step_s"),
        ({"tail": "[constants]\nstep_s = 0\n"}, "above zero"),
        ({"tail": "[constants]\nstep_s = inf\n"}, "above zero"),
        ({"tail": "[constants]\nstep_s = true\n"}, "above zero"),
        ({"tail": '[constants]\nstep_s = "1"\n'}, "above zero"),
        ({"tail": RISING.format(0.9, 0.8, 1.0, 1.1)}, "rising order"),
        ({"tail": RISING.format(0.7, 0.8, 0.7, 1.1)}, "rising order"),
        ({"tail": RISING.format(0.7, 0.8, 1.2, 1.1)}, "rising order"),
        ({"tail": RISING.format(0, 0.8, 1.0, 1.1)}, "rising order"),
        ({"tail": RISING.format(0.7, 0.8, 1.0, "inf")}, "rising order"),
        ({"tail": RISING.format("true", 1, 1, 1)}, "rising order"),
        ({"tail": RISING.format('"a"', 1, 1, 1)}, "rising order"),
        ({"tail": RISING.format(0.7, 0.8, 1.0, "1.1\nmore = 1")}, "rising order"),
    ],
)
def test_own_runs_that_say_too_little_are_refused(tmp_path, changes, says):
    with pytest.raises(FactError, match=says):
        corrected(tmp_path, **changes)


def stored(path, **more):
    """Two forests behind one another: one tree of one node, then trees of one and of two nodes."""
    np.savez(
        path,
        names=np.array(["m"]),
        keys=np.array(["a", "b"]),
        forests=np.array([0, 1, 3]),
        trees=np.array([0, 1, 2, 4]),
        depths=np.array([5, 6, 7]),
        feature=np.arange(4),
        threshold=np.arange(4) * 1.5,
        low=np.arange(4) + 10,
        value=np.arange(4) + 0.25,
        **more,
    )
    return path


def test_forests_lie_behind_one_another(tmp_path):
    found = read_forests(stored(tmp_path / "x.npz"))
    assert found["a"].names == ("m",)
    assert (found["a"].roots.tolist(), found["a"].depths.tolist(), found["a"].value.tolist()) == ([0], [5], [0.25])
    assert (found["b"].roots.tolist(), found["b"].depths.tolist()) == ([0, 1], [6, 7])
    assert (found["b"].feature.tolist(), found["b"].low.tolist()) == ([1, 2, 3], [11, 12, 13])
    assert found["b"].threshold.tolist() == [1.5, 3.0, 4.5]
    shared = read_forests(stored(tmp_path / "y.npz", which=np.array([1, 1])))
    assert shared["a"] is shared["b"]
    spreads = read_row_spreads(stored(tmp_path / "z.npz", levels=np.array([[1, 2, 3, 4], [5, 6, 7, 8]])))
    assert (spreads["b"].levels, spreads["b"].trees.roots.tolist()) == ((5, 6, 7, 8), [0, 1])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        read_row_spreads(stored(tmp_path / "w.npz", levels=np.array([[1, 2, 3, 4]])))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        read_forests(stored(tmp_path / "v.npz", which=np.array([1])))


RUN = {"engine": "vllm", "version": "0.9", "mode": "open", "generation": "hopper", "ranks": 4, "concurrency": 8.0}


@pytest.mark.parametrize(
    ("conditions", "changes"),
    [
        ({"ranks": (4, 6)}, {"ranks": 3}),
        ({"ranks": (2, 4)}, {"ranks": 5}),
        ({"concurrency": (8, 9)}, {"concurrency": 7.9}),
        ({"concurrency": (1, 8)}, {"concurrency": 8.1}),
        ({"input_tokens": (900, 1024)}, {"input_tokens": 899.0}),
        ({"input_tokens": (100, 900)}, {"input_tokens": 900.1}),
        ({"on": ("hopper",)}, {"generation": "ampere"}),
        ({"from": "0.9"}, {"version": "0.8"}),
        ({"publisher": "me"}, {"published": "you"}),
        ({"publishers": ("him", "me")}, {"published": "you"}),
        ({"models": "meta/*"}, {"model": "qwen/x"}),
        ({}, {"engine": "sglang"}),
        ({}, {"mode": "closed"}),
    ],
)
def test_a_scripts_rule_holds_where_all_its_conditions_do(monkeypatch, conditions, changes):
    rule = {"engine": "vllm", "mode": "open", "lag": 3, "source": Source(title="s"), "at": "line 1"} | conditions
    monkeypatch.setattr(scripts, "_rules", lambda: (rule, rule | {"lag": 4, "engine": "trt"}))
    fits = RUN | {"published": "me too", "model": "Meta/Llama", "input_tokens": 900.0}
    assert scripts.script_setting("lag", **fits).value == 3
    assert scripts.script_setting("lag", **(fits | changes)) is None
    assert scripts.script_setting("other", **fits) is None


def test_releases_by_date(monkeypatch):
    days = {"0.9.2": "2025-03-01", "0.10.0rc1": "2025-03-02", "0.10.0": "2025-04-01", "0.9.3": "2025-05-01"}
    monkeypatch.setattr(releases, "_released", lambda engine: days if engine == "e" else {})
    newest = releases.newest_at.__wrapped__
    assert [newest("e", d) for d in ("", "2025-03-01", "2025-03", "2025-03-15", "2025-04-02")] == [
        "0.10.0",
        "0.9.2",
        "",
        "0.10.0rc1",
        "0.10.0",
    ]
    assert newest("other") == ""
    assert (releases.release_day("e", "0.9.2"), releases.release_day("e", "1")) == ("2025-03-01", "")


@pytest.mark.parametrize(
    ("until", "version", "is_before"),
    [("", "9", True), ("0.9", "", False), ("0.9", "0.8", True), ("0.9", "0.9", False), ("0.9", "unknown", True)],
)
def test_what_ends_with_a_release(until, version, is_before):
    assert releases.is_before(until, version) is is_before


def test_an_unknown_version_is_the_oldest():
    assert not releases.is_past("0.1", "unknown")
    assert releases.is_past("0.1", "")


def offer(kind, day, low, high):
    def fact(value):
        return Fact(name="x", value=value / 3600, basis=Basis.MEASURED, source=Source(title=kind))

    return prices.Offer(kind=kind, as_of=date.fromisoformat(day), low=fact(low), high=fact(high))


def test_the_kind_that_tells_most_and_of_it_the_newest(monkeypatch):
    offers = (
        offer("list", "2026-06-01", 9.0, 9.0),
        offer("on-demand specialty", "2026-05-01", 2.0, 4.0),
        offer("on-demand hyperscaler", "2026-01-01", 6.0, 8.0),  # 120 days before
        offer("on-demand long-tail", "2025-12-31", 0.5, 0.5),  # 121 days before: another market
    )
    monkeypatch.setattr(prices, "_offers", lambda: {"d": offers, "cheap": offers[:1]})
    priced = prices._price_on.__wrapped__
    found = priced("d", date(2026, 6, 2))
    assert (found.usd_per_device_hour, found.low, found.high) == (
        pytest.approx(5.0),
        pytest.approx(2),
        pytest.approx(8),
    )
    assert found.usd_per_device_s == pytest.approx(5 / 3600)
    assert (found.kind, found.as_of, found.is_stale) == ("on-demand", date(2026, 5, 1), False)
    assert found.note == "median of 2 on-demand offers of May 2026"
    assert priced("d", date(2026, 4, 30)).usd_per_device_hour == pytest.approx(3.75)  # 7 and 0.5
    assert priced("cheap", date(2026, 6, 1)).note == "median of 1 list offer of June 2026"
    assert not priced("cheap", date(2027, 6, 1)).is_stale
    assert "more than a year old on 02 June 2027" in priced("cheap", date(2027, 6, 2)).note
    assert priced("cheap", date(2026, 5, 31)) is None
    assert priced("nothing", date(2026, 5, 31)) is None
    assert (prices._day("2026-05"), prices._day("2026-05-20")) == (date(2026, 5, 1), date(2026, 5, 20))


def test_what_is_assumed_of_a_host_nobody_measured():
    """A millisecond a step and 10 us a sequence; some fifteen launches of 10 us a layer in training."""
    assert engines.ASSUMED_HOST == {
        "step_s": 0.001,
        "per_sequence_s": 0.00001,
        "per_layer_s": 0.000008,
        "sampling_s": 0.000001,
        "launch_s": 0.000008,
        "request_s": 0.01,
        "per_prompt_token_s": 0.000002,
        "memory_ratio": 1.0,
        "compute_ratio": 1.0,
    }
    assert frameworks.ASSUMED == {
        "host_layer_s": 0.00015,
        "host_backward_ratio": 1.5,
        "host_expert_s": 0.0005,
        "host_collective_s": 0.00003,
        "step_s": 0.005,
        "matrix_ratio": 1.1,
        "elementwise_ratio": 1.3,
        "attention_ratio": 1.2,
        "network_ratio": 1.2,
        "scaleout_ratio": 1.2,
        "contention_ratio": 1.1,
        "fragmentation_ratio": 1.05,
        "fixed_bytes": 500_000_000.0,
        "update_bytes": 1.0,
    }


def test_a_slower_host_takes_longer_for_its_own_work_only():
    slow = SimpleNamespace(host_time_ratio=3.0)
    given = {"step_s": 1.0, "request_s": 2.0, "per_layer_s": 4.0, "memory_ratio": 5.0}
    assert engines.on_device(given, slow) == {"step_s": 3.0, "request_s": 6.0, "per_layer_s": 4.0, "memory_ratio": 5.0}
    base = engines.get_engine("vllm")
    slower = engines._on_device.__wrapped__(base, 2.0, 1.0)
    assert slower.step_s == 2 * base.step_s == slower.facts["step_s"].value
    assert (slower.per_layer_s, slower.sampling_s) == (base.per_layer_s, base.sampling_s)


def test_the_pace_of_runs_that_state_whole_requests():
    wide = engines._spread(SPREAD, "runs")
    assert engines._paces({"open.latency_s": wide}) == {"open.tpot_s": wide}
    turned = engines._paces({"open.requests_per_s": wide})["open.tpot_s"]
    assert (turned.low_80_ratio, turned.high_80_ratio) == (pytest.approx(1 / 1.1), pytest.approx(1 / 0.9))
    assert engines._paces({"open.latency_s": wide, "open.output_tokens_per_s": wide})["open.tpot_s"] is wide
    assert engines._paces({"open.power_w": wide}) == {}


def test_eras_grow_with_time():
    ages = [engines._age({"version": v}) for v in ("", "unknown", "0.8", "0.8.1", "0.14", "1.0")]
    assert ages[:3] == [-1.0, 0.0, 0.008]
    assert ages == sorted(set(ages))


def test_settings_speak_of_runs_with_all_their_words():
    entry = {"name": "megatron-lm", "generation": "hopper", "precision": ""}
    assert frameworks._serves(entry, "megatron-lm", "hopper", "fp8")
    assert not frameworks._serves(entry, "megatron-lm", "ampere", "fp8")
    assert not frameworks._serves(entry, "pytorch", "hopper", "fp8")
    assert frameworks.nearness(entry) == (True, True, False)


@pytest.mark.parametrize(("ends", "span"), [((1, 8), (1.0, 8.0)), ((0.0, 2.5), (0.0, 2.5))])
def test_a_span_has_two_ends(ends, span):
    assert backends._span(ends) == span


def test_back_ends_by_the_name_of_a_kernel(monkeypatch):
    table = {"kernel": [{"has": "cutlass", "formats": ["fp8"], "backend": "c"}, {"has": "moe", "backend": "t"}]}
    monkeypatch.setattr(backends, "_file", lambda kind: table if kind == "moe" else {})
    named = backends.backend_of_kernel.__wrapped__
    assert [named("moe", k, f) for k, f in (("CUTLASS_moe", "fp8"), ("cutlass_moe", "bf16"), ("gemm", "fp8"))] == [
        "c",
        "t",
        "",
    ]
    assert named("attention", "moe", "fp8") == ""


def test_a_workload_stands_for_settings():
    def fact(value):
        return Fact(name="x", value=value, basis=Basis.STATED)

    facts = {"input_mean_tokens": fact(12.6), "num_requests": fact(7.0), "ttft_p99_s": fact(0.45)}
    made = PublishedWorkload(name="w", title="W", model="m", facts=facts)
    assert made.settings() == {"model": "m", "input_tokens": 13, "num_requests": 7, "slo": ["p99_ttft:450"]}
    assert PublishedWorkload(name="w", title="W", model="m", facts={}).settings() == {"model": "m"}


def test_releases_of_rl_frameworks_by_number():
    assert (_number("1.20.rc3"), _number("0.4")) == ((1, 20), (0, 4))
    assert release_of("", "").updates_in_flight in (True, False)


def test_mean_times_between_failures_by_hand(monkeypatch):
    """Ten devices for 100 s are 1,000 device-seconds, or 500 of nodes of two; half of the spot machines taken within
    60 s have a half-life of 60 s."""
    counts = {
        "num_devices": 10,
        "length_s": 100,
        "num_devices_per_node": 2,
        "num_device_interruptions": 5,
        "num_node_interruptions": 4,
        "num_link_interruptions": 8,
        "spot_window_s": 60,
        "spot_interrupted_frac": 0.5,
    }
    monkeypatch.setattr(faults, "fault_facts", lambda: {k: SimpleNamespace(value=v) for k, v in counts.items()})
    found = faults.published_means_s.__wrapped__()
    assert found == {
        "device_mtbf_s": 200.0,
        "node_mtbf_s": 125.0,
        "link_mtbf_s": 125.0,
        "spot_mtbi_s": pytest.approx(60 / log(2)),
    }


def test_published_failures_are_rare_and_of_devices_first():
    found = faults.published_means_s()
    assert all(mean_s > 3600 for mean_s in found.values())
    assert found["device_mtbf_s"] > 24 * 3600 * 365  # years of one device

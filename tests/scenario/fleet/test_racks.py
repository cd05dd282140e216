"""Rows and racks: who stands where, what each draws, whose clocks a limit lowers, and what contradicts itself."""

import json

import numpy as np
import pytest

from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.cli.main import run
from orrery.scenario.fleet.ask import simulate_fleet

SERVED = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "rate": 50,
    "days": 0.002,
    "slo": ["ttft:2000"],
    "change": False,
    "power_reading_s": 1.0,
}
QUICK = {**SERVED, "power_delay_s": 1.0}
ROW = {"row": [{"name": "row 1", "limit_w": 1e6}], "rack": [{"name": n, "row": "row 1"} for n in ("a", "b")]}


@pytest.fixture(scope="module")
def free():
    return simulate_fleet(**SERVED | {"power_reading_s": None}, replicas=4)


def limits(answer):
    return {one["name"]: one for one in answer.to_json()["power"]["limits"]}


def test_racks_add_up_to_their_row_and_rows_to_the_fleet(free):
    """Five replicas dealt to three racks in turn: 2, 2 and 1; the third rack stands in a row of its own."""
    rows = [{"name": "row 1"}, {"name": "row 2"}]
    racks = [{"name": n, "row": r} for n, r in (("a", "row 1"), ("b", "row 1"), ("c", "row 2"))]
    found = simulate_fleet(**SERVED, replicas=5, row=rows, rack=racks)
    drawn = {one.limit.name: one.drawn_w for one in found.run.power.limits}
    assert [limits(found)[name]["replicas"] for name in ("fleet", "row 1", "row 2", "a", "b", "c")] == [
        5,
        4,
        1,
        2,
        2,
        1,
    ]
    assert drawn["a"] + drawn["b"] == pytest.approx(drawn["row 1"])
    assert drawn["row 1"] + drawn["row 2"] == pytest.approx(drawn["fleet"])
    assert np.array_equal(drawn["c"], drawn["row 2"])


def test_what_is_metered_alone_or_far_below_its_limit_changes_no_bit(free):
    for more in ({"rack": [{"name": "a"}, {"name": "b"}]}, ROW | {"power_delay_s": 0}):
        found = simulate_fleet(**SERVED, replicas=4, **more)
        assert np.array_equal(found.run.outcome.finish_s, free.run.outcome.finish_s)
        assert found.run.power.changed_s.size == 0


def test_rated_draws_and_oversubscription_by_hand():
    """Two of four replicas, each one device and its part of the machine, behind 1.1 times the draw of one."""
    device = get_device("h100-sxm")
    rated = device.power_limit_w + device.host_power_w
    rack = [{"name": "a", "limit_w": 1.1 * rated, "power_cap": "none"}, {"name": "b"}]
    found = limits(simulate_fleet(**SERVED, replicas=4, rack=rack))
    assert (found["a"]["rated_w"], found["fleet"]["rated_w"]) == (2 * rated, 4 * rated)
    assert found["a"]["oversubscribed_frac"] == pytest.approx(2 / 1.1 - 1)
    assert found["b"]["oversubscribed_frac"] is None
    assert found["a"]["mean_w"] < found["a"]["p99_w"] <= found["a"]["peak_w"] <= 2 * rated


def test_a_rack_at_its_limit_slows_its_own_replicas_alone():
    rack = [{"name": "a", "limit_w": 800, "power_cap": "everyone", "clock_ratio": 0.4}, {"name": "b"}]
    found = simulate_fleet(**QUICK, replicas=4, rack=rack, router="round-robin")
    outcome, power = found.run.outcome, found.run.power
    in_a = power.limits[1].is_behind[power.replica_of_machine[outcome.machine]]
    assert in_a.mean() == pytest.approx(0.5, abs=0.01)
    assert np.nanmean(found.run.ttft_s[in_a]) > 1.5 * np.nanmean(found.run.ttft_s[~in_a])
    one = limits(found)
    assert one["a"]["throttled_s"] > 0.5 * found.run.end_s
    assert (one["b"]["throttled_s"], one["b"]["hurt"]) == (0.0, 0)
    assert one["a"]["hurt"] == found.hurt["power-cap"]


def test_a_replica_runs_at_the_lowest_clock_that_its_limits_ask_for():
    """The row's rule lowers its four to 0.9, the rack's lowers its two to 0.5."""
    row = [{"name": "row 1", "limit_w": 1, "power_cap": "everyone", "clock_ratio": 0.9}]
    rack = [{"name": "a", "row": "row 1", "limit_w": 1, "power_cap": "everyone", "clock_ratio": 0.5}]
    rack.append({"name": "b", "row": "row 1"})
    found = simulate_fleet(**QUICK, replicas=4, row=row, rack=rack).run.power
    assert found.clock_frac[-1].tolist() == [0.5, 0.9, 0.5, 0.9]


def test_pools_of_low_priority_are_slowed_first():
    """A row above its first threshold alone: the low pool runs at the first clock, the high one at its full one."""
    pools = [
        {"name": name, "replicas_min": 2, "replicas_max": 2, "power_priority": name, "clock_frac": "1"}
        for name in ("low", "high")
    ]
    row = [{"name": "row 1", "limit_w": 1e5, "first_frac": 0, "release_frac": 0, "low_first_ratio": 0.6}]
    found = simulate_fleet(**QUICK, pool=pools, row=row).run.power
    assert found.is_low.tolist() == [True, True, False, False]
    assert found.clock_frac[0].tolist() == [0.6, 0.6, 1.0, 1.0]


def test_locked_clocks_draw_less_and_take_longer_and_full_ones_change_nothing(free):
    full = simulate_fleet(**SERVED | {"power_reading_s": None}, replicas=4, clock_frac="1")
    locked = simulate_fleet(**SERVED | {"power_reading_s": None}, replicas=4, clock_frac="0.7")
    assert np.array_equal(full.run.outcome.finish_s, free.run.outcome.finish_s)
    assert locked.run.energy_j < free.run.energy_j
    assert np.nanmean(locked.run.ttft_s) > 1.2 * np.nanmean(free.run.ttft_s)


def test_command_and_file_answer_as_python_does(tmp_path, capsys):
    file = tmp_path / "fleet.toml"
    top = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {**QUICK, "replicas": 4}.items())
    tables = '[[row]]\nname = "row 1"\nlimit_w = 2400\n[[rack]]\nname = "a"\nrow = "row 1"\n'
    file.write_text(top + tables)
    assert run(["fleet", str(file), "--json"]) == 0
    rows = {"row": [{"name": "row 1", "limit_w": 2400}], "rack": [{"name": "a", "row": "row 1"}]}
    plain = simulate_fleet(**QUICK, replicas=4, **rows).to_json()
    assert json.loads(capsys.readouterr().out)["power"] == plain["power"]
    assert run(["fleet", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "row row 1" in shown
    assert "throttled" in shown


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"row": [{"limit_w": 1000}]}, "a name is missing"),
        ({"row": [{"name": "a"}], "rack": [{"name": "a"}]}, "'a' is there twice"),
        ({"rack": [{"name": "a", "row": "b"}]}, "there is no row 'b'"),
        ({"racks": "a"}, "there is no rack 'a'; write it as"),
        ({"racks": "b", "rack": [{"name": "a"}]}, "there is no rack 'b'; write one of a"),
        ({"racks": "a", "rack": [{"name": "a"}, {"name": "b"}]}, "no pool stands in it"),
        ({"rack": [{"name": "a", "power_cap": "everyone"}]}, "write limit_w"),
        ({"rack": [{"name": "a", "first_frac": 0.5}]}, "write limit_w"),
        ({"rack": [{"name": "a", "limit_w": 1000, "first": 0.5}]}, "first_frac"),
        ({"rack": [{"name": "a", "limit_w": -1}]}, "limit_w"),
        ({"power_priority": "low"}, "write power_budget_w too, or limit_w"),
        ({"power_budget_w": 4000, "power_priority": "least"}, "write low or high"),
        ({"power_budget_w": 4000, "power_priority": "low", "power_low_frac": 0.2}, "leave one of both out"),
        ({"row": [{"name": "a", "limit_w": 1000}], "survive": "zone"}, "leave survive out"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(more, words):
    with pytest.raises(OrreryError, match=words):
        simulate_fleet(**SERVED | {"power_reading_s": None}, replicas=4, **more)

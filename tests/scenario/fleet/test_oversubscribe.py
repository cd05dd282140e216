"""Replicas under a power budget, as the fleet simulates them: rated draws by hand, limits where nothing is gained."""

import json

import pytest

from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.cli.fleet_more_views import print_more
from orrery.cli.main import run
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.oversubscribe import tolerance_of
from orrery.scenario.power_row import TOLERANCE

DEVICE = get_device("h100-sxm")
RATED_W = DEVICE.power_limit_w + DEVICE.host_power_w
ROW = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 60,
    "rate": 20.0,
    "days": 0.001,
    "replicas": 4,
    "router": "round-robin",
    "power_budget_w": 4.5 * RATED_W,
    "oversubscribe": True,
}
KNOBS = {"power_cap_knob": ["first_frac=1", "second_frac=1", "release_frac=0"]}


@pytest.fixture(scope="module")
def found():
    return simulate_fleet(**ROW, **KNOBS)


def test_rated_draws_hold_as_many_as_fit_by_hand(found):
    assert found.rated_w == RATED_W
    assert {fit.fit.num_rated for fit in found.fits} == {4}
    assert [fit.cap for fit in found.fits] == ["two-thresholds", "everyone", "none"]


def test_more_fit_than_their_rated_draws_allow_and_none_is_above_the_budget(found):
    for fit in found.fits:
        assert fit.fit.num_servers > 4
        assert fit.fit.drawn.drawn_w.max() <= ROW["power_budget_w"]


def test_thresholds_at_the_limit_are_no_cap(found):
    rule, none = (next(f for f in found.fits if f.cap == cap) for cap in ("two-thresholds", "none"))
    assert rule.fit.num_servers == none.fit.num_servers
    assert set(rule.late.values()) == set(none.late.values()) == {0.0}


def test_replicas_that_always_draw_what_they_are_rated_leave_no_room():
    always = simulate_fleet(**ROW | {"power_budget_w": 4 * RATED_W}, host_power_w=RATED_W - DEVICE.idle_power_w)
    assert {fit.fit.more_frac for fit in always.fits} == {0.0}


def test_tolerances_are_the_usual_ones_or_ones_own():
    assert tolerance_of(()) == TOLERANCE
    assert tolerance_of(["low_p99=0.2", "high_p50=0"]).low_p99_frac == 0.2


def test_command_and_file_answer_as_python_does(tmp_path, capsys, found):
    file = tmp_path / "fleet.toml"
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in (ROW | KNOBS).items()))
    assert run(["fleet", str(file), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain == found.to_json()
    print_more(found)
    assert "hold 4 replicas" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"power_budget_w": None}, "write power_budget_w = 260000"),
        ({"replicas": None}, "write replicas = 40"),
        ({"power_budget_w": 100}, "hold 0 replicas"),
        ({"power_late": ["p99=0.5"]}, "write one of low_p50"),
        ({"power_late": ["low_p99=x"]}, "write a part"),
        ({"power_late": ["low_p99=-1"]}, "write a part from 0"),
        ({"power_late": ["low_p99=0.5"], "oversubscribe": None}, "write oversubscribe = true"),
        ({"row": [{"name": "a", "limit_w": 1000}]}, "leave out other pools"),
        ({"steady": True}, "leave steady out"),
        ({"replicas": None, "replicas_max": 3, "autoscaler": "hpa"}, "leave out the autoscaler"),
    ],
)
def test_questions_that_lack_something_say_what(more, words):
    with pytest.raises(OrreryError, match=words):
        simulate_fleet(**{k: v for k, v in (ROW | more).items() if v is not None})

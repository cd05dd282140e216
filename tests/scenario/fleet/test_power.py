"""Power caps of a fleet by command, file and Python: equal answers, null cases, refusals."""

import json
from types import SimpleNamespace

import pytest

from orrery.base import extension_points
from orrery.base.errors import OrreryError
from orrery.base.technique import Technique
from orrery.cli.main import run
from orrery.fleet.power.capping import Clocks
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.power_row import power_cap_name

FLEET = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "rate": 50,
    "days": 0.002,
    "replicas": 4,
    "slo": ["ttft:2000"],
    "change": False,
}
CAPPED = {**FLEET, "power_budget_w": 4000.0, "power_reading_s": 1.0, "power_delay_s": 2.0}


@pytest.fixture(scope="module")
def capped():
    return simulate_fleet(**CAPPED)


def test_a_budget_that_binds_lowers_clocks_and_energy(capped):
    free = simulate_fleet(**FLEET)
    power = capped.to_json()["power"]
    assert power["budget_w"] == 4000.0
    assert power["capped_s"] > 0.5 * capped.run.end_s
    assert power["lowest_clock_frac"] < 1.0
    assert capped.run.energy_j < free.run.energy_j
    assert "power" not in free.to_json()


def test_no_cap_and_a_budget_above_the_peak_are_the_fleet_without_one():
    free = simulate_fleet(**FLEET).run
    for more in ({"power_budget_w": 1e6}, {"power_budget_w": 4000.0, "power_cap": "none"}):
        found = simulate_fleet(**FLEET, **more).run
        assert found.energy_j == pytest.approx(free.energy_j, rel=1e-12)  # sums of steps, in another order
        assert (found.outcome.finish_s == free.outcome.finish_s).all()


def test_a_knob_of_the_rule_moves_where_caps_begin():
    late = simulate_fleet(**CAPPED, power_cap_knob=["first_frac=1", "second_frac=1", "release_frac=0"])
    assert late.to_json()["power"]["capped_s"] <= simulate_fleet(**CAPPED).to_json()["power"]["capped_s"]
    everyone = simulate_fleet(**CAPPED, power_cap="everyone")
    assert set(everyone.run.power.clock_frac[0].tolist()) == {everyone.run.power.clock_frac[0, 0]}


def test_command_and_file_answer_as_python_does(tmp_path, capsys, capped):
    file = tmp_path / "fleet.toml"
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in CAPPED.items()))
    assert run(["fleet", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["power"] == capped.to_json()["power"]
    assert run(["fleet", str(file)]) == 0
    assert "clocks lowered for" in capsys.readouterr().out


def test_a_rule_of_an_installed_package_is_named_like_the_projects_own(monkeypatch):
    """``half`` runs everything at half the clock, whatever is drawn."""
    half = Technique(
        name="cap-half",
        word="half",
        extension_point="fleet.power_cap",
        rule=lambda reading, knobs: Clocks(low_ratio=0.5, high_ratio=0.5),
        gains="none",
        costs="none",
        claims=(),
    )
    package = SimpleNamespace(load=lambda: SimpleNamespace(TECHNIQUE=half))
    monkeypatch.setattr("orrery.base.technique.entry_points", lambda group: [package])
    extension_points._techniques_at.cache_clear()
    try:
        found = simulate_fleet(**CAPPED, power_cap="half")
        name = power_cap_name("half")  # as ``plan`` reads it
    finally:
        extension_points._techniques_at.cache_clear()
    assert found.run.power.clock_frac.tolist() == [[0.5] * 4]
    assert name == "half"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"power_cap": "everyone"}, "write power_budget_w too"),
        ({"power_delay_s": 1.0}, "write power_budget_w too"),
        ({"power_cap_knob": ["first_frac=0.8"]}, "write power_budget_w too"),
        ({"power_budget_w": 4000.0, "power_cap": "half"}, "two-thresholds"),
        ({"power_budget_w": 4000.0, "power_cap_knob": ["frac=0.8"]}, "has no knob"),
        ({"power_budget_w": 4000.0, "power_cap_knob": ["first_frac=x"]}, "write a number"),
        ({"power_budget_w": 4000.0, "survive": "zone"}, "leave survive out"),
        ({"power_budget_w": 4000.0, "mix": True}, "leave mix out"),
        ({"power_budget_w": 4000.0, "share": "time", "service": [{"name": "a"}]}, "leave share out"),
    ],
)
def test_what_has_no_effect_is_refused(settings, words):
    with pytest.raises(OrreryError, match=words):
        simulate_fleet(**FLEET | settings)

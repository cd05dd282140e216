"""Fitted entries, settings and releases of training frameworks: by hand."""

import numpy as np

from orrery.base.sources import Basis, Source
from orrery.catalog import frameworks, rl_frameworks

SOURCE = Source(title="a table", retrieved="2026-11")


def test_the_nearest_entry_of_a_framework_counts_last():
    """Sorted from far to near; constants of another framework do not bring the seconds of its own step."""
    words = ("name", "generation", "precision")
    states = [{w: "x" for w, is_stated in zip(words, bits, strict=True) if is_stated} for bits in np.ndindex(2, 2, 2)]
    assert sorted(states, key=frameworks.nearness) == states
    one = {"name": "a", "generation": "hopper"}
    assert frameworks._serves(one, "a", "hopper", "bf16")
    assert not frameworks._serves(one, "b", "hopper", "bf16")
    assert not frameworks._serves(one, "a", "ampere", "bf16")
    assert not frameworks._serves(one | {"precision": "fp8"}, "a", "hopper", "bf16")
    assert frameworks._serves({}, "b", "ampere", "fp8")


def test_constants_are_inherited_and_seconds_of_a_step_are_not(monkeypatch):
    table = {"low_80": 0.9, "high_80": 1.1, "low_95": 0.8, "high_95": 1.2}
    found = [
        {
            "name": "",
            "source": "runs",
            "at": "any",
            "constants": {"step_s": 1.0, "matrix_ratio": 1.0},
            "spread": {"a": 1},
        },
        {
            "name": "elder",
            "source": "runs",
            "at": "elder",
            "constants": {"step_s": 2.0, "matrix_ratio": 2.0},
            "spread": {"b": table},
        },
        {"name": "mine", "source": "runs", "at": "mine", "constants": {"network_ratio": 3.0}, "spread": {"c": table}},
    ]
    monkeypatch.setattr(frameworks, "_fitted_entries", lambda: (found, {"runs": SOURCE}))
    monkeypatch.setattr(frameworks, "lineage", lambda name: ("mine", "elder") if name == "mine" else (name,))
    facts, spreads = frameworks._fitted("mine", "hopper", "bf16")
    assert [facts[k].value for k in ("step_s", "matrix_ratio", "network_ratio")] == [1.0, 2.0, 3.0]
    assert [facts[k].at for k in ("step_s", "matrix_ratio", "network_ratio")] == ["any", "elder", "mine"]
    assert facts["update_bytes"].value == frameworks.ASSUMED["update_bytes"] == 1.0
    assert (facts["update_bytes"].basis, facts["step_s"].basis) == (Basis.ASSUMED, Basis.MEASURED)
    assert set(spreads) == {"a", "c"}


def test_settings_of_a_framework_hold_for_their_runs(monkeypatch):
    fact = {"value": True, "from": "s", "at": "1"}
    file = {
        "sources": {"s": {"title": "t", "retrieved": "2026-11"}},
        "setting": [
            {"since": "2.0", "until": "3.0", "generation": "hopper", "facts": {"in_release": fact}},
            {"precision": "fp8", "model": "a/b", "devices": ["h200"], "facts": {"of_model": fact}},
            {"models": ["a/b", "c/d"], "tasks": ["lora"], "is_alone": True, "facts": {"of_task": fact}},
        ],
    }
    monkeypatch.setattr(frameworks, "read_file", lambda folder, name: file)

    def held(generation="hopper", device="h200", precision="fp8", **use):
        return set(frameworks._settings.__wrapped__("f", generation, device, precision, frameworks.Use(**use)))

    assert [held(version=v) for v in ("1.9", "2.0", "2.9", "3.0", "")] == [
        set(),
        {"in_release"},
        {"in_release"},
        set(),
        set(),
    ]
    assert held(generation="ampere", version="2.0") == set()
    assert held(model="a/b") == {"of_model"}
    assert held(model="a/b", device="h100") == held(model="a/b", precision="bf16") == held(model="c/d") == set()
    assert held(model="c/d", task="lora", is_alone=True) == {"of_task"}
    assert held(model="c/d", task="full", is_alone=True) == held(model="c/d", task="lora") == set()
    assert held(model="e", task="lora", is_alone=True) == set()


def test_releases_of_rl_frameworks(monkeypatch):
    fact = {"value": "0.9", "from": "s", "at": "1"}
    file = {
        "sources": {"s": {"title": "t", "retrieved": "2026-11"}},
        "release": [
            {"since": "0.3", "engine_version": fact},
            {"since": "0.10", "engine_version": fact | {"value": "1.0"}},
        ],
    }
    monkeypatch.setattr(rl_frameworks, "read_file", lambda folder, name: file)
    found = [rl_frameworks.release_of("", r).engine_version for r in ("0.2", "0.3", "0.9.9", "0.10", "1", "")]
    assert found == ["", "0.9", "0.9", "1.0", "1.0", ""]
    assert rl_frameworks.release_of("", "").updates_in_flight is True
    assert rl_frameworks._number("0.10.2rc1") == (0, 10)

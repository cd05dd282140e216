"""Which fitted entry speaks for an engine and a release, and what its constants and spreads are: by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from orrery.base.cost import Spread
from orrery.base.errors import ScenarioError
from orrery.base.sources import Basis, Source
from orrery.catalog import engines
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine

SOURCE = Source(title="a table", retrieved="2026-11")


def entry(name, version="", generation="", **more):
    return {"name": name, "version": version, "generation": generation, "source": "runs", "at": "here"} | more


def test_eras_grow_with_their_numbers_and_pools_come_last():
    ages = [engines._age(entry("e", v)) for v in ("", "unknown", "0.9", "0.10", "1.2.3")]
    assert ages == sorted(ages)
    assert ages[:2] == [-1.0, 0.0]
    assert ages[4] == pytest.approx(1.0 + 2.0 / 1000.0 + 3.0 / 1e6, rel=1e-12)


@pytest.mark.parametrize(
    ("era", "version", "covers"),
    [
        ("", "0.1", True),
        ("", "unknown", True),
        ("unknown", "0.1", False),
        ("0.1", "unknown", False),
        ("unknown", "unknown", True),
        ("0.10", "0.9", False),
        ("0.10", "0.10", True),
        ("0.10", "0.11", True),
        ("0.10", "", True),
    ],
)
def test_an_entry_covers_its_era_and_later_ones(era, version, covers):
    assert engines._covers(entry("e", era), version) is covers


def test_the_nearest_entry_speaks(monkeypatch):
    """This generation before all, the newest era before older ones, the pool of the engine before any engine."""
    found = [
        entry("", at="any"),
        entry("e", at="pool"),
        entry("e", "0.5", at="old"),
        entry("e", "0.9", at="new"),
        entry("e", "0.9", "hopper", at="new on hopper"),
    ]
    monkeypatch.setattr(engines, "_fitted_entries", lambda: (found, {"runs": SOURCE}))
    monkeypatch.setattr(engines, "_has_eras", lambda name: True)

    def spoken(*asked):
        chosen, fact = engines._fitted(*asked)
        assert (fact.basis, fact.source, fact.at) == (Basis.MEASURED, SOURCE, chosen["at"])
        return chosen["at"], fact.value

    assert spoken("e", "0.9", "hopper") == ("new on hopper", "e")
    assert spoken("e", "0.9", "ampere") == ("new", "e")
    assert spoken("e", "0.6", "hopper") == ("old", "e")
    assert spoken("e", "0.4", "hopper") == ("pool", "e")
    assert spoken("other", "1.0", "hopper") == ("any", "any engine")
    monkeypatch.setattr(engines, "_has_eras", lambda name: False)  # what any release showed holds for each
    assert spoken("e", "0.4", "hopper") == ("new on hopper", "e")
    monkeypatch.setattr(engines, "_fitted_entries", lambda: ([], {}))
    chosen, fact = engines._fitted("e", "0.9", "hopper")
    assert (chosen["constants"], chosen["at"], fact.basis) == (engines.ASSUMED_HOST, "assumed", Basis.ASSUMED)
    assert engines._pooled_spreads() == {}


def test_an_engine_has_on_new_devices_what_any_engine_shows_there(monkeypatch):
    """Gaps of 10 us of any engine and 30 us of any on the vendor's devices: an engine's 20 us are 60 us there; what was
    fitted on a generation beats what was on its vendor's; host work, and what the engine showed itself, stay."""

    def kernels(per_layer_s, memory_ratio=1.0):
        return {"per_layer_s": per_layer_s, "memory_ratio": memory_ratio, "compute_ratio": 1.0, "step_s": 1e-3}

    def ends(far):
        return {"spread": {"closed.tpot_s": {"low_80": 1.0 / far, "high_80": far}}}

    found = [
        entry("") | {"constants": kernels(1e-5)} | ends(2.0),
        entry("", "", "AMD") | {"constants": kernels(3e-5, 1.5)} | ends(4.0),
        entry("", "", "cdna3") | {"constants": kernels(4e-5, 2.0)} | ends(8.0),
        entry("e") | {"constants": kernels(2e-5)} | ends(1.1),
        entry("e", "", "hopper") | {"constants": kernels(7e-5)} | ends(1.2),
    ]
    monkeypatch.setattr(engines, "_fitted_entries", lambda: (found, {"runs": SOURCE}))
    monkeypatch.setattr(engines, "_has_eras", lambda name: False)

    def constants(*asked):
        return engines._fitted(*asked)[0]["constants"]

    assert constants("e", "", "cdna4", "AMD") == pytest.approx(kernels(6e-5, 1.5))
    assert constants("e", "", "cdna3", "AMD") == pytest.approx(kernels(8e-5, 2.0))
    assert constants("e", "", "hopper", "NVIDIA") == kernels(7e-5)
    assert constants("e", "", "ada", "NVIDIA") == kernels(2e-5)
    assert constants("other", "", "cdna4", "AMD") == pytest.approx(kernels(3e-5, 1.5))
    for device, far in ((("cdna4", "AMD"), 1.1**2), (("cdna3", "AMD"), 1.1**3), (("ada", "NVIDIA"), 1.1)):
        spread = engines._fitted("e", "", *device)[0]["spread"]["closed.tpot_s"]
        assert spread == pytest.approx({"low_80": 1.0 / far, "high_80": far})  # log 4 is twice log 2


def test_ratios_are_of_kernels_that_nobody_timed():
    """An era of vLLM whose runs are all on MI300X says nothing of its kernels on an A100, which were timed; llama.cpp
    has other kernels than those that were timed anywhere. Operations of timed kernels take a little longer in a step
    than alone."""
    for device, has_ratio in (("a100-sxm-80gb", False), ("h100-sxm", False), ("mi300x", True)):
        engine = get_engine("vllm", "0.6.0", get_device(device))
        assert (engine.memory_ratio != 1.0) == has_ratio, device
    assert get_engine("llama.cpp", "", get_device("a100-sxm-80gb")).compute_ratio != 1.0
    for name, device in (("vllm", "h100-sxm"), ("tensorrt-llm", "b200"), ("sglang", "h200-sxm")):
        assert 0.9 < get_engine(name, "", get_device(device)).compute_ratio < 1.3, name


def test_runs_of_any_release_speak_where_releases_are_not_told_apart():
    ada = get_device("rtx-4090")
    same = [get_engine("mlc-llm", version, ada).memory_ratio for version in ("", "unknown", "0.15")]
    assert len(set(same)) == 1
    assert not get_engine("mlc-llm").has_eras
    assert get_engine("vllm").has_eras


def test_a_release_has_the_constants_of_the_library_that_it_brings():
    """Ollama since 0.7 is built on a llama.cpp of its present era, and before on one of the first."""
    ada = get_device("rtx-4090")
    for version, library in (
        ("0.5.7", "b4000"),
        ("0.7.0", "b5200"),
        ("0.13.5", "b5000"),
        ("", ""),
        ("unknown", "unknown"),
    ):
        own, its = get_engine("ollama", version, ada), get_engine("llama.cpp", library, ada)
        for name in ("step_s", "launch_s", "memory_ratio", "compute_ratio"):
            assert getattr(own, name) == getattr(its, name), (version, name)
    assert engines.host_release("ollama", "0.13.5") == ("llama.cpp", "b5000")
    assert engines.host_release("vllm", "0.11.0") == ("vllm", "0.11.0")


def test_paces_come_from_latencies_first_and_then_from_rates():
    rate = Spread(low_80_ratio=0.5, high_80_ratio=2.0, low_95_ratio=0.4, high_95_ratio=4.0)
    latency = Spread(low_80_ratio=0.9, high_80_ratio=1.1, low_95_ratio=0.8, high_95_ratio=1.2)
    found = engines._paces({"closed.requests_per_s": rate, "open.latency_s": latency, "open.output_tokens_per_s": rate})
    assert found == {
        "closed.tpot_s": replace(rate, low_95_ratio=0.25, high_95_ratio=2.5),
        "open.tpot_s": latency,
    }
    assert engines._paces({"closed.ttft_s": rate}) == {}
    table = {"low_80": 0.9, "high_80": 1.1, "low_95": 0.8, "high_95": 1.2}
    assert engines._spread(table, "runs") == replace(latency, because="runs")


def test_eras_and_days(monkeypatch):
    file = {"version": [{"from": "0", "released": "2024-01-01"}, {"from": "0.9", "released": "2025-06-01"}]}
    monkeypatch.setattr(engines, "read_file", lambda folder, name: file)
    monkeypatch.setattr(engines, "file_called", lambda folder, kind, name: name)
    monkeypatch.setattr(engines, "newest_at", lambda name, date="": "")
    assert [engines.era_of("e", v) for v in ("0.8", "0.9", "1.0", "", "unknown")] == [
        "0",
        "0.9",
        "0.9",
        "0.9",
        "unknown",
    ]
    assert [engines.version_at("e", d) for d in ("2025-05", "2025-06-01", "2026")] == ["0", "0.9", "0.9"]
    assert engines.newest_release.__wrapped__("e") == "0.9 (2025-06-01) or later"
    del file["version"][1]["released"]
    assert engines.newest_release.__wrapped__("e") == ""
    assert engines.host_of("e") == "e"
    file["runs_on"] = "other"
    assert engines.host_of("e") == "other"


@pytest.mark.parametrize(("kind", "value", "typed"), [(int, 2.0, 2), (bool, 1, True), (float, 2, 2), (str, "a", "a")])
def test_facts_have_the_type_of_their_field(kind, value, typed):
    found = engines._typed(value, kind)
    assert (found, type(found)) == (typed, type(typed))


def test_a_file_of_own_runs_is_of_one_era(tmp_path, monkeypatch):
    own = SimpleNamespace(base="vllm", version="0.6.0", holds_on=lambda device: False)
    monkeypatch.setattr(engines, "read_corrected", lambda name, kind, known: own)
    with pytest.raises(ScenarioError, match=r"mine\.toml was measured with 0\.6\.0"):
        get_engine("mine.toml", "0.20.0")
    assert get_engine("mine.toml").name == "vllm"
    assert get_engine("mine.toml", "0.6.0") == get_engine("vllm", "0.6.0")
    assert engines.version_at("mine.toml", "2026") == "0.6.0"
    assert engines.newest_release("mine.toml") == ""

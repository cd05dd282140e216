"""Entries that speak for engines, slow hosts, rules of back ends and scripts, links, and models by name: by hand."""

from dataclasses import replace
from math import exp, inf, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.cost import Spread
from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.sources import Basis, Source
from orrery.catalog import backends, engines, frameworks, links, rl_frameworks, scripts
from orrery.catalog.backends import backend_of_kernel, experts_by_default, get_backend, rules_of
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.recommendation import get_recommendation, is_recommendation
from orrery.catalog.speech import find_speech, get_speech, speech_names
from orrery.execution.engine import Situation

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


@pytest.mark.parametrize(
    ("device", "tokens", "seqs", "wide"),
    [
        ("rtx-4090", 2048, 24, 80),
        ("l40s", 4096, 32, 160),
        ("h100-sxm", 8192, 256, 512),
        ("h200-sxm", 8192, 256, 512),
        ("b200", 16384, 512, 0),
        ("mi300x", 16384, 512, 0),
    ],
)
def test_what_goes_by_memory(device, tokens, seqs, wide):
    """24, 48, 80, 141, 180 and 192 GB: below 35, 60, 160 and 160 GiB, and above."""
    engine = get_engine("sglang", "0.5.9", get_device(device))
    assert (engine.max_num_batched_tokens, engine.max_num_graph_seqs, engine.max_num_wide_graph_seqs) == (
        tokens,
        seqs,
        wide,
    )
    assert get_engine("sglang", "0.5.9").max_num_batched_tokens == 8192  # no device: what the version says


@pytest.mark.parametrize(
    ("device", "tokens", "seqs"),
    [
        ("rtx-5090", 2048, 256),
        ("l40s", 2048, 256),
        ("a100-sxm-80gb", 2048, 256),
        ("mi250x", 2048, 256),
        ("rtx-pro-6000-server", 8192, 1024),
        ("h100-sxm", 8192, 1024),
        ("mi300x", 8192, 1024),
        ("tpu-v6e", 1024, 256),
    ],
)
def test_what_goes_by_memory_in_one_release(device, tokens, seqs):
    """32 and 48 GB lie below 70 GiB; A100 is named, though it has more, and a rank of an MI250X is one die of 64 GiB; a
    TPU has limits of its own. Releases before the first that asks for the memory have one answer for all."""
    engine = get_engine("vllm", "0.19.0", get_device(device))
    assert (engine.max_num_batched_tokens, engine.max_num_seqs) == (tokens, seqs)
    assert get_engine("vllm", "0.6.0", get_device(device)).max_num_seqs == 256


def test_pieces_are_for_cuda_alone():
    assert get_engine("sglang", "0.5.10", get_device("b200")).max_num_graph_tokens == 16384
    assert get_engine("sglang", "0.5.10", get_device("mi300x")).max_num_graph_tokens == 0
    assert get_engine("sglang", "0.5.9", get_device("b200")).max_num_graph_tokens == 0


def test_a_slow_host_takes_longer_for_its_own_work_alone():
    slow = SimpleNamespace(host_time_ratio=2.0)
    constants = {"step_s": 1e-3, "launch_s": 4e-6, "sampling_s": 1e-6, "per_layer_s": 8e-6, "memory_ratio": 1.5}
    assert engines.on_device(constants, slow) == constants | {"step_s": 2e-3, "launch_s": 8e-6}
    usual = get_engine("vllm", "0.11.0", get_device("b200"))
    later = engines._on_device(usual, 3.0, 1.0)
    for name in engines.HOST_WORK:
        assert getattr(later, name) == 3.0 * getattr(usual, name)
        assert later.facts[name].value == getattr(later, name)
    for name in ("sampling_s", "per_layer_s", "memory_ratio", "compute_ratio"):
        assert getattr(later, name) == getattr(usual, name)
    grace, plain = get_device("gb200"), replace(get_device("gb200"), host_time_ratio=1.0)
    assert grace.host_time_ratio == 1.2
    assert get_engine("vllm", "0.11.0", grace).step_s == 1.2 * get_engine("vllm", "0.11.0", plain).step_s


def test_few_compute_units_do_not_fill_a_fast_memory():
    """Ten units of 5 B/s ask for 50 B/s: of 25 B/s (1 + 0.5^4)^(1/4), of 50 B/s 2^(1/4), of 500 B/s ten times as long;
    endless units read as fast as the memory gives."""

    def device(bandwidth):
        return SimpleNamespace(memory_bandwidth_bytes_per_s=bandwidth, num_compute_units=10, host_time_ratio=1.0)

    assert engines.bandwidth_ratio(5.0, device(25.0)) == pytest.approx(1.0625**0.25)
    assert engines.bandwidth_ratio(5.0, device(50.0)) == pytest.approx(2**0.25)
    assert engines.bandwidth_ratio(5.0, device(500.0)) == pytest.approx(10.0, rel=1e-4)
    assert engines.bandwidth_ratio(inf, device(500.0)) == 1.0
    given = {"memory_ratio": 2.0, "compute_ratio": 3.0, "unit_bytes_per_s": 5.0}
    assert engines.on_device(given, device(50.0)) == pytest.approx(given | {"memory_ratio": 2.0 * 2**0.25})


def test_units_bind_on_fast_memories_alone():
    """The same kernels of llama.cpp on two chips of one generation, with 4.6 and 18.9 GB/s of memory a unit."""
    slow, fast = get_device("rtx-4000-ada"), get_device("a100-sxm-80gb")
    for device, lowest, highest in ((slow, 1.0, 1.15), (fast, 1.6, 3.0)):
        engine = get_engine("llama.cpp", "b4000", device)
        plain = engines._engine("llama.cpp", "b4000", device.generation)
        assert lowest < engine.memory_ratio / plain.memory_ratio < highest
        assert engine.facts["memory_ratio"].value == engine.memory_ratio
    assert get_engine("vllm", "", fast).unit_bytes_per_s == inf


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


def rule(**stated):
    usual = {"engine": "e", "backend": "triton", "source": "code", "at": "line 1"}
    return usual | stated


def test_rules_of_back_ends(monkeypatch):
    """A rule holds from its release to before another; ends of degrees count; words that are blank accept all."""
    file = {
        "sources": {"code": {"title": "source", "retrieved": "2026-11"}},
        "backend": [{"name": "triton", "aliases": ["tri-ton"]}, {"name": "cutlass"}],
        "kernel": [{"has": "grouped", "formats": ["fp8"], "backend": "cutlass"}, {"has": "moe", "backend": "triton"}],
        "rule": [
            rule(
                backend="cutlass", **{"from": "0.9", "until": "1.0", "on": ["hopper"], "ep": [2, 8], "tokens": [1, 64]}
            ),
            rule(
                formats=["fp8"],
                activations="fp8",
                tuned_by="x",
                mixers=["latent"],
                modes=["closed"],
                families=["llama"],
            ),
            rule(engine="other"),
        ],
    }
    monkeypatch.setattr(backends, "_file", lambda kind: file)
    first, second = backends._rules("moe", "e", "0.9.1")
    assert [r.backend for r in backends._rules("moe", "e", "1.0")] == ["triton"]
    assert [r.backend for r in backends._rules("moe", "e", "0.8")] == ["triton"]
    assert (first.backend, first.generations, first.formats, first.tokens) == ("cutlass", ("hopper",), (), (1.0, 64.0))
    assert (first.spans, first.activations, first.tuned_by) == ({"ep": (2.0, 8.0)}, "", "")
    assert (first.families, second.families) == ((), ("llama",))
    at = Situation(generation="hopper", format="fp8", mixer="latent", mode="closed")
    for family, accepted in (("llama", True), ("qwen3", False), ("", True)):  # a kernel without a model asks for none
        assert second.accepts(replace(at, family=family)) is accepted
    assert (second.formats, second.activations, second.tuned_by) == (("fp8",), "fp8", "x")
    assert (second.mixers, second.modes, second.tokens, second.spans) == (
        ("latent",),
        ("closed",),
        (0.0, float("inf")),
        {},
    )
    assert (second.fact.name, second.fact.value, second.fact.at) == ("moe_backend", "triton", "line 1")
    for ep, accepted in ((1, False), (2, True), (8, True), (9, False)):
        assert first.accepts(Situation(generation="hopper", format="bf16", degrees={"ep": ep})) is accepted
    assert not first.accepts(Situation(generation="ampere", format="bf16", degrees={"ep": 2}))
    assert backends._spellings.__wrapped__("moe") == {"triton": "triton", "tri-ton": "triton", "cutlass": "cutlass"}
    named = backends.backend_of_kernel.__wrapped__
    assert named("moe", "Grouped_Moe", "fp8") == "cutlass"
    assert named("moe", "Grouped_Moe", "bf16") == "triton"
    assert named("moe", "other", "bf16") == ""


def test_words_of_back_ends():
    assert get_backend("moe", " Triton ") == get_backend("moe", "triton") == "triton"
    with pytest.raises(UnknownName, match=r"moe_backend"):
        get_backend("moe", "no such thing")
    assert backend_of_kernel("moe", "nothing that is known", "bf16") == ""
    assert experts_by_default("nobody", "", "hopper", "bf16") == "nobody"
    for name in ("mxfp4", "mxfp4_bf16"):  # a recipe's activations do not part what is stored
        assert experts_by_default("vllm", "", "hopper", name) == experts_by_default("vllm", "", "hopper", "mxfp4")
    kinds = [r.kind for r in rules_of("vllm", "")]
    assert kinds == sorted(kinds, key=("moe", "attention", "gemm").index)


def test_the_first_rule_of_scripts_that_holds_decides(monkeypatch):
    usual = {"engine": "e", "mode": "closed", "source": SOURCE, "at": "a script"}
    rules = (
        usual
        | {"scheduler_recv_interval": 30, "ranks": (2, 8), "concurrency": (16, 64), "on": ["hopper"], "from": "0.5"},
        usual | {"scheduler_recv_interval": 20, "publisher": "https://a.example", "models": "meta/*"},
        usual | {"scheduler_recv_interval": 10, "models": "*scout*"},
    )
    monkeypatch.setattr(scripts, "_rules", lambda: rules)

    def value(setting="scheduler_recv_interval", **given):
        usual = {
            "engine": "e",
            "version": "0.6",
            "mode": "closed",
            "generation": "hopper",
            "ranks": 2,
            "concurrency": 16,
        }
        found = scripts.script_setting(setting, **(usual | given))
        return found and found.value

    assert value() == 30
    assert [value(ranks=r) for r in (1, 2, 8, 9)] == [None, 30, 30, None]
    assert [value(concurrency=c) for c in (15, 16, 64, 65)] == [None, 30, 30, None]
    assert [
        value(**{k: v}) for k, v in (("generation", "ampere"), ("version", "0.4"), ("mode", "open"), ("engine", "f"))
    ] == [None] * 4
    assert value(ranks=1, published="https://a.example/run", model="Meta/Llama") == 20
    assert value(ranks=1, published="https://b.example", model="Meta/Llama") is None
    assert value(ranks=1, model="a/Scout-17B") == 10
    assert value("num_distinct_prompts") is None


def test_an_uplink_is_drawn_around_its_median():
    """x1 = rho x0 + sqrt(1 - rho^2) z1 with rho = e^-(1 / 10); rates are the median times 2^x."""
    line = links.uplink("5g")
    assert (line.each_way_bytes_per_s, line.latency_s, line.spread_ratio, line.hold_s) == (2.635e6, 0.03, 2.0, 10.0)
    assert (line.basis, links.uplink("4g").basis) == ("stated", "assumed")
    times, rates = line.trace(2.5, seed=3)
    z, rho = np.random.default_rng(3).standard_normal(3), exp(-0.1)
    x1 = rho * z[0] + sqrt(1 - rho * rho) * z[1]
    assert times.tolist() == [0.0, 1.0, 2.0]
    assert rates == pytest.approx(
        2.635e6 * 2.0 ** np.array([z[0], x1, rho * x1 + sqrt(1 - rho * rho) * z[2]]), rel=1e-12
    )
    assert line.trace(0.0, seed=3)[0].tolist() == [0.0]
    assert line.trace(1.0, seed=3)[0].tolist() == [0.0]


def test_models_of_speech_and_of_rankings_by_name():
    name = next(n for n in speech_names() if n.endswith("whisper-large-v3"))
    for spelled in ("whisper-large-v3", "Whisper large v3", "WHISPER_LARGE.V3", name):
        assert find_speech(spelled) == name
    assert get_speech("whisper large-v3").name == name
    assert find_speech("llama-3.1-8b") is None
    with pytest.raises(UnknownName):
        get_speech("whisper-gigantic")
    assert is_recommendation("DLRM-DCNv2")
    assert not is_recommendation(None)
    assert not is_recommendation("llama-3.1-8b")
    model = get_recommendation("DLRM-dcnv2")
    assert model.name == "dlrm-dcnv2"
    assert all(isinstance(getattr(model, part), tuple) for part in ("bottom", "top", "rows", "lookups"))
    with pytest.raises(UnknownName):
        get_recommendation("dlrm-x")


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


def test_a_file_of_own_runs_is_of_one_era(tmp_path, monkeypatch):
    own = SimpleNamespace(base="vllm", version="0.6.0", holds_on=lambda device: False)
    monkeypatch.setattr(engines, "read_corrected", lambda name, kind, known: own)
    with pytest.raises(ScenarioError, match=r"mine\.toml was measured with 0\.6\.0"):
        get_engine("mine.toml", "0.20.0")
    assert get_engine("mine.toml").name == "vllm"
    assert get_engine("mine.toml", "0.6.0") == get_engine("vllm", "0.6.0")
    assert engines.version_at("mine.toml", "2026") == "0.6.0"
    assert engines.newest_release("mine.toml") == ""

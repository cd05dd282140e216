"""Fitted constants of engines: what they rest on, and which entry speaks for a run."""

import tomllib
from datetime import date

import pytest
from battery import over

from orrery.catalog import engines
from orrery.catalog.devices import device_names, get_device
from orrery.catalog.engines import (
    FITTED,
    POOLED,
    UNVERSIONED,
    engine_names,
    engine_notes,
    get_engine,
    host_of,
    newest_release,
    version_at,
)
from orrery.catalog.models import get_model
from orrery.catalog.named_files import read_file
from orrery.catalog.releases import newest_at, release_day
from orrery.execution.formats import activations_for
from orrery.scenario.resolve import cache_beside

FEWEST_ROWS = 10
ENTRIES = tomllib.loads(FITTED.read_text(encoding="utf-8"))["engine"]


@over(ENTRIES, named=lambda e: "-".join((e["name"], e["version"], e["generation"])) or "any")
def test_constants_rest_on_ten_rows_and_none_is_at_a_bound(entry):
    assert entry["rows"] >= FEWEST_ROWS
    assert entry["campaigns"] >= 1
    assert entry["at_bound"] == [], "pool it, or give the fit room"
    rate = entry["constants"].get("unit_bytes_per_s", 1e10)
    assert 1e9 < rate < 1e12
    assert all(0.0 < v < 20.0 for name, v in entry["constants"].items() if name != "unit_bytes_per_s")


def entry(name, version, generation, step_s):
    return {
        "name": name,
        "version": version,
        "generation": generation,
        "source": "runs",
        "at": f"{name} {version}",
        "constants": {"step_s": step_s},
        "spread": {},
    }


@pytest.fixture
def known(monkeypatch):
    entries = [
        entry("", POOLED, "", 1.0),
        entry("vllm", POOLED, "", 2.0),
        entry("vllm", "0.8", "", 3.0),
        entry("vllm", "0.8", "hopper", 4.0),
        entry("vllm", "0.14", "", 5.0),
        entry("vllm", UNVERSIONED, "", 6.0),
    ]
    monkeypatch.setattr(engines, "_fitted_entries", lambda: (entries, {"runs": None}))
    return lambda name, version, generation="": engines._fitted(name, version, generation)[0]["constants"]["step_s"]


@pytest.mark.parametrize(
    ("requested", "step_s"),
    [
        (("vllm", "0.9", "hopper"), 4.0),
        (("vllm", "0.9", "ampere"), 3.0),
        (("vllm", "0.15", "hopper"), 5.0),
        (("vllm", "", "hopper"), 5.0),
        (("vllm", "0.5", "hopper"), 2.0),
        (("vllm", UNVERSIONED, "hopper"), 6.0),
        (("sglang", "0.4", "hopper"), 1.0),
    ],
)
def test_the_nearest_entry_speaks(known, requested, step_s):
    assert known(*requested) == step_s


def test_an_engine_that_wraps_another_takes_its_host():
    assert host_of("ollama") == "llama.cpp"
    assert host_of("vllm") == "vllm"
    assert get_engine("ollama").step_s == get_engine("llama.cpp").step_s


@pytest.mark.parametrize(
    ("engine", "day", "version"),
    [
        ("vllm", "2025-12-02", "0.11.2"),
        ("vllm", "2025-12-03", "0.12.0"),
        ("vllm", "2026-03-25", "0.18.0"),
        ("vllm", "2025-12", "0.11.2"),  # as far as it goes: before the month began
        ("sglang", "2025-12-15", "0.5.6"),
        ("tensorrt-llm", "2025-11-03", "1.2.0rc0"),
        ("tensorrt-llm", "2026-03-20", "1.3.0rc0"),  # a candidate of a higher release than 1.2.0 of that month
        ("vllm", "2023-01-01", "0"),
        ("llama.cpp", "2025-12-02", "b5000"),
        ("llama.cpp", "2024-12-02", "0"),
    ],
)
def test_a_day_stands_for_the_newest_release_until_then(engine, day, version):
    assert version_at(engine, day) == version


def test_a_blank_version_is_the_newest_release():
    assert newest_at("vllm") == "0.33.0"
    assert newest_release("vllm") == "0.33.0 (2026-11-02)"
    assert newest_at("llama.cpp") == ""
    assert newest_release("llama.cpp") == "b5000 (2025-03-31) or later"  # the newest that changed defaults or constants
    assert newest_at("mlc-llm") == newest_release("mlc-llm") == ""


def test_eras_begin_when_their_release_came():
    for name in ("vllm", "sglang", "tensorrt-llm"):
        for table in read_file(engines.FOLDER, name)["version"]:
            if "released" in table:
                day = release_day(name, table["from"]) or release_day(name, f"{table['from']}.0")
                first = date.fromisoformat(day)
                assert abs((date.fromisoformat(table["released"]) - first).days) <= 10, (name, table["from"])


def test_a_default_that_changes_within_an_era_leaves_its_constants():
    """SGLang keeps five states of a sequence since 0.5.14 (its own, two of the prefix cache, two of the overlapped
    scheduler) and three before; both releases are of the era of 0.5.10."""
    before, after = get_engine("sglang", "0.5.13"), get_engine("sglang", "0.5.14")
    assert (before.num_states_each, after.num_states_each) == (3, 5)
    assert before.step_s == after.step_s
    assert engines.era_of("sglang", "0.5.14") == engines.era_of("sglang", "0.5.13") == "0.5.10"


@pytest.mark.parametrize(
    ("engine", "version", "weights", "kv"),
    [
        ("vllm", "0.13.0", "nvfp4", "bf16"),
        ("vllm", "0.14.0", "nvfp4", "fp8"),  # kv_cache_quant_algo of the checkpoint
        ("vllm", "0.14.0", "fp8", "bf16"),  # checkpoints of many makers, which say nothing of the cache
        ("vllm", "0.14.0", "mxfp4", "bf16"),
        ("sglang", "0.5.3", "nvfp4", "bf16"),
        ("sglang", "0.5.4", "nvfp4", "fp8"),
        ("tensorrt-llm", "1.0.0", "fp8", "fp8"),
        ("tensorrt-llm", "1.0.0", "nvfp4", "fp8"),
        ("tensorrt-llm", "1.0.0", "int4_weight_only", "bf16"),
    ],
)
def test_nvfp4_checkpoints_bring_an_fp8_cache(engine, version, weights, kv):
    device = get_device("b200")
    activations, model = activations_for(weights, device), get_model("llama-3.1-8b")
    found = cache_beside(weights, activations, get_engine(engine, version, device), device, model)
    assert found == kv


def test_atom_takes_prompts_first_and_all_of_its_kernels_from_aiter():
    """As its guides say: 512 sequences, 16,384 tokens a step, and no decoding beside prompts."""
    device = get_device("mi355x")
    atom, vllm = (get_engine(name, device=device) for name in ("atom", "vllm"))
    assert (atom.max_num_seqs, atom.max_num_batched_tokens, atom.has_mixed_steps) == (512, 16384, False)
    assert vllm.has_mixed_steps
    assert {(rule.kind, rule.backend) for rule in atom.backends} == {(k, "aiter") for k in ("moe", "attention", "gemm")}


@pytest.mark.parametrize(
    ("engine", "device", "vendors"),
    [("atom", "h100-sxm", "AMD"), ("tensorrt-llm", "mi355x", "NVIDIA"), ("atom", "mi355x", ""), ("vllm", "mi355x", "")],
)
def test_an_engine_on_devices_that_it_does_not_run_on_says_so(engine, device, vendors):
    found = [n for n in engine_notes(engine, get_device(device)) if "runs on devices of" in n]
    assert len(found) == bool(vendors)
    assert all(n.startswith(f"engine: {engine} runs on devices of {vendors} alone; on {device}") for n in found)


def test_vendors_of_engines_are_vendors_of_devices():
    known = {get_device(name).vendor for name in device_names()}
    named = {v for name in engine_names() for v in read_file(engines.FOLDER, name).get("vendors", ())}
    assert named <= known

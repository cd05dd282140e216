"""Training frameworks: every fact is sourced, every name resolves, fitted constants are taken nearest first."""

import csv
import os
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from battery import over

from orrery.base.errors import FactError, UnknownName
from orrery.base.sources import Basis
from orrery.catalog import frameworks
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import ASSUMED, framework_names, get_framework, lineage
from orrery.execution.train.experts import DISPATCHERS
from orrery.execution.train.framework import Framework

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
TABLES = sorted((DATA / "training").glob("*.csv")) if (DATA / "training").is_dir() else []


@over(framework_names())
def test_every_framework_loads_and_cites_each_of_its_numbers(name):
    framework = get_framework(name)
    own = {f.name for f in fields(Framework)} - {"name", "kernels", "spreads", "facts"}
    has_default = {f.name for f in fields(Framework) if f.default is not MISSING}
    assert own - has_default <= framework.facts.keys() <= own
    for key, fact in framework.facts.items():
        assert getattr(framework, key) == fact.value
        assert fact.source or fact.basis is Basis.ASSUMED
    assert framework.sharding in ("none", "zero1", "zero2", "zero3")
    assert framework.recompute in ("none", "selective", "full")
    assert framework.selective in ("attention", "operators")
    assert framework.dispatcher in DISPATCHERS


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("megatron-lm", (2, 4, 4, 8)),
        ("torchtitan", (4, 4, 0, 8)),
        ("litgpt", (2, 2, 0, 4)),
        ("deepspeed", (2, 2, 4, 8)),
        ("maxtext", (4, 4, 0, 8)),
    ],
)
def test_bytes_of_a_parameter(name, state):
    f = get_framework(name)
    assert (f.weights_bytes, f.gradient_bytes, f.master_bytes, f.moments_bytes) == state


def test_buckets_are_those_of_the_documentation():
    assert get_framework("megatron-lm").bucket_bytes == 40e6 * 4
    assert get_framework("pytorch").bucket_bytes == 25 * 2**20
    assert get_framework("deepspeed").bucket_bytes == 5e8 * 2


def test_a_framework_keeps_what_its_model_says_and_changes_the_rest():
    core, nemo, bridge = (get_framework(n) for n in ("megatron-lm", "nemo", "megatron-bridge"))
    assert (core.sharding, nemo.sharding, bridge.sharding) == ("none", "zero1", "zero1")
    assert core.kernels == nemo.kernels == bridge.kernels == "tensorrt-llm"
    assert bridge.bucket_bytes == core.bucket_bytes
    assert (core.overlaps_gradients, bridge.overlaps_gradients) == (False, True)


def test_spellings():
    assert get_framework("lit-gpt").name == "litgpt"
    assert get_framework("Colossal AI").name == "colossalai"
    assert get_framework("trl").name == "huggingface-trainer"
    assert get_framework().name == "pytorch", "who names none uses PyTorch's defaults"
    with pytest.raises(UnknownName, match="torchtitan"):
        get_framework("torchtitn")


def test_the_same_question_has_the_same_answer():
    device = get_device("h100-sxm")
    assert get_framework("nemo", device, "fp8") is get_framework("NeMo", device, "fp8")


FITTED = """
[sources.runs]
title = "Runs"
retrieved = "2026-11"
"""


def entry(name, generation, precision, value, *, key="matrix_ratio"):
    return (
        f'[[framework]]\nname = "{name}"\ngeneration = "{generation}"\nprecision = "{precision}"\nsource = "runs"\n'
        f'at = "{value} rows"\n[framework.constants]\n{key} = {value}\n'
        f'[framework.spread."pretrain.step_time_s"]\nlow_80 = {value}\n'
    )


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    def clear():
        frameworks._fitted_entries.cache_clear()
        frameworks._framework.cache_clear()

    def write(*entries):
        path = tmp_path / "training.toml"
        path.write_text(FITTED + "".join(entries), encoding="utf-8")
        monkeypatch.setattr(frameworks, "FITTED", path)
        clear()

    yield write
    monkeypatch.undo()
    clear()


LADDER = [
    ("nemo", "hopper", "fp8"),
    ("nemo", "hopper", ""),
    ("nemo", "", "fp8"),
    ("nemo", "", ""),
    ("", "hopper", "fp8"),
    ("", "hopper", ""),
    ("", "", "fp8"),
    ("", "", ""),
]


@pytest.mark.parametrize("missing", range(len(LADDER)))
def test_the_nearest_entry_wins(fitted, missing):
    retained = LADDER[missing:]
    foreign = [("nemo", "ampere", "fp8"), ("maxtext", "", ""), ("", "", "bf16")]
    values = {words: 2.0 + i for i, words in enumerate([*retained[::-1], *foreign])}
    fitted(*(entry(*words, value) for words, value in values.items()))
    found = get_framework("nemo", get_device("h100-sxm"), "fp8")
    assert found.matrix_ratio == values[retained[0]]
    assert found.spreads["pretrain.step_time_s"]["low_80"] == values[retained[0]]
    assert found.facts["matrix_ratio"].basis is Basis.MEASURED
    assert found.step_s == ASSUMED["step_s"], "what no entry states stays assumed"
    assert found.facts["step_s"].basis is Basis.ASSUMED


def test_a_farther_entry_fills_what_the_nearer_leaves_out(fitted):
    fitted(entry("", "", "", 1.5, key="network_ratio"), entry("nemo", "", "", 1.25))
    found = get_framework("nemo", get_device("h100-sxm"), "fp8")
    assert (found.matrix_ratio, found.network_ratio) == (1.25, 1.5)
    assert get_framework("maxtext").matrix_ratio == ASSUMED["matrix_ratio"]


def test_constants_of_products_are_those_of_their_format(fitted):
    """However they are scaled, and whatever the state around them is kept in."""
    fitted(entry("", "hopper", "fp8", 1.5), entry("", "hopper", "bf16", 1.25))
    device = get_device("h100-sxm")
    found = {word: get_framework("torchtitan", device, word).matrix_ratio for word in ("fp8", "fp8_current", "fp8-lm")}
    assert set(found.values()) == {1.5}
    assert {get_framework("litgpt", device, word).matrix_ratio for word in ("bf16", "bf16_pure", "ternary")} == {1.25}
    assert get_framework("litgpt", device, "mxfp8").matrix_ratio == ASSUMED["matrix_ratio"]


def test_an_unknown_constant_is_refused(fitted):
    fitted(entry("", "", "", 1.5, key="luck_ratio"))
    with pytest.raises(FactError, match="luck_ratio"):
        get_framework("nemo")


@pytest.mark.skipif(not TABLES, reason="no measured tables beside the repository (set ORRERY_DATA)")
def test_every_framework_of_the_tables_is_known():
    words = set()
    for path in TABLES:
        with path.open(encoding="utf-8") as lines:
            words |= {row.get("framework", "") for row in csv.DictReader(lines)}
    assert len(words) > 10
    for word in words:
        assert get_framework(word).name


def test_a_framework_without_runs_has_the_constants_of_the_one_it_is_like() -> None:
    """But the seconds that its steps take once are nobody else's."""
    assert lineage("megatron-bridge") == ("megatron-bridge", "nemo", "megatron-lm")
    fitted = tomllib.loads(frameworks.FITTED.read_text(encoding="utf-8"))["framework"]
    known = {e["name"] for e in fitted if "host_layer_s" in e.get("constants", {})}
    child, parent = get_framework("flagscale"), get_framework("megatron-lm")
    assert "flagscale" not in known
    assert "megatron-lm" in known
    assert child.host_layer_s == parent.host_layer_s
    assert child.step_s != parent.step_s

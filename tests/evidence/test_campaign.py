"""Which campaign a row belongs to."""

import pytest

from orrery.evidence.campaign import campaign_of, source_of
from orrery.evidence.row import Row

CELLS = {
    "kind": "serving",
    "source": "NVIDIA/TensorRT-LLM@258c7540:docs/perf.md",
    "mode": "offline",
    "engine": "tensorrt-llm",
    "engine_version": "1.0",
    "device": "h100-sxm",
    "model": "meta-llama/Llama-3.1-8B",
}


def name(**cells):
    return campaign_of(Row(cells={**CELLS, **cells}))


def test_a_campaign_is_a_source_a_load_an_engine_an_era_and_a_generation():
    assert name() == "NVIDIA/TensorRT-LLM: offline, tensorrt-llm 1.0, hopper"


@pytest.mark.parametrize(
    "same",
    [
        {"source": "NVIDIA/TensorRT-LLM (page)"},
        {"source": "NVIDIA/TensorRT-LLM@00f3:other.md"},
        {"device": "h200"},
        {"engine_version": "1.2.0rc2.post2"},
        {"model": "meta-llama/Llama-3.1-70B"},
    ],
)
def test_other_pages_models_devices_and_patches_are_the_same_campaign(same):
    assert name(**same) == name()


@pytest.mark.parametrize(
    "other",
    [
        {"source": "somebody/else@1"},
        {"mode": "closed"},
        {"engine": "vllm"},
        {"engine_version": "0.17"},
        {"device": "b200"},
        {"prefill_workers": "1"},
    ],
)
def test_another_source_load_engine_era_or_generation_is_another_campaign(other):
    assert name(**other) != name()


def test_a_column_wins():
    assert name(campaign="spring") == "spring"


def test_nothing_that_is_assumed_for_the_name_is_noted_on_the_row():
    row = Row(cells={**CELLS, "engine": "", "engine_version": "", "source": ""})
    assert campaign_of(row).startswith("unknown source: offline, ")
    assert row.assumed == []


def test_a_source_is_who_published():
    assert [source_of(w) for w in ("a/b@c:d", "a/b (remark)", "a: b", "")] == ["a/b", "a/b", "a", "unknown source"]


@pytest.mark.parametrize(
    ("cells", "campaign"),
    [
        ({"kind": "training", "source": "a/b@1", "framework": "nemo", "device": "gb200"}, "a/b: nemo, gb200"),
        ({"kind": "kernel", "source": "c (page)", "engine": "vllm", "device": "l40s"}, "c: vllm, l40s"),
        ({"kind": "collective", "library": "nccl", "device": "b200"}, "unknown source: nccl, b200"),
        ({"kind": "diffusion", "source": "d", "device": "h200"}, "d: h200"),
    ],
)
def test_other_kinds_go_by_source_program_and_device(cells, campaign):
    assert campaign_of(Row(cells=cells)) == campaign

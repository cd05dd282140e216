"""Every catalogued model has exactly the parameters that transformers builds, or that its publisher counts."""

import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from battery import over

from orrery.catalog.models import get_model, model_names, published_parameters

RECORDED: dict[str, Any] = tomllib.loads((Path(__file__).parent / "parameter_counts.toml").read_text())["models"]
TOOL = Path(__file__).parents[2] / "tools" / "record_parameter_counts.py"

ROUNDED = {
    "moonshotai/Kimi-K3": (2.8e12, 0.02),
    "meta-models/Muse-Spark-Open-816B-A42B": (816e9, 0.01),  # with the tower for pictures, without that for sound
    "meta-models/Muse-Glimmer-30B": (30e9, 0.01),
    "nvidia/Llama-3_1-Nemotron-Ultra-253B-v1": (253e9, 0.002),
    "moonshotai/Kimi-VL-A3B-Instruct": (16.4e9, 0.005),  # with the tower
    "stepfun-ai/step3": (316e9, 0.002),  # the language model
    "LiquidAI/LFM2-24B-A2B": (24e9, 0.02),  # the width of two dense layers is assumed
    "THUDM/GLM-130B": (130e9, 0.02),
    "XiaomiMiMo/MiMo-7B-Base": (7.6e9, 0.02),
    "internlm/internlm-20b": (20e9, 0.02),
    "internlm/internlm-7b": (7.3e9, 0.02),
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": (49.9e9, 0.005),
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": (8.89e9, 0.002),
    "nvidia/NVIDIA-Nemotron-Nano-12B-v2": (12.31e9, 0.002),
    "Qwen/Qwen3-Omni-30B-A3B-Instruct": (30.5e9, 0.005),  # the thinker's language model
    "google/gemma-4-E2B-it": (5.1e9, 0.1),  # published with the towers of pictures and sound
    "google/gemma-4-E4B-it": (8.0e9, 0.1),
    "google/gemma-3n-E2B-it": (5.44e9, 0.19),  # with towers and keys that nothing reads, 1.0 G in all
    "google/gemma-3n-E4B-it": (7.85e9, 0.13),
    "mistralai/Ministral-3-3B-Instruct-2512": (3.4e9, 0.01),  # language models alone
    "mistralai/Ministral-3-8B-Instruct-2512": (8.4e9, 0.015),
    "mistralai/Ministral-3-14B-Instruct-2512": (13.5e9, 0.005),
    "ridger/MMfreeLM-370M": (370e6, 0.02),
    "ridger/MMfreeLM-1.3B": (1.3e9, 0.06),
    "ridger/MMfreeLM-2.7B": (2.7e9, 0.01),
    "xai-org/grok-1": (314e9, 0.01),
    "inclusionAI/Ling-mini-2.0": (16.26e9, 0.001),
    "inclusionAI/Ling-flash-2.0": (103e9, 0.005),
    "inclusionAI/Ling-1T": (1000e9, 0.001),
    "meituan-longcat/LongCat-Flash-Chat": (560e9, 0.005),
    "mistralai/Mistral-Small-4-119B-2603": (119e9, 0.005),
    "CohereLabs/command-a-plus-05-2026-bf16": (218.8e9, 0.003),  # published with the tower of pictures
    "CohereLabs/command-a-plus-05-2026-fp8": (218.8e9, 0.003),
    "CohereLabs/command-a-plus-05-2026-w4a4": (218.8e9, 0.003),
    "tencent/Hy4-preview": (770e9, 0.001),
    "tencent/Hy4-preview-FP8": (770e9, 0.001),
    "Qwen/Qwen3.8-Flash-Next": (176e9, 0.01),  # published as 125 and 51, without the tower
    "Qwen/Qwen3.8-Flash-Next-FP8": (176e9, 0.01),
    "meta-llama/Llama-3.2-11B-Vision": (10.7e9, 0.003),
    "meta-llama/Llama-3.2-90B-Vision": (88.6e9, 0.001),
    "Zyphra/Zamba2-2.7B": (2.7e9, 0.02),
    "Zyphra/Zamba2-7B": (7.4e9, 0.01),
    "poolside/Laguna-M.1": (225e9, 0.005),
    "poolside/Laguna-S-2.1": (118e9, 0.005),
    "poolside/Laguna-XS-2.1": (33e9, 0.015),
}
"""Neither in transformers nor counted to the unit by their publishers: the rounded size, and how far it may be off."""

WITH_DRAFTS = {
    "Qwen/Qwen3.8-Flash-Next": (180e9, 0.001),
    "Qwen/Qwen3.8-Flash-Next-FP8": (180e9, 0.001),
    "tencent/Hy4-preview": (780e9, 0.001),
    "tencent/Hy4-preview-FP8": (780e9, 0.001),
    "zai-org/GLM-5.3-Flash": (321e9, 0.002),
    "zai-org/GLM-5.3-Flash-BF16": (321e9, 0.002),
    "thinkingmachines/Inkling": (952e9, 0.001),  # what the hub counts; its publisher says 975
    "thinkingmachines/Inkling-Small": (266e9, 0.001),  # and 276
}
"""The same of what a checkpoint holds with its drafting layers."""


@over(sorted(RECORDED))
def test_counts_are_those_of_transformers(name: str) -> None:
    assert get_model(name).num_parameters == RECORDED[name]["num_parameters"]


@over(model_names())
def test_counts_are_those_published(name: str) -> None:
    fact = published_parameters(name)
    if fact is not None:
        assert get_model(name).num_parameters == fact.value


def test_every_model_is_counted_by_somebody() -> None:
    alone = {n for n in model_names() if n not in RECORDED and published_parameters(n) is None}
    assert alone == {*ROUNDED, *WITH_DRAFTS}


@pytest.mark.parametrize("name", sorted(ROUNDED))
def test_the_uncounted_are_near_their_rounded_size(name: str) -> None:
    size, tolerance = ROUNDED[name]
    assert get_model(name).num_parameters == pytest.approx(size, rel=tolerance)


@pytest.mark.parametrize("name", sorted(WITH_DRAFTS))
def test_the_uncounted_with_their_drafting_layers(name: str) -> None:
    (size, tolerance), model = WITH_DRAFTS[name], get_model(name)
    assert model.num_parameters + model.draft_parameters == pytest.approx(size, rel=tolerance)


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("record_parameter_counts", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_recorded_counts_can_be_made_again() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from orrery.catalog.models import published_config

    tool = _tool()
    for name in sorted(RECORDED):
        counted = tool.count(published_config(name))
        assert counted == (RECORDED[name]["class"], RECORDED[name]["num_parameters"]), name

"""Models are found under every spelling that people and tables use."""

import csv
import gzip
import io
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import NotModelled, OrreryError, UnknownName
from orrery.catalog.models import FOLDER, NOT_MODELLED, _load, get_model, model_names, resolve

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
TABLES = sorted((*DATA.glob("serving/*.csv"), *DATA.glob("training/*.csv*")))

NO_KNOWN_ARCHITECTURE = (
    "size only",
    "maxtext-",
    "gpt2-arch-",
    "gpt2-1.2b",
    "gpt2-2.0b",
    "gpt2-4.2b",
    "gpt2-8.7b",
    "switch-xl",
    "stable-diffusion",
    "FLUX",
    "mcore",
    "_release",
    "nightly",
    "grpo",
    "memory_speed",
    "fsdp_ep2",
    "no_load_optim",
    "vlm_pretrain",
    "_sm",
    "tp4_pp1",
)
"""Names in the tables that stand for a size, a test job or an image model; their rows state sizes themselves."""


@pytest.mark.parametrize(
    ("spelled", "name", "weights"),
    [
        ("llama-3.1-70b", "meta-llama/Llama-3.1-70B", "bf16"),
        ("lmstudio-community/Qwen3.6-27B-MLX-4bit", "Qwen/Qwen3.6-27B", "int4_weight_only"),
        ("unsloth/Qwen3-14B-unsloth-bnb-4bit", "Qwen/Qwen3-14B", "nf4"),
        ("google/gemma-4-31B-it-qat-w4a16-ct", "google/gemma-4-31B-it", "int4_weight_only"),
        ("OpenGVLab/InternVL3_5-241B-A28B-Instruct", "OpenGVLab/InternVL3_5-241B-A28B-HF", "bf16"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-3.1-8B", "bf16"),
        ("Qwen/Qwen2.5-Coder-14B-Instruct-AWQ", "Qwen/Qwen2.5-14B", "int4_weight_only"),
        ("LGAI-EXAONE/K-EXAONE-2.0-750B-A37B-NVFP4", "LGAI-EXAONE/K-EXAONE-2.0-750B-A37B", "nvfp4"),
        ("tiiuae/Falcon-H1-3B-Base", "tiiuae/Falcon-H1-3B-Instruct", "bf16"),
        ("llama3.1-70b", "meta-llama/Llama-3.1-70B", "bf16"),
        ("llama31-70b", "meta-llama/Llama-3.1-70B", "bf16"),
        ("Llama_3.1_70B_Instruct", "meta-llama/Llama-3.1-70B", "bf16"),
        ("Meta-Llama-3.1-70B", "meta-llama/Llama-3.1-70B", "bf16"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8", "meta-llama/Llama-3.1-70B", "fp8"),
        ("nvidia/Llama-3.1-405B-Instruct-NVFP4", "meta-llama/Llama-3.1-405B", "nvfp4"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", "Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8_block"),
        ("qwen3-next-80b-a3b-instruct-fp8", "Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8_block"),
        ("RedHatAI/Qwen3-Next-80B-A3B-Instruct-FP8-dynamic", "Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct-Lite", "meta-llama/Llama-3.1-70B", "bf16"),
        ("llama2-70b", "meta-llama/Llama-2-70b-hf", "fp16"),
        ("gpt3-175b", "openai/gpt3-175b", "bf16"),
        ("GPT3_175B", "openai/gpt3-175b", "bf16"),
        ("opt-1.3b", "facebook/opt-1.3b", "bf16"),
        ("opt-13b", "facebook/opt-13b", "bf16"),
        ("TheBloke/Llama-2-13B-chat-GPTQ", "meta-llama/Llama-2-13b-hf", "int4_weight_only"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "Qwen/Qwen2.5-72B", "int4_weight_only"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3", "fp8_block"),
        ("nvidia/DeepSeek-R1-FP4", "nvidia/DeepSeek-R1-NVFP4", "nvfp4"),
        ("deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite", "bf16"),
        ("gpt-oss-120b", "openai/gpt-oss-120b", "mxfp4_weight_only"),
        ("mixtral-8x7b-instruct-v0.1", "mistralai/Mixtral-8x7B-v0.1", "bf16"),
        ("mt-nlg-530b", "nvidia/megatron-gpt-530b", "bf16"),
        ("phi-1.5", "microsoft/phi-1_5", "bf16"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B", "bf16"),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-Q4_K_M-GGUF", "meta-llama/Llama-3.1-8B", "q4_k_m"),
        ("RedHatAI/Qwen3-8B-quantized.w4a16", "Qwen/Qwen3-8B", "int4_weight_only"),
        ("unsloth/Llama-3.3-70B-Instruct-bnb-4bit", "meta-llama/Llama-3.3-70B-Instruct", "nf4"),
        ("llama-2-7b.Q8_0", "meta-llama/Llama-2-7b-hf", "q8_0"),
    ],
)
def test_spellings(spelled: str, name: str, weights: str) -> None:
    model = get_model(spelled)
    assert model.name == name
    assert model.weights_format in (weights, "bf16" if weights == "fp16" else weights)


@given(st.sampled_from(model_names()), st.sampled_from(["{}", "{}-Instruct", "{}-FP8", "{}-hf"]), st.booleans())
def test_any_catalogued_name_in_any_spelling(name: str, form: str, lower: bool) -> None:
    spelled = form.format(name.split("/", 1)[1]).replace("-", "_")
    found = resolve(spelled.lower() if lower else spelled)[0]
    same = get_model(found).num_parameters == get_model(name).num_parameters
    assert found == name or same, f"{spelled} is {found}"


@pytest.mark.skipif(not TABLES, reason="no measured tables beside the repository (set ORRERY_DATA)")
def test_every_name_in_the_tables_resolves_where_a_row_does_not_state_its_architecture() -> None:
    unknown: set[str] = set()
    for path in TABLES:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        rows = [row for row in csv.DictReader(io.StringIO(text)) if not row.get("num_layers")]
        names = {row.get(c) for row in rows for c in ("model", "base_model")}
        for name in sorted(n for n in names if n):
            try:
                resolve(name)
            except UnknownName:
                unknown.add(name)
    assert {n for n in unknown if not any(word in n for word in NO_KNOWN_ARCHITECTURE)} == set()


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        get_model("meta-llama/Llama-3.1-71B")
    assert "meta-llama/Llama-3.1-70B" in caught.value.near
    for odd in ("", "/", "-instruct", "\0", "x" * 5000):
        with pytest.raises(OrreryError):
            get_model(odd)


def test_at_least_a_hundred_and_twenty_models() -> None:
    assert len(model_names()) >= 120
    assert len(set(model_names())) == len(list(FOLDER.glob("*.toml"))) - 1


def test_one_model_is_read_quickly_and_without_numpy() -> None:
    code = (
        "import sys, time; from orrery.catalog.models import get_model; t = time.process_time();"
        "get_model('deepseek-v3'); print(time.process_time() - t); assert 'numpy' not in sys.modules"
    )
    taken_s = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
    assert taken_s < 0.05, "all spellings, one file and one family's code"


def test_a_model_takes_milliseconds() -> None:
    names = model_names()[::6]
    get_model(names[0])
    start_s = time.process_time()
    for name in names:
        _load.__wrapped__(name)
    assert (time.process_time() - start_s) / len(names) < 0.005


@pytest.mark.parametrize("name", ["whisper-tiny", "openai/whisper-tiny", "ResNet-50", "dlrm"])
def test_models_of_other_kinds_are_told_from_unknown_ones(name):
    with pytest.raises(UnknownName, match=f"{name} is no model of text"):
        get_model(name)


@pytest.mark.parametrize(
    ("word", "near"),
    [("whisper", "openai/whisper-tiny"), ("bge", "BAAI/bge-m3"), ("vit", "vit-b-16"), ("flux", "FLUX.1-dev")],
)
def test_a_beginning_names_what_begins_so(word, near):
    with pytest.raises(UnknownName, match="Did you mean") as found:
        get_model(word)
    assert any(name.endswith(near) for name in found.value.near)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("google/diffusiongemma-26B-A4B-it", "Take gemma-4-26b-a4b"),
        ("GSAI-ML/LLaDA-8B-Instruct", "denoising"),
    ],
)
def test_a_model_whose_layers_are_not_modelled_is_refused_in_words(name, why):
    with pytest.raises(NotModelled, match=why):
        resolve(name)


def test_what_is_taken_instead_of_a_refused_model_is_modelled():
    for entry in tomllib.loads(NOT_MODELLED.read_text(encoding="utf-8"))["mechanism"]:
        taken = entry["instead"].split()[1].rstrip(",")
        assert taken == "an" or get_model(taken)


def test_a_format_is_taken_as_its_published_checkpoint_holds_it() -> None:
    """NVIDIA's NVFP4 of DeepSeek-R1 leaves attention in 16 bits, DeepSeek's own FP8 does not."""
    own = get_model("deepseek-ai/DeepSeek-R1")
    assert own.kept_roles("fp8_block") == own.kept_16bit_roles == {"head", "router"}
    published = get_model("nvidia/DeepSeek-R1-NVFP4")
    assert own.kept_roles("nvfp4") == published.kept_roles("nvfp4") == {"head", "router", "attention"}
    assert own.kept_roles("int4_weight_only") == own.kept_16bit_roles  # nobody's checkpoint says otherwise
    assert get_model("meta-llama/Llama-3.1-70B").kept_elsewhere == ()

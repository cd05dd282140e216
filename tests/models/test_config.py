"""Configs are read, or refused in one sentence; sizes that other floors rely on are right."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from battery import over
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import OrreryError, ScenarioError
from orrery.catalog.models import get_model, model_names, published_config
from orrery.models.config import families_by_type, parse
from orrery.models.fields import MAX_ELSE, Fields
from orrery.models.model import CompressedAttention, LatentAttention, Model, RecurrentMixer, SoftmaxAttention
from orrery.models.read import read_model
from orrery.models.rotation import rotation_of
from orrery.numerics.registry import known_formats

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data")) / "models"
SHARED = sorted(DATA.glob("*.json"))

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
}


def cache_bytes(model: Model, bytes_per_element: int = 2) -> float:
    """Key/value bytes that one token adds in all layers."""
    elements = sum(b.count * b.mixer.cache_elements_per_token for b in model.blocks if b.mixer)
    return elements * bytes_per_element


@pytest.mark.skipif(not SHARED, reason="no configs beside the repository (set ORRERY_DATA)")
def test_every_collected_config_is_understood() -> None:
    for path in SHARED:
        model = read_model(path)
        assert model.num_parameters > 1e8, path.name
        assert not any(key == "model_type" for key, _ in model.published), f"{path.name}: read as an unknown family"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3.1-70b", 327_680),
        ("llama-3.1-8b", 131_072),
        ("llama-3.1-405b", 516_096),
        ("llama-2-7b", 524_288),
        ("deepseek-v3", 70_272),
        ("kimi-k2", 70_272),
        ("gpt3-175b", 4_718_592),
        ("mistral-7b", 131_072),
        ("qwen3-235b-a22b", 192_512),
        ("qwen2.5-72b", 327_680),
        ("gpt-oss-120b", 73_728),
        ("falcon-7b", 8_192),
        ("mamba-2.8b", 0),
        ("gemma-2-9b", 344_064),
    ],
)
def test_cache_bytes_per_token(name: str, expected: int) -> None:
    assert cache_bytes(get_model(name)) == expected


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("mixtral-8x7b", 12.75),
        ("deepseek-v3", 36.6),
        ("qwen3-235b-a22b", 21.6),
        ("gpt-oss-120b", 5.1),
        ("gpt-oss-20b", 3.6),
        ("llama-4-scout", 16.2),
        ("kimi-k2", 31.7),
        ("qwen3-30b-a3b", 3.04),
    ],
)
def test_active_parameters(name: str, billions: float) -> None:
    assert get_model(name).num_active_parameters / 1e9 == pytest.approx(billions, rel=0.02)


@pytest.mark.parametrize(
    ("name", "reduces"),
    [
        ("llama-3.1-8b", 2),
        ("gpt-j-6b", 1),
        ("gpt-neox-20b", 1),
        ("falcon-7b", 1),
        ("phi-2", 1),
        ("command-r", 1),
        ("opt-13b", 2),
        ("bloom-7b1", 2),
    ],
)
def test_parallel_blocks_reduce_once(name: str, reduces: int) -> None:
    assert {b.num_reduces for b in get_model(name).blocks} == {reduces}


def test_windows_and_sinks() -> None:
    gpt_oss = [b.mixer for b in get_model("gpt-oss-120b").blocks]
    assert [(m.window_tokens, m.has_sinks) for m in gpt_oss if isinstance(m, SoftmaxAttention)] == [
        (128, True),
        (0, True),
    ]
    assert [b.count for b in get_model("gpt-oss-120b").blocks] == [18, 18]
    gemma = {b.mixer.window_tokens: b.count for b in get_model("gemma-3-27b").blocks if _softmax(b.mixer)}
    assert gemma == {1024: 52, 0: 10}
    scout = {b.mixer.chunk_tokens: b.count for b in get_model("llama-4-scout").blocks if _softmax(b.mixer)}
    assert scout == {8192: 36, 0: 12}


def _softmax(mixer: object) -> bool:
    return isinstance(mixer, SoftmaxAttention)


def test_mixers_of_each_kind() -> None:
    def kinds(name: str) -> dict[type, int]:
        found: dict[type, int] = {}
        for block in get_model(name).blocks:
            found[type(block.mixer)] = found.get(type(block.mixer), 0) + block.count
        return found

    assert kinds("deepseek-v3.2") == {LatentAttention: 61}
    assert kinds("deepseek-v4-flash") == {CompressedAttention: 43}
    assert kinds("qwen3-next-80b-a3b") == {RecurrentMixer: 36, SoftmaxAttention: 12}
    assert kinds("jamba") == {RecurrentMixer: 28, SoftmaxAttention: 4}
    assert kinds("kimi-linear-48b") == {RecurrentMixer: 20, LatentAttention: 7}
    assert kinds("minimax-text-01") == {RecurrentMixer: 70, SoftmaxAttention: 10}


def test_recurrent_state_of_mamba() -> None:
    mixer = get_model("mamba-2.8b").blocks[0].mixer
    assert isinstance(mixer, RecurrentMixer)
    assert (mixer.state_elements, mixer.conv_elements) == (5120 * 16, 5120 * 3)


def test_fused_projections() -> None:
    names = {x.name: x for x in get_model("llama-3.1-70b").blocks[0].linears}
    assert (names["qkv"].out_features, names["qkv"].kv_heads) == (8192 + 2 * 1024, 8)
    assert (names["gate_up"].out_features, names["down"].in_features) == (2 * 28672, 28672)
    assert (names["out"].shard, names["qkv"].shard) == ("row", "column")
    mla = {x.name: x for x in get_model("deepseek-v3").blocks[-1].linears}
    assert mla["qkv_a"].out_features == 1536 + 512 + 64
    assert mla["shared_gate_up"].role == "shared_expert"


@over(model_names())
def test_every_model_is_whole(name: str) -> None:
    model = get_model(name)
    formats = known_formats()
    assert {model.weights_format, model.experts_format} <= {*formats, ""}
    assert all(b.count > 0 for b in (*model.blocks, *model.encoder))
    assert model.num_layers > 0
    shares = any(x.copies for b in model.blocks for x in b.linears)  # a token passes what layers share at each use
    assert shares or model.num_active_parameters <= model.num_parameters + model.vocab_size * model.hidden_size
    assert model.published, "says where its sizes come from"


def test_quantisation_words() -> None:
    def stored(**quantization: Any) -> Model:
        return parse({**LLAMA, "quantization_config": quantization}, name="x")

    assert stored(quant_method="fp8", weight_block_size=[128, 128]).weights_format == "fp8_block"
    assert stored(quant_method="fp8").weights_format == "fp8"
    assert stored(quant_method="awq", bits=4).weights_format == "int4_weight_only"
    assert stored(quant_method="gptq", bits=8).weights_format == "int8_weight_only"
    assert stored(quant_method="gptq", bits=3).weights_format == "int3_weight_only"
    with pytest.raises(ScenarioError, match="bits: got 5; write one of 2, 3, 4, 8"):
        stored(quant_method="awq", bits=5)
    unknown = stored(quant_method="hqq")
    assert unknown.weights_format == "bf16"
    assert dict(unknown.published)["weights_format"] == (
        "quantized by 'hqq', whose format is not known here: taken as 16 bits unless you state it"
    )
    assert stored(quant_method="bitsandbytes", load_in_4bit=True).weights_format == "nf4"
    assert stored(quant_method="mxfp4").weights_format == "mxfp4_weight_only"
    nvfp4 = stored(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head", "model.layers.0.self_attn*"])
    assert (nvfp4.weights_format, nvfp4.kept_16bit_roles) == ("nvfp4", {"head", "router", "attention"})
    groups = {"group_0": {"weights": {"num_bits": 4, "type": "int"}, "input_activations": None}}
    assert stored(quant_method="compressed-tensors", config_groups=groups).weights_format == "int4_weight_only"
    norms = stored(quant_method="fp8", modules_to_not_convert=["model.layers.0.self_attn.q_norm"])
    assert norms.kept_16bit_roles == {"head", "router"}


def test_an_unknown_type_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ScenarioError, match=r"model_type: got 'lama', .*nearest known: llama.*--assume decoder"):
        parse({**LLAMA, "model_type": "lama"}, name="x")
    with pytest.raises(ScenarioError, match="model_type: is missing"):
        parse({k: v for k, v in LLAMA.items() if k != "model_type"}, name="x")


def test_an_unknown_type_is_read_as_what_the_user_assumes_and_says_so() -> None:
    odd = {**LLAMA, "model_type": "unheard_of"}
    for assume in ("decoder", "llama"):
        model = parse(odd, name="x", assume=assume)
        assert model.num_parameters == parse(LLAMA, name="x").num_parameters
        assert "unheard_of" in dict(model.published)["model_type"]
        assert f"read as {assume}" in dict(model.published)["model_type"]
    with pytest.raises(ScenarioError, match="intermediate_size"):
        parse({k: v for k, v in odd.items() if k != "intermediate_size"}, name="x", assume="decoder")
    with pytest.raises(ScenarioError, match="no family 'lama'; did you mean llama"):
        parse(odd, name="x", assume="lama")


def test_a_known_type_is_read_as_itself_whatever_is_assumed() -> None:
    model = parse(LLAMA, name="x", assume="decoder")
    assert not any(key == "model_type" for key, _ in model.published)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": -64}, "hidden_size"),
        ({"hidden_size": "64"}, "whole"),
        ({"num_hidden_layers": 10**12}, "num_hidden_layers"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_attention_heads": 5}, "does not divide"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"vocab_size": 1.5}, "vocab_size"),
        ({"quantization_config": "fp8"}, "quantization_config"),
        ({"model_type": 7}, "model_type"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ],
)
def test_malformed_configs_are_refused_in_one_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as caught:
        parse({**LLAMA, **change}, name="x", where="some/config.json")
    assert "some/config.json" in str(caught.value)
    assert "write" in str(caught.value)


def test_files_that_are_no_configs(tmp_path: Path) -> None:
    for content, words in ((b"{", "not valid JSON"), (b"[]", "list"), (b"\xff\xfe", "no UTF-8 text")):
        (tmp_path / "config.json").write_bytes(content)
        with pytest.raises(ScenarioError, match=words):
            read_model(tmp_path)
    (tmp_path / "config.json").write_bytes(b" " * (17 * 1024 * 1024))
    with pytest.raises(ScenarioError, match="bytes"):
        read_model(tmp_path)
    with pytest.raises(ScenarioError, match="no such file"):
        read_model(tmp_path / "missing.json")


def test_a_folder_with_modelopt_beside(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert read_model(tmp_path).weights_format == "bf16"
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert read_model(tmp_path).weights_format == "fp8"
    assert get_model(str(tmp_path)).weights_format == "fp8"


KEYS = sorted({key for name in model_names()[::9] for key in published_config(name)} | set(LLAMA) | {"head_dim"})
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.sampled_from([0, 10**12, MAX_ELSE, -1]),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.one_of(st.integers(-2, 9), st.text(max_size=3), st.none()), max_size=4),
    st.dictionaries(st.sampled_from(KEYS), st.integers(-1, 99), max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(sorted(families_by_type())),
    base=st.sampled_from([{}, LLAMA, *(published_config(n) for n in model_names()[::17])]),
    changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
)
def test_no_config_gives_a_traceback(kind: str, base: dict[str, Any], changes: dict[str, Any]) -> None:
    config = {**base, **({"model_type": kind} if base in ({}, LLAMA) else {}), **changes}
    with contextlib.suppress(OrreryError):
        assert parse(config, name="fuzz").num_parameters >= 0


@pytest.mark.parametrize(
    ("scaling", "ratio"),
    [
        ({"rope_type": "yarn", "factor": 32.0}, 1.3465736),  # 0.1 ln 32 + 1
        ({"rope_type": "yarn", "factor": 32.0, "attention_factor": 1.1}, 1.1),
        ({"rope_type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
        ({"rope_type": "llama3", "factor": 8.0}, 1.0),
    ],
)
def test_yarn_makes_turned_vectors_longer(scaling, ratio):
    found = rotation_of(Fields({"rope_theta": 10000.0, "rope_scaling": scaling}, "config"))
    assert found.magnitude_ratio == pytest.approx(ratio, rel=1e-7)

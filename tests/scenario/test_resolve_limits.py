"""What a scenario may not claim: contexts a model lacks, formats a device lacks; and what it leaves out is said."""

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.models.config import parse
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario

ASKED = {"model": "llama-2-7b", "device": "h100-sxm", "batch": 1, "input_tokens": 1000, "output_tokens": 96}


def requested(**settings):
    return resolve(read_scenario(ASKED | settings))


def test_requests_longer_than_the_model_are_refused():
    requested(input_tokens=4000)
    with pytest.raises(
        ScenarioError, match=r"4,097 tokens a request are more than the context of .*Llama-2-7b-hf, 4,096"
    ):
        requested(input_tokens=4001)


def test_a_server_that_lets_longer_requests_in_is_taken_at_its_word():
    assert requested(input_tokens=5000, max_model_len=8192).deployment.max_model_tokens == 8192
    with pytest.raises(ScenarioError, match="more than max_model_len, 1,024"):
        requested(max_model_len=1024)


def test_yarn_stretches_the_context_that_a_config_states():
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "max_position_embeddings": 32768,
    }
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    assert parse(config, name="x").max_context_tokens == 32768
    assert parse(config | {"rope_scaling": yarn}, name="x").max_context_tokens == 131072
    assert get_model("llama-3.1-8b").max_context_tokens == 131072


@pytest.mark.parametrize(
    ("device", "weights", "activations"),
    [
        ("h100-sxm", "nvfp4", "bf16"),
        ("b200", "nvfp4", "nvfp4"),
        ("h100-sxm", "fp8", "fp8"),
        ("a100-sxm-80gb", "fp8", "bf16"),
    ],
)
def test_activations_are_as_narrow_as_the_device_can_multiply(device, weights, activations):
    assert requested(device=device, weights=weights).deployment.formats.activations == activations


def test_activations_that_a_device_lacks_are_not_claimed():
    question = requested(weights="nvfp4", activations="nvfp4")
    assert question.deployment.formats.activations == "bf16"
    assert "activations: bf16, not nvfp4: h100-sxm cannot multiply it, weights are unpacked" in question.notes


def test_the_release_that_stands_in_for_none_is_said():
    assert any(note.startswith("engine_version: the newest known, 0.") for note in requested().notes)
    assert not any(note.startswith("engine_version: ") for note in requested(engine_version="0.11.0").notes)


def test_ollama_loads_what_its_plain_tags_hold():
    question = requested(engine="ollama")
    assert question.deployment.formats.weights == "q4_k_m"
    assert question.deployment.engine.max_num_seqs == 1
    assert "weights: q4_k_m (what ollama loads)" in question.notes


def test_an_assumed_family_is_said(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(
        '{"model_type": "unheard_of", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, '
        '"num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100}'
    )
    with pytest.raises(ScenarioError, match="--assume decoder"):
        requested(model=str(config))
    answer = orrery.estimate(**ASKED | {"model": str(config), "assume": "decoder"})
    assert "model: model_type 'unheard_of' is not a known family: read as decoder, as asked" in answer.notes


def test_only_some_engines_can_be_told_when_to_look_for_requests():
    inputs = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 256}
    inputs |= {"concurrency": 16}
    often, seldom = (orrery.estimate(**inputs, engine="sglang", scheduler_recv_interval=n) for n in (1, 30))
    assert seldom.estimate.ttft_s > 1.5 * often.estimate.ttft_s
    with pytest.raises(ScenarioError, match="vllm looks for new requests at every step"):
        orrery.estimate(**inputs, engine="vllm", scheduler_recv_interval=30)
    with pytest.raises(ScenarioError, match="scheduler_recv_interval"):
        orrery.estimate(**inputs, engine="sglang", scheduler_recv_interval=0)

"""The model that a row of a training table means: known, by its sizes, or by its count of parameters."""

import pytest
from training_rows_read import PLAIN, read

from orrery.catalog.models import get_model
from orrery.models.model import SoftmaxAttention


@pytest.mark.parametrize(
    ("count", "layers", "hidden"),
    [
        ("125e6", 12, 896),
        ("760e6", 24, 1664),
        ("1.3e9", 24, 2176),
        ("2.7e9", 32, 2688),
        ("6.7e9", 32, 4224),
        ("13e9", 40, 5248),
        ("175e9", 96, 12288),
        ("20e9", 46, 6016),
    ],
)
def test_a_gpt_of_a_count_alone_is_as_deep_as_those_of_its_size(count, layers, hidden):
    """12 layers width^2 parameters in layers, a multiple of 128: 6.7B over 32 is 4177 wide, 125M over 12 is 932.

    20B lies between 13B's 40 and 175B's 96 layers: 40 x (96 / 40)^(ln(20 / 13) / ln(175 / 13)) = 46.2.
    """
    job, _, assumed = read(model="gpt2-arch", num_parameters=count)
    assert (job.model.num_layers, job.model.hidden_size) == (layers, hidden)
    in_layers = sum(b.count * sum(x.num_parameters for x in b.linears) for b in job.model.blocks)
    assert in_layers == pytest.approx(float(count), rel=128 / hidden)
    assert any("a GPT of" in note for note in assumed)


@pytest.mark.parametrize(
    ("cells", "name", "layers", "vocabulary"),
    [
        ({"num_layers": "8"}, "meta-llama/Llama-2-7b-hf", 8, 32000),
        ({"vocab_size": "32128"}, "meta-llama/Llama-2-7b-hf", 32, 32128),
        (
            {"model": "llama-cut", "base_model": "meta-llama/Llama-2-7b-hf", "num_layers": "4"},
            "meta-llama/Llama-2-7b-hf",
            4,
            32000,
        ),
        ({"model": "nobody's", "num_layers": "6", "hidden_size": "512", "num_heads": "8"}, "nobody's", 6, 51200),
        ({"model": "", "num_layers": "6", "hidden_size": "512", "num_heads": "8"}, "6 layers, 512 wide", 6, 51200),
        ({"hidden_size": "2048", "num_heads": "16", "gated_ffn": "true"}, "meta-llama/Llama-2-7b-hf", 32, 32000),
    ],
)
def test_the_row_overrides_the_model(cells, name, layers, vocabulary):
    model = read(**cells)[0].model
    assert (model.name, model.num_layers, model.vocab_size) == (name, layers, vocabulary)
    assert model.hidden_size == int(cells.get("hidden_size", 4096))


@pytest.mark.parametrize(
    ("cells", "is_known"),
    [
        ({}, True),
        ({"num_heads": "32", "num_kv_heads": "32", "head_size": "128", "ffn_size": "11008"}, True),
        ({"num_heads": "64"}, False),
        ({"num_kv_heads": "8"}, False),
        ({"head_size": "64"}, False),
        ({"ffn_size": "8192"}, False),
        ({"num_experts": "8", "experts_per_token": "2"}, False),
        ({"model": "mistralai/Mixtral-8x7B-v0.1", "num_experts": "8", "ffn_size": "14336"}, True),
        ({"model": "deepseek-ai/DeepSeek-V2-Lite", "num_heads": "16"}, True),
        ({"model": "deepseek-ai/DeepSeek-V2-Lite", "num_heads": "32", "ffn_size": "1408"}, False),
    ],
)
def test_a_known_model_is_meant_where_no_stated_size_contradicts_it(cells, is_known):
    """Llama 2 7B has 32 heads of 128 with keys and values of their own, and 11008 inner features."""
    name = cells.get("model", PLAIN["model"])
    model = read(**cells)[0].model
    assert (model == get_model(name)) == is_known


def test_megatrons_tests_say_their_model_in_flags():
    cells = {
        "model": "moe-test_etp1_ep4",
        "num_layers": "12",
        "hidden_size": "512",
        "num_heads": "8",
        "ep": "4",
        "ffn_size": "2048",
        "num_experts": "8",
        "experts_per_token": "2",
        "framework": "megatron-lm",
        "framework_options": "disable-bias-linear; sequence-parallel; overlap-grad-reduce",
    }
    job, layout, _ = read(**cells)
    assert not any(x.has_bias for x in job.model.blocks[0].linears)
    assert (layout.ep, layout.etp, layout.is_sequence_parallel) == (4, 1, True)
    assert (job.framework.overlaps_gradients, job.framework.overlaps_parameters) == (True, False)
    plain = read(**cells | {"model": "moe-test", "framework_options": ""})
    assert (plain[1].etp, plain[1].is_sequence_parallel) == (2, False), "experts are cut as everything else is"


def test_a_t5_without_layers_has_those_of_its_width():
    cells = {"model": "t5-test", "num_layers": "", "hidden_size": "768", "num_heads": "12", "ffn_size": "3072"}
    job, _, assumed = read(**cells, vocab_size="32128")
    assert job.model.num_layers == 12
    assert job.model.encoder
    assert "num_layers: 12 (T5 of that width)" in assumed


def test_encoders_keep_looking_both_ways():
    for cells in (
        {"model": "google-bert/bert-large-uncased"},
        {"model": "bert-test", "num_layers": "2", "hidden_size": "512", "num_heads": "8"},
    ):
        mixer = read(**cells)[0].model.blocks[0].mixer
        assert isinstance(mixer, SoftmaxAttention)
        assert not mixer.is_causal


def test_sizes_that_a_note_calls_defaults_yield_to_the_parameter_count():
    cells = {
        "model": "maxtext-22b",
        "num_layers": "48",
        "hidden_size": "6144",
        "num_heads": "24",
        "head_size": "128",
        "ffn_size": "24576",
        "gated_ffn": "true",
        "vocab_size": "32000",
        "num_parameters": "22e9",
    }
    assert read(**cells)[0].model.num_parameters > 25e9
    job, _, assumed = read(**cells, note="head size and gated FFN are MaxText defaults")
    assert job.model.num_parameters == pytest.approx(22e9, rel=0.03)
    assert "head_size and gated_ffn: 256 and false (from num_parameters)" in assumed

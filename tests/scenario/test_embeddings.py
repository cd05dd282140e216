"""Embeddings and rerankers: by hand, by every way of asking, and what is refused."""

import json

import pytest
from battery import over

import orrery
from orrery.base.errors import OrreryError, ScenarioError
from orrery.catalog.models import get_model
from orrery.cli.main import run
from orrery.scenario.embeddings import EmbeddingAnswer, is_encoder

BGE = {"model": "bge-m3", "device": "h100-sxm", "input_tokens": 512, "batch": 32}


def test_a_batch_takes_longer_than_its_operations_and_no_more_than_four_times_as_long():
    """24 layers of 12 x 1024^2 weights for 32 x 512 tokens, and scores and sums over 512 x 512 in each."""
    operations = 2 * 24 * 12 * 1024**2 * 32 * 512 + 24 * 4 * 512**2 * 1024 * 32
    answer = orrery.estimate(**BGE)
    assert operations / 989.4e12 < answer.estimate.latency_s < 4 * operations / 989.4e12
    assert answer.embeddings_per_s == pytest.approx(32 / answer.estimate.latency_s, rel=1e-6)


def test_nothing_is_generated():
    """The rate is that of requests that end with their prompt."""
    text = orrery.estimate(**BGE, output_tokens=1)
    answer = orrery.estimate(**BGE)
    assert isinstance(answer, EmbeddingAnswer)
    assert answer.estimate.latency_s == text.estimate.ttft_s
    assert answer.energy_j_per_embedding == pytest.approx(answer.estimate.power_w / answer.embeddings_per_s)


def test_money_is_of_a_million_inputs():
    answer = orrery.estimate(**BGE, usd_per_hour=3.6)
    assert answer.usd_per_million_embeddings == pytest.approx(0.001 / answer.embeddings_per_s * 1e6)
    interval = answer.intervals()["usd_per_million_embeddings"]
    assert interval.low_80 < answer.usd_per_million_embeddings < interval.high_80


def test_every_way_gives_the_same_numbers(capsys, tmp_path):
    file = tmp_path / "bge.toml"
    file.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in BGE.items()))
    flags = [word for k, v in BGE.items() for word in (f"--{k.replace('_', '-')}", str(v))]
    found = []
    for words in (flags, ["--scenario", str(file)]):
        assert run(["estimate", *words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] == json.loads(json.dumps(orrery.estimate(**BGE).to_json()))
    assert run(["estimate", *flags]) == 0
    assert "a million embeddings" in capsys.readouterr().out


def test_a_decoder_embeds_where_it_is_asked_to():
    settings = {**BGE, "model": "qwen3-0.6b"}
    assert isinstance(orrery.estimate(**settings, pooling=True), EmbeddingAnswer)
    with pytest.raises(OrreryError, match="output_tokens: is missing"):
        orrery.estimate(**settings)
    with pytest.raises(OrreryError, match="output_tokens: is missing"):
        orrery.estimate(**BGE, pooling=False)


@over([("bge-m3", True), ("roberta-large", True), ("llama-3.1-8b", False), ("t5-11b", False)])
def test_encoders_are_told_by_their_layers(name, expected):
    try:
        model = get_model(name)
    except OrreryError:
        pytest.skip("not in the catalogue")
    assert is_encoder(model) is expected


def test_what_makes_tokens_is_refused():
    with pytest.raises(OrreryError, match="pooling makes no tokens"):
        orrery.estimate(**BGE, pooling=True, output_tokens=8)


def test_rerankers_are_the_encoders_that_they_are_made_of():
    assert get_model("bge-reranker-v2-m3").num_layers == get_model("bge-m3").num_layers == 24


def test_an_input_longer_than_the_encoder_reads_is_refused():
    with pytest.raises(
        ScenarioError, match=r"5,000 tokens are more than .*bge-large-en-v1.5 reads.* input_tokens = 512"
    ):
        orrery.estimate(model="bge-large-en-v1.5", device="l4", input_tokens=5000)

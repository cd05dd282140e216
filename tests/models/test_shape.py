"""Models from their sizes alone: their counts are those of published models with the same sizes."""

import csv
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.models.model import SoftmaxAttention
from orrery.models.shape import encoder_decoder_of_shape, model_of_shape, resized

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data")) / "training"


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        (  # GPT-2 small
            {"num_layers": 12, "hidden_size": 768, "num_heads": 12, "vocab_size": 50257, "context_tokens": 1024},
            124_439_808,
        ),
        (  # Llama 2 7B
            {
                "num_layers": 32,
                "hidden_size": 4096,
                "num_heads": 32,
                "ffn_size": 11008,
                "vocab_size": 32000,
                "gated_ffn": True,
            },
            6_738_415_616,
        ),
        (  # Llama 3 8B
            {
                "num_layers": 32,
                "hidden_size": 4096,
                "num_heads": 32,
                "num_kv_heads": 8,
                "ffn_size": 14336,
                "vocab_size": 128256,
                "gated_ffn": True,
            },
            8_030_261_248,
        ),
        (  # Mixtral 8x7B
            {
                "num_layers": 32,
                "hidden_size": 4096,
                "num_heads": 32,
                "num_kv_heads": 8,
                "ffn_size": 14336,
                "vocab_size": 32000,
                "gated_ffn": True,
                "num_experts": 8,
                "experts_per_token": 2,
            },
            46_702_792_704,
        ),
        (  # Gemma's wide heads: 2 layers, worked by hand: 2 (3 x 8 x 64 + 64 x 8 + 3 x 8 x 32 + 16) + 2 x 80 + 8
            {
                "num_layers": 2,
                "hidden_size": 8,
                "num_heads": 2,
                "head_size": 32,
                "ffn_size": 32,
                "vocab_size": 10,
                "gated_ffn": True,
            },
            2 * (8 * 3 * 64 + 64 * 8 + 3 * 8 * 32 + 2 * 8) + 2 * 80 + 8,
        ),
    ],
)
def test_counts_are_exact(sizes, count):
    assert model_of_shape(**sizes).num_parameters == count


def test_first_layers_of_a_mixture_are_dense_and_shared_experts_are_passed_by_all():
    model = model_of_shape(
        num_layers=4,
        hidden_size=64,
        num_heads=4,
        ffn_size=256,
        gated_ffn=True,
        num_experts=8,
        experts_per_token=2,
        moe_ffn_size=32,
        num_shared_experts=3,
        num_dense_layers=1,
    )
    dense, mixed = model.blocks
    assert (dense.count, mixed.count, dense.experts) == (1, 3, None)
    assert mixed.experts is not None
    assert (mixed.experts.num_experts, mixed.experts.ffn_size) == (8, 32)
    shared = {x.name: x for x in mixed.linears if x.role == "shared_expert"}
    assert shared["shared_down"].in_features == 3 * 32
    assert mixed.num_active_parameters - mixed.num_parameters == -3 * 6 * 3 * 64 * 32


def test_an_encoder_looks_both_ways():
    blocks = [model_of_shape(num_layers=2, hidden_size=64, num_heads=4, is_causal=c).blocks[0] for c in (True, False)]
    assert [isinstance(b.mixer, SoftmaxAttention) and b.mixer.is_causal for b in blocks] == [True, False]


def test_biases_and_a_tied_head_can_be_chosen():
    plain = {"num_layers": 1, "hidden_size": 64, "num_heads": 4, "vocab_size": 100}
    usual = model_of_shape(**plain)
    bare = model_of_shape(**plain, has_biases=False)
    assert usual.num_parameters - bare.num_parameters == 3 * 64 + 64 + 256 + 64
    assert model_of_shape(**plain, is_tied=False).num_parameters - usual.num_parameters == 64 * 100


def test_an_encoder_decoder_is_t5():
    built = encoder_decoder_of_shape(
        num_layers=12, hidden_size=768, num_heads=12, head_size=64, ffn_size=3072, vocab_size=32128
    )
    assert built.num_parameters == get_model("google-t5/t5-base").num_parameters
    assert sum(b.count for b in built.encoder) == built.num_layers == 12


def test_a_shortened_model_keeps_its_layers_kinds():
    deepseek = get_model("deepseek-ai/DeepSeek-V3")
    short = resized(deepseek, num_layers=13)
    assert [b.count for b in short.blocks] == [3, 10], "the first layers stay dense"
    gemma = get_model("google/gemma-2-9b")
    assert sorted(b.count for b in resized(gemma, num_layers=10).blocks) == [5, 5], "alternating ones stay in step"
    both = resized(get_model("google-t5/t5-base"), num_layers=3)
    assert (both.num_layers, sum(b.count for b in both.encoder)) == (3, 3)


def test_another_vocabulary_changes_embedding_and_head():
    llama = get_model("meta-llama/Llama-2-7b-hf")
    more = resized(llama, vocab_size=32128)
    assert more.num_parameters - llama.num_parameters == 2 * 128 * 4096
    assert resized(llama) == llama


@given(
    st.sampled_from(["meta-llama/Llama-2-7b-hf", "google/gemma-2-9b", "deepseek-ai/DeepSeek-V3"]), st.integers(1, 200)
)
def test_a_resized_model_has_the_layers_asked_for(name, num_layers):
    assert resized(get_model(name), num_layers=num_layers).num_layers == num_layers


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        ({"num_layers": 0, "hidden_size": 64, "num_heads": 4}, "num_layers is 0"),
        ({"num_layers": 1, "hidden_size": 65, "num_heads": 4}, "does not divide by num_heads = 4"),
        ({"num_layers": 1, "hidden_size": 64, "num_heads": 4, "num_kv_heads": 3}, "does not divide"),
        ({"num_layers": 1, "hidden_size": 64, "num_heads": 4, "num_experts": 2, "experts_per_token": 3}, "more than"),
    ],
)
def test_sizes_that_make_no_model_are_refused(sizes, what):
    with pytest.raises(ScenarioError, match=what):
        model_of_shape(**sizes)


@pytest.mark.skipif(not DATA.is_dir(), reason="no measured tables beside the repository (set ORRERY_DATA)")
@pytest.mark.parametrize(
    ("table", "tolerance"),
    [
        ("llm_foundry_mpt", 0.001),  # printed to seven digits, with positions as long as the sequence
        ("internevo_7b_a100", 0.05),  # a 7.3B model that is called 7B
        ("maxtext_tpu_scaling", 0.03),  # called by round numbers
        ("papers_and_blogs_misc", 0.02),
    ],
)
def test_counts_of_the_tables(table, tolerance):
    seen = 0
    with (DATA / f"{table}.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if not (row["num_parameters"] and row["num_layers"]) or row["model"] in ("maxtext-22b", "maxtext-52b"):
                continue  # two whose stated sizes are defaults that the count contradicts
            sizes = {
                c: int(row[c] or 0)
                for c in ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_size", "ffn_size")
                if c in row
            }
            model = model_of_shape(
                **sizes,
                vocab_size=int(row["vocab_size"] or 51200),
                gated_ffn=row["gated_ffn"] == "true",
                context_tokens=int(row["seq_len"]),
                has_biases=False if row["model"].startswith("mpt") else None,
            )
            assert model.num_parameters == pytest.approx(float(row["num_parameters"]), rel=tolerance), row["model"]
            seen += 1
    assert seen > 5

"""A model of three layers, 64 wide, cut by hand: what each device holds, computes and keeps in its cache."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_llama import H100, cut

from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.batch import Batch
from orrery.execution.shard import Cache, MixerShard, cache_of, connection_width, num_kernels, num_pieces, shard
from orrery.execution.step import step
from orrery.models.model import CompressedAttention, LatentAttention, SoftmaxAttention
from orrery.numerics.registry import get_format


def shapes(deployment):
    return {x.name: (x.n, x.k, x.count, x.weight_bytes) for x in shard(deployment).linears}


def test_products_on_one_of_four_devices():
    """q of 64 and k and v of 32 outputs each: a fourth of q, a whole key and value head of 16; 100 / 4 = 25 hidden."""
    assert shapes(cut()) == {
        "qkv": (128, 64, 3.0, 16384.0),
        "out": (64, 64, 3.0, 8192.0),
        "gate_up": (200, 64, 3.0, 25600.0),
        "down": (64, 100, 3.0, 12800.0),
        "head": (1000, 64, 1.0, 128000.0),
    }
    four = shapes(cut(tp=4))
    assert {name: x[:2] for name, x in four.items()} == {
        "qkv": (48, 64),
        "out": (64, 16),
        "gate_up": (50, 64),
        "down": (64, 25),
        "head": (250, 64),
    }
    assert {name: x[:2] for name, x in shapes(cut(tp=3)).items()}["down"] == (64, 34)
    (mixer,) = shard(cut(tp=4)).mixers
    assert (mixer.num_heads, mixer.num_kv_heads, mixer.count) == (1, 1, 3.0)


def test_sums_over_a_pass():
    """Two norms of 64 and an activation of 100 a layer; four products, two mixer kernels, two norms, one activation."""
    whole, two = shard(cut()), shard(cut(tp=2))
    assert (whole.num_layers, whole.num_norms, whole.norm_elements, whole.num_reduces) == (3, 6, 384.0, 6.0)
    assert (whole.activation_elements, two.activation_elements, whole.num_activations) == (300.0, 150.0, 3.0)
    assert num_kernels(cut()) == 3 * (4 + 2 + 2 + 1) + 1
    assert num_kernels(cut(tp=2)) == 3 * (4 + 2 + 2 + 1 + 2) + 1
    assert num_pieces(cut()) == 9.0
    assert whole.num_norm_reduces == 0.0
    over_all = cut(tp=2, config={"model_type": "olmo2"})  # one more all-reduce a layer, of what heads on both sum up
    assert shard(over_all).num_norm_reduces == 3.0
    assert num_kernels(over_all) == num_kernels(cut(tp=2)) + 3
    assert whole.connection_width == 0
    assert connection_width(64, SimpleNamespace(connection_elements=2 * 4 * 64)) == 2 * 4 * 64 + 64


LAYER_BYTES = 16384 + 8192 + 25600 + 12800 + 2 * 128
EMBEDDING = 128000


def test_the_fullest_device_holds_its_stage_and_an_end():
    """A layer's 62,976 bytes with norms of 2 x 64; the last norm is spread with the layers."""
    norm = 2 * 64
    assert shard(cut()).weight_bytes == 3 * LAYER_BYTES + norm + 2 * EMBEDDING
    tied = cut(config={"tie_word_embeddings": True})
    assert shard(tied).weight_bytes == 3 * LAYER_BYTES + norm + EMBEDDING
    # two stages: two of three layers, and one end of the same size
    assert shard(cut(pp=2)).weight_bytes == pytest.approx((3 * LAYER_BYTES + norm) * 2 / 3 + EMBEDDING)
    assert shard(cut(pp=2, config={"tie_word_embeddings": True})).weight_bytes == shard(cut(pp=2)).weight_bytes
    # half of each product, of the embedding and of the head; norms are whole
    halved = 3 * ((LAYER_BYTES - 256) / 2 + 256) + norm + EMBEDDING
    assert shard(cut(tp=2)).weight_bytes == halved
    assert shard(cut(weights="fp8", activations="fp8")).weight_bytes == pytest.approx(
        3 * ((LAYER_BYTES - 256) / 2 + 256) + norm + 2 * EMBEDDING
    )


MIXTURE = {
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}


def test_experts_over_ranks():
    """Eight experts of 3 x 64 x 100 weights of two bytes: two of them on each of four ranks, or a fourth of all."""
    every = 8 * 3 * 64 * 100 * 2
    (whole,) = shard(cut(config=MIXTURE)).experts
    assert (whole.weight_bytes, whole.tp, whole.ep, whole.count) == (every, 1, 1, 3.0)
    assert shard(cut(config=MIXTURE, tp=4)).experts[0].weight_bytes == every / 4
    assert shard(cut(config=MIXTURE, tp=4, ep=4)).experts[0].weight_bytes == every / 4
    assert num_kernels(cut(config=MIXTURE)) == 3 * (3 + 2 + 7 + 2) + 1  # qkv, out, router; no activation of its own


def test_what_a_sequence_keeps():
    """Keys and values of two heads of 16 in three layers, two bytes: 384 a token; a head on each of two devices."""
    assert cache_of(cut()) == Cache(bytes_per_token=384.0, windows=(), bytes_per_sequence=0.0)
    assert [cache_of(cut(tp=t)).bytes_per_token for t in (2, 4)] == [192.0, 192.0]
    assert cache_of(cut(kv="fp8")).bytes_per_token == 192.0
    assert cache_of(cut(pp=2)).bytes_per_token == 256.0
    assert cache_of(cut(cp=2)).bytes_per_token == 192.0
    windows = {"model_type": "mistral", "sliding_window": 10}
    assert cache_of(cut(config=windows)) == Cache(bytes_per_token=0.0, windows=((10, 384.0),), bytes_per_sequence=0.0)
    kept = Cache(bytes_per_token=3.0, windows=((10, 2.0), (20, 1.0)), bytes_per_sequence=7.0)
    assert [kept.sequence_bytes(n) for n in (5.0, 15.0, 30.0)] == [5 * 6 + 7, 45 + 20 + 15 + 7, 90 + 20 + 20 + 7]
    state = {"model_type": "mamba", "hidden_size": 64, "state_size": 16, "num_hidden_layers": 3}
    # 100 channels of 16 four-byte states, and three of a convolution in two bytes, in three layers
    assert cache_of(cut(config=state)).bytes_per_sequence == 3 * (100 * 16 * 4 + 2 * 100 * 3)
    assert cache_of(cut(config=state, tp=2)).bytes_per_sequence == 3 * (100 * 16 * 4 + 2 * 100 * 3) / 2


def test_what_compressed_attention_keeps(monkeypatch):
    """Of 64 bytes a token: an entry for every four with a quarter of an index of 32 in three layers, none in two; the
    last 16 tokens whole in all five. Half of the layers are on the fullest stage."""
    from orrery.execution import shard as shards

    plain = {"num_heads": 4, "head_size": 64, "window_tokens": 16}
    mixers = (
        (CompressedAttention(**plain, ratio=4, index_heads=2, index_head_size=32), 3.0),
        (
            CompressedAttention(**plain, ratio=0),
            2.0,
        ),
    )
    made = [MixerShard(block="", mixer=m, num_heads=4, num_kv_heads=1, count=n) for m, n in mixers]
    monkeypatch.setattr(shards, "shard", lambda deployment: SimpleNamespace(stage_share=0.5, mixers=made))
    found = cache_of.__wrapped__(cut(kv="fp8"))
    assert found == Cache(
        bytes_per_token=0.5 * 3 * (64 / 4 + 32 / 4), windows=((16, 0.5 * 5 * 64.0),), bytes_per_sequence=0.0
    )


@pytest.mark.parametrize(("caches", "kept_bytes"), [(False, 3 * 16 * 16), (True, 5 * 16 * 16)])
def test_layers_that_share_keys_have_room_of_their_own_where_an_engine_gives_it(monkeypatch, caches, kept_bytes):
    """Keys and values of one head of 4, in two bytes: 16 a token and layer; three layers make them, two reuse them."""
    from orrery.execution import shard as shards

    plain = SoftmaxAttention(num_heads=4, num_kv_heads=1, head_size=4, value_head_size=4)
    made = [
        MixerShard(block="", mixer=mixer, num_heads=4, num_kv_heads=1, count=count)
        for mixer, count in ((plain, 3.0), (replace(plain, owns_cache=False), 2.0))
    ]
    monkeypatch.setattr(shards, "shard", lambda deployment: SimpleNamespace(stage_share=1.0, mixers=made))
    deployment = cut()
    engine = replace(deployment.engine, caches_shared_layers=caches)
    found = cache_of.__wrapped__(replace(deployment, engine=engine))
    assert found.sequence_bytes(16) == kept_bytes


def test_pooled_index_keys_in_the_cache(monkeypatch):
    """Latents of 32 in two bytes and a byte key of 20 for every four tokens; keys and values of 2 x 7 in two bytes and
    a key of 12 in two bytes for every three."""
    from orrery.execution import shard as shards

    latent = LatentAttention(
        num_heads=8,
        q_lora_rank=0,
        kv_lora_rank=24,
        nope_head_size=16,
        rope_head_size=8,
        value_head_size=20,
        index_heads=2,
        index_head_size=20,
        index_ratio=4,
    )
    picked = SoftmaxAttention(
        num_heads=4,
        num_kv_heads=1,
        head_size=7,
        value_head_size=7,
        index_head_size=12,
        index_ratio=3,
        index_format="bf16",
    )
    made = [MixerShard(block="", mixer=m, num_heads=4, num_kv_heads=1, count=1.0) for m in (latent, picked)]
    monkeypatch.setattr(shards, "shard", lambda deployment: SimpleNamespace(stage_share=1.0, mixers=made))
    assert cache_of.__wrapped__(cut()).bytes_per_token == (32 * 2 + 20 / 4) + (2 * 7 * 2 + 12 * 2 / 3)


SEQUENCES = {
    "model_type": "qwen4_exp_text",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "ple_layer_ids": [1, 3],
    "ngram_vocab_size_base": 128,
}


@pytest.mark.parametrize(("weights", "table_bytes"), [("bf16", 2.0), ("fp8", 1.0), ("nvfp4", 1.0)])
def test_tables_of_word_sequences_are_fp8_in_quantised_checkpoints(weights, table_bytes):
    """Sixteen tables of 128 rows, four features each, in two layers; cut by tensor parallelism."""
    plain = SEQUENCES | {"ple_layer_ids": [1, 3]}
    small = SEQUENCES | {"ngram_vocab_size_base": 64}
    for tp in (1, 2):
        more, less = (shard(cut(config=c, weights=weights, tp=tp)).weight_bytes for c in (plain, small))
        assert more - less == 2 * 16 * 64 * 4 * table_bytes / tp


def test_what_convolutions_reach_back_to_is_kept_for_each_sequence():
    """Two layers keep nine tokens of four streams of 64 in two bytes, whole on every device."""
    without = {k: v for k, v in SEQUENCES.items() if k != "ple_layer_ids"}
    for tp in (1, 2):
        more, less = (cache_of(cut(config=c, tp=tp)).bytes_per_sequence for c in (SEQUENCES, without))
        assert more - less == 2 * 9 * 4 * 64 * 2


def test_passes_of_a_layer_are_part_of_a_step():
    """Ten tokens. A row of 64 read and written, 256 elements added for gates and for a convolution, in two layers; half
    of four streams normed twice in each of four: the bytes of each, and once a layer."""
    ten, none = np.array([10]), np.array([0])
    batch = Batch(
        prompt_sequences=np.array([1]),
        prompt_tokens=ten,
        prompt_context_tokens=ten,
        decode_sequences=none,
        decode_context_tokens=none,
    )
    found = {}
    for part in step(cut(config=SEQUENCES), batch).parts:
        if part.name.startswith(("sequence ", "streams normed")):
            count, moved = found.get(part.name, (0.0, 0.0))
            found[part.name] = (count + part.count, moved + part.count * float(part.once.bytes[0]))
    assert found == {
        "sequence rows": (2.0, 2 * 10 * 64 * 4),
        "sequence gates": (2.0, 2 * 10 * 256 * 6),
        "sequence mixing": (2.0, 2 * 10 * 256 * 6),
        "streams normed": (8.0, 8 * 10 * 128 * 4),
    }


@pytest.mark.parametrize(
    ("model", "weights", "file_bytes"),
    [
        ("meta-llama/Meta-Llama-3-8B", "q4_k_m", 4.92e9),
        ("meta-llama/Meta-Llama-3-8B", "q8_0", 8.54e9),
        ("meta-llama/Meta-Llama-3-70B", "q4_k_m", 42.52e9),
        ("openai/gpt-oss-20b", "mxfp4", 11.27 * 2**30),
        ("openai/gpt-oss-120b", "mxfp4", 59.02 * 2**30),
    ],
)
def test_files_of_llama_cpp_have_their_published_sizes(model, weights, file_bytes):
    deployment = replace(cut(weights=weights), model=get_model(model), engine=get_engine("llama.cpp", "", H100))
    assert shard(deployment).weight_bytes == pytest.approx(file_bytes, rel=0.015)


def test_files_of_llama_cpp_round_the_head_and_the_embedding_too():
    """Q4_K_M beside a head in Q6_K of 6.5625 bits; in 16 bits, elsewhere. An embedding has the format of the layers."""
    wide, ggml = cut(weights="int4"), cut(weights="q4_k_m")
    assert shapes(wide)["head"][-1] == 2 * 64 * 1000
    assert shapes(ggml)["head"][-1] == pytest.approx(64 * 1000 * get_format("q6_k").bytes_per_element)
    layers_bytes = sum(count * each for name, (_, _, count, each) in shapes(ggml).items() if name != "head")
    norms_bytes = 7 * 2 * 64
    embedding_bytes = 64 * 1000 * get_format("q4_k_m").bytes_per_element
    total = layers_bytes + norms_bytes + embedding_bytes + shapes(ggml)["head"][-1]
    assert shard(ggml).weight_bytes == pytest.approx(total)


def test_shared_weights_lie_once_on_every_stage():
    """Of 48 layers four or seven use one of two shared blocks: twice 128 x 384 + 128 x 64 + 64 x 200 + 100 x 64 in two
    bytes, whole on each of two stages; three more uses add what is their own: an adapter, a square product, a cache."""
    config = {
        "model_type": "zamba2",
        "hidden_size": 64,
        "num_hidden_layers": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 100,
        "num_mem_blocks": 2,
        "adapter_rank": 8,
        "n_mamba_heads": 4,
    }
    once = 2 * (128 * 384 + 128 * 64 + 64 * 200 + 100 * 64)
    own = 64 * 8 + 8 * 200 + 64 * 64
    few, many = (["hybrid"] * n + ["mamba"] * (48 - n) for n in (4, 7))
    less, more = (cut(config=config | {"layers_block_type": kinds}) for kinds in (few, many))
    assert shard(more).weight_bytes - shard(less).weight_bytes == 3 * own * 2
    assert cache_of(more).bytes_per_token - cache_of(less).bytes_per_token == 3 * 2 * 128 * 2
    none = shard(cut(config=config | {"layers_block_type": ["mamba"] * 48})).weight_bytes
    norms = 2 * 3 * 64
    assert shard(less).weight_bytes - none == 2 * (once + 4 * own + norms)
    # 28 of 55 layers, counting a use as one: the mambas' and uses' shares, and all of what is shared
    staged, plain = (shard(cut(config=config | {"layers_block_type": many}, pp=n)).weight_bytes for n in (2, 1))
    ends = 2 * 1000 * 64
    assert staged == pytest.approx((plain - ends - 2 * once) * 28 / 55 + 2 * once + ends)


def test_layers_at_rest_are_held_and_never_read():
    """Of five layers two attend to pictures: 4 x 64 x 64 in attention, 3 x 64 x 96 behind it, norms of 2 x 16 and of
    2 x 64, two gates; eight more rows of the embedding. Two devices hold half of these each."""
    config = {
        "model_type": "mllama_text_model",
        "hidden_size": 64,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 96,
        "cross_attention_layers": [1, 3],
    }
    llama = {"model_type": "llama"} | {k: v for k, v in config.items() if k.startswith(("h", "i", "num_a", "num_k"))}
    crossing = 4 * 64 * 64 + 3 * 64 * 96 + 2 * 16 + 2 * 64 + 2
    for tp in (1, 2):
        whole, plain = (cut(config=c, tp=tp) for c in (config, llama | {"num_hidden_layers": 3}))
        assert shard(whole).weight_bytes - shard(plain).weight_bytes == (2 * crossing + 8 * 64) * 2 / tp
        assert shard(whole).linears == shard(plain).linears
        assert cache_of(whole) == cache_of(plain)

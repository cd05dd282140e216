"""A model of three layers, 64 wide, cut by hand; mixers of every kind in a step; draft trees of two levels."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution import draft_trees, mixing
from orrery.execution.batch import Batch
from orrery.execution.draft_head import DraftHead
from orrery.execution.draft_trees import best_of, checked_ranks, ranked, ratios, tree_heads, widened
from orrery.execution.kv_selection import AttentionLaw, chosen, drawn_maps, recall_frac, scoring
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.shard import Cache, MixerShard, cache_of, connection_width, num_kernels, num_pieces, shard
from orrery.execution.step import step
from orrery.hardware.cluster import Cluster
from orrery.models.config import parse
from orrery.models.model import CompressedAttention, LatentAttention, RecurrentMixer, SoftmaxAttention
from orrery.numerics.registry import get_format

H100 = get_device("h100-sxm")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 100,
    "vocab_size": 1000,
}


def cut(weights="bf16", kv="bf16", activations="bf16", config=None, device=H100, **degrees):
    layout = Layout(**degrees)
    return Deployment(
        model=parse(LLAMA | (config or {}), name="tiny"),
        cluster=Cluster(device=device, num_devices=layout.num_devices, devices_per_node=8),
        layout=layout,
        formats=Formats(weights=weights, activations=activations, kv=kv),
        engine=get_engine("vllm", "", device),
    )


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


SOFTMAX = SoftmaxAttention(num_heads=8, num_kv_heads=4, head_size=16, value_head_size=12, window_tokens=50)
LATENT = {"num_heads": 8, "q_lora_rank": 0, "kv_lora_rank": 24, "nope_head_size": 16, "rope_head_size": 8}
COMPRESSED = {"num_heads": 8, "head_size": 16, "window_tokens": 50, "ratio": 4}
BATCH = SimpleNamespace(
    prompt_sequences=np.array([2]),
    prompt_tokens=np.array([30]),
    prompt_context_tokens=np.array([100]),
    decode_sequences=np.array([5]),
    decode_context_tokens=np.array([400]),
    guesses=0,
)


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


def of(mixer, heads=4, kv=2):
    return MixerShard(block="b", mixer=mixer, num_heads=heads, num_kv_heads=kv, count=3.0)


def test_attention_of_every_kind_in_a_step():
    prompt, decode = (f(cut(), of(SOFTMAX), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.batch[0], prompt.query_tokens[0], prompt.context_tokens[0]) == (2, 30, 100)
    assert (prompt.num_heads, prompt.num_kv_heads, prompt.head_size, prompt.value_head_size) == (4, 2, 16, 12)
    assert (prompt.window_tokens, decode.window_tokens, decode.batch[0], decode.context_tokens[0]) == (50, 50, 5, 400)
    latent = LatentAttention(**LATENT, value_head_size=20)
    prompt, decode = (f(cut(), of(latent), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.head_size, prompt.value_head_size) == (24, 20)
    assert (decode.head_size, decode.value_head_size, decode.context_tokens[0]) == (32, 24, 400)
    sparse = LatentAttention(**LATENT, value_head_size=20, top_tokens=64, index_heads=2, index_head_size=8)
    prompt, decode = (f(cut(), of(sparse), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.num_kv_heads, prompt.head_size, prompt.value_head_size) == (1, 32, 24)
    assert (prompt.window_tokens[0], prompt.context_tokens[0], decode.context_tokens[0]) == (64, 64, 64)
    near = CompressedAttention(**COMPRESSED)
    prompt, decode = (f(cut(), of(near), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.window_tokens[0], decode.context_tokens[0]) == (50 + 25, 50 + 100)
    assert (decode.head_size, decode.value_head_size) == (16, 16)
    few = CompressedAttention(**COMPRESSED, top_tokens=30)
    assert mixing._decode_op(cut(), of(few), BATCH).context_tokens[0] == 80
    window = CompressedAttention(**(COMPRESSED | {"ratio": 0}))
    assert mixing._decode_op(cut(), of(window), BATCH).context_tokens[0] == 50
    chunked = SoftmaxAttention(num_heads=8, num_kv_heads=4, head_size=16, value_head_size=12, chunk_tokens=7)
    assert mixing._reach(chunked) == 7


def test_a_share_of_a_recurrent_state():
    """Four of eight heads: half of the state, of the operations, the width and the convolution."""
    state = RecurrentMixer(
        kind="mamba2", num_heads=8, state_elements=640, conv_elements=33, flops_per_token=100.0, width=20
    )
    prompt, decode = (f(cut(), of(state), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.tokens[0], prompt.sequences[0], prompt.is_decode) == (60, 2, False)
    assert (decode.tokens[0], decode.sequences[0], decode.is_decode) == (5, 5, True)
    assert (decode.state_elements, decode.flops_per_token, decode.width, decode.conv_elements) == (320, 50.0, 10, 16)


def test_an_indexer_scores_every_key():
    """Prompts: 2 x 30 queries see half of 100 keys; decodes 5 x 400. Two heads of eight, a byte a key element."""
    sparse = LatentAttention(**LATENT, value_head_size=20, top_tokens=64, index_heads=2, index_head_size=8)
    found = mixing._index(cut(), sparse, BATCH)
    assert found.flops[0] == 2 * 2 * 8 * (60 * 50 + 2000)
    assert found.bytes[0] == (200 + 2000) * 8
    compute_s = found.flops[0] / H100.dense_flops_per_s["fp8"]
    memory_s = found.bytes[0] / H100.memory_bandwidth_bytes_per_s
    assert found.time_s[0] == pytest.approx(max(compute_s / 0.5, memory_s / 0.8))
    thin = CompressedAttention(**COMPRESSED, index_heads=2, index_head_size=8)
    assert mixing._index(cut(), thin, BATCH).bytes[0] == (50 + 500) * 8


def test_an_indexer_over_pooled_keys_scores_one_for_every_few_tokens():
    """One key for five tokens: a fifth of the pairs and of the keys, of two bytes each at the rate of 16 bits."""
    pooled = replace(SOFTMAX, top_tokens=64, index_heads=2, index_head_size=8, index_ratio=5, index_format="bf16")
    found = mixing._index(cut(), pooled, BATCH)
    assert found.flops[0] == 2 * 2 * 8 * (60 * 10 + 400)
    assert found.bytes[0] == (40 + 400) * 8 * 2
    assert found.compute_s[0] == pytest.approx(found.flops[0] / H100.dense_flops_per_s["bf16"])


def test_pooled_index_keys_in_the_cache(monkeypatch):
    """Latents of 32 in two bytes and a byte key of 20 for every four tokens; keys and values of 2 x 7 in two bytes and
    a key of 12 in two bytes for every three."""
    from orrery.execution import shard as shards

    latent = LatentAttention(**LATENT, value_head_size=20, index_heads=2, index_head_size=20, index_ratio=4)
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


def test_checking_guesses_reads_the_cache_once():
    timing = mixing.Timing(
        time_s=np.array([10.0]),
        compute_s=np.array([2.0]),
        memory_s=np.array([9.0]),
        overhead_s=np.array([1.0]),
        flops=np.array([7.0]),
        bytes=np.array([5.0]),
    )
    few, many = mixing._verifying(timing, 4), mixing._verifying(timing, 6)
    assert (few.time_s[0], few.compute_s[0], few.flops[0], few.bytes[0]) == (10.0, 8.0, 28.0, 5.0)
    assert many.time_s[0] == 13.0


@pytest.mark.parametrize(
    ("kv", "device", "formats"),
    [
        ("bf16", "h100-sxm", ("bf16", "bf16")),
        ("fp8", "h100-sxm", ("fp8", "fp8")),
        ("fp8", "a100-sxm-80gb", ("bf16", "fp8")),
        ("fp32", "h100-sxm", ("fp32", "fp32")),
    ],
)
def test_what_a_cache_is_multiplied_in(kv, device, formats):
    assert mixing._attention_formats(cut(kv=kv, device=get_device(device))) == formats


def test_shares_by_rank():
    """A first guess right six times of ten; the second as often where it is wrong."""
    first, second = ranked([0.6, 0.5])
    assert first[:3] == pytest.approx((0.6, 0.24, 0.096))
    assert second[:3] == (0.5, 0.25, 0.125)
    assert len(first) == 8
    assert checked_ranks(((0.5, 0.5), (1.0,), (0.0,))) == ((0.5, 0.5), (1.0,), (0.0,))
    for wrong in ((), (-0.1,), (0.6, 0.5), (0.1, 0.2)):
        with pytest.raises(ScenarioError, match="position 2"):
            checked_ranks(((0.5,), wrong))


def test_full_trees_and_the_likeliest():
    guesses = ((0.6, 0.3), (0.5, 0.2))
    wide = widened(guesses, [2, 1])
    assert (wide.level_nodes, wide.acceptance_fracs) == ((2, 2), (pytest.approx(0.9), 0.5))
    assert widened(guesses, [1, 2]).level_nodes == (1, 2)
    assert ratios((0.9, 0.45)) == (0.9, 0.5)
    assert ratios((0.0, 0.0)) == (0.0, 0.0)
    found = {h.level_nodes: h.acceptance_fracs for h in tree_heads(guesses)}
    assert found[(1,)] == (0.6,)
    assert found[(2,)] == (pytest.approx(0.9),)
    # of two: 0.6 and then 0.3, either the second first guess or the first second one
    assert found[(2, 1)] == (pytest.approx(0.9), pytest.approx(1 / 3))
    assert found[(2, 2)] == (pytest.approx(0.9), pytest.approx(0.5))  # 0.3 and 0.15 of 0.9
    assert draft_trees.SIZES == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def test_the_most_tokens_a_second_and_of_equal_ones_the_fewest_drafts():
    def tried(ratio, nodes):
        head = DraftHead(method="tree", level_nodes=(nodes,), acceptance_fracs=(0.5,))
        return draft_trees.Tried(head=head, step_s=1.0, speedup_ratio=ratio)

    ways = [tried(1.5, 8), tried(1.6, 9), tried(1.6, 4)]
    assert best_of(ways) is ways[2]


def test_positions_that_stay_cached():
    """One head, a window of two of eight: sums 4, 0, 3, 0, 0, 5 before it."""
    scores = np.zeros((1, 2, 8))
    scores[0, 0] = [3, 0, 3, 0, 0, 2, 9, 9]
    scores[0, 1] = [1, 0, 0, 0, 0, 3, 9, 9]

    def kept(way, budget, **given):
        return np.flatnonzero(chosen(way, scores, budget, **given)[0]).tolist()

    assert kept("snapkv", 4, pooled=1) == [0, 5, 6, 7]
    assert kept("snapkv", 3, pooled=3) == [1, 6, 7]  # neighbours: 4, 7, 3, 3, 5, 5
    assert kept("recent", 4) == [4, 5, 6, 7]
    assert kept("recent", 1) == [7]
    assert kept("snapkv", 2) == [6, 7]
    assert kept("random", 9) == list(range(8))
    assert len(kept("random", 5)) == 5
    maps = np.array([[[0.5, 0.25, 0.25]]])
    assert recall_frac(maps, np.array([[True, False, True]])) == 0.75
    assert recall_frac(0 * maps, np.array([[True, False, True]])) == 0.0
    assert scoring(4, 16, 3.0, 100.0) == (2 * 64 * 16 * 4 * 3.0, 100.0 + 8 * 64 * 4 * 3.0)


def test_maps_that_are_drawn():
    law = AttentionLaw()
    assert asdict(law) == {
        "num_heads": 4,
        "hitters_frac": 0.004,
        "run_tokens": 4,
        "strength_ratio": 5.0,
        "drift_ratio": 1.0,
        "near_tokens": 32.0,
    }
    maps, heavy = drawn_maps(law, 1000, 10, 0)
    assert maps.shape == (4, 74, 1000)
    assert maps.sum(axis=2) == pytest.approx(np.ones((4, 74)))
    assert 12 <= heavy[0].sum() <= 16  # four runs of four, which may overlap
    assert maps[0, 0, 937:].sum() == 0.0  # the first of the window stands at 936
    assert maps[0, 0, 936] > 0.0
    assert maps[:, :, :].transpose(1, 0, 2)[:, heavy].mean() > 20 * maps.mean()


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

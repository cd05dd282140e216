"""A cut model keeps every weight and every cached byte, no more and no fewer than the layout says."""

import pytest

from orrery.execution.shard import cache_of, has_exchange, shard


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_tensor_parallel_shards_add_up_to_the_model(deploy, tp):
    deployment = deploy(tp=tp)
    norms = 2.0 * (80 * 2 * 8192 + 8192)
    whole = 2.0 * deployment.model.num_parameters
    assert shard(deployment).weight_bytes * tp == pytest.approx(whole + (tp - 1) * norms, rel=1e-6)


def test_key_value_heads_replicate_below_one_a_device(deploy):
    eight, sixteen = deploy(tp=8), deploy(tp=16)
    assert cache_of(eight).bytes_per_token == 80 * 2 * 128 * 2
    assert cache_of(sixteen).bytes_per_token == cache_of(eight).bytes_per_token, (
        "one head is the least a device can hold"
    )
    qkv = [next(x for x in shard(d).linears if x.name == "qkv").n for d in (eight, sixteen)]
    assert qkv == [(64 * 128) // 8 + 2 * 128, (64 * 128) // 16 + 2 * 128]


def test_cache_bytes_of_known_models(deploy):
    assert cache_of(deploy()).bytes_per_token == 327_680
    assert cache_of(deploy(kv="fp8")).bytes_per_token == 163_840
    assert cache_of(deploy(model="deepseek-ai/DeepSeek-V3")).bytes_per_token == 61 * 576 * 2


def test_a_latent_cache_is_whole_on_every_device(deploy):
    one, eight = (deploy(model="deepseek-ai/DeepSeek-V3", tp=tp) for tp in (1, 8))
    assert cache_of(one).bytes_per_token == cache_of(eight).bytes_per_token


def test_a_window_bounds_what_a_sequence_holds(deploy):
    cache = cache_of(deploy(model="openai/gpt-oss-20b"))
    each = 12 * 2 * 8 * 64 * 2
    assert cache.bytes_per_token == each, "half of the 24 layers attend to everything"
    assert cache.windows == ((128, each),), "the other half keeps 128 tokens"
    assert cache.sequence_bytes(100) == 100 * 2 * each, "a short sequence fills no window"
    assert cache.sequence_bytes(1000) == (1000 + 128) * each


def test_pipeline_stages_hold_their_own_layers(deploy):
    whole, half = deploy(), deploy(pp=2)
    assert cache_of(half).bytes_per_token == cache_of(whole).bytes_per_token / 2
    assert shard(half).weight_bytes < 0.52 * shard(whole).weight_bytes


def test_the_first_stage_holds_the_embedding_and_the_last_the_head(deploy):
    """Llama 3.1 70B in BF16: half of its 80 layers and one of two equal tables of 128,256 x 8,192, never both."""
    layer = (8192 * (8192 + 2 * 1024) + 8192 * 8192) + 3 * 8192 * 28672
    norms = 80 * 2 * 8192 + 8192
    table = 128_256 * 8192
    for pp, tables in ((1, 2), (2, 1), (4, 1)):
        held = shard(deploy(pp=pp)).weight_bytes
        assert held == pytest.approx(2 * ((80 * layer + norms) / pp + tables * table), rel=1e-9), pp


def test_a_tied_head_is_a_table_of_its_own_once_stages_part(deploy):
    """Llama 3.2 1B ties them: one table of 128,256 x 2,048 on a device, and one on each end of a pipeline."""
    layer = 2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192
    norms = 16 * 2 * 2048 + 2048
    table = 128_256 * 2048
    for pp in (1, 2):
        held = shard(deploy(model="meta-llama/Llama-3.2-1B", pp=pp)).weight_bytes
        assert held == pytest.approx(2 * ((16 * layer + norms) / pp + table), rel=1e-9), pp


def test_experts_spread_over_ranks(deploy):
    whole, spread = deploy(model="mistralai/Mixtral-8x7B-v0.1"), deploy(model="mistralai/Mixtral-8x7B-v0.1", dp=4, ep=4)
    assert shard(spread).experts[0].weight_bytes == shard(whole).experts[0].weight_bytes / 4
    assert not has_exchange(whole)
    assert has_exchange(spread)
    attention = [x.weight_bytes for x in shard(spread).linears if x.name == "qkv"]
    assert attention == [x.weight_bytes for x in shard(whole).linears if x.name == "qkv"], "attention stays whole"


def test_formats_set_the_stored_bytes_but_not_of_the_head(deploy):
    wide, narrow = deploy(), deploy(weights="fp8", activations="fp8")
    head = [next(x.weight_bytes for x in shard(d).linears if x.is_head) for d in (wide, narrow)]
    down = [next(x.weight_bytes for x in shard(d).linears if x.name == "down") for d in (wide, narrow)]
    assert head[0] == head[1]
    assert down[0] == 2 * down[1]


def test_a_device_without_the_format_unpacks_it(deploy):
    formats = {
        (device, weights): {
            x.format
            for x in shard(deploy(device=device, weights=weights, activations=weights)).linears
            if not x.is_head
        }
        for device, weights in (("h100-sxm", "fp8"), ("a100-sxm-80gb", "fp8"), ("h100-sxm", "nvfp4"), ("b200", "nvfp4"))
    }
    assert list(formats.values()) == [{"fp8"}, {"int8_weight_only"}, {"int4_weight_only"}, {"nvfp4"}]


def test_a_format_leaves_in_16_bits_what_its_published_checkpoint_does(deploy):
    """Of DeepSeek-R1 in NVFP4 attention's output (128 heads of 128 into 7,168) takes 2 bytes a weight, not 4.5 bits."""
    narrow = deploy(model="deepseek-ai/DeepSeek-R1", device="b200", weights="nvfp4", activations="nvfp4", tp=8)
    held = {x.name: x for x in shard(narrow).linears}
    assert held["out"].weight_bytes == 128 * 128 * 7168 * 2 / 8
    assert held["shared_down"].weight_bytes == 2048 * 7168 * 4.5 / 8 / 8
    assert (held["out"].format, held["shared_down"].format) == ("bf16", "nvfp4")

"""Parts of a training layout by hand: recipes, names, modules, loads and slots of experts, exchanges played out."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.memory import USABLE_FRAC
from orrery.execution.offload.shapes import gpt, gpt_of
from orrery.execution.offload.tiers import tiers_of
from orrery.execution.train.hidden import TENSOR, tensor_exposed, tensor_technique
from orrery.execution.train.job import BASE_WEIGHTS
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.loads import fullest, shares_of
from orrery.execution.train.modules import check_modules, mask_of, modules_in, modules_of, read_modules
from orrery.execution.train.overlap import Pair
from orrery.execution.train.packing import packed
from orrery.execution.train.placement import Standing
from orrery.execution.train.products import Passes
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.units import Layer
from orrery.kernels.ops import Popularity

COLUMNS = (
    "saved_input_bytes",
    "weights_bytes",
    "weight_copy_bytes",
    "gathered_weight_bytes",
    "gradient_wire_bytes",
    "gradient_bytes",
    "master_bytes",
    "moments_bytes",
    "input_casts",
    "gradient_casts",
    "weight_casts",
    "num_amax_reduces",
    "wide_layers_frac",
)
PLAIN = (2, 0, 0, 2, 0, 0, -1, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("name", "bytes_and_casts"),
    [
        ("bf16", PLAIN),
        ("bf16_pure", (2, 2, 0, 2, 2, 2, 0, 4, 0, 0, 0, 0, 0)),
        ("fp16", (2, 0, 0, 2, 0, 0, -1, 0, 0, 0, 0, 1, 0)),  # one loss scale
        ("fp32", (4, 4, 0, 4, 4, 4, 0, 8, 0, 0, 0, 0, 0)),
        ("fp8", (1, 0, 2, 2, 0, 0, -1, 0, 4 / 3, 4 / 3, 4 / 3, 2, 0)),  # 2 + 1 + 1 bytes of 3
        ("fp8_current", (1, 0, 2, 2, 0, 0, -1, 0, 2, 2, 2, 0, 0)),  # the maximum first: 2 + 2 + 1 + 1
        ("fp8_block", (1.03125, 0, 2, 2, 0, 0, -1, 0, 4.0625 / 3, 4.0625 / 3, 4 / 3, 0, 0)),
        ("fp8-lm-gradients", (1, 2, 2, 2, 1, 1, 0, 8, 4 / 3, 4 / 3, 4 / 3, 3, 0)),
        ("fp8-lm-optimizer", (1, 2, 2, 2, 1, 1, 0, 3, 4 / 3, 4 / 3, 4 / 3, 3, 0)),
        ("fp8-lm", (1, 1, 1, 1, 1, 1, 2, 3, 4 / 3, 4 / 3, 4 / 3, 3, 0)),
        ("mxfp8", (1.03125, 0, 2.0625, 2, 0, 0, -1, 0, 4.0625 / 3, 4.0625 / 3, 4.0625 / 3, 0, 0)),
        ("nvfp4", (0.5625, 0, 1.125, 2, 0, 0, -1, 0, 7.125 / 3, 7.125 / 3, 5.125 / 3, 0, 0.16)),
    ],
)
def test_bytes_and_casts_of_recipes(name, bytes_and_casts):
    recipe = get_recipe(name)
    assert [getattr(recipe, column) for column in COLUMNS] == pytest.approx(bytes_and_casts, rel=1e-12)


def test_frozen_weights_of_four_bits():
    """Scales of 64 weights in FP32, or in 8 bits with an FP32 scale for 256 of them."""
    assert BASE_WEIGHTS == {"nf4": 0.5 + 4 / 64, "nf4-dq": 0.5 + 1 / 64 + 4 / (64 * 256)}


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        ({}, "mb1"),
        ({"tp": 2, "dp": 4}, "tp2 sp dp4 mb1"),
        ({"tp": 2, "is_sequence_parallel": False}, "tp2 mb1"),
        ({"cp": 2, "micro_batch": 4}, "cp2 mb4"),
        ({"cp": 2, "context_kind": "all-to-all"}, "cp2 all-to-all mb1"),
        ({"pp": 4, "vp": 2, "schedule": "zb"}, "pp4 vp2 mb1 zb"),
        ({"first_stage_layers": 3, "last_stage_layers": 2}, "first3 last2 mb1"),
        ({"ep": 4, "etp": 2, "sharding": "zero3"}, "ep4 etp2 mb1 zero3"),
        ({"sharding_group": 8, "secondary_group": 4}, "mb1 group8 near4"),
        ({"recompute": "full", "recompute_layers": 5}, "mb1 recompute-full-5"),
        ({"recompute": "selective"}, "mb1 recompute-selective"),
        ({"recompute": "selective", "recompute_modules": ("mlp", "moe")}, "mb1 recompute-mlp+moe"),
    ],
)
def test_names_say_all_that_is_not_plainest(layout, name):
    assert str(TrainingLayout(**layout)) == name


def test_modules_by_bits_and_words():
    """In their order: core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts."""
    assert mask_of(["core_attn", "mlp"]) == 1 + 16
    assert mask_of(["moe", "moe_act", "shared_experts"]) == 32  # what lies inside counts once
    assert modules_of(1 + 16) == ("core_attn", "mlp")
    assert read_modules("mlp, attention+norm") == ("core_attn", "layernorm", "mlp")
    assert modules_in(get_model("llama-3.1-8b")) == ("core_attn", "layernorm", "mlp")
    assert modules_in(get_model("mixtral-8x7b")) == ("core_attn", "moe_act", "layernorm", "moe")
    deepseek = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")
    assert modules_in(get_model("deepseek-v3")) == deepseek
    check_modules(get_model("deepseek-v3"), deepseek)
    with pytest.raises(Exception, match=r"has no mla_up_proj, moe; write some of core_attn, layernorm, mlp"):
        check_modules(get_model("llama-3.1-8b"), ("mla_up_proj", "mlp", "moe"))


# --- experts on ranks


def test_shares_in_the_order_of_experts():
    """Two of four experts a token: a share of 0.5 would be chosen by every token; the rest is shared by the others."""
    assert shares_of(4, 2, Popularity(is_dealt=True)).tolist() == [[0.25] * 4]
    assert shares_of(4, 2, Popularity()).tolist() == [[0.25] * 4]
    law = Popularity(shares=(0.1, 0.4, 0.3, 0.2))
    assert shares_of(4, 2, law).tolist() == [pytest.approx([0.1, 0.4, 0.3, 0.2])]
    full = Popularity(shares=(0.1, 0.6, 0.1, 0.2))
    assert shares_of(4, 2, full).tolist() == [pytest.approx([0.125, 0.5, 0.125, 0.25])]
    layers = Popularity(layers=((0.1, 0.4, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1)))
    assert shares_of(4, 2, layers).tolist() == [pytest.approx(row) for row in layers.layers]
    drawn = shares_of(4, 2, Popularity(exponent=1.0))
    assert drawn.shape == (64, 4)
    np.testing.assert_allclose(np.sort(drawn, axis=1), np.tile(np.array([3, 4, 6, 12]) / 25, (64, 1)))


def test_the_fullest_rank():
    assert fullest(np.array([[0.1, 0.4, 0.3, 0.2]]), 2) == pytest.approx([0.5])
    assert fullest(np.array([[0.4, 0.3, 0.2, 0.1]]), 2) == pytest.approx([0.7])
    assert fullest(np.array([[0.4, 0.3, 0.2, 0.1]]), 9) == pytest.approx([0.4])


SHARE = np.array([[0.4, 0.3, 0.2, 0.1]])


def test_experts_are_packed_where_that_evens_ranks_out():
    """0.4 with 0.1 and 0.3 with 0.2; where the order is as even already it stays."""
    assert packed(SHARE, 2, 0).tolist() == [[0, 3, 1, 2]]
    assert packed(np.array([[0.1, 0.4, 0.3, 0.2]]), 2, 0).tolist() == [[0, 1, 2, 3]]
    assert packed(np.array([[0.1, 0.2, 0.3, 0.4]]), 2, 0).tolist() == [[3, 0, 2, 1]]


def test_copies_go_to_whoever_has_most_each():
    """On 2 ranks of 3 slots: the first is copied (0.2 each), then the second (0.15 each). Slots by what they carry:
    0.2, 0.2 and 0.2 (the third expert), 0.15 twice, 0.1; no rank gets two of one."""
    expert = packed(SHARE, 2, 2)
    assert sorted(expert[0].tolist()) == [0, 0, 1, 1, 2, 3]
    halves = expert[0].reshape(2, 3)
    assert all({0, 1} <= set(half.tolist()) for half in halves)
    four = packed(np.array([[0.7, 0.1, 0.1, 0.1]]), 2, 4)[0]
    assert sorted(four.tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]  # one on every rank is enough


def test_what_a_standing_moves_and_copies():
    """Ranks hold 0, 1, 2 and 0, 3, 1: the first has 2 from elsewhere, the second 0 and 1; those two are copied."""
    standing = Standing(
        expert=np.array([[0, 1, 2, 0, 3, 1]]),
        share=np.array([[0.2, 0.15, 0.2, 0.2, 0.1, 0.15]]),
        num_experts=4,
        num_ranks=2,
    )
    assert standing.slots_each == 3
    assert standing.fullest_ratio == pytest.approx(2 * 0.55)
    assert standing.moved_frac == pytest.approx(2 / 3)
    assert standing.copied_frac == pytest.approx(2 / 3)
    assert standing.num_copies == 2
    order = Standing(expert=np.array([[0, 1, 2, 3]]), share=SHARE, num_experts=4, num_ranks=2)
    assert (order.moved_frac, order.copied_frac, order.num_copies) == (0, 0, 1)
    assert order.fullest_ratio == pytest.approx(1.4)


# --- exchanges beside products


def pair(compute=12.0, network=8.0, weight=0.0, inside=0.0, contention=1.0, **more) -> Pair:
    """Pieces and messages cost nothing more."""
    values = [np.array([x]) for x in (compute, network, weight, inside)]
    return Pair(
        compute_s=values[0],
        network_s=values[1],
        num_collectives=2.0,
        cut_compute_s=lambda n: values[0],
        cut_columns_s=lambda n: values[0],
        cut_network_s=lambda n: values[1],
        backward_weight_s=values[2],
        inside_s=values[3],
        contention_ratio=contention,
        **more,
    )


def pipelined(layer, chunks, streams=1.0):
    from orrery.execution.train.techniques.expert_pipeline import rule

    return float(rule(layer, np.array([chunks, 8.0, streams]))[0])


def test_an_expert_pipeline_is_played_out_chunk_by_chunk():
    """Two chunks of 6 s products and messages of 2 s each way: out at 2 and 4, products until 8 and 14, back at 16."""
    assert pipelined(pair(), 1) == 20
    assert pipelined(pair(), 2) == 16
    assert pipelined(pair(), 4) == 1 + 12 + 1
    assert pipelined(pair(), 0) == 0.5 + 12 + 0.5  # eight are best


def test_an_expert_pipeline_where_links_bind():
    """4 s of products in two chunks, messages of 5 s: out at 5 and 10, products until 7 and 12, back at 15 and 20."""
    assert pipelined(pair(compute=4.0, network=20.0), 2) == 20


def test_gathers_inside_a_node_run_beside_the_exchange_or_after_it():
    """Chunks of 6 s, exchanges of 2 s, gathers of 1 s. On two streams: out at 2 and 4, gathered at 3 and 5, products
    until 9 and 15, scattered at 10 and 16, back at 12 and 18. On one: out at 2 and 5, gathered at 3 and 6, the rest
    alike."""
    assert pipelined(pair(inside=4.0), 2) == pipelined(pair(inside=4.0), 2, 0.0) == 18
    assert pipelined(pair(compute=4.0, inside=16.0), 2) < pipelined(pair(compute=4.0, inside=16.0), 2, 0.0)


def test_weight_gradients_fill_the_gaps_and_contention_slows_products():
    """Weight gradients of 3 s follow each chunk's products: 2 + 2 x 9 = 20 is later than the last message's 16."""
    assert pipelined(pair(weight=6.0), 2) == 20
    # 12 + 8 - 16 = 4 s hidden, a third of which is lost at a contention of 1.5
    slowed = 12 + 4 * (1 - 1 / 1.5)
    assert pipelined(pair(contention=1.5), 2) == pytest.approx(2 + slowed + 2)


def test_tensor_collectives_that_add_to_a_layer():
    """Products of 10 (forward), 8 and 6 s at a ratio of 1.5; collectives of 4 s twice as slow. Serial adds them all;
    weight gradients hide two thirds of them with sequence parallelism, all without; a layer without any adds none."""

    def exposed(technique, tp=2, sequence=True, collectives=4.0):
        zero = np.zeros(1)
        framework = SimpleNamespace(
            matrix_ratio=1.5,
            elementwise_ratio=1.0,
            attention_ratio=1.0,
            contention_ratio=1.0,
            overlaps_tensor=technique == "pieces",
            overlaps_weight_gradients=technique == "weight-gradients",
        )
        layer = SimpleNamespace(
            tensor_forward_s=zero + collectives,
            tensor_backward_s=zero + collectives,
            products=Passes(forward_s=zero + 10, input_gradient_s=zero + 8, weight_gradient_s=zero + 6),
            stream_forward_s=zero,
            stream_backward_s=zero,
            core_forward_s=lambda f: zero,
            core_backward_s=lambda f: zero,
        )
        job = SimpleNamespace(framework=framework, tensor_overlap="", tensor_knobs=())
        choice = SimpleNamespace(tp=np.array([tp]), is_sequence_parallel=np.array([sequence]))
        units = SimpleNamespace(job=job, layer=layer, choice=choice)
        assert tensor_technique(job) == technique
        ahead, back = tensor_exposed(units, np.array([2.0]))
        return float(ahead[0]), float(back[0])

    assert "serial" in TENSOR.techniques
    assert exposed("serial") == (8, 8)
    assert exposed("weight-gradients") == (8, pytest.approx(8 / 3))
    assert exposed("weight-gradients", sequence=False) == (8, 0)
    assert exposed("weight-gradients", collectives=0.0) == (0, 0)


def test_attention_through_scores_backward_makes_four_products_for_two():
    zero = np.zeros(1)
    framework = SimpleNamespace(matrix_ratio=2.0, elementwise_ratio=3.0, attention_ratio=5.0)
    names = [name for name in Layer.__slots__ if name not in ("products", "experts")]
    values = dict.fromkeys(names, zero) | {
        "attention_forward_s": zero + 1,
        "attention_backward_s": zero + 2,
        "score_products_s": zero + 10,
        "score_forward_s": zero + 100,
        "score_backward_s": zero + 1000,
    }
    none = Passes(forward_s=zero, input_gradient_s=zero, weight_gradient_s=zero)
    layer = Layer(products=none, experts=none, **values)
    assert layer.core_forward_s(framework) == 5 * 1 + 2 * 10 + 3 * 100
    assert layer.core_backward_s(framework) == 5 * 2 + 2 * 2 * 10 + 3 * 1000


# --- devices that offload


def test_tiers_are_this_devices_part():
    """82 % of the link that two share, 85 % of the host's memory that four share."""
    device = get_device("h100-sxm")
    found = tiers_of(
        device,
        host_bytes=400.0,
        host_memory_bytes_per_s=80.0,
        nvme_bytes=40.0,
        nvme_read_bytes_per_s=12.0,
        nvme_write_bytes_per_s=8.0,
        num_sharing=4,
        num_per_link=2,
    )
    assert found.gpu_bytes == pytest.approx(USABLE_FRAC * device.memory_capacity_bytes - 0.6e9)
    assert found.gpu_memory_bytes_per_s == device.memory_bandwidth_bytes_per_s
    assert found.host_link_each_way_bytes_per_s == pytest.approx(0.82 * device.host.each_way_bytes_per_s / 2)
    rates = (found.host_bytes, found.nvme_bytes, found.nvme_read_bytes_per_s, found.nvme_write_bytes_per_s)
    assert rates == (100, 10, 3, 2)
    whole = tiers_of(device, host_memory_bytes_per_s=80.0).host_memory_bytes_per_s
    assert found.host_memory_bytes_per_s == pytest.approx(whole / 4)
    assert 0.5 * 80 < whole < 80


def test_models_of_any_size():
    """12 l h^2 + 13 l h of layers with biases and norms, embeddings of 50,257 + 1024 positions, the last norm."""
    model = gpt(4, 256)
    assert model.num_parameters == 12 * 4 * 256**2 + 13 * 4 * 256 + (50257 + 1024) * 256 + 2 * 256
    mixer = model.blocks[0].mixer
    assert (mixer.num_heads, mixer.head_size, model.num_layers) == (2, 128, 4)
    assert gpt(1, 64).blocks[0].mixer.num_heads == 1
    assert gpt(1, 256, num_heads=8).blocks[0].mixer.head_size == 32
    large = gpt_of(175e9)
    assert (large.num_layers, large.hidden_size) == (96, 12288)
    assert gpt_of(12 * 7 * 512**2 + 51281 * 512, hidden_size=512).num_layers == 7
    assert gpt_of(1e6).num_layers == 1


def test_products_beside_nothing_are_not_slowed():
    """In one chunk nothing overlaps: 12 + 8 s whatever a collective would take of the device."""
    assert pipelined(pair(contention=1.5), 1) == 20

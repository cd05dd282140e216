"""Guessing tokens, triggered products and other small laws of the execution floor, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution import triggered as t3
from orrery.execution.batch import Batch
from orrery.execution.choice import Choice, backend_words, by_tokens, mixer_kind
from orrery.execution.dataflow.chain import Task
from orrery.execution.dataflow.layer import layer_tasks
from orrery.execution.dataflow.words import read_chain
from orrery.execution.draft_trees import checked_ranks, prompt_heads, ratios, tree_heads, widened
from orrery.execution.experts.redundant import why_not
from orrery.execution.finetune_memory import activations, adapter_bytes
from orrery.execution.formats import can_multiply, compute_format, is_16bit, wide_bytes
from orrery.execution.host import captured
from orrery.execution.layout import Layout
from orrery.execution.overlapped import Pass, halved
from orrery.execution.speculation import (
    Speculation,
    drafting_s,
    level_chances,
    level_nodes,
    verified_tokens,
)
from orrery.execution.surface.nodes import dense, ladder, tokens

# --- guesses


def test_guesses_in_a_row():
    """1 + 0.5 + 0.25 + 0.125; three steps of 2 + 0.1 x 4 s for four sequences."""
    row = Speculation(draft_tokens=3, acceptance_frac=0.5, draft_base_s=2.0, draft_s_per_sequences=0.1)
    assert row.widths == level_nodes(row) == (1, 1, 1)
    assert verified_tokens(row) == 4
    assert drafting_s(row, 4.0) == pytest.approx(3 * 2.4)


def test_trees_of_guesses():
    """4 x 2 x 1: a level holds with 1 - 0.5^4, 1 - 0.5^2 and 0.5; 4, 8 and 8 nodes; passes see 1, 4 and 8."""
    tree = Speculation(
        kind="tree", tree_widths=(4, 2, 1), acceptance_frac=0.5, draft_base_s=2.0, draft_s_per_sequences=0.1
    )
    assert level_chances(tree) == (0.9375, 0.75, 0.5)
    assert level_nodes(tree) == (4, 8, 8)
    assert verified_tokens(tree) == 21
    assert drafting_s(tree, 10.0) == pytest.approx(3 * 2 + (1 + 4 + 8) * 1.0)


def test_looking_up_costs_nothing_and_searched_trees_say_their_levels():
    assert drafting_s(Speculation(kind="prompt-lookup", draft_base_s=2.0), 4.0) == 0
    found = Speculation(level_fracs=(0.8, 0.5), checked_tokens=7)
    assert (found.widths, level_chances(found), verified_tokens(found)) == ((1, 1), (0.8, 0.5), 8)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "luck"}, "write one of"),
        ({"acceptance_frac": 1.01}, "write 0 to 1"),
        ({"acceptance_frac": -0.01}, "write 0 to 1"),
        ({"acceptance_fracs": (0.5,)}, "1 for 4 positions"),
        ({"kind": "tree"}, "write the guesses at each level"),
        ({"kind": "tree", "tree_widths": (2, 0)}, "write the guesses at each level"),
        ({"draft_tokens": 0}, "write 1 or more"),
    ],
)
def test_guesses_that_make_no_sense_are_refused(wrong, says):
    with pytest.raises(ScenarioError, match=says):
        Speculation(**wrong)
    assert Speculation(acceptance_frac=0.0, draft_tokens=1).widths == (1,)
    assert Speculation(acceptance_frac=1.0, kind="tree", tree_widths=(1,)).widths == (1,)


RANKED = ((0.6, 0.2), (0.5, 0.3))


def test_full_trees_by_width():
    """Two under each: levels of 2 and 4 that hold with 0.8 each; one under each: 0.6 and 0.5."""
    wide = widened(RANKED, (2, 2))
    assert (wide.level_nodes, wide.acceptance_fracs) == ((2, 4), (0.8, 0.8))
    assert widened(RANKED, (1, 1)).acceptance_fracs == (0.6, 0.5)
    assert widened(((0.7, 0.4),), (2,)).acceptance_fracs == (1.0,)


def test_chances_follow_from_how_often_levels_are_reached():
    assert ratios((0.8, 0.4, 0.0, 0.0)) == (0.8, 0.5, 0.0, 0.0)
    assert ratios((1.2, 0.6)) == (1.0, 0.5)


@pytest.mark.parametrize("wrong", [(), (0.5, 0.6), (-0.1,), (0.6, 0.41), (0.5, -0.1)])
def test_shares_by_rank_fall_and_add_up_to_one_at_most(wrong):
    assert checked_ranks(RANKED) is RANKED
    assert checked_ranks(((0.6, 0.4), (0.0,)))
    with pytest.raises(ScenarioError, match="position 2 has"):
        checked_ranks(((0.6,), wrong))


def test_trees_of_all_sizes_are_unlike_and_prompt_tokens_need_room_for_a_chain():
    heads = list(tree_heads(RANKED))
    shapes = [(h.level_nodes, h.acceptance_fracs) for h in heads]
    assert len(set(shapes)) == len(shapes) > 1
    assert ((1,), (0.6,)) in shapes
    assert all(h.level_nodes[0] <= 2 and h.acceptance_fracs[0] in (0.6, pytest.approx(0.8)) for h in heads)
    prompted = list(prompt_heads(RANKED))
    assert min(1 + h.num_checked for h in prompted) >= 4  # two levels beside the sure token and one guess
    assert all(len(h.level_nodes) == 2 and h.level_nodes[1] == 0 and h.prompt_tokens > 0 for h in prompted)


# --- products that trigger their reduce-scatter

PRODUCT = t3.CutProduct(num_tokens=8, num_outputs=16, num_depth=32, num_devices=4)
MACHINE = t3.Machine(
    flops_per_s=8192.0, memory_bandwidth_bytes_per_s=1e9, link_each_way_bytes_per_s=64.0, link_latency_s=0.5
)
CHUNK = 2 * 8 * 16 / 4


def test_chunks_and_bytes_of_a_cut_product():
    assert (PRODUCT.flops, PRODUCT.operand_bytes, PRODUCT.chunk_bytes) == (8192, 2 * 32 * 24, CHUNK)
    assert t3.ring_s(PRODUCT, MACHINE) == 3 * (1 + 0.5)
    counts = [
        (t3.written_chunks(4, **way), t3.read_chunks(4, **way))
        for way in ({"is_triggered": False}, {"is_triggered": True}, {"is_triggered": True, "adds_in_memory": False})
    ]
    assert counts == [(8, 7), (6, 2), (7, 6)]


def test_in_turns_and_triggered_by_hand():
    """A product of 1 s and rings of 4.5 s: in turns 10 s; triggered a quarter of the product leads the first ring."""
    turns = t3.in_turns(PRODUCT, MACHINE)
    assert turns.time_s == 1 + 4.5 + 4.5
    assert turns.memory_bytes == 1536 + 4 * CHUNK + (7 + 8 - 4) * CHUNK + 6 * CHUNK
    quick = t3.triggered(PRODUCT, MACHINE)
    assert quick.time_s == 0.25 + 4.5 + 4.5
    assert quick.memory_bytes == 1536 + 8 * CHUNK + 6 * CHUNK
    assert t3.triggered(PRODUCT, MACHINE, adds_in_memory=False).memory_bytes == 1536 + 13 * CHUNK + 6 * CHUNK


@pytest.mark.parametrize(
    ("rates", "turns_s", "triggered_s"),
    [
        ({"flops_per_s": 819.2}, 10 + 9, 10 + 4.5),  # the product binds
        (
            {"memory_bandwidth_bytes_per_s": 64.0},
            (1536 + 256) / 64 + 11 + 4.5,
            (1536 + 8 * 64) / 64 + 4.5,
        ),  # memory does
    ],
)
def test_what_binds_a_triggered_product(rates, turns_s, triggered_s):
    slow = t3.Machine(**({name: getattr(MACHINE, name) for name in t3.Machine.__slots__} | rates))
    assert t3.in_turns(PRODUCT, slow).time_s == pytest.approx(turns_s)
    assert t3.triggered(PRODUCT, slow).time_s == pytest.approx(triggered_s)


# --- overlaps


def test_half_of_a_batch():
    """Half the sequences, rounded up; of a lone prompt half the tokens, which see all but a quarter of it."""
    batch = Batch(
        prompt_sequences=np.array([5, 1, 1, 0]),
        prompt_tokens=np.array([100, 101, 1, 0]),
        prompt_context_tokens=np.array([300, 300, 1, 0]),
        decode_sequences=np.array([7, 0, 4, 1]),
        decode_context_tokens=np.array([50, 0, 60, 70]),
    )
    half = halved(batch)
    assert half.prompt_sequences.tolist() == [3, 1, 1, 0]
    assert half.prompt_tokens.tolist() == [100, 50, 1, 0]
    assert half.prompt_context_tokens.tolist() == [300, 275, 1, 0]
    assert half.decode_sequences.tolist() == [4, 0, 2, 1]
    assert half.decode_context_tokens.tolist() == [50, 0, 60, 70]


def test_a_pass_over_another_link():
    one = Pass(
        deployment=None,
        total_s=np.array([10.0]),
        network_s=np.array([4.0]),
        memory_s=np.array([1.0]),
        split_extra_s=np.array([0.5]),
        halves_network_extra_s=np.array([0.25]),
    )
    assert (one.kernels_s, one.halves_s) == (6, 10.75)


# --- where steps are costed


def test_token_counts_that_are_costed():
    """All up to 64, every eighth to 1024, tiles of 64 and one more, 24 to a doubling, and the last."""
    assert tokens(50).tolist() == list(range(1, 51))
    found = set(tokens(1024).tolist())
    assert found == {*range(1, 65), *range(64, 1025, 8), *range(65, 1024, 64)}
    wide = tokens(5000)
    assert {4096, 4097, 1024, 5000} <= set(wide.tolist())
    assert 1032 not in wide
    assert round(1024 * 2 ** (1 / 24)) in wide
    assert 4160 not in wide  # tiles end at 4096


def test_ladders_of_sizes():
    assert ladder(8, 32, 1).tolist() == [8, 16, 32]
    assert ladder(8, 32, 2).tolist() == [8, 11, 16, 23, 32]
    assert ladder(8, 9, 1).tolist() == [8, 16]
    assert ladder(8, 50, 1).tolist() == [8, 16, 32, 50]


def test_batches_are_padded_to_the_graphs_that_vllm_captures():
    sizes = np.array([0, 1, 3, 4, 5, 9, 16, 250, 256, 257, 272, 273, 512, 513])
    assert captured(sizes).tolist() == [0, 1, 4, 4, 8, 16, 16, 256, 256, 272, 272, 288, 512, 513]


def test_rows_between_nodes():
    rows = dense(np.array([2, 4]), np.array([[10.0, 1.0], [20.0, 5.0]]), 5)
    assert rows.tolist() == [[0, 0], [10, 1], [10, 1], [15, 3], [20, 5], [20, 5]]


# --- back ends and formats


def rule(backend, low, high):
    return SimpleNamespace(backend=backend, tokens=(low, high), fact=None, activations="", tuned_by="")


def test_back_ends_change_where_their_rules_begin_and_end():
    inf = float("inf")
    found = by_tokens((rule("small", 0.0, 16.0), rule("middle", 10.0, 100.0)), "own")
    assert [(c.backend, c.most_tokens) for c in found[:2]] == [("small", 16), ("middle", 100)]
    assert backend_words(found) == "small up to 16 tokens, then middle up to 100 tokens, then own"
    late = by_tokens((rule("large", 64.0, inf), rule("all", 0.0, inf)), "own")
    assert [c.backend for c in late] == ["all", "large"]
    assert late[0].most_tokens == 63
    assert [c.backend for c in by_tokens((), "own")] == ["own"]
    gap = by_tokens((rule("large", 64.0, inf),), "own")
    assert (gap[0].backend, gap[0].most_tokens) == ("own", 63)
    assert backend_words((Choice(backend="one"),)) == "one"


def test_words_for_token_mixers():
    kinds = [mixer_kind(get_model(name).blocks[-1].mixer) for name in ("llama-3.1-8b", "deepseek-v3", "gpt-oss-120b")]
    assert kinds == ["softmax", "latent", "sinks"]
    assert mixer_kind(None) == ""


@pytest.mark.parametrize(
    ("weights", "activations", "device", "runs_in"),
    [
        ("bf16", "bf16", "h100-sxm", "bf16"),
        ("fp8", "fp8", "h100-sxm", "fp8"),
        ("fp8", "bf16", "h100-sxm", "int8_weight_only"),
        ("fp8", "fp8", "a100-sxm-80gb", "int8_weight_only"),
        ("nvfp4", "nvfp4", "h100-sxm", "int4_weight_only"),
        ("nvfp4", "nvfp4", "b200", "nvfp4"),
        ("mxfp4", "bf16", "h100-sxm", "mxfp4_weight_only"),
        ("mxfp4", "fp8", "b200", "mxfp4_mxfp8"),
        ("int4_weight_only", "bf16", "b200", "int4_weight_only"),
    ],
)
def test_arithmetic_of_stored_formats(weights, activations, device, runs_in):
    assert compute_format(weights, activations, get_device(device)) == runs_in


def test_formats_that_devices_multiply():
    assert can_multiply("fp8", get_device("h100-sxm"))
    assert not can_multiply("fp8", get_device("a100-sxm-80gb"))
    assert (wide_bytes("fp8"), wide_bytes("bf16"), wide_bytes("fp32")) == (2, 2, 4)
    assert (is_16bit("bf16"), is_16bit("fp32"), is_16bit("fp8")) == (True, True, False)


# --- redundant experts, adapters, chains


@pytest.mark.parametrize(
    ("ep", "copies", "says"),
    [
        (8, 0, ""),
        (1, 8, "write ep above 1"),
        (8, 32, ""),
        (8, 8 * 7, ""),
        (8, 8 * 7 + 8, "write at most that"),
        (8, 12, "do not fill 8 ranks evenly; write 8"),
        (8, 3, "write 8"),
        (8, 20, "write 16"),
    ],
)
def test_copies_fill_ranks_evenly(ep, copies, says):
    """Mixtral's 8 experts, of which no rank needs two copies."""
    found = why_not(get_model("mixtral-8x7b"), Layout(dp=ep, ep=ep), copies)
    assert found.endswith(says)
    assert bool(found) == bool(says)
    assert "has no experts" in why_not(get_model("llama-3.1-8b"), Layout(), 8)


def test_what_low_rank_finetuning_keeps():
    """Llama 3.1 8B: 4096 wide, 32 heads of 128 on 8, 14336 inside, 32 layers; adapters of 16 on the way down."""
    hidden, query, key, ffn = 4096, 4096, 1024, 14336
    needed = 2 * hidden + query + 2 * key + query + 2 * ffn + 16
    every = needed + (2 * hidden + query + key + 2 * ffn) + 4 * hidden
    found = activations(get_model("llama-3.1-8b"), 1000)
    assert found.needed_bytes == 32 * (2 * needed + 4 * 32)
    assert found.all_bytes == 32 * (2 * every + 4 * 32)
    assert found.ratio == found.all_bytes / found.needed_bytes
    unfused = activations(get_model("llama-3.1-8b"), 1000, is_attention_fused=False)
    assert unfused.all_bytes - found.all_bytes == 32 * 2 * 2 * 32 * 1000
    assert unfused.needed_bytes == found.needed_bytes
    assert activations(get_model("llama-3.1-8b"), 1000, rank=48).needed_bytes - found.needed_bytes == 32 * 2 * 32
    assert adapter_bytes(get_model("llama-3.1-8b")) == 16 * 32 * 16 * (14336 + 4096)
    with pytest.raises(ScenarioError, match="dense layers"):
        activations(get_model("mixtral-8x7b"), 1000)


def test_chains_as_people_write_them():
    first, second = read_chain(" 4x8X!16x2 ")
    assert first == Task(
        name="8 to 16", flops=2 * 4 * 8 * 16, weight_bytes=256, input_bytes=64, output_bytes=128, needs_all=True
    )
    assert second == Task(name="16 to 2", flops=256, weight_bytes=64, input_bytes=128, output_bytes=16, needs_all=False)
    assert read_chain("1x1x1")[0].flops == 2
    for wrong in ("4x8", "4", "4x0x2", "0x4x2", "4xax2", "4x8x", ""):
        with pytest.raises(ScenarioError, match="write rows and widths"):
            read_chain(wrong)


def test_tasks_of_a_decoder_layer():
    """Llama 2 7B on 2 of the ranks: 32 heads of 128, 4096 wide, 11008 inside; 3 new tokens that see 10."""
    model = get_model("llama-2-7b")
    tasks = {t.name: t for t in layer_tasks(model.blocks[0], 4096, 3, 10, ranks=2)}
    wide, scores = 3 * 4096 * 2, 16 * 3 * 10

    def figures(name):
        t = tasks[name]
        return t.flops, t.weight_bytes, t.input_bytes, t.output_bytes

    assert figures("norm 1") == figures("norm 2") == (4 * 3 * 4096, 0, wide, wide)
    qkv = 3 * 4096 / 2
    assert figures("qkv") == (2 * 3 * 4096 * qkv, 4096 * qkv * 2, wide, 3 * qkv * 2)
    assert figures("scores") == (2 * scores * 128, 16 * 10 * 128 * 2, 3 * qkv * 2, scores * 2)
    assert figures("softmax") == (5 * scores, 0, scores * 2, scores * 2)
    assert figures("mix") == (2 * scores * 128, 16 * 10 * 128 * 2, scores * 2, 16 * 3 * 128 * 2)
    assert figures("out") == (2 * 3 * 2048 * 4096, 2048 * 4096 * 2, 3 * 2048 * 2, wide)
    assert figures("add 1") == figures("add 2") == (wide, 0, 2 * wide, wide)
    assert figures("activation") == (5 * 5504 * 3, 0, 3 * 11008 * 2, 5504 * 3 * 2)
    assert figures("down") == (2 * 3 * 5504 * 4096, 5504 * 4096 * 2, 3 * 5504 * 2, wide)
    with pytest.raises(OutOfRange, match="only softmax attention"):
        layer_tasks(get_model("mixtral-8x7b").blocks[0], 4096, 3, 10)

"""Degrees, batches, and recomputation of a row of a training table: what follows from what it states."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_rows_read import read

from orrery.base.errors import ScenarioError


@pytest.mark.parametrize(
    ("cells", "layout"),
    [
        ({"tp": "", "dp": "8"}, "tp2 sp dp8 mb1 zero1"),
        ({"num_devices": "", "dp": "4"}, "tp2 sp dp4 mb1 zero1"),
        ({"num_devices": "64", "tp": "4", "pp": "4", "vp": "5"}, "tp4 sp pp4 vp5 dp4 mb1 zero1 interleaved"),
        ({"tp": "", "pp": "", "cp": "", "sharding": "fsdp"}, "dp16 mb1 zero3"),
        ({"sharding": ""}, "tp2 sp dp8 mb1 zero1"),  # NeMo's distributed optimizer
        ({"framework": "megatron-lm", "sharding": ""}, "tp2 dp8 mb1"),
        ({"framework": "torchtitan", "sharding": "", "recompute": ""}, "tp2 sp dp8 mb1 zero3 recompute-selective"),
        (
            {"device": "trainium1", "tp": "32", "pp": "4", "dp": "2", "num_devices": "128"},
            "tp16 sp pp4 dp2 mb1 zero1 1f1b",
        ),  # tp counts cores, two to a chip
        ({"tp": "16", "num_devices": "16", "sharding": ""}, "tp16 sp mb1"),
    ],
)
def test_degrees_follow_from_one_another(cells, layout):
    assert str(read(**cells)[1]) == layout


@pytest.mark.parametrize(
    ("cells", "kind", "modules"),
    [
        ({"recompute": "moe_act,layernorm"}, "selective", ("moe_act", "layernorm")),
        ({"recompute": "selective", "recompute_modules": "attention mlp"}, "selective", ("core_attn", "mlp")),
        (
            {"recompute": "selective", "recompute_as_published": "selective//[layernorm mla_up_proj mlp moe_act]"},
            "selective",
            ("moe_act", "layernorm", "mla_up_proj", "mlp"),
        ),
        ({"recompute": "selective", "recompute_as_published": "selective (attention)"}, "selective", ()),
        ({"recompute": "selective", "recompute_as_published": "custom or offloaded remat policy"}, "full", ()),
        ({"recompute": "full", "recompute_modules": "mlp"}, "full", ()),
    ],
)
def test_modules_are_read_from_the_cell_from_beside_it_or_as_the_source_lists_them(cells, kind, modules):
    layout = read(**cells)[1]
    assert (layout.recompute, layout.recompute_modules) == (kind, modules)


def test_what_a_run_leaves_open_is_as_little_as_makes_it_fit():
    """Llama-3 70B on 16 devices of 80 GB: state leaves no room for the activations of four sequences of 8192."""
    cells = {
        "model": "llama-3-70b",
        "num_devices": "16",
        "tp": "8",
        "pp": "2",
        "dp": "1",
        "micro_batch": "1",
        "global_batch": "16",
        "seq_len": "8192",
        "sharding": "zero1",
    }
    stated = read(**cells, recompute="none")[1]
    assert stated.recompute == "none"
    _, chosen, assumed = read(**cells | {"micro_batch": "4"}, recompute="")
    assert chosen.recompute != "none"
    assert any(note.startswith("sharding and recompute") for note in assumed)


@pytest.mark.parametrize(
    ("micro_batch", "recompute", "layers"), [(27, "none", 0), (28, "full", 1), (30, "full", 2), (52, "full", 0)]
)
def test_as_few_layers_as_fit_are_computed_again(micro_batch, recompute, layers):
    """Two stages of three layers on devices with 82.7 GB to use, of which a default may exceed a tenth: 91.0 GB.

    The first stage keeps two micro-batches. A sequence takes 2 x 3 x 0.517 GB in layers that keep everything; a layer
    that is computed again keeps its input alone (2 x 0.017 GB) until it stands in memory whole (0.517), as one does.
    So 27 sequences take 27 x 3.10 + 6.5 = 90.2 GB, 28 take 93.5 or, with one layer again, 79.9; 30 take 85.4 with one
    and 56.5 with two; of 52 two leave 95.5.
    """
    cells = {"num_layers": "6", "vocab_size": "1024", "pp": "2", "framework": "pytorch", "recompute": ""}
    _, layout, assumed = read(**cells, micro_batch=str(micro_batch), global_batch=str(8 * micro_batch))
    assert (layout.recompute, layout.recompute_layers) == (recompute, layers)
    assert ("sharding and recompute: as little as it takes to fit" in assumed) == (recompute != "none")


@pytest.mark.parametrize(
    ("cells", "batches"),
    [
        ({"micro_batch": "", "gradient_accumulation": "4"}, (2, 64)),
        ({"global_batch": "", "gradient_accumulation": "4", "micro_batch": "2"}, (2, 64)),
        ({"global_batch": "", "micro_batch": ""}, (1, 8 * 122)),  # 4M tokens are 976.6 sequences of 4096
        ({"global_batch": "", "micro_batch": "", "task": "full_finetune"}, (1, 8)),
        ({"global_batch": "", "micro_batch": "", "framework": "maxtext"}, (122, 8 * 122)),
        ({"micro_batch": ""}, (1, 64)),
        ({"micro_batch": "", "framework": "maxtext"}, (8, 64)),  # does not accumulate: a rank's whole share at once
        ({"gradient_accumulation": "3"}, (1, 64)),  # contradicts the layout, which wins
    ],
)
def test_batches_follow_from_one_another(cells, batches):
    job, layout, _ = read(**cells)
    assert (layout.micro_batch, job.global_batch) == batches


def test_a_small_test_without_a_number_of_devices_ran_on_a_node():
    cells = {"model": "gpt-test", "num_layers": "12", "hidden_size": "512", "num_heads": "8", "num_devices": ""}
    assert read(**cells)[1].num_devices == 8
    assert read(**cells | {"pp": "8"})[1].num_devices == 16
    with pytest.raises(ScenarioError, match="num_devices is blank"):
        read(**cells, benchmark="gpt/gpt_release")


def test_the_batch_tells_how_many_copies_there_are():
    cells = {"tp": "", "pp": "", "cp": "", "num_devices": "8", "global_batch": "8", "gradient_accumulation": "4"}
    assert str(read(**cells)[1]) == "tp4 sp dp2 mb1 zero1"


def test_a_layout_that_nobody_states_is_the_smallest_cut_that_can_have_run():
    blank = {"tp": "", "pp": "", "cp": "", "global_batch": "", "num_devices": "128", "device": "a100-sxm-80gb"}
    small = read(**blank)
    assert str(small[1]) == "dp128 mb1 zero1"
    # 174.6e9 parameters of (2 + 2) / ways + 12 / 128 bytes in 0.8 x 85.9e9 bytes: 14 ways, so 16
    large = read(**blank, model="gpt3-175b")
    assert (large[1].tp, large[1].pp, large[1].dp) == (8, 2, 8)
    assert {"dp: 8", "tp: 8", "pp: 2"} <= set(large[2])


@pytest.mark.parametrize(
    ("cells", "vp", "says_so"),
    [
        ({"pp": "4"}, 1, False),  # no tuned submission
        ({"pp": "4", "mlperf_round": "v4.1"}, 4, True),  # 32 layers / 4 stages / chunks of 2
        ({"pp": "8", "mlperf_round": "v4.1"}, 2, True),
        ({"pp": "16", "mlperf_round": "v4.1"}, 1, False),  # a stage is one chunk
        ({"pp": "4", "mlperf_round": "v4.1", "vp": "2"}, 2, False),
        ({"pp": "1", "mlperf_round": "v4.1", "vp": "2"}, 1, False),  # no pipeline, nothing to interleave
        ({"pp": "4", "mlperf_round": "v4.1", "num_layers": "36"}, 1, False),  # 4.5 chunks
    ],
)
def test_a_tuned_submission_interleaves_chunks_of_two_layers(cells, vp, says_so):
    _, layout, assumed = read(num_devices="64", **cells)
    assert layout.vp == vp
    assert (f"vp: {vp}" in assumed) == says_so
    assert (layout.schedule == "interleaved") == (vp > 1)


powers = st.sampled_from(["", "1", "2", "4", "8", "16"])


STATED = ("num_devices", "tp", "pp", "cp", "dp", "micro_batch", "global_batch", "gradient_accumulation")


@given(st.fixed_dictionaries(dict.fromkeys(STATED, powers)))
def test_a_row_that_is_read_adds_up(cells):
    try:
        job, layout, _ = read(**cells)
    except ScenarioError:
        return
    assert layout.num_devices == job.cluster.num_devices
    for column in ("tp", "pp", "cp", "dp", "micro_batch"):
        assert not cells[column] or getattr(layout, column) == int(cells[column])
    assert not cells["num_devices"] or layout.num_devices == int(cells["num_devices"])
    assert job.global_batch == layout.dp * layout.micro_batch * job.num_micro_batches(layout)

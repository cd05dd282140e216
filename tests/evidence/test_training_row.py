"""How a row of a training table is read: what it states, what follows from it, and what its blanks take."""

import csv
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OrreryError, ScenarioError
from orrery.catalog.models import get_model
from orrery.evidence.row import Row
from orrery.evidence.training_row import (
    counts_full_attention,
    is_last_rank,
    is_out_of_memory,
    memory_tool,
    read_training_row,
)
from orrery.models.model import SoftmaxAttention

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data")) / "training"

PLAIN = {
    "model": "meta-llama/Llama-2-7b-hf",
    "device": "h100-sxm",
    "num_devices": "16",
    "seq_len": "4096",
    "tp": "2",
    "pp": "1",
    "cp": "1",
    "micro_batch": "1",
    "global_batch": "64",
    "precision": "bf16",
    "framework": "nemo",
    "recompute": "none",
    "sharding": "zero1",
    "task": "pretrain",
}


def read(**cells):
    row = Row(PLAIN | cells)
    job, layout = read_training_row(row)
    return job, layout, row.assumed


def test_a_row_that_states_everything_takes_no_defaults():
    job, layout, assumed = read()
    assert str(layout) == "tp2 sp dp8 mb1 zero1"
    assert (job.global_batch, job.seq_len, job.num_micro_batches(layout)) == (64, 4096, 8)
    assert (job.framework.name, job.recipe.name, job.task) == ("nemo", "bf16", "pretrain")
    assert assumed == []


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


@pytest.mark.parametrize(
    ("cells", "recipe"),
    [
        ({"precision": "fp8"}, "fp8"),
        ({"precision": "fp8", "precision_as_published": "FP8-CS"}, "fp8_current"),
        ({"precision": "fp8", "precision_as_published": "float8 linear"}, "fp8_current"),
        ({"precision": "fp8", "precision_as_published": "FP8-MX"}, "mxfp8"),
        ({"precision_as_published": "bf16; FSDP MP mode PURE"}, "bf16_pure"),
        ({"precision_as_published": "amp_bf16; FSDP MP mode DEFAULT"}, "bf16"),
        ({"precision": ""}, "bf16"),
        ({"precision": "", "device": "v100-sxm-32gb"}, "fp16"),
        ({"precision": "", "mlperf_round": "v4.1"}, "fp8"),
        ({"precision": "", "mlperf_round": "v2.1", "device": "a100-sxm-80gb"}, "bf16"),
        ({"precision": "tf32"}, "tf32"),
    ],
)
def test_precision_words(cells, recipe):
    assert read(**cells)[0].recipe.name == recipe


@pytest.mark.parametrize(
    ("cells", "attribute", "value"),
    [
        ({"framework": "torchtitan", "torch_compile": "yes"}, "is_fused", True),
        ({"framework": "torchtitan", "torch_compile": "no"}, "is_fused", False),
        ({"framework": "pytorch", "note": "PyTorch eager"}, "has_fused_attention", False),
        ({"framework": "megatron-lm", "source": "arXiv:2205.05198 Table 5"}, "has_fused_attention", False),
        ({"framework": "megatron-lm", "source": "arXiv:2405.00001"}, "has_fused_attention", True),
        ({"framework": "megatron-lm"}, "has_dropout", False),  # Llama
        ({"framework": "megatron-lm", "model": "gpt3-1.3b"}, "has_dropout", True),
        (
            {"framework": "megatron-llama", "framework_version": "Megatron-LLaMA DistributedOptimizer"},
            "overlaps_gradients",
            False,
        ),
        ({"framework": "megatron-lm", "note": "same configs as NeMo perf scripts"}, "name", "nemo"),
        ({"framework": ""}, "name", "pytorch"),
        ({"framework": "pytorch", "mlperf_round": "v4.0"}, "is_fused", True),
    ],
)
def test_what_the_row_says_changes_the_framework(cells, attribute, value):
    assert getattr(read(**cells)[0].framework, attribute) == value


@pytest.mark.parametrize(
    ("cells", "per_node", "rate"),
    [
        ({}, 8, None),
        ({"devices_per_node": "4"}, 4, None),
        ({"device": "gb200", "devices_per_node": "4", "num_devices": "64"}, 72, None),
        (
            {
                "device": "tpu-v5e",
                "num_devices": "512",
                "num_slices": "2",
                "tp": "",
                "pp": "",
                "cp": "",
                "sharding": "zero3",
                "global_batch": "512",
            },
            256,
            None,
        ),
        ({"interconnect": "4x100Gb RoCE"}, 8, 4 * 100e9 / 8 / 8),
        ({"interconnect": "1600 Gbps/node RoCE"}, 8, 25e9),
        ({"interconnect": "400 Gb/s RDMA per GPU; NVLink intra"}, 8, 50e9),
        ({"note": "800 Gb per s between nodes as in the authors configs"}, 8, 12.5e9),
        (
            {"interconnect": "Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 200Gb/s | NVLINK"},
            8,
            25e9,
        ),
        ({"interconnect": "4x100Gb RoCE", "num_devices": "8"}, 8, None),  # one node: the network is not used
    ],
)
def test_the_cluster_is_the_one_of_the_row(cells, per_node, rate):
    job, layout, _ = read(**cells)
    assert job.cluster.num_devices == layout.num_devices
    assert job.cluster.devices_per_node == per_node
    default = read(device=cells.get("device", "h100-sxm"), num_devices="8")[0].cluster.device.scaleout
    assert job.cluster.device.scaleout.each_way_bytes_per_s == pytest.approx(rate or default.each_way_bytes_per_s)


def test_tasks_ranks_and_lengths():
    assert read(task="adapter_v2", framework="litgpt")[0].task == "adapter"
    assert read(task="lora", note="LoRA rank 16 on packed 8192-token samples")[0].adapter_rank == 16
    job, _, assumed = read(task="lora", framework="litgpt", seq_len="")
    assert (job.adapter_rank, job.seq_len) == (8, 512)
    assert {"adapter_rank: 8", "seq_len: 512"} <= set(assumed)
    assert read(seq_len="")[0].seq_len == 4096, "what Llama 2 was made for"
    bert = {"model": "google-bert/bert-large-uncased", "seq_len": "512"}
    assert read(**bert, note="most submissions pack or strip padding")[0].seq_len == 256


def test_the_same_cells_give_the_same_job():
    assert read()[0] is read(micro_batch="2")[0]
    assert read()[0] is not read(global_batch="128")[0]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"device": ""}, "device is blank"),
        ({"tp": "3"}, "num_devices is not tp x cp x pp x dp"),
        ({"dp": "4"}, "num_devices is not tp x cp x pp x dp"),
        ({"global_batch": "12"}, "global_batch does not divide by dp x micro_batch"),
        ({"sharding": "zero3", "sharding_group": "3"}, "sharding_group does not divide dp x cp"),
        ({"sharding": "zero9"}, "unknown sharding zero9"),
        ({"recompute": "some"}, "recompute: some is no part of a layer; .*"),
        ({"task": "rl"}, "task rl is not modelled"),
        ({"task": "prayer"}, "task prayer is not modelled"),
        ({"model": "flux", "note": "text-to-image"}, "not a transformer language model"),
        ({"model": "nobody-knows"}, "num_layers is blank and the model is not known"),
        ({"model": "", "num_layers": "2"}, "hidden_size is blank"),
        ({"technique": "+activation offloading"}, "offloading activations or weights is not modelled in training"),
        ({"num_devices": "", "dp": ""}, "num_devices is blank"),
        ({"seq_len": "0"}, "seq_len is zero"),
    ],
)
def test_what_cannot_be_read_says_why(cells, reason):
    with pytest.raises(ScenarioError, match=f"^{reason}$"):
        read(**cells)


def test_what_a_row_measured():
    row = Row({"status": "oom", "mfu_frac": "0.4", "step_time_s": "1.5", "tokens_per_s": "10", "peak_memory_bytes": ""})
    assert is_out_of_memory(row)
    assert not is_out_of_memory(Row({"status": "ok"}))
    assert counts_full_attention(Row({"note": "model flops count full s^2 attention; pure bf16"}))
    assert not counts_full_attention(Row({"note": ""}))


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


EXPRESSED = {  # rows, and how many of them at least
    "dgxc_benchmarking": (141, 141),
    "dle_bert_large": (40, 40),
    "internevo_7b_a100": (70, 70),
    "litgpt_finetune": (109, 109),
    "llm_foundry_mpt": (216, 216),
    "maxtext_tpu_scaling": (35, 35),
    "megatron_ci_small_tests": (802, 720),
    "mlperf_training_bert_diffusion": (300, 214),
    "mlperf_training_llm": (91, 91),
    "torchtitan": (14, 14),
    "torchtune_finetune": (18, 15),
    "vtrain_a100": (741, 741),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="no measured tables beside the repository (set ORRERY_DATA)")
@pytest.mark.parametrize("table", EXPRESSED)
def test_rows_of_the_tables(table):
    total, least = EXPRESSED[table]
    with (DATA / f"{table}.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    declined = 0
    for cells in rows:
        try:
            job, layout = read_training_row(Row(cells))
        except OrreryError:
            declined += 1
            continue
        if cells["num_devices"]:
            assert layout.num_devices == int(cells["num_devices"])
        if cells.get("num_layers"):
            assert job.model.num_layers == int(cells["num_layers"])
    assert len(rows) == total
    assert total - declined >= least


@pytest.mark.parametrize(
    ("cells", "tool"),
    [
        ({}, "allocated"),
        ({"framework": "torchtitan"}, "reserved"),
        ({"note": "memory read from nvidia-smi"}, "device"),
        ({"framework": "torchtitan", "memory_tool": "allocator"}, "allocated"),
    ],
)
def test_who_measured_the_memory(cells, tool):
    row = Row(PLAIN | cells)
    assert memory_tool(row, read_training_row(row)[0].framework) == tool


@pytest.mark.parametrize(
    ("cells", "is_last"),
    [
        ({}, False),
        ({"memory_rank": "last"}, True),
        ({"note": "golden-value file: the median"}, True),
        ({"note": "golden-value file: the median", "memory_rank": "fullest"}, False),
    ],
)
def test_whose_memory_a_row_states(cells, is_last):
    assert is_last_rank(Row(PLAIN | cells)) is is_last


def test_an_unknown_rank_is_refused():
    with pytest.raises(ScenarioError, match="unknown memory_rank middle; write fullest or last"):
        is_last_rank(Row(PLAIN | {"memory_rank": "middle"}))


def test_an_unknown_tool_is_refused():
    row = Row(PLAIN | {"memory_tool": "top"})
    with pytest.raises(ScenarioError, match="unknown memory_tool top; write allocated, reserved, or device"):
        memory_tool(row, read_training_row(Row(PLAIN))[0].framework)


@pytest.mark.parametrize(
    ("cells", "logits_bytes"),
    [
        ({"torch_compile": "no"}, 12),
        ({"torch_compile": "yes", "measured_date": "2024-12"}, 12),
        ({"torch_compile": "yes", "measured_date": "2025-08-15"}, 4),
        ({"torch_compile": "yes", "framework_version": "torch 2.9.0.dev20250815+cu128"}, 4),
        ({"torch_compile": "yes"}, 4),
    ],
)
def test_a_compiled_run_compiles_its_loss_since_the_framework_does(cells, logits_bytes):
    assert read(**cells, framework="torchtitan")[0].framework.logits_bytes == logits_bytes

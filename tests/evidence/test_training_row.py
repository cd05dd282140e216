"""How a row of a training table is read: what it states, and what its blanks take."""

import csv
import os
from pathlib import Path

import pytest
from training_rows_read import read

from orrery.base.errors import OrreryError, ScenarioError
from orrery.evidence.row import Row
from orrery.evidence.training_row import read_training_row

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data")) / "training"


def test_a_row_that_states_everything_takes_no_defaults():
    job, layout, assumed = read()
    assert str(layout) == "tp2 sp dp8 mb1 zero1"
    assert (job.global_batch, job.seq_len, job.num_micro_batches(layout)) == (64, 4096, 8)
    assert (job.framework.name, job.recipe.name, job.task) == ("nemo", "bf16", "pretrain")
    assert assumed == []


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
        ({"technique": "+weight offloading"}, "offloading activations or weights is not modelled in training"),
        ({"num_devices": "", "dp": ""}, "num_devices is blank"),
        ({"seq_len": "0"}, "seq_len is zero"),
    ],
)
def test_what_cannot_be_read_says_why(cells, reason):
    with pytest.raises(ScenarioError, match=f"^{reason}$"):
        read(**cells)


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

"""From settings to a training job: defaults, layouts by what is left over, sites, and what means nothing."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario import train_job as page
from orrery.scenario.schema import read_scenario

LLAMA, QWEN, H100 = get_model("llama-3.1-8b"), get_model("qwen3-30b-a3b"), get_device("h100-sxm")


def asked(**settings):
    return read_scenario(settings)


def job(devices=8, model=LLAMA, **framework):
    usual = {"name": "f", "sharding": "zero1", "recompute": "none", "recompute_modules": "", "schedule": "1f1b"}
    usual |= {"is_sequence_parallel": False, "cuts_experts": False} | framework
    return SimpleNamespace(
        framework=SimpleNamespace(**usual), cluster=SimpleNamespace(num_devices=devices), model=model
    )


def laid_out(given, **of_job):
    """The layout, and the names that its notes begin with."""
    question = SimpleNamespace(job=job(**of_job), given=given)
    layout, notes = page.layout_of(question)
    return layout, [note.partition(":")[0] for note in notes]


def test_devices_that_are_left_over_are_data_parallel():
    layout, notes = laid_out({"tp": 2, "cp": 2})
    assert (layout.dp, layout.micro_batch, layout.sharding, layout.recompute) == (2, 1, "zero1", "none")
    assert notes == ["dp", "micro_batch", "sharding", "recompute"]
    alone, notes = laid_out({"tp": 8})
    assert (alone.dp, alone.sharding, notes) == (1, TrainingLayout().sharding, ["micro_batch", "recompute"])
    by_context, notes = laid_out({"tp": 2, "cp": 4, "micro_batch": 3, "recompute": "full"})
    assert (by_context.micro_batch, by_context.sharding, notes) == (3, "zero1", ["sharding"])


def test_a_pipeline_has_the_framework_s_schedule_and_several_chunks_an_interleaved_one():
    layout, notes = laid_out({"pp": 4, "micro_batch": 1, "recompute": "none", "sharding": "none"})
    assert (layout.schedule, notes) == ("1f1b", ["dp", "schedule"])
    layout, _ = laid_out({"pp": 4, "vp": 2})
    assert layout.schedule == "interleaved"
    layout, notes = laid_out({"pp": 1, "schedule": "1f1b"})
    assert notes[-1] == "schedule"
    _, notes = laid_out({"pp": 2, "schedule": "1f1b"})
    assert "schedule" not in notes
    assert laid_out({"tp": 2}, is_sequence_parallel=True)[0].is_sequence_parallel


@pytest.mark.parametrize(
    ("devices", "says"),
    [(6, r"devices = 4 or 8"), (3, r"devices = 4\."), (9, "devices = 8 or 12")],
)
def test_devices_that_cannot_be_cut(devices, says):
    with pytest.raises(ScenarioError, match=says):
        laid_out({"tp": 2, "pp": 2}, devices=devices)


def test_experts_are_cut_as_the_framework_does():
    layout, notes = laid_out({"tp": 2, "ep": 4}, model=QWEN, cuts_experts=True)
    assert "etp" in notes
    assert layout.etp == page.expert_cut(True, 2, 8, 4)
    assert "etp" not in laid_out({"tp": 2}, model=LLAMA)[1]
    assert "etp" not in laid_out({"ep": 4}, model=QWEN)[1]


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ({"recompute": "full", "recompute_layers": 2}, ""),
        ({"recompute": "none", "recompute_layers": 2}, "write recompute = full"),
        ({"sharding": "none", "sharding_group": 2, "dp": 4}, "sharding_group: got 2 with sharding = none"),
        ({"sharding": "zero1", "sharding_group": 2, "dp": 4}, ""),
        ({"sharding": "zero2", "secondary_group": 2, "dp": 4}, "write sharding = zero3"),
        ({"sharding": "zero3", "secondary_group": 2, "dp": 4}, ""),
        ({"sharding": "zero3", "secondary_group": 8, "dp": 12}, r"does not divide dp x cp = 12; write 6"),
        ({"sharding": "zero3", "secondary_group": 30, "dp": 12}, "write 12"),
    ],
)
def test_choices_that_mean_nothing_beside_the_others(layout, says):
    if not says:
        page._check_choices(TrainingLayout(**layout))
        return
    with pytest.raises(ScenarioError, match=says):
        page._check_choices(TrainingLayout(**layout))


# --- what a scenario fixes


def test_what_a_scenario_fixes_of_a_layout():
    assert page._settings(asked()) == {}
    assert page._settings(asked(tp=2, sharding="fsdp")) == {"tp": 2, "sharding": "zero3"}
    assert page._settings(asked(partition="zero3")) == {"sharding": "none"}
    assert page._settings(asked(sequence_parallel=False)) == {"is_sequence_parallel": False}
    assert page._settings(asked(schedule="any")) == {}
    assert page._settings(asked(schedule="1f1b")) == {"schedule": "1f1b"}
    assert page._settings(asked(recompute="full")) == {"recompute": "full"}


@pytest.mark.parametrize(
    ("settings", "cp"),
    [
        ({"devices": 8, "global_batch": 2}, 4),  # two groups of four share a sequence
        ({"devices": 8, "global_batch": 6}, 4),
        ({"devices": 8, "global_batch": 8}, 1),
        ({"devices": 16, "tp": 2, "pp": 2, "global_batch": 1}, 4),
        ({"devices": 8, "global_batch": 2, "cp": 2}, 2),
    ],
)
def test_ranks_that_share_a_sequence(settings, cp):
    assert page._settings(asked(seq_lengths="lengths.csv", **settings))["cp"] == cp


def test_a_layout_by_name_says_all_of_it():
    with pytest.raises(ScenarioError, match="leave tp out, or layout"):
        page._given(asked(layout="tp2 dp4", tp=2))
    with pytest.raises(ScenarioError, match="leave sequence_parallel out"):
        page._given(asked(layout="tp2 dp4", sequence_parallel=True))


# --- defaults


@pytest.mark.parametrize(
    ("settings", "name", "note"),
    [
        ({"framework": "fsdp"}, "fsdp", ""),
        ({"offload": "zero-offload"}, page.FRAMEWORK_OF_OFFLOAD, "framework: deepspeed (default with offload)"),
        ({"devices": 1}, page.DEFAULT_FRAMEWORK, f"framework: {page.DEFAULT_FRAMEWORK} (default)"),
        ({"devices": 1, "tp": 1}, page.DEFAULT_FRAMEWORK, f"framework: {page.DEFAULT_FRAMEWORK} (default)"),
        ({"devices": 2}, "megatron-lm", "framework: megatron-lm (default)"),
        ({"tp": 2, "cp": 3}, "megatron-lm", "framework: megatron-lm (default where tp, cp > 1)"),
    ],
)
def test_the_framework_that_is_taken(settings, name, note):
    notes = []
    assert page._framework_name(asked(**settings), notes) == name
    assert notes == ([note] if note else [])


def test_a_device_trains_in_16_bits_as_it_has_them():
    def of(*rates):
        return page._usual_precision(SimpleNamespace(dense_flops_per_s=dict.fromkeys(rates, 1.0)))

    assert (of("fp16", "bf16"), of("fp16", "fp32"), of("fp32")) == ("bf16", "fp16", "fp32")


def test_the_link_of_a_node_is_shared_by_its_devices():
    found = page.with_node_link(H100, 4e11, 8)
    assert found.scaleout.each_way_bytes_per_s == 5e10
    assert found.scaleout.latency_s == H100.scaleout.latency_s


# --- sites and islands


def test_islands_and_sites_by_hand():
    """Eight devices on two sites of 100 bytes/s each: four share one, 25 each."""
    assert page._islands(asked(), 8) is None
    told = page._islands(asked(island_devices=4, island_link_bytes_per_s=50.0), 8)
    assert (told.num_devices, told.link.each_way_bytes_per_s, told.link.latency_s) == (4, 50.0, 1e-3)
    sites = page._islands(asked(sites=2, site_link_bytes_per_s=100.0), 8)
    assert (sites.num_devices, sites.link.each_way_bytes_per_s) == (4, 25.0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"island_devices": 4}, "island_link_bytes_per_s: is missing"),
        ({"island_link_bytes_per_s": 4.0}, "island_devices: is missing"),
        ({"island_devices": 3, "island_link_bytes_per_s": 4.0}, "3 does not divide 8"),
        ({"sites": 2}, "site_link_bytes_per_s: is missing"),
        ({"site_link_bytes_per_s": 4.0}, "sites: is missing"),
        ({"sites": 2, "site_link_bytes_per_s": 4.0, "island_devices": 4}, "sites are islands too"),
        ({"sites": 6, "site_link_bytes_per_s": 4.0}, "6 do not divide 8 devices; write 4"),
        ({"sites": 12, "site_link_bytes_per_s": 4.0}, "write 8"),
    ],
)
def test_islands_that_make_no_sense(settings, says):
    with pytest.raises(ScenarioError, match=says):
        page._islands(asked(**settings), 8)


# --- experts and adapters


def test_where_experts_are_placed():
    notes = []
    assert page._placement(asked(), QWEN, notes) == {}
    found = page._placement(asked(expert_placement="redundancy", expert_replicas=3), QWEN, notes)
    assert found["placement_knobs"] == (("num_replicas", 3.0),)
    assert found["placement_interval_steps"] == page.PLACEMENT_INTERVAL_STEPS
    assert notes == [f"placement_interval_steps: {page.PLACEMENT_INTERVAL_STEPS} (assumed)"]
    told = page._placement(asked(expert_placement="redundancy", placement_interval_steps=7), QWEN, [])
    assert (told["placement_interval_steps"], told["placement_knobs"]) == (7, ())
    for settings, model, says in (
        ({"expert_replicas": 2}, QWEN, "expert_replicas: 2 is of experts that move"),
        ({"placement_interval_steps": 2}, QWEN, "placement_interval_steps: 2 is of experts"),
        ({"expert_placement": "redundancy"}, LLAMA, "has no experts"),
        ({"expert_placement": "rearranged", "expert_replicas": 2}, QWEN, "rearranged copies nothing"),
    ):
        with pytest.raises(ScenarioError, match=says):
            page._placement(asked(**settings), model, [])


def test_the_limit_on_an_expert_s_tokens():
    assert page._capacity(asked(), QWEN, "all-to-all", []) == {}
    found = page._capacity(asked(expert_capacity_factor=1.25), QWEN, "other", [])
    assert found == {"expert_capacity_ratio": 1.25, "pads_experts": False}
    padded = page._capacity(asked(expert_capacity_factor=1.25, pad_experts=True), QWEN, page.SEND, [])
    assert padded["pads_experts"]
    for settings, model, dispatcher, says in (
        ({"pad_experts": True}, QWEN, page.SEND, "needs to know up to what"),
        ({"expert_capacity_factor": 2.0}, LLAMA, page.SEND, "has no experts"),
        ({"expert_capacity_factor": 2.0, "pad_experts": True}, QWEN, "other", "sends no empty rows"),
    ):
        with pytest.raises(ScenarioError, match=says):
            page._capacity(asked(**settings), model, dispatcher, [])


def test_only_adapters_leave_activations_out():
    framework = SimpleNamespace(recompute="none")
    notes = []
    assert not page._prunes(asked(), LLAMA, framework, "lora", notes)
    assert page._prunes(asked(prune_activations=True), LLAMA, framework, "lora", notes)
    assert len(notes) == 1
    for settings, task, recompute, says in (
        ({}, "pretrain", "none", "pretrain needs what every weight reads"),
        ({"offload": "x"}, "lora", "none", "leave one out"),
        ({}, "lora", "full", "a recomputed layer keeps its input alone"),
        ({"recompute": "full"}, "lora", "none", "a recomputed layer keeps its input alone"),
    ):
        with pytest.raises(ScenarioError, match=says):
            page._prunes(
                asked(prune_activations=True, **settings), LLAMA, SimpleNamespace(recompute=recompute), task, []
            )


ASK = {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 4, "global_batch": 16, "seq_len": 1024}


def test_a_job_and_what_was_assumed():
    found = page.training_question(asked(**ASK))
    job = found.job
    assert (job.cluster.num_devices, job.cluster.devices_per_node) == (4, 4)
    assert (job.recipe.name, job.task, job.adapter_rank, job.loss_tokens) == ("bf16", "pretrain", 16, 0)
    assert any(note.startswith("precision: bf16") for note in found.notes)
    assert any(note.startswith("framework: megatron-lm (default)") for note in found.notes)
    assert page.job_json(job)["global_batch"] == 16
    assert "dispatcher" not in page.job_json(job)
    assert page.job_json(replace(job, model=QWEN))["expert_placement"] == "in-order"
    far = page.training_question(asked(**ASK, node_link_bytes_per_s=4e11, adapter_rank=8))
    assert far.job.cluster.device.scaleout.each_way_bytes_per_s == 1e11
    assert any(note.startswith("node_link_bytes_per_s: no effect") for note in far.notes)
    assert any(note.startswith("adapter_rank: no effect") for note in far.notes)
    over = page.training_question(asked(**ASK | {"devices": 16}, node_link_bytes_per_s=4e11, fused_attention=False))
    assert over.job.cluster.device.scaleout.each_way_bytes_per_s == 5e10
    assert not any(note.startswith("node_link") for note in over.notes)
    assert not over.job.framework.has_fused_attention
    for name in ASK:
        if name != "device":
            with pytest.raises(ScenarioError, match=f"{name}: is missing"):
                page.training_question(asked(**{k: v for k, v in ASK.items() if k != name}))

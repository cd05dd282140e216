"""Limits of training launches at their edges: what each framework refuses beside the nearest layout that it takes."""

from dataclasses import replace

import pytest
from training_launches import assigned, job, yaml

from orrery.catalog.models import get_model
from orrery.execution.train.layout import TrainingLayout
from orrery.models.rotation import Rotation
from orrery.planner.launch.training import deepspeed, fsdp, megatron_lm, slurm, torchtitan
from orrery.planner.launch.training.fit import devices_of_node, misfit, num_nodes, shard_ranks
from orrery.planner.launch.training.megatron_settings import beyond_megatron, settings, uneven_stages
from orrery.planner.launch.training.precision import Precision, precision_of
from orrery.planner.launch.training.script import Script, Unsupported

DENSE, ROUTED = "llama-3.1-8b", "qwen3-30b-a3b"


def reason_of(write, model=DENSE, recipe="bf16", changes=None, **layout):
    """Why a framework refuses, "" where it writes."""
    found = TrainingLayout(**layout)
    made = write(job(model, found, recipe, **(changes or {})), found)
    assert isinstance(made, Script | Unsupported)
    return made.reason if isinstance(made, Unsupported) else ""


def check(write, taken, refused):
    """Each pair: a layout that is refused in these words, and the nearest one that is taken."""
    for word, wrong in refused:
        assert word in reason_of(write, **wrong), wrong
    for right in taken:
        assert reason_of(write, **right) == "", right


def test_deepspeed_takes_what_its_json_can_say():
    pipeline = {"pp": 4, "dp": 2, "sharding": "zero1"}
    heads = {"cp": 2, "dp": 2, "context_kind": "all-to-all", "sharding": "zero2"}
    check(
        deepspeed.write,
        [
            pipeline,
            heads,
            {"dp": 4, "sharding": "zero3", "sharding_group": 4},
            {"dp": 4, "sharding": "zero3", "secondary_group": 2},
            {"dp": 2, "sharding": "zero1", "recipe": "bf16_pure"},
            {"dp": 2, "tp": 2, "sharding": "zero2"},
            {"pp": 1, "dp": 2, "schedule": "gpipe", "sharding": "zero3"},
        ],
        [
            ("make sharding zero1 or pp 1", pipeline | {"sharding": "zero2"}),
            ("make sharding zero1 or pp 1", pipeline | {"sharding": "zero3"}),
            ("one chunk a rank", pipeline | {"vp": 2}),
            ("one chunk a rank", pipeline | {"schedule": "gpipe"}),
            ("cannot combine pp", pipeline | {"tp": 2}),
            ("cannot combine pp", pipeline | {"cp": 2, "context_kind": "all-to-all"}),
            ("cannot combine pp", pipeline | {"ep": 2, "model": ROUTED}),
            ("first_stage_layers", pipeline | {"first_stage_layers": 5}),
            ("first_stage_layers", pipeline | {"last_stage_layers": 5}),
            ("without tp and ep", heads | {"tp": 2}),
            ("without tp and ep", heads | {"ep": 2, "model": ROUTED}),
            ("has no ring", heads | {"context_kind": "ring"}),
            ("sharding_group 0", {"dp": 4, "sharding": "zero3", "sharding_group": 2}),
            ("with zero3 alone", {"dp": 4, "sharding": "zero2", "secondary_group": 2}),
            ("from zero1 on", {"dp": 2, "recipe": "bf16_pure"}),
            ("has no fp8", {"dp": 2, "recipe": "fp8"}),
        ],
    )


def test_torchtitan_takes_what_its_configuration_can_say():
    plain = {"dp": 4, "sharding": "zero2"}
    pipeline = plain | {"pp": 4}
    check(
        torchtitan.write,
        [
            plain,
            {"dp": 4},
            plain | {"cp": 2},
            plain | {"cp": 2, "sharding_group": 4},
            pipeline,
            pipeline | {"vp": 2},
            pipeline | {"vp": 2, "schedule": "zero-bubble-v"},
            {"dp": 2, "sharding": "zero2", "tp": 2, "ep": 4, "model": ROUTED},
        ],
        [
            ("make sharding zero2", plain | {"sharding": "zero1"}),
            ("over context ranks", {"dp": 4, "cp": 2}),
            ("a multiple of cp = 4", plain | {"cp": 4, "sharding_group": 2}),
            ("nearer copy", plain | {"secondary_group": 2}),
            ("make context_kind ring", plain | {"cp": 2, "context_kind": "all-to-all"}),
            ("make etp 1", {"dp": 4, "tp": 2, "ep": 2, "etp": 2, "sharding": "zero2", "model": ROUTED}),
            ("ep = 8 does not divide shard x cp x tp = 4", {"dp": 4, "ep": 8, "sharding": "zero2", "model": ROUTED}),
            ("needs two chunks", pipeline | {"schedule": "interleaved"}),
            ("runs 2 chunks", pipeline | {"schedule": "zero-bubble-v"}),
            ("runs 2 chunks", pipeline | {"schedule": "zero-bubble-v", "vp": 4}),
            ("cannot cut 32 layers into 16 chunks", {"pp": 4, "vp": 4, "dp": 2, "sharding": "zero2"}),
            ("recompute_layers 0", plain | {"recompute": "full", "recompute_layers": 2}),
        ],
    )


def test_fsdp_cuts_over_data_ranks_alone():
    plain = {"dp": 4, "sharding": "zero2"}
    others = [(f"make {way} 1", plain | {way: 2}) for way in ("tp", "pp", "cp")]
    others += [("make ep 1", plain | {"ep": 2, "model": ROUTED})]
    check(
        fsdp.write,
        [plain, plain | {"sharding": "zero3"}, plain | {"sharding_group": 2}],
        [
            *others,
            ("none does not", {"dp": 4}),
            ("zero1 does not", plain | {"sharding": "zero1"}),
            ("reshard_after_forward=2", plain | {"sharding": "zero3", "secondary_group": 2}),
            ("every wrapped layer", plain | {"recompute": "full", "recompute_layers": 2}),
            ("32-bit weights", plain | {"recipe": "bf16_pure"}),
        ],
    )
    layout = TrainingLayout(dp=16, sharding="zero2", sharding_group=8, micro_batch=2)
    found = yaml(fsdp.write(job(DENSE, layout), layout).config)
    assert (found["num_machines"], found["num_processes"]) == (2, 16)
    copies = found["parallelism_config"]
    assert copies == {"parallelism_config_dp_replicate_size": 2, "parallelism_config_dp_shard_size": 8}
    one = TrainingLayout(dp=4, sharding="zero3")
    found = yaml(fsdp.write(job(DENSE, one), one).config)
    assert (found["num_machines"], found["num_processes"]) == (1, 4)
    assert "parallelism_config" not in found
    assert found["fsdp_config"]["fsdp_reshard_after_forward"] is True


def test_numbers_that_do_not_fit_together():
    """A batch of 512 over nodes of 8; sequences of 4,096 tokens."""

    def found(model=DENSE, changes=None, **layout):
        made = TrainingLayout(**layout)
        return misfit(job(model, made, **(changes or {})), made)

    assert found(dp=8) == found(dp=16) == found(dp=512) == ""
    assert "does not divide into dp 3" in found(dp=3)
    assert "make it a multiple of 1024" in found(dp=512, micro_batch=2)
    assert found(dp=256, micro_batch=2) == ""
    assert "do not fill nodes of 8; make tp x cp x pp x dp a multiple of 8" in found(tp=4, pp=3, dp=1)
    assert found(tp=1, pp=3) == ""  # part of one node
    # 2 x cp pieces: 4,096 cut into 2 x 4; 4,100 into 2 x 2, not into 2 x 4; without context ranks any length
    assert found(cp=4) == found(cp=2, changes={"seq_len": 4100}) == found(changes={"seq_len": 4101}) == ""
    assert "do not cut into 2 x cp = 4 equal pieces" in found(cp=2, changes={"seq_len": 4098})
    assert "do not cut into 2 x cp = 8 equal pieces" in found(cp=4, changes={"seq_len": 4100})
    # 32 layers and 32 heads
    assert found(pp=8, vp=4) == found(pp=8) == ""
    assert "pp x vp = 64 chunks are more than the 32 layers" in found(pp=8, vp=8)
    assert "vp = 2 cuts pipeline stages" in found(vp=2)
    assert found(tp=8, cp=4, context_kind="all-to-all") == ""
    assert "32 attention heads do not divide 64 ways" in found(tp=8, cp=8, context_kind="all-to-all")
    assert found(tp=8, cp=8) == ""  # a ring cuts no heads
    assert "has no experts" in found(ep=2, dp=2)
    # 128 experts
    assert found(ROUTED, dp=128, ep=128) == found(ROUTED, dp=4, tp=2, ep=4, etp=2) == ""
    assert "128 experts do not divide by ep = 3" in found(ROUTED, dp=8, ep=3)
    assert "ep 4 x etp 4 does not divide the 8 ranks" in found(ROUTED, dp=4, tp=2, ep=4, etp=4)
    assert "sharding_group = 3 does not divide dp x cp = 8" in found(dp=4, cp=2, sharding="zero3", sharding_group=3)
    assert "secondary_group = 3 does not" in found(dp=4, cp=2, sharding="zero3", secondary_group=3)
    assert found(dp=4, cp=2, sharding="zero3", secondary_group=8, sharding_group=4) == ""


def test_a_layout_larger_than_its_cluster_is_told_the_most_copies_that_fit():
    layout = TrainingLayout(tp=2, dp=8)
    small = job(DENSE, layout)
    small = replace(small, cluster=replace(small.cluster, num_devices=8))
    assert misfit(small, layout).endswith("needs 16 devices, the cluster has 8; dp = 4 is the most that fits")
    assert misfit(job(DENSE, layout, task="forward_backward"), layout).startswith("one forward and backward pass")


def test_nodes_and_ranks_of_a_layout():
    layout = TrainingLayout(tp=4, dp=3)
    plain = job(DENSE, layout)
    assert (num_nodes(plain, layout), devices_of_node(plain, layout)) == (2, 8)
    few = TrainingLayout(dp=3)
    assert (num_nodes(job(DENSE, few), few), devices_of_node(job(DENSE, few), few)) == (1, 3)
    assert shard_ranks(TrainingLayout(dp=4, cp=2)) == 8
    assert shard_ranks(TrainingLayout(dp=4, cp=2, sharding_group=4)) == 4


def test_megatron_s_core_at_its_limits():
    def found(model=DENSE, changes=None, **layout):
        made = TrainingLayout(**layout)
        return beyond_megatron(job(model, made, **(changes or {})), made)

    assert found(pp=4, vp=2, dp=2, changes={"global_batch": 8}) == ""  # 4 micro-batches on 4 stages
    assert "interleaves from 4 micro-batches on; there are 3" in found(pp=4, vp=2, dp=2, changes={"global_batch": 6})
    assert found(pp=4, dp=2, changes={"global_batch": 2}) == ""
    assert "has no gpipe schedule" in found(pp=2, schedule="gpipe")
    assert found(pp=1, schedule="gpipe") == ""
    assert "a multiple of cp = 4" in found(cp=4, dp=2, sharding="zero1", sharding_group=2)
    assert found(cp=4, dp=2, sharding="zero1", sharding_group=4) == ""
    assert "needs sequence parallelism" in found(ROUTED, tp=2, ep=2, dp=2, is_sequence_parallel=False)
    assert found(ROUTED, tp=2, dp=2, is_sequence_parallel=False) == ""
    assert found(ROUTED, ep=2, dp=2, is_sequence_parallel=False) == ""
    assert "a multiple of vp = 2" in found(pp=2, vp=2, recompute="full", recompute_layers=3)
    assert found(pp=2, vp=2, recompute="full", recompute_layers=4) == ""
    assert "hpZ" in found(dp=4, sharding="zero3", secondary_group=2)


def told(model=DENSE, **layout):
    """What is said of a layout, by flag; blanks and defaults apart."""
    made = TrainingLayout(**layout)
    return {s.flag: s.value for s in settings(job(model, made), made) if s.value is not None and s.value != s.default}


def test_megatron_is_told_what_differs_from_its_own():
    assert told() == {"--micro-batch-size": 1, "--global-batch-size": 512, "--seq-length": 4096}
    assert told(tp=2)["--sequence-parallel"] is True
    assert "--sequence-parallel" not in told(tp=2, is_sequence_parallel=False)
    assert "--sequence-parallel" not in told(tp=1, dp=2)
    assert told(cp=2)["--cp-comm-type"] == "p2p"
    assert told(cp=2, context_kind="all-to-all")["--cp-comm-type"] == "a2a"
    assert "--cp-comm-type" not in told(dp=2)
    # a reduction and a gathering to overlap need ranks, and something sharded
    assert "--overlap-grad-reduce" not in told(tp=2)
    assert told(dp=2)["--overlap-grad-reduce"] is True
    assert "--overlap-param-gather" not in told(dp=2)
    assert told(dp=2, sharding="zero1")["--overlap-param-gather"] is True
    # two instances of an optimizer that is cut over half the ranks
    assert told(dp=8, sharding="zero1", sharding_group=4)["--num-distributed-optimizer-instances"] == 2
    assert "--num-distributed-optimizer-instances" not in told(dp=8, sharding="zero1")


def test_megatron_is_told_how_much_is_computed_again():
    def again(**layout):
        flags = ("granularity", "method", "num-layers")
        found = told(**layout)
        return tuple(found.get(f"--recompute-{flag}") for flag in flags)

    assert again() == (None, None, None)
    assert again(recompute="selective") == ("selective", None, None)
    assert again(recompute="full") == ("full", "uniform", 1)
    assert again(recompute="full", recompute_layers=6) == ("full", "block", 6)
    assert again(pp=2, vp=2, recompute="full", recompute_layers=6) == ("full", "block", 3)


def test_chunks_of_layers_in_megatron_s_letters():
    """Ten layers on four stages: the two in the middle have one more than those with the embedding or the loss."""
    assert uneven_stages(10, TrainingLayout(pp=4)) == "Et*2|t*3|t*3|t*2L"
    assert "--pipeline-model-parallel-layout" not in told(pp=4)
    assert "--pipeline-model-parallel-layout" not in told()
    layout = TrainingLayout(pp=3)
    found = told(pp=3)["--pipeline-model-parallel-layout"]
    assert found == uneven_stages(32, layout)
    assert found.count("|") == 2
    parts = {"--decoder-first-pipeline-num-layers": 6, "--decoder-last-pipeline-num-layers": 6}
    ends = told(pp=4, first_stage_layers=6, last_stage_layers=6)
    assert {flag: ends[flag] for flag in parts} == parts
    assert "--pipeline-model-parallel-layout" not in ends
    assert told(pp=4, vp=2)["--num-virtual-stages-per-pipeline-rank"] == 2
    assert "--num-virtual-stages-per-pipeline-rank" not in told(pp=4)


@pytest.mark.parametrize("has_dropout", [False, True])
def test_dropout_is_turned_off_where_the_framework_s_recipe_has_none(has_dropout):
    layout = TrainingLayout(dp=2)
    plain = job(DENSE, layout)
    plain = replace(plain, framework=replace(plain.framework, has_dropout=has_dropout))
    script = megatron_lm.write(plain, layout)
    assert isinstance(script, Script)
    off = {"--attention-dropout 0", "--hidden-dropout 0"}
    assert off & set(script.arguments) == (set() if has_dropout else off)


@pytest.mark.parametrize(
    ("rotation", "said"),
    [
        (Rotation(base=500000.0), {"--rotary-base 500000"}),
        (Rotation(base=1e4, share=0.5), {"--rotary-base 10000", "--rotary-percent 0.5"}),
        (
            Rotation(base=5e5, kind="llama3", stretch_ratio=8.0),
            {"--rotary-base 500000", "--use-rope-scaling", "--rope-scaling-factor 8"},
        ),
        (
            Rotation(base=1e4, kind="linear", stretch_ratio=4.0),
            {"--rotary-base 10000", "--rotary-seq-len-interpolation-factor 4"},
        ),
    ],
)
def test_rotations_as_flags(rotation, said):
    layout = TrainingLayout(dp=2)
    script = megatron_lm.write(job(replace(get_model(DENSE), rotation=rotation), layout), layout)
    assert isinstance(script, Script)
    assert {a for a in script.arguments if "rotary" in a or "rope-" in a} == said


def test_experts_of_several_sizes_or_with_biases_have_no_flags():
    model = get_model(ROUTED)
    block = next(b for b in model.blocks if b.experts is not None)
    layout = TrainingLayout(dp=8, ep=8)

    def reason(*blocks):
        made = megatron_lm.write(job(replace(model, blocks=blocks), layout), layout)
        return made.reason if isinstance(made, Unsupported) else ""

    half = replace(block, count=block.count // 2)
    other = replace(half, experts=replace(half.experts, ffn_size=2 * half.experts.ffn_size))
    assert reason(block) == reason(half, half) == ""
    assert "biases or of several sizes" in reason(half, other)
    assert "biases or of several sizes" in reason(replace(block, experts=replace(block.experts, has_bias=True)))


def test_torchtitan_s_local_batch_is_the_whole_share_where_there_is_a_pipeline():
    """512 sequences over 4 ranks are 128 each, 64 micro-batches of 2; without a pipeline one of them is named."""
    for layout, share in (
        (TrainingLayout(dp=4, sharding="zero2", micro_batch=2), 2),
        (TrainingLayout(dp=4, pp=2, sharding="zero2", micro_batch=2), 128),
    ):
        found = assigned(torchtitan.write(job(DENSE, layout), layout).config)
        assert found["training.local_batch_size"] == share
        assert found["training.global_batch_size"] == 512
        assert found.get("training.disable_cuda_graphs", False) is (layout.pp > 1)
        assert found["parallelism.data_parallel_shard_degree"] == 4
        assert found.get("parallelism.pipeline_parallel_microbatch_size", 0) == (2 if layout.pp > 1 else 0)
        assert "parallelism.pipeline_parallel_layers_per_stage" not in found
    copies = TrainingLayout(dp=8, cp=2, sharding="zero3", sharding_group=8)
    found = assigned(torchtitan.write(job(DENSE, copies), copies).config)
    degrees = ("data_parallel_replicate", "data_parallel_shard", "context_parallel")
    assert [found[f"parallelism.{name}_degree"] for name in degrees] == [2, 4, 2]
    assert found["parallelism.fsdp_reshard_after_forward"] == "always"


def test_layers_of_a_stage_count_embedding_and_head():
    """34 pieces: 9 on each of 4 chunks, 5 on each of 7, 1 on each of 34."""
    assert [torchtitan.layers_per_stage(32, n) for n in (4, 7, 17, 34)] == [9, 5, 2, 1]


@pytest.mark.parametrize(
    ("recipe", "want"),
    [
        ("bf16", Precision(wide="bf16")),
        ("fp16", Precision(wide="fp16")),
        ("bf16_pure", Precision(wide="bf16", is_pure=True, reduces_wide=True)),
    ],
)
def test_wide_recipes_as_flags(recipe, want):
    found = precision_of(job(DENSE, TrainingLayout(), recipe))
    assert isinstance(found, Precision)
    assert (found.wide, found.is_pure, found.scaling) == (want.wide, want.is_pure, "")
    assert not found.is_fp8
    assert not found.is_hybrid
    assert (found.num_wide_layers_first, found.num_wide_layers_last) == (0, 0)


def test_layers_that_stay_wide_are_dealt_one_to_the_start_for_four_at_the_end():
    """Ten of 32 layers: two of them at the start."""
    plain = job(DENSE, TrainingLayout(), "nvfp4")
    keeps = replace(plain.framework, keeps_wide_layers=True)
    found = precision_of(replace(plain, framework=keeps, recipe=replace(plain.recipe, wide_layers_frac=10 / 32)))
    assert isinstance(found, Precision)
    assert (found.num_wide_layers_first, found.num_wide_layers_last) == (2, 8)
    assert (found.scaling, found.is_fp8, found.is_pure) == ("nvfp4", False, False)


def test_torchrun_on_one_node_meets_itself_and_on_two_the_first():
    def line(**layout):
        made = TrainingLayout(**layout)
        plain = job(DENSE, made)
        script = megatron_lm.write(plain, made)
        assert isinstance(script, Script)
        return slurm.start(plain, made, script).splitlines()[0], slurm.batch(plain, made, script)

    alone, text = line(dp=4)
    assert "torchrun --standalone --nproc-per-node 4 " in alone
    assert "#SBATCH --nodes=1\n" in text
    assert "#SBATCH --gpus-per-node=4\n" in text
    two, text = line(tp=8, dp=2)
    assert "--nnodes 2 --nproc-per-node 8 " in two
    assert '--rdzv-endpoint "$MASTER_ADDR:${MASTER_PORT:-29500}"' in two
    assert "#SBATCH --nodes=2\n" in text
    assert "#SBATCH --gpus-per-node=8\n" in text

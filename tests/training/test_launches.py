"""Launches of a layer and what CUDA graphs take off them, against counts made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.models.model import RecurrentMixer, SoftmaxAttention
from orrery.training.launches import launch_s, read_scopes

ATTENTION = SoftmaxAttention(num_heads=4, num_kv_heads=4, head_size=8, value_head_size=8)


def block(count, experts=None, mixer=ATTENTION, num_reduces=2):
    linears = [SimpleNamespace(role=role, shard=shard) for role in ("attention", "mlp") for shard in ("column", "row")]
    return SimpleNamespace(count=count, experts=experts, mixer=mixer, num_reduces=num_reduces, linears=linears)


def launches(blocks, scopes="", task="pretrain", targets="qkv", **choice):
    """Host seconds of the average layer: 110 of a layer, 200 of its experts, 1 of a collective."""
    ways = {"tp": 1, "ep": 1, "cp": 1, "is_ring": False, "is_sequence_parallel": False} | choice
    columns = SimpleNamespace(**{k: np.array([v]) for k, v in ways.items()})
    framework = SimpleNamespace(
        cuda_graphs=scopes, host_layer_s=110.0, host_expert_s=200.0, host_collective_s=1.0, adapter_targets=targets
    )
    model = SimpleNamespace(blocks=blocks, encoder=())
    units = SimpleNamespace(
        job=SimpleNamespace(framework=framework, model=model, task=task),
        choice=columns,
        num_layers=sum(b.count for b in blocks),
    )
    return float(np.broadcast_to(launch_s(units), (1,))[0])


@pytest.mark.parametrize(
    ("scopes", "dense", "routed"),
    [
        ("", 110, 310),
        ("none", 110, 310),
        ("attn", 50, 200),  # five of a dense layer's eleven launches are its MLP's
        ("mlp", 60, 310),
        ("moe_router", 110, 250),  # six of the experts' twenty
        ("moe_router,moe_preprocess", 110, 210),
        ("attn moe_router moe_preprocess", 50, 100),
        ("moe", 110, 110),
        ("mamba", 110, 310),
        ("full_iteration", 0, 0),
    ],
)
def test_launches_that_graphs_leave(scopes, dense, routed):
    assert launches([block(3)], scopes) == pytest.approx(dense)
    assert launches([block(3, experts=True)], scopes) == pytest.approx(routed)
    mean = (2 * dense + 3 * routed) / 5
    assert launches([block(2), block(3, experts=True)], scopes) == pytest.approx(mean)


@pytest.mark.parametrize(("targets", "added"), [("qkv", 1), ("attention", 2), ("all-linear", 4)])
def test_adapters_launch_four_kernels_each(targets, added):
    """A layer's eleven launches take 110 s: two thin products, a scaling and a sum take 40 more for each addition."""
    assert launches([block(1)], task="lora", targets=targets) == pytest.approx(110 + 40 * added)
    assert launches([block(1)], "full_iteration", task="lora", targets=targets) == 0


def test_a_recurrent_layer_has_a_scope_of_its_own():
    mixer = object.__new__(RecurrentMixer)
    assert launches([block(1, mixer=mixer)], "attn") == 110
    assert launches([block(1, mixer=mixer)], "mamba") == pytest.approx(50)


def test_collectives_are_launched_too():
    """There and back, in half of the layers."""
    blocks = [block(1), block(1, experts=True)]
    assert launches(blocks, ep=8) == launches(blocks) + 1


def test_a_scope_that_megatron_does_not_have_is_refused():
    with pytest.raises(ScenarioError, match="cuda_graphs: 'layers' is none of attn, mlp"):
        read_scopes("attn,layers")


JOB = {
    "model": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "devices": 16,
    "ep": 16,
    "seq_len": 1024,
    "global_batch": 64,
    "micro_batch": 1,
    "framework": "megatron-lm",
}


def step_s(**settings):
    return orrery.train(**JOB, **settings).step_time_s


def test_each_part_that_is_recorded_makes_a_host_bound_step_shorter():
    times = [step_s(cuda_graphs=g) for g in ("none", "attn", "attn,moe_router,moe_preprocess", "full_iteration")]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 4
    assert step_s(cuda_graphs="none") == step_s()  # what Megatron-LM does when nobody asks


def test_overlapped_micro_batches_hide_the_exchange():
    assert step_s(overlap_micro_batches=True, cuda_graphs="full_iteration") < step_s(cuda_graphs="full_iteration")
    assert step_s(overlap_micro_batches=False) == step_s()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"cuda_graphs": "moe_router"}, "cuda_graphs"),
        ({"overlap_micro_batches": True}, "overlap_micro_batches"),
        ({"fused_attention": False, "native_attention": True}, "native_attention"),
    ],
)
def test_a_setting_that_changes_nothing_says_so(settings, name):
    dense = JOB | {"model": "llama-3.1-8b", "ep": 1, "sharding": "zero3", "recompute": "full"} | settings
    found = orrery.train(**dense)
    assert any(n.startswith(f"{name} = {settings[name]}: no effect on this deployment: ") for n in found.notes)
    without = orrery.train(**{k: v for k, v in dense.items() if k != name})
    assert found.step_time_s == without.step_time_s

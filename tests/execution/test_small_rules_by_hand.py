"""Small rules of a step, each worked out by hand: formats that are stored, turned rows, cuts of experts."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution import online_rotation, speech
from orrery.execution.choice import stored_experts
from orrery.execution.offload.techniques.tree_search_mapping import TreeSearchMappingKnobs
from orrery.execution.online_rotation import OnlineRotation
from orrery.execution.speech import Stage
from orrery.execution.train import products
from orrery.execution.train.layout import expert_cut


@pytest.mark.parametrize(
    ("own", "weights", "stored"),
    [
        ("mxfp4", "bf16", "mxfp4"),
        ("mxfp4-a8", "bf16", "mxfp4"),
        ("nvfp4", "bf16", "nvfp4"),
        ("mxfp4", "fp8", "fp8"),  # the user's weights are not the checkpoint's, so neither are the experts
        ("", "bf16", "bf16"),
    ],
)
def test_experts_are_stored_as_the_checkpoint_has_them_beside_its_own_weights(own, weights, stored):
    model = SimpleNamespace(experts_format=own, weights_format="bf16")
    found = stored_experts(SimpleNamespace(model=model, formats=SimpleNamespace(weights=weights)))
    assert found == stored


@pytest.mark.parametrize(
    ("shares", "block", "turned"),
    [
        # 3 tokens x 4 ranks x 2 experts each over 4 ranks: 6 rows of 64 / 2 columns; alone 3 x 2 over 4: 2 rows
        (True, 0, [("experts down rotation", 6, 32)]),
        (False, 0, [("experts down rotation", 2, 32)]),
        (True, 16, [("experts rotation", 3, 128), ("experts down rotation", 6, 32)]),
    ],
)
def test_rows_that_are_turned_before_experts(monkeypatch, shares, block, turned):
    """What enters is turned once for all of them where a rotation goes by blocks; what stands between always."""
    told = []

    def part(deployment, rotation, x, name, rows, width, format):
        told.append((name, int(rows[0]), width))

    monkeypatch.setattr(online_rotation, "_part", part)
    deployment = SimpleNamespace(layout=SimpleNamespace(dp=4, shares_experts=shares))
    experts = SimpleNamespace(hidden_size=128, ffn_size=64, experts_per_token=2)
    shard = SimpleNamespace(experts=experts, tp=2, ep=4, format="fp8")
    rotation = OnlineRotation(block_features=block)
    list(online_rotation._of_experts(deployment, rotation, shard, np.array([3])))
    assert told == turned


@pytest.mark.parametrize(("host_s", "time_s", "by"), [(1.5, 2.0, "memory"), (2.0, 2.0, "memory"), (2.5, 2.5, "host")])
def test_a_stage_takes_what_the_host_takes_where_that_is_longer(host_s, time_s, by):
    stage = Stage(name="encoder", time_s=2.0, flops=1.0, moved_bytes=1.0, bound_by="memory")
    found = speech._at_least(stage, host_s)
    assert (found.time_s, found.bound_by) == (time_s, by)


@pytest.mark.parametrize(
    ("tp", "ranks", "ep", "etp"),
    [
        (4, 8, 2, 4),  # 2 x 4 ranks hold the experts
        (4, 12, 2, 2),  # 12 ranks are no multiple of 8, but of 4
        (6, 12, 2, 6),
        (2, 3, 2, 1),  # 3 ranks are no multiple of 2 at all
        (1, 3, 2, 1),
    ],
)
def test_a_blank_cuts_experts_as_far_as_the_ranks_allow(tp, ranks, ep, etp):
    assert expert_cut(True, tp, ranks, ep) == etp
    assert expert_cut(False, tp, ranks, ep) == 1


def test_products_of_a_training_step_find_their_inputs_quantised(monkeypatch):
    """Casts are kernels of their own there; sums of gradients are read and written in the width of the sum."""
    told = []

    def predict(op, device, kernels):
        told.append((op.m, op.n, op.k, op.batch, op.format, op.quantises_input, op.result_bytes))
        return SimpleNamespace(time_s=1.0)

    monkeypatch.setattr(products.kernels, "predict", predict)
    job = SimpleNamespace(cluster=SimpleNamespace(device=None), framework=SimpleNamespace(kernels="pytorch"))
    assert products._time(job, 2, 3, 4, 5, "fp8", 8.0) == 1.0
    assert told == [(2, 3, 4, 5, "fp8", False, 8.0)]


def test_what_a_tree_search_of_addresses_does_unless_it_is_told():
    usual = TreeSearchMappingKnobs(width=6, num_offsets=2, num_playouts=2, noise_ratio=0.3, seed=0)
    assert TreeSearchMappingKnobs() == usual
